/* Ordered fit (fit.h). With sizes descending and best fit this is SmartPool's heuristic (Zhang et al. 2019). */
#include "plan/place/fit.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/place/lifetimes.h"

typedef struct range {
    uint64_t low, high;
} range;

typedef struct fit_state {
    const tide__place_problem *p;
    tide__place_fit_rule rule;
    tide__place_lifetimes placed;
    uint32_t *conflicts;
    range *ranges;
    uint64_t looked, most;
    uint64_t *offsets;
} fit_state;

static int by_low(const void *a, const void *b) {
    const range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

static size_t gather_ranges(fit_state *s, uint32_t item) {
    size_t n = tide__place_lifetimes_conflicts(&s->placed, item, s->conflicts, 4 * s->p->n);
    for (size_t k = 0; k < n; k++) {
        uint64_t low = s->offsets[s->conflicts[k]];
        s->ranges[k] = (range){low, low + s->p->items[s->conflicts[k]].size};
    }
    qsort(s->ranges, n, sizeof *s->ranges, by_low);
    s->looked += n + 1;
    return n;
}

/* The item's lowest offset at or above `from`; false if it would end above `limit`. */
static bool fits(const tide__place_item *it, uint64_t from, uint64_t limit, uint64_t *offset) {
    uint64_t end;
    return tide__align_up(from, it->align, offset) && tide__add(*offset, it->size, &end) && end <= limit;
}

/* Holes from the bottom up; the last one is open to the top. */
static bool choose_hole(const fit_state *s, const tide__place_item *it, size_t n, uint64_t *offset) {
    uint64_t floor = 0, best = UINT64_MAX, at;
    for (size_t k = 0; k < n; k++) {
        uint64_t ceiling = s->ranges[k].low;
        if (ceiling > floor && ceiling - floor < best && fits(it, floor, ceiling, &at)) {
            best = ceiling - floor;
            *offset = at;
            if (s->rule == TIDE__PLACE_FIT_FIRST) return true;
        }
        floor = tide__max_u64(floor, s->ranges[k].high);
    }
    return best < UINT64_MAX || fits(it, floor, UINT64_MAX - 1, offset);
}

static tide_status place_one(fit_state *s, uint32_t item) {
    const tide__place_item *it = &s->p->items[item];
    if (it->fixed != TIDE__PLACE_FREE) return TIDE_OK;
    size_t n = gather_ranges(s, item);
    if (s->most && s->looked > s->most) return tide__fail(TIDE_E_UNSUPPORTED, "too many conflicts for this algorithm");
    if (!choose_hole(s, it, n, &s->offsets[item]))
        return tide__fail(TIDE_E_OVERFLOW, "item %u: no offset below 2^64 fits", s->p->origin[item]);
    tide__place_lifetimes_add(&s->placed, item);
    return TIDE_OK;
}

static void place_fixed(fit_state *s) {
    for (uint32_t i = 0; i < s->p->n; i++) {
        if (s->p->items[i].fixed == TIDE__PLACE_FREE) continue;
        s->offsets[i] = s->p->items[i].fixed;
        tide__place_lifetimes_add(&s->placed, i);
    }
}

tide_status tide__place_fit(const tide__place_problem *p, const uint32_t *order, tide__place_fit_rule rule,
                            uint64_t most_conflicts, uint64_t *offsets) {
    fit_state s = {.p = p, .rule = rule, .most = most_conflicts, .offsets = offsets};
    tide_status status = tide__place_lifetimes_init(&s.placed, p->items, p->n);
    s.conflicts = malloc((4 * p->n + 1) * sizeof *s.conflicts);
    s.ranges = malloc((4 * p->n + 1) * sizeof *s.ranges);
    if (status == TIDE_OK && (!s.conflicts || !s.ranges)) status = tide__fail_memory();
    if (status == TIDE_OK) place_fixed(&s);
    for (size_t k = 0; k < p->n && status == TIDE_OK; k++) status = place_one(&s, order[k]);
    tide__place_lifetimes_deinit(&s.placed);
    free(s.conflicts);
    free(s.ranges);
    return status;
}

typedef struct size_key {
    uint64_t size;
    uint32_t begin, item;
} size_key;

static int by_size(const void *a, const void *b) {
    const size_key *x = a, *y = b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

tide_status tide__place_order_by_size(const tide__place_problem *p, uint32_t *order) {
    size_key *keys = malloc((p->n + 1) * sizeof *keys);
    if (!keys) return tide__fail_memory();
    for (uint32_t i = 0; i < p->n; i++) keys[i] = (size_key){p->items[i].size, p->items[i].begin, i};
    qsort(keys, p->n, sizeof *keys, by_size);
    for (size_t k = 0; k < p->n; k++) order[k] = keys[k].item;
    free(keys);
    return TIDE_OK;
}
