/* The proof that a plan's offsets are safe (plan.h). Lifetimes are taken in order of their begin; a tree over the
 * address ranges between neighbouring offsets holds, for each, until when it is taken. A lifetime must find its whole
 * range free at its begin; then it takes it until its end. And each end must be listed where it is, so that following the
 * plan notices what is overdue.
 *
 *      taken until    5    5    9    9    0       item [begin 6, end 8) over the first two ranges: fine
 *                   ├────┼────┼────┼────┼────┤    item over the middle three: refused
 */
#include <stdlib.h>

#include "base/size.h"
#include "pool/plan.h"

typedef struct lifetime {
    uint64_t bottom, top; /* bytes */
    uint32_t begin, end;  /* events */
} lifetime;

typedef struct checker {
    lifetime *lifetimes;
    size_t n_lifetimes;
    uint64_t *borders; /* ascending, without repeats: range i is [borders[i], borders[i + 1]) */
    size_t n_borders;
    size_t base;     /* leaves of the tree begin here: a power of two */
    uint32_t *whole; /* per node: all its ranges are taken until then, by one lifetime that covers them all */
    uint32_t *most;  /* per node: the latest of its ranges */
} checker;

static int compare_lifetimes(const void *a, const void *b) {
    const lifetime *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void add_lifetime(checker *c, uint64_t bottom, uint64_t top, uint32_t begin, uint32_t end) {
    c->lifetimes[c->n_lifetimes++] = (lifetime){bottom, top, begin, end};
    c->borders[c->n_borders++] = bottom;
    c->borders[c->n_borders++] = top;
}

static bool collect(checker *c, const tide__pool_plan *plan) {
    for (uint32_t i = 0; i < plan->n_items; i++) {
        const tide__pool_item *item = &plan->items[i];
        uint64_t top;
        if (item->life == 0) continue;
        if (item->begin >= plan->length || item->life >= plan->length) return false;
        if (!tide__add(item->offset, tide__item_bytes(plan, item), &top) || top > plan->height) return false;
        uint32_t end = item->begin + item->life;
        add_lifetime(c, item->offset, top, item->begin, end < plan->length ? end : plan->length);
        if (end > plan->length) add_lifetime(c, item->offset, top, 0, end - plan->length);
    }
    return true;
}

static bool ends_are_listed(const tide__pool_plan *plan) {
    uint32_t n_listed = 0, n_planned = 0;
    for (uint32_t i = 0; i < plan->n_items; i++) n_planned += plan->items[i].life > 0;
    for (uint32_t at = 0; at < plan->length; at++)
        for (uint32_t i = plan->ends[at]; i != TIDE__NO_ITEM; i = plan->items[i].next_end) {
            const tide__pool_item *item = &plan->items[i];
            if (item->life == 0 || (item->begin + item->life) % plan->length != at) return false;
            if (++n_listed > n_planned) return false;
        }
    return n_listed == n_planned;
}

static void sort(checker *c) {
    size_t n = 0;
    qsort(c->lifetimes, c->n_lifetimes, sizeof *c->lifetimes, compare_lifetimes);
    qsort(c->borders, c->n_borders, sizeof *c->borders, compare_u64);
    for (size_t i = 0; i < c->n_borders; i++)
        if (n == 0 || c->borders[i] != c->borders[n - 1]) c->borders[n++] = c->borders[i];
    c->n_borders = n;
}

static size_t range_of(const checker *c, uint64_t border) {
    const uint64_t *at = bsearch(&border, c->borders, c->n_borders, sizeof border, compare_u64);
    return (size_t)(at - c->borders);
}

/* Until when is anything in ranges [from, to) taken? `node` covers [left, left + width). */
static uint32_t taken_until(const checker *c, size_t node, size_t left, size_t width, size_t from, size_t to) {
    if (to <= left || left + width <= from) return 0;
    if (from <= left && left + width <= to) return c->most[node];
    size_t half = width / 2;
    uint32_t a = taken_until(c, 2 * node, left, half, from, to);
    uint32_t b = taken_until(c, 2 * node + 1, left + half, half, from, to);
    uint32_t below = a > b ? a : b;
    return below > c->whole[node] ? below : c->whole[node];
}

static void take(checker *c, size_t node, size_t left, size_t width, size_t from, size_t to, uint32_t until) {
    if (to <= left || left + width <= from) return;
    if (c->most[node] < until) c->most[node] = until;
    if (from <= left && left + width <= to) {
        if (c->whole[node] < until) c->whole[node] = until;
        return;
    }
    size_t half = width / 2;
    take(c, 2 * node, left, half, from, to, until);
    take(c, 2 * node + 1, left + half, half, from, to, until);
}

static bool run(checker *c) {
    for (size_t i = 0; i < c->n_lifetimes; i++) {
        const lifetime *l = &c->lifetimes[i];
        size_t from = range_of(c, l->bottom), to = range_of(c, l->top);
        if (taken_until(c, 1, 0, c->base, from, to) > l->begin) return false;
        take(c, 1, 0, c->base, from, to, l->end);
    }
    return true;
}

static tide_status allocate(checker *c, const tide__pool_plan *plan) {
    size_t n = 2 * (size_t)plan->n_items + 1; /* at most two stretches per item */
    *c = (checker){.base = 1};
    while (c->base < 2 * n) c->base *= 2;
    c->lifetimes = malloc(n * sizeof *c->lifetimes);
    c->borders = malloc(2 * n * sizeof *c->borders);
    c->whole = calloc(2 * c->base, sizeof *c->whole);
    c->most = calloc(2 * c->base, sizeof *c->most);
    return c->lifetimes && c->borders && c->whole && c->most ? TIDE_OK : tide__fail_memory();
}

tide_status tide__pool_plan_check(const tide__pool_plan *plan) {
    checker c;
    tide_status status = allocate(&c, plan);
    if (status == TIDE_OK) {
        bool good = ends_are_listed(plan) && collect(&c, plan);
        if (good) sort(&c);
        if (!good || !run(&c)) status = tide__fail(TIDE_E_INTERNAL, "a pool's plan has blocks that overlap");
    }
    free(c.lifetimes);
    free(c.borders);
    free(c.whole);
    free(c.most);
    return status;
}
