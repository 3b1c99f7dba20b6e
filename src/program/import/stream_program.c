/* The second half of stream.h: one iteration of a stream becomes a repeating program.
 *
 * The iteration may be cut anywhere in the repetition. It is cut where the fewest bytes are live (the first such place
 * of the last whole iteration): that is the natural border between two steps, and gives the fewest carries. A block
 * that is live at both ends of the cut must be paired, one to one, with what it was an iteration earlier; where that
 * fails memory grows or a lifetime is longer than what was recorded shows, and the stream is refused. */
#include "program/import/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "program/period.h"

typedef struct maker {
    const tide__stream *stream;
    tide__period period;
    size_t cut; /* op 0 is event `cut`, the last op event cut + period.length - 1 */
    tide_program_builder *b;
    uint32_t *older;  /* per block: what it was one iteration ago, if live at the end; else TIDE_NONE */
    tide_id *first;   /* per block: its value at the start; TIDE_NONE if it is not live there */
    tide_id *current; /* per block: its value now */
    bool *is_read;    /* per block: its bytes matter after they are written; true for all unless asked for */
} maker;

static bool is_live(const tide__stream_block *block, size_t at) {
    return block->malloc_event < at && (block->free_event == TIDE_NONE || block->free_event >= at);
}

static size_t line_of(const maker *m, size_t event) { return m->stream->events.data[event].line; }

/* ---- the load, and where to cut ---- */

/* load[i] = bytes live while event i happens, i.e. with what it mallocs or frees. */
static tide_status compute_load(const tide__stream *stream, uint64_t **out) {
    size_t n = stream->events.count;
    uint64_t *load = calloc(n ? n : 1, sizeof *load), live = 0;
    if (!load) return tide__fail_memory();
    for (size_t i = 0; i < n; i++) {
        const tide__event *event = &stream->events.data[i];
        uint64_t size = stream->blocks.data[event->block].size_bytes;
        if (event->kind == TIDE__EVENT_MALLOC && !tide__add(live, size, &live)) {
            free(load);
            return tide__fail(TIDE_E_OVERFLOW, "%s:%zu: the live bytes exceed 64 bits", stream->in->name, event->line);
        }
        load[i] = live;
        if (event->kind == TIDE__EVENT_FREE) live -= size;
    }
    *out = load;
    return TIDE_OK;
}

/* Bytes live between event i - 1 and event i. */
static uint64_t load_before(const tide__stream *stream, const uint64_t *load, size_t i) {
    const tide__event *event = &stream->events.data[i];
    return load[i] - (event->kind == TIDE__EVENT_MALLOC ? stream->blocks.data[event->block].size_bytes : 0);
}

static size_t best_cut(const maker *m, const uint64_t *load) {
    const tide__period *p = &m->period;
    size_t last = p->end - p->length, from = last - p->length + 1, best;
    if (from < p->begin + p->length) from = p->begin + p->length;
    best = from;
    for (size_t i = from; i <= last; i++)
        if (load_before(m->stream, load, i) < load_before(m->stream, load, best)) best = i;
    return best;
}

/* ---- what a block was one iteration ago ---- */

static tide_status refuse_block(const maker *m, const tide__stream_block *block) {
    return tide__fail(
        TIDE_E_REPEAT,
        "%s:%zu: the stream repeats, but its blocks do not (%.40s, malloced here): memory grows with every "
        "iteration, or too few were recorded",
        m->stream->in->name, line_of(m, block->malloc_event), tide__names_text(&m->stream->names, block->name));
}

/* The last event of a live block has its twin one period earlier, on the block in question: usually the same block, or
 * the one malloced an iteration before, or the other one of two that take turns. A block without an event in all that
 * time just stays. */
static uint32_t find_older(const maker *m, uint32_t block, uint32_t last_event) {
    if (last_event < m->period.begin + m->period.length) return block;
    return m->stream->events.data[last_event - m->period.length].block;
}

/* Every block that is live at the cut must be the older self of exactly one that is live an iteration later. */
static tide_status match_blocks(maker *m, const uint32_t *last_event, bool *taken) {
    const tide__stream *stream = m->stream;
    for (size_t i = 0; i < stream->blocks.count; i++) {
        m->older[i] = TIDE_NONE;
        if (!is_live(&stream->blocks.data[i], m->cut + m->period.length)) continue;
        uint32_t older = find_older(m, (uint32_t)i, last_event[i]);
        if (taken[older] || !is_live(&stream->blocks.data[older], m->cut))
            return refuse_block(m, &stream->blocks.data[i]);
        m->older[i] = older;
        taken[older] = true;
    }
    for (size_t i = 0; i < stream->blocks.count; i++)
        if (is_live(&stream->blocks.data[i], m->cut) && !taken[i]) return refuse_block(m, &stream->blocks.data[i]);
    return TIDE_OK;
}

/* Fills `older` for the cut. */
static tide_status pair_blocks(maker *m) {
    size_t n = m->stream->blocks.count;
    uint32_t *last_event = calloc(n + 1, sizeof *last_event);
    bool *taken = calloc(n + 1, sizeof *taken);
    tide_status status = last_event && taken ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) {
        for (size_t i = 0; i < m->cut + m->period.length; i++)
            last_event[m->stream->events.data[i].block] = (uint32_t)i;
        status = match_blocks(m, last_event, taken);
    }
    free(last_event);
    free(taken);
    return status;
}

/* The cut with the fewest live bytes, else the latest one: it shows the longest lifetimes. */
static tide_status choose_cut(maker *m, const uint64_t *load) {
    size_t latest = m->period.end - m->period.length;
    m->cut = best_cut(m, load);
    tide_status status = pair_blocks(m);
    if (status != TIDE_E_REPEAT || m->cut == latest) return status;
    m->cut = latest;
    return pair_blocks(m);
}

/* ---- costs ---- */

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Median (the lower of two) over the iterations of the time from op i's event to the next one. */
static uint64_t median_cost(const maker *m, size_t i, uint64_t *samples) {
    const tide__event *events = m->stream->events.data;
    size_t n = 0, p = m->period.length;
    for (size_t at = m->period.begin + (m->cut + i - m->period.begin) % p; at < m->period.end; at += p)
        if (at + 1 < m->stream->events.count) samples[n++] = events[at + 1].t_ns - events[at].t_ns;
    qsort(samples, n, sizeof *samples, compare_u64);
    return samples[(n - 1) / 2];
}

static uint64_t even_cost(const maker *m, size_t i, uint64_t total_ns) {
    uint64_t n = m->period.length;
    return total_ns / n + (i < total_ns % n ? 1 : 0);
}

/* ---- ops and tensors ---- */

/* A block that lives over the cut is one with what it was an iteration earlier; a few rounds settle chains of those. */
static void find_read_blocks(maker *m) {
    const tide__stream *stream = m->stream;
    for (size_t i = 0; i < stream->blocks.count; i++) m->is_read[i] = !stream->in->options.drop_unread;
    for (size_t i = 0; i < stream->events.count; i++) {
        tide__event_kind kind = stream->events.data[i].kind;
        if (kind == TIDE__EVENT_READ || kind == TIDE__EVENT_LAYER) m->is_read[stream->events.data[i].block] = true;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < stream->blocks.count; i++) {
            if (m->older[i] == TIDE_NONE || m->is_read[i] == m->is_read[m->older[i]]) continue;
            m->is_read[i] = m->is_read[m->older[i]] = changed = true;
        }
    }
}

/* Does the event need what is in the block? */
static bool event_reads(const maker *m, const tide__event *event) {
    if (event->kind == TIDE__EVENT_MALLOC || !m->is_read[event->block]) return false;
    return event->kind != TIDE__EVENT_FREE || !m->stream->in->options.drop_unread;
}

static tide_status add_tensor(maker *m, uint32_t block, tide_start start, tide_id *out) {
    const tide__stream_block *from = &m->stream->blocks.data[block];
    tide_tensor tensor = {.name = tide__names_text(&m->stream->names, from->name),
                          .size_bytes = from->size_bytes,
                          .dtype = TIDE_BYTES,
                          .cls = TIDE_CLASS_OTHER,
                          .start = start};
    return tide_program_builder_tensor(m->b, &tensor, out);
}

static tide_status add_starts(maker *m) {
    for (size_t i = 0; i < m->stream->blocks.count; i++) {
        m->first[i] = TIDE_NONE;
        if (is_live(&m->stream->blocks.data[i], m->cut) && m->is_read[i])
            TIDE_TRY(add_tensor(m, (uint32_t)i, TIDE_START_PRESENT, &m->first[i]));
        m->current[i] = m->first[i];
    }
    return TIDE_OK;
}

static tide_status add_op(maker *m, const tide__event *event, uint64_t cost_ns) {
    static const char *const names[] = {"malloc", "free", "read", "mutable", "layer"};
    static const tide_inplace update = {.read = 0, .write = 0, .must = true};
    bool writes = event->kind == TIDE__EVENT_MALLOC || event->kind == TIDE__EVENT_MUTABLE;
    tide_variant variant = {.cost_ns = cost_ns};
    tide_id read = m->current[event->block], write = TIDE_NONE;
    bool reads = event_reads(m, event);
    if (writes) TIDE_TRY(add_tensor(m, event->block, TIDE_START_ABSENT, &write));
    tide_op op = {.name = names[event->kind],
                  .phase = TIDE_FORWARD,
                  .n_reads = reads,
                  .n_writes = writes,
                  .n_inplace = reads && event->kind == TIDE__EVENT_MUTABLE,
                  .n_variants = 1,
                  .reads = &read,
                  .writes = &write,
                  .inplace = &update,
                  .variants = &variant};
    if (writes) m->current[event->block] = write;
    return tide_program_builder_op(m->b, &op, NULL);
}

static tide_status add_ops(maker *m) {
    size_t iterations = (m->period.end - m->period.begin) / m->period.length + 1;
    uint64_t total_ns = m->stream->in->options.iteration_time_ns;
    uint64_t *samples = calloc(iterations, sizeof *samples);
    tide_status status = samples ? TIDE_OK : tide__fail_memory();
    for (size_t i = 0; i < m->period.length && status == TIDE_OK; i++) {
        uint64_t cost_ns = total_ns ? even_cost(m, i, total_ns) : median_cost(m, i, samples);
        status = add_op(m, &m->stream->events.data[m->cut + i], cost_ns);
    }
    free(samples);
    return status;
}

static tide_status add_carries(maker *m) {
    for (size_t i = 0; i < m->stream->blocks.count; i++) {
        if (m->older[i] == TIDE_NONE || !m->is_read[i]) continue;
        TIDE_TRY(tide_program_builder_keep(m->b, m->current[i]));
        TIDE_TRY(tide_program_builder_carry(m->b, (tide_carry){.from = m->current[i], .to = m->first[m->older[i]]}));
    }
    return TIDE_OK;
}

/* ---- the whole ---- */

static tide_status find_period(maker *m) {
    const tide__stream *stream = m->stream;
    size_t stops_at = 0;
    tide_status status = tide__period_find(stream->symbols.data, stream->symbols.count, &m->period, &stops_at);
    if (status != TIDE_E_REPEAT) return status;
    size_t line = stops_at < stream->events.count ? line_of(m, stops_at) : stream->line;
    return tide__fail_in(status, "%s:%zu", stream->in->name, line);
}

static tide_status make_program(maker *m, tide_program **out) {
    const char *slash = strrchr(m->stream->in->name, '/');
    TIDE_TRY(tide_program_builder_create(slash ? slash + 1 : m->stream->in->name, true, &m->b));
    find_read_blocks(m);
    TIDE_TRY(add_starts(m));
    TIDE_TRY(add_ops(m));
    TIDE_TRY(add_carries(m));
    TIDE_TRY(tide_program_builder_finish(m->b, out));
    m->b = NULL;
    return TIDE_OK;
}

static void fill_stats(const maker *m, const uint64_t *load, tide_import_stats *stats) {
    *stats = (tide_import_stats){.n_events = m->stream->events.count,
                                 .period_events = m->period.length,
                                 .repeat_begin = m->period.begin,
                                 .repeat_end = m->period.end,
                                 .cut = m->cut};
    for (size_t i = m->cut; i < m->cut + m->period.length; i++)
        stats->release_peak_bytes = tide__max_u64(stats->release_peak_bytes, load[i]);
}

static tide_status allocate(maker *m) {
    size_t n = m->stream->blocks.count + 1;
    m->older = calloc(n, sizeof *m->older);
    m->first = calloc(n, sizeof *m->first);
    m->current = calloc(n, sizeof *m->current);
    m->is_read = calloc(n, sizeof *m->is_read);
    return m->older && m->first && m->current && m->is_read ? TIDE_OK : tide__fail_memory();
}

tide_status tide__stream_program(const tide__stream *stream, tide_program **out, tide_import_stats *stats) {
    maker m = {.stream = stream};
    uint64_t *load = NULL;
    tide_status status;
    TIDE_TRY_GOTO(allocate(&m), done);
    TIDE_TRY_GOTO(compute_load(stream, &load), done);
    TIDE_TRY_GOTO(find_period(&m), done);
    TIDE_TRY_GOTO(choose_cut(&m, load), done);
    status = make_program(&m, out);
    if (status == TIDE_OK)
        fill_stats(&m, load, stats);
    else
        tide__fail_in(status, "%s", stream->in->name);
done:
    tide_program_builder_destroy(m.b);
    free(load);
    free(m.older);
    free(m.first);
    free(m.current);
    free(m.is_read);
    return status;
}
