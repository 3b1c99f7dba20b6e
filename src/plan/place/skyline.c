/* The skyline heuristic of skyline.h: a ring of segments, a heap that finds the lowest, and a tree (skytree.h)
 * that finds the best-ranked item inside a segment. */
#include "plan/place/skyline.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/place/skytree.h"

#define NONE UINT32_MAX

typedef struct segment {
    uint64_t height;
    uint32_t begin, end; /* begin < n_times; unrolled end; begin == end - n_times: the whole ring */
    uint32_t previous, next;
    bool alive;
} segment;

typedef struct heap_entry {
    uint64_t height;
    uint32_t begin, segment;
} heap_entry;

struct tide__place_skyline {
    const tide__place_problem *p;
    bool ring;                  /* some item is alive across the turn of the step; else time has walls at both ends */
    tide__place_skypoint *arcs; /* per item; begin < n_times, end is unrolled: up to a turn more */
    tide__place_skytree tree;
    uint32_t *rank;        /* per item, of the current run */
    const uint32_t *order; /* items by rank */
    segment *segments;
    uint32_t n_segments, spare; /* spare: a list of dead ones, linked by next */
    heap_entry *heap;
    size_t n_heap;
};

/* ---- setup ---- */

static bool spans_turn(const tide__place_problem *p, const tide__place_item *it) {
    return it->begin2 < it->end2 && it->begin == 0 && it->end2 == p->n_times;
}

static tide__place_skypoint to_arc(const tide__place_problem *p, const tide__place_item *it) {
    if (spans_turn(p, it)) return (tide__place_skypoint){it->begin2, it->end + p->n_times};
    return (tide__place_skypoint){it->begin, it->begin2 < it->end2 ? it->end2 : it->end};
}

static tide_status allocate(tide__place_skyline *s) {
    size_t n = s->p->n;
    s->arcs = malloc((n + 1) * sizeof *s->arcs);
    s->rank = malloc((n + 1) * sizeof *s->rank);
    s->segments = malloc((2 * n + 4) * sizeof *s->segments);
    s->heap = malloc((6 * n + 8) * sizeof *s->heap); /* <= 3 entries per item placed, 1 per segment raised */
    return s->arcs && s->rank && s->segments && s->heap ? TIDE_OK : tide__fail_memory();
}

static tide_status set_up(tide__place_skyline *s, const tide__place_problem *p) {
    s->p = p;
    TIDE_TRY(allocate(s));
    for (size_t i = 0; i < p->n; i++) {
        s->arcs[i] = to_arc(p, &p->items[i]);
        s->ring |= spans_turn(p, &p->items[i]);
    }
    return tide__place_skytree_init(&s->tree, s->arcs, p->n);
}

tide_status tide__place_skyline_create(const tide__place_problem *p, tide__place_skyline **out) {
    if (p->fixed || p->huge) return tide__fail(TIDE_E_UNSUPPORTED, "skyline: fixed offsets or huge sizes");
    tide__place_skyline *s = calloc(1, sizeof *s);
    if (!s) return tide__fail_memory();
    tide_status status = set_up(s, p);
    if (status == TIDE_OK)
        *out = s;
    else
        tide__place_skyline_destroy(s);
    return status;
}

void tide__place_skyline_destroy(tide__place_skyline *s) {
    if (!s) return;
    tide__place_skytree_deinit(&s->tree);
    free(s->arcs);
    free(s->rank);
    free(s->segments);
    free(s->heap);
    free(s);
}

static uint32_t best_within(const tide__place_skyline *s, const segment *seg) {
    uint32_t times = s->p->n_times;
    if (seg->end - seg->begin == times) return tide__place_skytree_best(&s->tree, 0, UINT32_MAX, TIDE__PLACE_RANK_NONE);
    uint32_t best = tide__place_skytree_best(&s->tree, seg->begin, seg->end, TIDE__PLACE_RANK_NONE);
    return seg->end <= times ? best : tide__place_skytree_best(&s->tree, 0, seg->end - times, best);
}

/* ---- the heap of segments ---- */

static bool lower(heap_entry a, heap_entry b) { return a.height != b.height ? a.height < b.height : a.begin < b.begin; }

static bool is_current(const tide__place_skyline *s, heap_entry e) {
    const segment *seg = &s->segments[e.segment];
    return seg->alive && seg->height == e.height && seg->begin == e.begin;
}

static void heap_push(tide__place_skyline *s, uint32_t id) {
    heap_entry e = {s->segments[id].height, s->segments[id].begin, id};
    size_t k = s->n_heap++;
    for (; k > 0 && lower(e, s->heap[(k - 1) / 2]); k = (k - 1) / 2) s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k] = e;
}

static void heap_pop(tide__place_skyline *s) {
    heap_entry e = s->heap[--s->n_heap];
    size_t k = 0;
    for (;;) {
        size_t child = 2 * k + 1;
        if (child >= s->n_heap) break;
        if (child + 1 < s->n_heap && lower(s->heap[child + 1], s->heap[child])) child++;
        if (!lower(s->heap[child], e)) break;
        s->heap[k] = s->heap[child];
        k = child;
    }
    s->heap[k] = e;
}

static uint32_t lowest_segment(tide__place_skyline *s) {
    while (!is_current(s, s->heap[0])) heap_pop(s);
    return s->heap[0].segment;
}

/* ---- the ring of segments ---- */

static uint32_t new_segment(tide__place_skyline *s, uint32_t begin, uint32_t end, uint64_t height) {
    uint32_t id = s->spare;
    if (id != NONE)
        s->spare = s->segments[id].next;
    else
        id = s->n_segments++;
    if (begin >= s->p->n_times) begin -= s->p->n_times, end -= s->p->n_times;
    s->segments[id] = (segment){height, begin, end, NONE, NONE, true};
    return id;
}

static void kill_segment(tide__place_skyline *s, uint32_t id) {
    s->segments[id].alive = false;
    s->segments[id].next = s->spare;
    s->spare = id;
}

static void link_segments(tide__place_skyline *s, uint32_t left, uint32_t right) {
    if (left != NONE) s->segments[left].next = right;
    if (right != NONE) s->segments[right].previous = left;
}

static uint64_t height_of(const tide__place_skyline *s, uint32_t id) {
    return id == NONE ? UINT64_MAX : s->segments[id].height;
}

/* `id` takes in its right neighbour. */
static void absorb_next(tide__place_skyline *s, uint32_t id) {
    uint32_t gone = s->segments[id].next, after = s->segments[gone].next;
    s->segments[id].end += s->segments[gone].end - s->segments[gone].begin;
    link_segments(s, id, after);
    kill_segment(s, gone);
}

/* Joins neighbours of equal height; returns the segment that remains and needs a new heap entry. */
static uint32_t join_level(tide__place_skyline *s, uint32_t id) {
    uint32_t next = s->segments[id].next;
    if (next != id && height_of(s, next) == s->segments[id].height) absorb_next(s, id);
    uint32_t previous = s->segments[id].previous;
    if (previous == id || height_of(s, previous) != s->segments[id].height) return id;
    absorb_next(s, previous);
    return previous;
}

static void raise_segment(tide__place_skyline *s, uint32_t id) {
    segment *seg = &s->segments[id];
    seg->height = tide__min_u64(height_of(s, seg->previous), height_of(s, seg->next));
    heap_push(s, join_level(s, id));
}

/* Puts `middle` and, where there is something left of and right of it, `before` and `after` in the place of a segment
 * that was between `left` and `right`. */
static void splice(tide__place_skyline *s, uint32_t left, uint32_t before, uint32_t middle, uint32_t after,
                   uint32_t right) {
    uint32_t last = left;
    if (before != NONE) link_segments(s, last, before), last = before;
    link_segments(s, last, middle);
    last = middle;
    if (after != NONE) link_segments(s, last, after), last = after;
    link_segments(s, last, right);
}

/* Raises the arc's part of segment `id` to `top`; what is left and right of it stays. The whole ring is cut open at
 * the arc's begin first. */
static void cover(tide__place_skyline *s, uint32_t id, tide__place_skypoint arc, uint64_t top) {
    segment seg = s->segments[id];
    uint32_t times = s->p->n_times;
    bool closed = s->ring && seg.end - seg.begin == times;
    if (closed) seg.begin = arc.begin, seg.end = arc.begin + times;
    if (arc.begin < seg.begin) arc.begin += times, arc.end += times;
    kill_segment(s, id);
    uint32_t middle = new_segment(s, arc.begin, arc.end, top);
    uint32_t before = arc.begin > seg.begin ? new_segment(s, seg.begin, arc.begin, seg.height) : NONE;
    uint32_t after = arc.end < seg.end ? new_segment(s, arc.end, seg.end, seg.height) : NONE;
    if (closed) seg.previous = after != NONE ? after : middle, seg.next = middle;
    splice(s, seg.previous, before, middle, after, seg.next);
    if (before != NONE) heap_push(s, before);
    if (after != NONE) heap_push(s, after);
    heap_push(s, join_level(s, middle));
}

static void start_run(tide__place_skyline *s, const uint32_t *order) {
    for (uint32_t k = 0; k < s->p->n; k++) s->rank[order[k]] = k;
    s->order = order;
    tide__place_skytree_fill(&s->tree, s->rank);
    s->n_segments = 0;
    s->spare = NONE;
    s->n_heap = 0;
    uint32_t id = new_segment(s, 0, s->p->n_times, 0);
    if (s->ring) link_segments(s, id, id);
    heap_push(s, id);
}

/* Puts the item on the segment; returns where the item ends. */
static uint64_t place_on(tide__place_skyline *s, uint32_t id, uint32_t item, uint64_t *offset) {
    const tide__place_item *it = &s->p->items[item];
    *offset = (s->segments[id].height + it->align - 1) & ~(it->align - 1);
    tide__place_skytree_take(&s->tree, item);
    cover(s, id, s->arcs[item], *offset + it->size);
    return *offset + it->size;
}

uint64_t tide__place_skyline_run(tide__place_skyline *s, const uint32_t *order, uint64_t *offsets) {
    uint64_t height = 0;
    start_run(s, order);
    for (size_t placed = 0; placed < s->p->n;) {
        uint32_t id = lowest_segment(s), rank = best_within(s, &s->segments[id]);
        heap_pop(s);
        if (rank == TIDE__PLACE_RANK_NONE) {
            raise_segment(s, id);
            continue;
        }
        uint32_t item = order[rank];
        height = tide__max_u64(height, place_on(s, id, item, &offsets[item]));
        placed++;
    }
    return height;
}
