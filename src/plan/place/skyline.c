/* The skyline heuristic of skyline.h: a ring of segments, a heap that finds the lowest, and a tree (skytree.h)
 * that finds the best-ranked item inside a segment. */
#include "plan/place/skyline.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/place/skytree.h"

#define NONE UINT32_MAX
#define PATIENCE 4 /* raises to the neighbours per item and pin, before what lies under pins is given up at once */

/* A flat part of the skyline. */
typedef struct segment {
    uint64_t height;
    uint32_t begin, end; /* begin < n_times; unrolled end; begin == end - n_times: the whole ring */
    uint32_t previous, next;
    uint32_t place; /* in the heap */
} segment;

/* What lies above the skyline before the run begins: one lifetime of an item that has its place. */
typedef struct pin {
    uint64_t bottom, top;
    tide__place_skypoint arc;
} pin;

struct tide__place_skyline {
    const tide__place_problem *p;
    bool ring;                  /* some item is alive across the turn of the step; else time has walls at both ends */
    tide__place_skypoint *arcs; /* per item; begin < n_times, end is unrolled: up to a turn more */
    tide__place_skytree tree;
    uint32_t *rank; /* per item, of the current run */
    segment *segments;
    uint32_t n_segments, spare; /* spare: a list of dead ones, linked by next */
    uint32_t *heap;             /* the segments that are alive, the lowest first */
    size_t n_heap;
    pin *pins; /* by bottom */
    uint32_t n_pins;
    tide__place_skypoint *pin_points; /* (end, begin) of each */
    tide__place_skytree pin_tree;     /* ranked by bottom: those that the skyline has not reached */
    size_t raises;                    /* of this run */
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
    size_t n = s->p->n, n_times = (size_t)s->p->n_times;
    s->arcs = malloc((n + 1) * sizeof *s->arcs);
    s->rank = malloc((2 * n + 1) * sizeof *s->rank);
    s->segments = malloc((n_times + 4) * sizeof *s->segments); /* each begins in a slot of its own */
    s->heap = malloc((n_times + 4) * sizeof *s->heap);
    return s->arcs && s->rank && s->segments && s->heap ? TIDE_OK : tide__fail_memory();
}

static tide_status set_up(tide__place_skyline *s, const tide__place_problem *p, bool below_pins) {
    s->p = p;
    TIDE_TRY(allocate(s));
    for (size_t i = 0; i < p->n; i++) {
        s->arcs[i] = to_arc(p, &p->items[i]);
        s->ring |= spans_turn(p, &p->items[i]);
    }
    return tide__place_skytree_init(&s->tree, s->arcs, below_pins ? p->items : NULL, p->n);
}

tide_status tide__place_skyline_create(const tide__place_problem *p, bool below_pins, tide__place_skyline **out) {
    if (p->huge) return tide__fail(TIDE_E_UNSUPPORTED, "skyline: huge sizes");
    tide__place_skyline *s = calloc(1, sizeof *s);
    if (!s) return tide__fail_memory();
    tide_status status = set_up(s, p, below_pins);
    if (status == TIDE_OK)
        *out = s;
    else
        tide__place_skyline_destroy(s);
    return status;
}

static void unpin(tide__place_skyline *s) {
    tide__place_skytree_deinit(&s->pin_tree);
    free(s->pins);
    free(s->pin_points);
    s->pins = NULL;
    s->pin_points = NULL;
    s->n_pins = 0;
}

void tide__place_skyline_destroy(tide__place_skyline *s) {
    if (!s) return;
    tide__place_skytree_deinit(&s->tree);
    unpin(s);
    free(s->arcs);
    free(s->rank);
    free(s->segments);
    free(s->heap);
    free(s);
}

/* ---- pins ---- */

static int by_bottom(const void *a, const void *b) {
    const pin *x = a, *y = b;
    if (x->bottom != y->bottom) return x->bottom < y->bottom ? -1 : 1;
    return (x->arc.begin > y->arc.begin) - (x->arc.begin < y->arc.begin);
}

/* An item whose two lifetimes do not meet at the turn is two pins: others may lie between them. */
static void add_pins(tide__place_skyline *s, uint32_t item, uint64_t offset) {
    const tide__place_item *it = &s->p->items[item];
    pin first = {offset, offset + it->size, s->arcs[item]}, second = first;
    bool two = it->begin2 < it->end2 && !spans_turn(s->p, it);
    if (two) first.arc.end = it->end, second.arc.begin = it->begin2;
    s->pins[s->n_pins++] = first;
    if (two) s->pins[s->n_pins++] = second;
}

static tide_status index_pins(tide__place_skyline *s) {
    for (uint32_t k = 0; k < s->n_pins; k++)
        s->pin_points[k] = (tide__place_skypoint){s->pins[k].arc.end, s->pins[k].arc.begin};
    return tide__place_skytree_init(&s->pin_tree, s->pin_points, NULL, s->n_pins);
}

tide_status tide__place_skyline_pin(tide__place_skyline *s, const uint32_t *items, size_t n, const uint64_t *offsets) {
    unpin(s);
    if (n == 0) return TIDE_OK;
    s->pins = malloc(2 * n * sizeof *s->pins);
    s->pin_points = malloc(2 * n * sizeof *s->pin_points);
    if (!s->pins || !s->pin_points) return tide__fail_memory();
    for (size_t k = 0; k < n; k++) add_pins(s, items[k], offsets[items[k]]);
    qsort(s->pins, s->n_pins, sizeof *s->pins, by_bottom);
    tide_status status = index_pins(s);
    if (status != TIDE_OK) unpin(s);
    return status;
}

/* Of the pins over [begin, end) the lowest; NONE: there are none. Pins, too, may go beyond the turn. */
static uint32_t lowest_pin(const tide__place_skyline *s, uint32_t begin, uint32_t end) {
    uint32_t times = s->p->n_times;
    tide__place_skyquery q = {begin + 1, end - 1, 0, UINT64_MAX};
    if (s->n_pins == 0) return NONE;
    uint32_t best = tide__place_skytree_best(&s->pin_tree, &q, TIDE__PLACE_RANK_NONE);
    if (!s->ring) return best;
    q.begin = begin + times + 1, q.end = UINT32_MAX;
    best = tide__place_skytree_best(&s->pin_tree, &q, best);
    if (end <= times) return best;
    q.begin = 0, q.end = end - times - 1;
    return tide__place_skytree_best(&s->pin_tree, &q, best);
}

static uint32_t best_within(const tide__place_skyline *s, const segment *seg, uint64_t ceiling) {
    uint32_t times = s->p->n_times;
    tide__place_skyquery q = {seg->begin, seg->end, seg->height, ceiling};
    if (seg->end - seg->begin == times) q.begin = 0, q.end = UINT32_MAX;
    uint32_t best = tide__place_skytree_best(&s->tree, &q, TIDE__PLACE_RANK_NONE);
    if (seg->end <= times || q.end == UINT32_MAX) return best;
    q.begin = 0, q.end = seg->end - times;
    return tide__place_skytree_best(&s->tree, &q, best);
}

/* ---- the heap of segments ---- */

static bool lower(const tide__place_skyline *s, uint32_t a, uint32_t b) {
    const segment *x = &s->segments[a], *y = &s->segments[b];
    return x->height != y->height ? x->height < y->height : x->begin < y->begin;
}

static void heap_set(tide__place_skyline *s, size_t k, uint32_t id) {
    s->heap[k] = id;
    s->segments[id].place = (uint32_t)k;
}

static void sift(tide__place_skyline *s, size_t k, uint32_t id) {
    for (; k > 0 && lower(s, id, s->heap[(k - 1) / 2]); k = (k - 1) / 2) heap_set(s, k, s->heap[(k - 1) / 2]);
    for (size_t child; (child = 2 * k + 1) < s->n_heap; k = child) {
        if (child + 1 < s->n_heap && lower(s, s->heap[child + 1], s->heap[child])) child++;
        if (!lower(s, s->heap[child], id)) break;
        heap_set(s, k, s->heap[child]);
    }
    heap_set(s, k, id);
}

static void heap_push(tide__place_skyline *s, uint32_t id) { sift(s, s->n_heap++, id); }

static void heap_remove(tide__place_skyline *s, uint32_t id) {
    uint32_t last = s->heap[--s->n_heap];
    if (last != id) sift(s, s->segments[id].place, last);
}

/* ---- the ring of segments ---- */

static uint32_t new_segment(tide__place_skyline *s, uint32_t begin, uint32_t end, uint64_t height) {
    uint32_t id = s->spare;
    if (id != NONE)
        s->spare = s->segments[id].next;
    else
        id = s->n_segments++;
    if (begin >= s->p->n_times) begin -= s->p->n_times, end -= s->p->n_times;
    s->segments[id] = (segment){height, begin, end, NONE, NONE, 0};
    return id;
}

/* It is not in the heap any more. */
static void kill_segment(tide__place_skyline *s, uint32_t id) {
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

/* Joins a segment that is not in the heap with neighbours of equal height, and puts what remains into it. */
static void join_level(tide__place_skyline *s, uint32_t id) {
    uint32_t next = s->segments[id].next, previous = s->segments[id].previous;
    if (next != id && height_of(s, next) == s->segments[id].height) {
        heap_remove(s, next);
        absorb_next(s, id);
        previous = s->segments[id].previous;
    }
    if (previous == id || height_of(s, previous) != s->segments[id].height) {
        heap_push(s, id);
    } else {
        absorb_next(s, previous);
    }
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
    join_level(s, middle);
}

/* The part of the segment that lies under the arc, which meets it, or one of two such parts. */
static tide__place_skypoint part_under(const tide__place_skyline *s, const segment *seg, tide__place_skypoint arc) {
    uint32_t times = s->p->n_times;
    if (s->ring && seg->end - seg->begin == times) return arc;
    if (arc.end <= seg->begin) arc.begin += times, arc.end += times;
    if (arc.begin >= seg->end) arc.begin -= arc.begin < times ? arc.begin : times, arc.end -= times;
    if (arc.begin < seg->begin) arc.begin = seg->begin;
    if (arc.end > seg->end) arc.end = seg->end;
    return arc;
}

/* Nothing fits on the segment: where no pin is above, it goes up to its lower neighbour, else the part under the lowest pin
 * does, at most up to that pin. */
static void raise_segment(tide__place_skyline *s, uint32_t id, uint32_t lowest) {
    segment *seg = &s->segments[id];
    uint64_t to = tide__min_u64(height_of(s, seg->previous), height_of(s, seg->next));
    if (lowest == NONE) {
        seg->height = to;
        join_level(s, id);
        return;
    }
    const pin *p = &s->pins[lowest];
    bool patient = s->raises++ < PATIENCE * (s->p->n + s->n_pins);
    cover(s, id, part_under(s, seg, p->arc), patient && to > seg->height ? tide__min_u64(to, p->bottom) : p->bottom);
}

static void start_run(tide__place_skyline *s, const uint32_t *order, size_t n) {
    for (size_t i = 0; i < s->p->n; i++) s->rank[i] = TIDE__PLACE_RANK_NONE;
    for (uint32_t k = 0; k < n; k++) s->rank[order[k]] = k;
    tide__place_skytree_fill(&s->tree, s->rank);
    for (uint32_t k = 0; k < s->n_pins; k++) s->rank[k] = k;
    if (s->n_pins > 0) tide__place_skytree_fill(&s->pin_tree, s->rank);
    s->n_segments = 0;
    s->spare = NONE;
    s->n_heap = 0;
    s->raises = 0;
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

uint64_t tide__place_skyline_run(tide__place_skyline *s, const uint32_t *order, size_t n, uint64_t *offsets) {
    uint64_t height = 0;
    start_run(s, order, n);
    for (uint32_t k = 0; k < s->n_pins; k++) height = tide__max_u64(height, s->pins[k].top);
    for (size_t placed = 0; placed < n;) {
        uint32_t id = s->heap[0];
        const segment *seg = &s->segments[id];
        uint32_t pinned = lowest_pin(s, seg->begin, seg->end);
        uint64_t ceiling = pinned == NONE ? UINT64_MAX : s->pins[pinned].bottom;
        heap_remove(s, id);
        if (ceiling == seg->height) {
            tide__place_skytree_take(&s->pin_tree, pinned);
            cover(s, id, s->pins[pinned].arc, s->pins[pinned].top);
            continue;
        }
        uint32_t rank = best_within(s, seg, ceiling);
        if (rank == TIDE__PLACE_RANK_NONE) {
            raise_segment(s, id, pinned);
            continue;
        }
        uint32_t item = order[rank];
        height = tide__max_u64(height, place_on(s, id, item, &offsets[item]));
        placed++;
    }
    return height;
}
