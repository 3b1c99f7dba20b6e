/* The skyline heuristic of skyline.h: a ring of segments, a heap that finds the lowest, and a tree over the items
 * sorted by begin that finds the best-ranked item inside a segment. */
#include "plan/place/skyline.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define NONE UINT32_MAX

/* Times of arcs are unrolled: begin < n_times, end may exceed n_times by less than a turn. */
typedef struct arc {
    uint32_t begin, end, item;
} arc;

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

/* Of the items below a tree node that are still to be placed. */
typedef struct node {
    uint32_t best_rank, first_end;
} node;

struct tide__skyline {
    const tide__place_problem *p;
    bool ring;           /* some item is alive across the turn of the step; else time has walls at both ends */
    arc *arcs;           /* by begin */
    uint32_t *first_arc; /* per slot: the first arc that begins there or later; n_times + 1 of them */
    uint32_t base;
    node *nodes; /* leaf k is nodes[base + k] */
    segment *segments;
    uint32_t n_segments, spare; /* spare: a list of dead ones, linked by next */
    heap_entry *heap;
    size_t n_heap;
    size_t heap_room;
};

/* ---- setup ---- */

static bool spans_turn(const tide__place_problem *p, const tide__place_item *it) {
    return it->begin2 < it->end2 && it->begin == 0 && it->end2 == p->n_times;
}

static arc to_arc(const tide__place_problem *p, uint32_t i) {
    const tide__place_item *it = &p->items[i];
    if (spans_turn(p, it)) return (arc){it->begin2, it->end + p->n_times, i};
    return (arc){it->begin, it->begin2 < it->end2 ? it->end2 : it->end, i};
}

/* Counting sort by begin. */
static void sort_arcs(tide__skyline *s) {
    const tide__place_problem *p = s->p;
    for (uint32_t i = 0; i < p->n; i++) {
        s->first_arc[to_arc(p, i).begin + 1]++;
        s->ring |= spans_turn(p, &p->items[i]);
    }
    for (uint32_t t = 0; t < p->n_times; t++) s->first_arc[t + 1] += s->first_arc[t];
    for (uint32_t i = 0; i < p->n; i++) {
        arc a = to_arc(p, i);
        s->arcs[s->first_arc[a.begin]++] = a;
    }
    memmove(s->first_arc + 1, s->first_arc, p->n_times * sizeof *s->first_arc);
    s->first_arc[0] = 0;
}

tide_status tide__skyline_create(const tide__place_problem *p, tide__skyline **out) {
    if (p->fixed || p->huge) return tide__fail(TIDE_E_UNSUPPORTED, "skyline: fixed offsets or huge sizes");
    tide__skyline *s = calloc(1, sizeof *s);
    if (!s) return tide__fail_memory();
    s->p = p;
    s->base = 1;
    while (s->base < p->n) s->base *= 2;
    s->heap_room = 6 * p->n + 8;
    s->arcs = malloc((p->n + 1) * sizeof *s->arcs);
    s->first_arc = calloc((size_t)p->n_times + 2, sizeof *s->first_arc);
    s->nodes = malloc(2 * (size_t)s->base * sizeof *s->nodes);
    s->segments = malloc((2 * p->n + 4) * sizeof *s->segments);
    s->heap = malloc(s->heap_room * sizeof *s->heap);
    if (!s->arcs || !s->first_arc || !s->nodes || !s->segments || !s->heap) {
        tide__skyline_destroy(s);
        return tide__fail_memory();
    }
    sort_arcs(s);
    *out = s;
    return TIDE_OK;
}

void tide__skyline_destroy(tide__skyline *s) {
    if (!s) return;
    free(s->arcs);
    free(s->first_arc);
    free(s->nodes);
    free(s->segments);
    free(s->heap);
    free(s);
}

/* ---- the tree over items ---- */

static node join(node a, node b) {
    return (node){a.best_rank < b.best_rank ? a.best_rank : b.best_rank,
                  a.first_end < b.first_end ? a.first_end : b.first_end};
}

static void fill_tree(tide__skyline *s, const uint32_t *rank) {
    for (uint32_t k = 0; k < s->base; k++)
        s->nodes[s->base + k] = k < s->p->n ? (node){rank[s->arcs[k].item], s->arcs[k].end} : (node){NONE, NONE};
    for (uint32_t k = s->base - 1; k > 0; k--) s->nodes[k] = join(s->nodes[2 * k], s->nodes[2 * k + 1]);
}

static void take_leaf(tide__skyline *s, uint32_t leaf) {
    uint32_t k = s->base + leaf;
    s->nodes[k] = (node){NONE, NONE};
    for (k /= 2; k > 0; k /= 2) s->nodes[k] = join(s->nodes[2 * k], s->nodes[2 * k + 1]);
}

/* Below tree node k, all of whose leaves are asked for: a leaf that ends by `end` and ranks before *best. */
static void find_below(const tide__skyline *s, uint32_t k, uint32_t end, uint32_t *best, uint32_t *leaf) {
    while (s->nodes[k].first_end <= end && s->nodes[k].best_rank < *best) {
        if (k >= s->base) {
            *best = s->nodes[k].best_rank;
            *leaf = k - s->base;
            return;
        }
        uint32_t good = 2 * k, other = 2 * k + 1;
        if (s->nodes[other].best_rank < s->nodes[good].best_rank) good = other, other = 2 * k;
        find_below(s, good, end, best, leaf);
        k = other;
    }
}

/* The best-ranked of leaves [from, to) that ends by `end`. */
static void find_among(const tide__skyline *s, uint32_t from, uint32_t to, uint32_t end, uint32_t *best,
                       uint32_t *leaf) {
    uint32_t low = from + s->base, high = to + s->base;
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1) find_below(s, low++, end, best, leaf);
        if (high & 1) find_below(s, --high, end, best, leaf);
    }
}

static uint32_t best_leaf_within(const tide__skyline *s, const segment *seg) {
    uint32_t times = s->p->n_times, best = NONE, leaf = NONE;
    bool whole = seg->end - seg->begin == times;
    if (whole) {
        find_among(s, 0, (uint32_t)s->p->n, NONE - 1, &best, &leaf);
    } else if (seg->end <= times) {
        find_among(s, s->first_arc[seg->begin], s->first_arc[seg->end], seg->end, &best, &leaf);
    } else {
        find_among(s, s->first_arc[seg->begin], (uint32_t)s->p->n, seg->end, &best, &leaf);
        find_among(s, 0, s->first_arc[seg->end - times], seg->end - times, &best, &leaf);
    }
    return leaf;
}

/* ---- the heap of segments ---- */

static bool lower(heap_entry a, heap_entry b) { return a.height != b.height ? a.height < b.height : a.begin < b.begin; }

static bool is_current(const tide__skyline *s, heap_entry e) {
    const segment *seg = &s->segments[e.segment];
    return seg->alive && seg->height == e.height && seg->begin == e.begin;
}

static void heap_push(tide__skyline *s, uint32_t id) {
    heap_entry e = {s->segments[id].height, s->segments[id].begin, id};
    size_t k = s->n_heap++;
    for (; k > 0 && lower(e, s->heap[(k - 1) / 2]); k = (k - 1) / 2) s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k] = e;
}

static void heap_pop(tide__skyline *s) {
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

static uint32_t lowest_segment(tide__skyline *s) {
    while (!is_current(s, s->heap[0])) heap_pop(s);
    return s->heap[0].segment;
}

/* ---- the ring of segments ---- */

static uint32_t new_segment(tide__skyline *s, uint32_t begin, uint32_t end, uint64_t height) {
    uint32_t id = s->spare;
    if (id != NONE)
        s->spare = s->segments[id].next;
    else
        id = s->n_segments++;
    if (begin >= s->p->n_times) begin -= s->p->n_times, end -= s->p->n_times;
    s->segments[id] = (segment){height, begin, end, NONE, NONE, true};
    return id;
}

static void kill_segment(tide__skyline *s, uint32_t id) {
    s->segments[id].alive = false;
    s->segments[id].next = s->spare;
    s->spare = id;
}

static void link_segments(tide__skyline *s, uint32_t left, uint32_t right) {
    if (left != NONE) s->segments[left].next = right;
    if (right != NONE) s->segments[right].previous = left;
}

static uint64_t height_of(const tide__skyline *s, uint32_t id) {
    return id == NONE ? UINT64_MAX : s->segments[id].height;
}

/* `id` takes in its right neighbour. */
static void absorb_next(tide__skyline *s, uint32_t id) {
    uint32_t gone = s->segments[id].next, after = s->segments[gone].next;
    s->segments[id].end += s->segments[gone].end - s->segments[gone].begin;
    link_segments(s, id, after);
    kill_segment(s, gone);
}

/* Joins neighbours of equal height; returns the segment that remains and needs a new heap entry. */
static uint32_t join_level(tide__skyline *s, uint32_t id) {
    uint32_t next = s->segments[id].next;
    if (next != id && height_of(s, next) == s->segments[id].height) absorb_next(s, id);
    uint32_t previous = s->segments[id].previous;
    if (previous == id || height_of(s, previous) != s->segments[id].height) return id;
    absorb_next(s, previous);
    return previous;
}

static void raise_segment(tide__skyline *s, uint32_t id) {
    segment *seg = &s->segments[id];
    seg->height = tide__min_u64(height_of(s, seg->previous), height_of(s, seg->next));
    heap_push(s, join_level(s, id));
}

/* Cuts segment `id` into what is left of the arc, the arc itself at `top`, and what is right of it. */
static void cover(tide__skyline *s, uint32_t id, const arc *a, uint64_t top) {
    segment seg = s->segments[id];
    uint32_t times = s->p->n_times, begin = a->begin, end = a->end;
    bool closed = s->ring && seg.end - seg.begin == times;
    if (closed) {
        seg.begin = begin;
        seg.end = begin + times;
    }
    if (begin < seg.begin) begin += times, end += times;
    uint32_t left = seg.previous, right = seg.next;
    kill_segment(s, id);
    uint32_t middle = new_segment(s, begin, end, top), chain = left;
    uint32_t before = begin > seg.begin ? new_segment(s, seg.begin, begin, seg.height) : NONE;
    uint32_t after = end < seg.end ? new_segment(s, end, seg.end, seg.height) : NONE;
    if (closed) {
        uint32_t only = after != NONE ? after : middle;
        link_segments(s, middle, only);
        link_segments(s, only, middle);
    } else {
        if (before != NONE) link_segments(s, chain, before), chain = before;
        link_segments(s, chain, middle);
        chain = middle;
        if (after != NONE) link_segments(s, chain, after), chain = after;
        link_segments(s, chain, right);
    }
    if (before != NONE) heap_push(s, before);
    if (after != NONE) heap_push(s, after);
    heap_push(s, join_level(s, middle));
}

static void start_run(tide__skyline *s, const uint32_t *rank) {
    fill_tree(s, rank);
    s->n_segments = 0;
    s->spare = NONE;
    s->n_heap = 0;
    uint32_t id = new_segment(s, 0, s->p->n_times, 0);
    if (s->ring) link_segments(s, id, id);
    heap_push(s, id);
}

uint64_t tide__skyline_run(tide__skyline *s, const uint32_t *rank, uint64_t *offsets) {
    uint64_t height = 0;
    start_run(s, rank);
    for (size_t placed = 0; placed < s->p->n;) {
        uint32_t id = lowest_segment(s), leaf = best_leaf_within(s, &s->segments[id]);
        heap_pop(s);
        if (leaf == NONE) {
            raise_segment(s, id);
            continue;
        }
        const arc *a = &s->arcs[leaf];
        const tide__place_item *it = &s->p->items[a->item];
        uint64_t offset = (s->segments[id].height + it->align - 1) & ~(it->align - 1);
        offsets[a->item] = offset;
        height = tide__max_u64(height, offset + it->size);
        take_leaf(s, leaf);
        cover(s, id, a, offset + it->size);
        placed++;
    }
    return height;
}
