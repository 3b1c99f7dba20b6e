/* See repair.h. Placed items are kept by offset, in one array: a scan of it meets the conflicts of an item from the bottom
 * up, which is all that looking for a hole needs. */
#include "plan/place/repair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/size.h"

#define MOST_STEPS 2000    /* with one ceiling: chains that end do so sooner */
#define FIRST_PART 4       /* of what is above the goal: so much lower is the first ceiling */
#define LEAST_PART 64      /* where that fails, too, the next round begins as the first did */
#define NOISE 0.05         /* of what a place costs */
#define STUBBORN 1.5       /* what has displaced others is that much harder to displace */
#define LOOKS_PER_WORK 400 /* at items, in a unit of work */
#define STEP_LOOKS 100     /* what a step takes apart from those */
#define STEPS_PER_CLOCK 16

/* The bytes of an item that is alive together with the one to be put. */
typedef struct range {
    uint64_t low, high;
    uint64_t most; /* the highest end of this and all lower ones */
    uint32_t item;
} range;

typedef struct life {
    uint32_t begin, end;
} life;

/* Where an item lies. */
typedef struct spot {
    uint64_t offset;
    uint32_t item;
} spot;

typedef struct repair {
    const tide__place_problem *p;
    tide__place_attempt *a;
    uint64_t *offsets; /* of placed items */
    double *weight;    /* per item: what displacing it costs */
    size_t n_placed, n_waiting, n_ranges;
    uint32_t *placed;  /* by offset, then by number */
    life *lives;       /* of the placed, side by side: the first lifetimes */
    uint32_t *waiting; /* a heap, the heaviest first */
    range *ranges;
    spot *spots; /* scratch, per item */
    uint64_t ceiling;
    uint64_t steps, looked; /* in all */
    uint64_t work, deadline_ns;
} repair;

/* ---- who waits ---- */

static bool heavier(const repair *r, uint32_t a, uint32_t b) {
    return r->weight[a] != r->weight[b] ? r->weight[a] > r->weight[b] : a < b;
}

static void push(repair *r, uint32_t item) {
    size_t k = r->n_waiting++;
    for (; k > 0 && heavier(r, item, r->waiting[(k - 1) / 2]); k = (k - 1) / 2) r->waiting[k] = r->waiting[(k - 1) / 2];
    r->waiting[k] = item;
}

static uint32_t pop(repair *r) {
    uint32_t top = r->waiting[0], last = r->waiting[--r->n_waiting];
    size_t k = 0;
    for (size_t child; (child = 2 * k + 1) < r->n_waiting; k = child) {
        if (child + 1 < r->n_waiting && heavier(r, r->waiting[child + 1], r->waiting[child])) child++;
        if (!heavier(r, r->waiting[child], last)) break;
        r->waiting[k] = r->waiting[child];
    }
    r->waiting[k] = last;
    return top;
}

/* ---- who is placed ---- */

/* Where the item is, or belongs, among the placed. */
static size_t index_of(const repair *r, uint32_t item) {
    size_t low = 0, high = r->n_placed;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t other = r->placed[middle];
        bool before = r->offsets[other] != r->offsets[item] ? r->offsets[other] < r->offsets[item] : other < item;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void displace(repair *r, uint32_t item) {
    size_t k = index_of(r, item), after = --r->n_placed - k;
    memmove(r->placed + k, r->placed + k + 1, after * sizeof *r->placed);
    memmove(r->lives + k, r->lives + k + 1, after * sizeof *r->lives);
    push(r, item);
}

static void settle(repair *r, uint32_t item, uint64_t offset) {
    r->offsets[item] = offset;
    size_t k = index_of(r, item), after = r->n_placed++ - k;
    memmove(r->placed + k + 1, r->placed + k, after * sizeof *r->placed);
    memmove(r->lives + k + 1, r->lives + k, after * sizeof *r->lives);
    r->placed[k] = item;
    r->lives[k] = (life){r->p->items[item].begin, r->p->items[item].end};
}

static bool meet(life a, life b) { return (a.begin < b.end) & (b.begin < a.end); }

/* Do two items meet in a lifetime of which one is a second? */
static bool meet_again(const tide__place_item *a, const tide__place_item *b) {
    life first = {a->begin, a->end}, second = {a->begin2, a->end2}, other = {b->begin2, b->end2};
    return meet(second, (life){b->begin, b->end}) || meet(first, other) || meet(second, other);
}

static void gather(repair *r, uint32_t item) {
    const tide__place_item *items = r->p->items;
    life own = {items[item].begin, items[item].end};
    uint64_t most = 0;
    r->n_ranges = 0;
    for (size_t k = 0; k < r->n_placed; k++) {
        uint32_t i = r->placed[k];
        if (!meet(own, r->lives[k]) && !(r->p->cyclic && meet_again(&items[item], &items[i]))) continue;
        uint64_t low = r->offsets[i], high = low + items[i].size;
        most = tide__max_u64(most, high);
        r->ranges[r->n_ranges++] = (range){low, high, most, i};
    }
    r->looked += STEP_LOOKS + r->n_placed + r->n_ranges;
}

/* ---- one step ---- */

static uint64_t align_up(uint64_t at, uint64_t align) { return (at + align - 1) & ~(align - 1); }

typedef struct hole {
    uint64_t low, high;
} hole;

/* Between the ranges below k and range k, or the ceiling; low >= high if they leave nothing. */
static hole hole_below(const repair *r, size_t k) {
    return (hole){k > 0 ? r->ranges[k - 1].most : 0, k < r->n_ranges ? r->ranges[k].low : r->ceiling};
}

/* The smallest hole that is large enough. */
static bool find_hole(const repair *r, const tide__place_item *it, uint64_t *offset) {
    uint64_t smallest = UINT64_MAX;
    for (size_t k = 0; k <= r->n_ranges; k++) {
        hole h = hole_below(r, k);
        uint64_t at = align_up(h.low, it->align);
        if (at + it->size > h.high || h.high - h.low >= smallest) continue;
        smallest = h.high - h.low;
        *offset = at;
    }
    return smallest < UINT64_MAX;
}

/* What lies in [at, end), where all ranges below k end by `at`. Neither sum goes on beyond `most`. */
static double weigh_up(const repair *r, uint64_t at, uint64_t end, size_t k, double most) {
    double sum = 0;
    for (; k < r->n_ranges && r->ranges[k].low < end && sum < most; k++)
        if (r->ranges[k].high > at) sum += r->weight[r->ranges[k].item];
    return sum;
}

/* What lies above `at`, of the ranges below k. */
static double weigh_down(const repair *r, uint64_t at, size_t k, double most) {
    double sum = 0;
    for (; k > 0 && r->ranges[k - 1].most > at && sum < most; k--)
        if (r->ranges[k - 1].high > at) sum += r->weight[r->ranges[k - 1].item];
    return sum;
}

/* From each hole up or down, where it displaces the least, more or less. false: only over fixed items. */
static bool find_cheapest(const repair *r, const tide__place_item *it, uint64_t *offset) {
    double least = HUGE_VAL;
    for (size_t k = 0; k <= r->n_ranges; k++) {
        hole h = hole_below(r, k);
        if (h.low >= h.high && k > 0 && k < r->n_ranges) continue;
        double noise = 1 + NOISE * (double)tide__random_unit(r->a->seed, r->steps, k);
        uint64_t at = align_up(h.low, it->align);
        double up = at + it->size <= r->ceiling ? noise * weigh_up(r, at, at + it->size, k, least / noise) : HUGE_VAL;
        if (up < least) least = up, *offset = at;
        if (h.high < it->size) continue;
        at = (h.high - it->size) & ~(it->align - 1);
        double down = noise * weigh_down(r, at, k, least / noise);
        if (down < least) least = down, *offset = at;
    }
    return least < HUGE_VAL;
}

/* false: the item cannot be anywhere. */
static bool put(repair *r, uint32_t item) {
    const tide__place_item *it = &r->p->items[item];
    uint64_t at;
    r->steps++;
    gather(r, item);
    if (!find_hole(r, it, &at)) {
        if (!find_cheapest(r, it, &at)) return false;
        for (size_t k = 0; k < r->n_ranges && r->ranges[k].low < at + it->size; k++)
            if (r->ranges[k].high > at) displace(r, r->ranges[k].item);
        r->weight[item] *= STUBBORN;
    }
    settle(r, item, at);
    return true;
}

/* ---- one ceiling ---- */

static int by_offset(const void *a, const void *b) {
    const spot *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

/* The best placement without what is above the ceiling. Large and long ones are hard to place again, and so are many. */
static void begin_below(repair *r, uint64_t ceiling) {
    const tide__place_item *items = r->p->items;
    r->ceiling = ceiling;
    r->n_placed = r->n_waiting = 0;
    memcpy(r->offsets, r->a->best, r->p->n * sizeof *r->offsets);
    for (uint32_t i = 0; i < r->p->n; i++) {
        double slots = (double)(items[i].end - items[i].begin) + (double)(items[i].end2 - items[i].begin2);
        r->weight[i] = items[i].fixed == TIDE__PLACE_FREE ? sqrt((double)items[i].size * slots) : HUGE_VAL;
        if (r->offsets[i] + items[i].size > ceiling)
            push(r, i);
        else
            r->spots[r->n_placed++] = (spot){r->offsets[i], i};
    }
    qsort(r->spots, r->n_placed, sizeof *r->spots, by_offset);
    for (size_t k = 0; k < r->n_placed; k++) {
        const tide__place_item *it = &items[r->spots[k].item];
        r->placed[k] = r->spots[k].item;
        r->lives[k] = (life){it->begin, it->end};
    }
    r->looked += 8 * r->p->n; /* the sort */
}

static bool is_spent(const repair *r) {
    if (r->looked / LOOKS_PER_WORK >= r->work) return true;
    return r->deadline_ns && r->steps % STEPS_PER_CLOCK == 0 && tide__worked_ns() >= r->deadline_ns;
}

static bool bring_below(repair *r, uint64_t ceiling) {
    uint64_t end = r->steps + MOST_STEPS;
    bool goes_on = true;
    begin_below(r, ceiling);
    while (goes_on && r->n_waiting > 0) goes_on = r->steps < end && !is_spent(r) && put(r, pop(r));
    if (!goes_on) return false;
    memcpy(r->a->trial, r->offsets, r->p->n * sizeof *r->offsets);
    tide__place_attempt_keep_if_lower(r->a, "repair");
    return true;
}

/* ---- all of them ---- */

/* Larger steps after success, smaller ones after failure. */
static void lower(repair *r) {
    uint64_t part = FIRST_PART;
    do {
        uint64_t above = r->a->height - r->a->enough;
        bool done = bring_below(r, r->a->height - tide__max_u64(1, above / part));
        part = done ? tide__max_u64(1, part / 2) : part * 2;
        if (part > LEAST_PART) part = FIRST_PART;
        r->steps += STEPS_PER_CLOCK - r->steps % STEPS_PER_CLOCK; /* so that the clock is looked at */
    } while (r->a->height > r->a->enough && !is_spent(r));
}

static tide_status take_memory(repair *r) {
    size_t n = r->p->n + 1;
    r->offsets = malloc(n * sizeof *r->offsets);
    r->weight = malloc(n * sizeof *r->weight);
    r->placed = malloc(n * sizeof *r->placed);
    r->lives = malloc(n * sizeof *r->lives);
    r->waiting = malloc(n * sizeof *r->waiting);
    r->ranges = malloc(n * sizeof *r->ranges);
    r->spots = malloc(n * sizeof *r->spots);
    bool all = r->offsets && r->weight && r->placed && r->lives && r->waiting && r->ranges && r->spots;
    return all ? TIDE_OK : tide__fail_memory();
}

tide_status tide__place_repair(tide__place_attempt *a, uint64_t work, uint64_t deadline_ns) {
    repair r = {.p = a->p, .a = a, .work = work, .deadline_ns = deadline_ns};
    tide_status status = a->height > a->enough ? take_memory(&r) : TIDE_OK;
    if (status == TIDE_OK && a->height > a->enough) lower(&r);
    a->work -= tide__min_u64(a->work, r.looked / LOOKS_PER_WORK);
    free(r.offsets);
    free(r.weight);
    free(r.placed);
    free(r.lives);
    free(r.waiting);
    free(r.ranges);
    free(r.spots);
    return status;
}
