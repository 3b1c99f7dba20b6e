/* The report as a memory snapshot in the form that PyTorch's viewer (pytorch.org/memory_viz) reads: one segment, the
 * arena, whose blocks tile it as they lie when the step ends, and the trace of every value's coming and going, in
 * predicted time. A "frame" names the value, below it the op that made it.
 *
 * Invariant: at no moment of the trace are there two blocks at one address. */
#include <stdlib.h>

#include "base/file.h"
#include "report/pickle.h"
#include "report/report.h"

/* A plausible address: viewers print it in hexadecimal and use it as a key. */
#define BASE_ADDRESS UINT64_C(0x7f0000000000)

typedef struct event {
    uint64_t t_ns, order; /* order: place in issue order among what happens at one instant; leaving counts first */
    tide_id residency;
    bool frees;
} event;

static int by_time(const void *a, const void *b) {
    const event *x = a, *y = b;
    if (x->t_ns != y->t_ns) return x->t_ns < y->t_ns ? -1 : 1;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    if (x->frees != y->frees) return x->frees ? -1 : 1;
    return x->residency < y->residency ? -1 : x->residency > y->residency;
}

static bool is_there_at_end(const tide_report *r, tide_id id) { return r->stays[id].end >= r->timeline->n_actions; }

/* Action i starts at order 3 i + 1; what was handed over leaves there, just before; others leave at 3 i + 3. */
static size_t list_events(const tide_report *r, event *events) {
    size_t n = 0;
    for (tide_id i = 0; i < tide_plan_residency_count(r->plan); i++) {
        const tide_residency *d = tide_plan_residency(r->plan, i);
        const tide_stay *s = &r->stays[i];
        bool handed_over = s->end != d->end;
        if (d->size_bytes == 0 || (handed_over && s->end <= s->begin)) continue;
        uint64_t from = d->at_start ? 0 : 3 * (uint64_t)s->begin + 1;
        uint64_t to = handed_over             ? 3 * (uint64_t)s->end + 1
                      : s->until == TIDE_NONE ? from + 1
                                              : 3 * (uint64_t)s->until + 3;
        events[n++] = (event){s->from_ns, from, i, false};
        if (!is_there_at_end(r, i)) events[n++] = (event){s->to_ns, to, i, true};
    }
    qsort(events, n, sizeof *events, by_time);
    return n;
}

static void member_u64(tide__pickle *p, const char *key, uint64_t value) {
    tide__pickle_word(p, key);
    tide__pickle_u64(p, value);
}

static void member_word(tide__pickle *p, const char *key, const char *word) {
    tide__pickle_word(p, key);
    tide__pickle_word(p, word);
}

static void write_frame(tide__pickle *p, const char *name, const char *file, uint64_t line) {
    tide__pickle_dict_begin(p);
    tide__pickle_word(p, "name");
    tide__pickle_text(p, name);
    member_word(p, "filename", file);
    member_u64(p, "line", line);
    tide__pickle_dict_end(p);
}

static void write_frames(tide__pickle *p, const tide_report *r, tide_id id) {
    const tide_residency *d = tide_plan_residency(r->plan, id);
    tide__pickle_word(p, "frames");
    tide__pickle_list_begin(p);
    write_frame(p, tide_report_stay_name(r, id), tide_class_name(tide_report_stay_class(r, id)),
                d->tensor == TIDE_NONE ? 0 : d->tensor);
    if (!d->at_start && d->begin < r->timeline->n_actions) {
        tide_action a = tide_plan_action(r->plan, d->begin);
        if (a.kind == TIDE_RUN) {
            const tide_op *op = tide_program_op(r->program, a.op);
            write_frame(p, op->name, tide_phase_name(op->phase), a.op);
        } else {
            write_frame(p, a.kind == TIDE_LOAD ? "load" : "relocate", "transfer", d->begin);
        }
    }
    tide__pickle_list_end(p);
}

/* ---- the segment ---- */

typedef struct block {
    uint64_t offset, size;
    tide_id residency; /* TIDE_NONE: free */
} block;

static int by_offset(const void *a, const void *b) {
    const block *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void write_block(tide__pickle *p, const tide_report *r, const block *b) {
    if (b->size == 0) return;
    tide__pickle_dict_begin(p);
    member_u64(p, "address", BASE_ADDRESS + b->offset);
    member_u64(p, "size", b->size);
    member_u64(p, "requested_size", b->residency == TIDE_NONE ? 0 : b->size);
    member_word(p, "state", b->residency == TIDE_NONE ? "inactive" : "active_allocated");
    if (b->residency == TIDE_NONE) {
        tide__pickle_word(p, "frames");
        tide__pickle_list_begin(p);
        tide__pickle_list_end(p);
    } else {
        write_frames(p, r, b->residency);
    }
    tide__pickle_dict_end(p);
}

/* What lies in the arena at the end, and the gaps between: together they tile it. */
static void write_blocks(tide__pickle *p, const tide_report *r, const block *blocks, size_t n) {
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        write_block(p, r, &(block){at, blocks[i].offset - at, TIDE_NONE});
        write_block(p, r, &blocks[i]);
        at = blocks[i].offset + blocks[i].size;
    }
    write_block(p, r, &(block){at, tide_plan_arena_bytes(r->plan) - at, TIDE_NONE});
}

static void write_segment(tide__pickle *p, const tide_report *r, const block *blocks, size_t n) {
    uint64_t used = 0;
    for (size_t i = 0; i < n; i++) used += blocks[i].size;
    tide__pickle_dict_begin(p);
    member_u64(p, "device", 0);
    member_u64(p, "address", BASE_ADDRESS);
    member_u64(p, "total_size", tide_plan_arena_bytes(r->plan));
    member_u64(p, "allocated_size", used);
    member_u64(p, "active_size", used);
    member_u64(p, "requested_size", used);
    member_u64(p, "stream", 0);
    member_word(p, "segment_type", "large");
    tide__pickle_word(p, "frames");
    tide__pickle_list_begin(p);
    tide__pickle_list_end(p);
    tide__pickle_word(p, "blocks");
    tide__pickle_list_begin(p);
    write_blocks(p, r, blocks, n);
    tide__pickle_list_end(p);
    tide__pickle_dict_end(p);
}

static tide_status write_segments(tide__pickle *p, const tide_report *r) {
    size_t n = 0;
    block *blocks = malloc(((size_t)tide_plan_residency_count(r->plan) + 1) * sizeof *blocks);
    if (!blocks) return tide__fail_memory();
    for (tide_id i = 0; i < tide_plan_residency_count(r->plan); i++) {
        const tide_residency *d = tide_plan_residency(r->plan, i);
        if (d->size_bytes && is_there_at_end(r, i)) blocks[n++] = (block){d->offset_bytes, d->size_bytes, i};
    }
    qsort(blocks, n, sizeof *blocks, by_offset);
    tide__pickle_word(p, "segments");
    tide__pickle_list_begin(p);
    if (tide_plan_arena_bytes(r->plan)) write_segment(p, r, blocks, n);
    tide__pickle_list_end(p);
    free(blocks);
    return TIDE_OK;
}

/* ---- the trace ---- */

static void begin_entry(tide__pickle *p, const char *action, uint64_t offset, uint64_t size, uint64_t t_ns) {
    tide__pickle_dict_begin(p);
    member_word(p, "action", action);
    member_u64(p, "addr", BASE_ADDRESS + offset);
    member_u64(p, "size", size);
    member_u64(p, "stream", 0);
    member_u64(p, "time_us", t_ns / 1000);
}

static void write_entry(tide__pickle *p, const tide_report *r, const char *action, const event *e) {
    const tide_residency *d = tide_plan_residency(r->plan, e->residency);
    begin_entry(p, action, d->offset_bytes, d->size_bytes, e->t_ns);
    write_frames(p, r, e->residency);
    tide__pickle_dict_end(p);
}

static void write_entries(tide__pickle *p, const tide_report *r, const event *events, size_t n) {
    if (tide_plan_arena_bytes(r->plan)) {
        begin_entry(p, "segment_alloc", 0, tide_plan_arena_bytes(r->plan), 0);
        tide__pickle_word(p, "frames");
        tide__pickle_list_begin(p);
        tide__pickle_list_end(p);
        tide__pickle_dict_end(p);
    }
    for (size_t i = 0; i < n; i++) {
        write_entry(p, r, events[i].frees ? "free_requested" : "alloc", &events[i]);
        if (events[i].frees) write_entry(p, r, "free_completed", &events[i]);
    }
}

static tide_status write_traces(tide__pickle *p, const tide_report *r) {
    event *events = malloc(((size_t)2 * tide_plan_residency_count(r->plan) + 1) * sizeof *events);
    if (!events) return tide__fail_memory();
    size_t n = list_events(r, events);
    tide__pickle_word(p, "device_traces");
    tide__pickle_list_begin(p); /* of devices */
    tide__pickle_list_begin(p);
    write_entries(p, r, events, n);
    tide__pickle_list_end(p);
    tide__pickle_list_end(p);
    free(events);
    return TIDE_OK;
}

static tide_status write_snapshot(const tide_report *r, FILE *f) {
    tide__pickle p;
    tide__pickle_open(&p, f);
    tide__pickle_dict_begin(&p);
    TIDE_TRY(write_segments(&p, r));
    TIDE_TRY(write_traces(&p, r));
    tide__pickle_dict_end(&p);
    tide__pickle_close(&p);
    return TIDE_OK;
}

tide_status tide_report_write_memory_viz(const tide_report *r, const char *path) {
    TIDE_NEED(r, path);
    if (r->ran) r = r->ran;
    tide__writer w;
    TIDE_TRY(tide__writer_open(&w, path));
    tide_status status = write_snapshot(r, w.stream);
    if (status == TIDE_OK) return tide__writer_commit(&w);
    tide__writer_abort(&w);
    return status;
}
