/* See compare.h. */
#include "pool/compare.h"

#include <stdlib.h>

#include "base/size.h"

#define RECORDED_STEP 512 /* a device allocator's */

/* ---- as recorded ---- */

typedef struct range {
    uint64_t begin, end;
} range;

static int by_begin(const void *a, const void *b) {
    const range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* "0x7f..." up to 16 digits. */
static bool parse_address(const char *text, uint64_t *out) {
    char *end;
    if (text[0] != '0' || text[1] != 'x' || !text[2]) return false;
    *out = strtoull(text + 2, &end, 16);
    return *end == 0 && end - text <= 18;
}

static uint64_t covered_bytes(range *ranges, size_t n) {
    uint64_t bytes = 0, end = 0;
    qsort(ranges, n, sizeof *ranges, by_begin);
    for (size_t i = 0; i < n; i++) {
        uint64_t from = tide__max_u64(ranges[i].begin, end);
        if (ranges[i].end <= from) continue;
        bytes += ranges[i].end - from;
        end = ranges[i].end;
    }
    return bytes;
}

static tide_status measure_recorded(const tide__stream *stream, uint64_t *bytes) {
    size_t n = stream->blocks.count;
    range *ranges = malloc((n + 1) * sizeof *ranges);
    bool good = true;
    uint64_t end;
    if (!ranges) return tide__fail_memory();
    for (size_t i = 0; good && i < n; i++) {
        const tide__stream_block *b = &stream->blocks.data[i];
        good = parse_address(tide__names_text(&stream->names, b->name), &ranges[i].begin) &&
               tide__add(ranges[i].begin, b->size_bytes, &end) && tide__align_up(end, RECORDED_STEP, &ranges[i].end);
    }
    *bytes = good ? covered_bytes(ranges, n) : 0;
    free(ranges);
    return TIDE_OK;
}

/* ---- the others ---- */

static uint64_t find_load(const tide__stream *stream) {
    uint64_t live = 0, most = 0;
    for (size_t i = 0; i < stream->events.count; i++) {
        const tide__event *e = &stream->events.data[i];
        uint64_t bytes = stream->blocks.data[e->block].size_bytes;
        if (e->kind == TIDE__EVENT_MALLOC) live = tide__add_capped(live, bytes);
        if (e->kind == TIDE__EVENT_FREE) live -= tide__min_u64(bytes, live);
        most = tide__max_u64(most, live);
    }
    return most;
}

static tide_status run_online(const tide__requests *requests, uint64_t alignment, uint64_t limit_bytes,
                              tide_replay_others *c) {
    for (int k = 0; k < TIDE_REPLAY_N_ONLINE; k++) {
        tide__online_result r;
        tide_status status = tide__online_run(tide__online_kinds[k], requests, alignment, limit_bytes, &r);
        if (status != TIDE_OK && status != TIDE_E_MEMORY) return status;
        c->online[k].name = tide__online_kinds[k]->name;
        if (status != TIDE_OK) continue;
        c->online[k].peak_held_bytes = r.peak_held_bytes;
        c->online[k].n_segments = r.n_segments;
        c->online[k].fits = true;
    }
    return TIDE_OK;
}

static tide_status run_offline(const tide__requests *requests, uint64_t alignment, double seconds,
                               tide_replay_others *c) {
    tide_status status = tide__offline_place(requests, alignment, seconds, &c->offline);
    c->repeats = status == TIDE_OK;
    return status == TIDE_E_REPEAT ? TIDE_OK : status;
}

tide_status tide__compare(const tide__stream *stream, uint64_t alignment, uint64_t limit_bytes, double seconds,
                          tide_replay_others *out) {
    tide_replay_others c = {.load_bytes = find_load(stream)};
    tide__requests requests;
    TIDE_TRY(measure_recorded(stream, &c.recorded_bytes));
    if (c.recorded_bytes < c.load_bytes) c.recorded_bytes = 0; /* numbers, but no addresses */
    TIDE_TRY(tide__requests_of_stream(stream, &requests));
    tide_status status = run_online(&requests, alignment, limit_bytes, &c);
    if (status == TIDE_OK) status = run_offline(&requests, alignment, seconds, &c);
    tide__requests_deinit(&requests);
    if (status == TIDE_OK) *out = c;
    return status;
}
