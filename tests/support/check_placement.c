/* The checker of check_placement.h.
 *
 * Each lifetime is entered at its begin and removed at its end (ends first: lifetimes are half-open). What is alive
 * is a sorted array of address ranges; a newcomer is compared with its two neighbours. */
#include "support/check_placement.h"

#include "support/test.h"

typedef struct event {
    uint32_t time, item;
    int begins;
} event;

typedef struct span {
    uint64_t low, high;
    uint32_t item;
} span;

static char problem_text[200];

static int by_time(const void *a, const void *b) {
    const event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->begins - y->begins;
}

static const char *check_item(const tide__place_item *it, size_t i, uint64_t offset) {
    const char *what = NULL;
    if (it->size == 0 && offset != 0) what = "has no bytes but an offset";
    if (offset + it->size < offset) what = "ends beyond 2^64";
    if (it->size && offset % it->align != 0) what = "is not aligned";
    if (it->size && it->fixed != TIDE__PLACE_FREE && offset != it->fixed) what = "is not at its fixed offset";
    if (!what) return NULL;
    snprintf(problem_text, sizeof problem_text, "item %zu at %llu %s", i, (unsigned long long)offset, what);
    return problem_text;
}

static size_t list_events(const tide__place_item *items, size_t n, event *events) {
    size_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (items[i].size == 0) continue;
        if (items[i].begin < items[i].end) {
            events[k++] = (event){items[i].begin, i, 1};
            events[k++] = (event){items[i].end, i, 0};
        }
        if (items[i].begin2 < items[i].end2) {
            events[k++] = (event){items[i].begin2, i, 1};
            events[k++] = (event){items[i].end2, i, 0};
        }
    }
    qsort(events, k, sizeof *events, by_time);
    return k;
}

/* First position whose range begins at or after `low`. */
static size_t position(const span *alive, size_t n, uint64_t low) {
    size_t a = 0, b = n;
    while (a < b) {
        size_t middle = (a + b) / 2;
        if (alive[middle].low < low)
            a = middle + 1;
        else
            b = middle;
    }
    return a;
}

static const char *overlap(const span *x, const span *y) {
    snprintf(problem_text, sizeof problem_text, "items %u and %u overlap at [%llu, %llu) and [%llu, %llu)", x->item,
             y->item, (unsigned long long)x->low, (unsigned long long)x->high, (unsigned long long)y->low,
             (unsigned long long)y->high);
    return problem_text;
}

static const char *enter(span *alive, size_t *n, span s) {
    size_t at = position(alive, *n, s.low);
    if (at > 0 && alive[at - 1].high > s.low) return overlap(&alive[at - 1], &s);
    if (at < *n && alive[at].low < s.high) return overlap(&alive[at], &s);
    memmove(alive + at + 1, alive + at, (*n - at) * sizeof *alive);
    alive[at] = s;
    ++*n;
    return NULL;
}

static void leave(span *alive, size_t *n, uint64_t low) {
    size_t at = position(alive, *n, low);
    memmove(alive + at, alive + at + 1, (*n - at - 1) * sizeof *alive);
    --*n;
}

static const char *sweep(const tide__place_item *items, const uint64_t *offsets, const event *events, size_t n_events,
                         span *alive) {
    size_t n_alive = 0;
    for (size_t k = 0; k < n_events; k++) {
        uint32_t i = events[k].item;
        span s = {offsets[i], offsets[i] + items[i].size, i};
        if (!events[k].begins) {
            leave(alive, &n_alive, s.low);
            continue;
        }
        const char *what = enter(alive, &n_alive, s);
        if (what) return what;
    }
    return NULL;
}

const char *check_placement(const tide__place_item *items, size_t n, const uint64_t *offsets, uint64_t height) {
    uint64_t real = 0;
    for (size_t i = 0; i < n; i++) {
        const char *what = check_item(&items[i], i, offsets[i]);
        if (what) return what;
        if (offsets[i] + items[i].size > real) real = offsets[i] + items[i].size;
    }
    if (real != height) {
        snprintf(problem_text, sizeof problem_text, "the height is %llu, not %llu", (unsigned long long)real,
                 (unsigned long long)height);
        return problem_text;
    }
    event *events = malloc((4 * n + 1) * sizeof *events);
    span *alive = malloc((2 * n + 1) * sizeof *alive);
    const char *what = "out of memory";
    if (events && alive) what = sweep(items, offsets, events, list_events(items, n, events), alive);
    free(events);
    free(alive);
    return what;
}

static uint64_t maximum_load(const tide__place_item *items, size_t n) {
    event *events = malloc((4 * n + 1) * sizeof *events);
    assert_non_null(events);
    size_t n_events = list_events(items, n, events);
    uint64_t load = 0, most = 0;
    for (size_t k = 0; k < n_events; k++) {
        load = events[k].begins ? load + items[events[k].item].size : load - items[events[k].item].size;
        if (load > most) most = load;
    }
    free(events);
    return most;
}

void assert_placement(const tide__place_item *items, size_t n, const uint64_t *offsets,
                      const tide__place_result *result) {
    const char *what = check_placement(items, n, offsets, result->height);
    if (what) fail_msg("%s: %s", result->algorithm ? result->algorithm : "?", what);
    uint64_t load = maximum_load(items, n);
    if (result->lower_bound > result->height || result->lower_bound < load)
        fail_msg("lower bound %llu is not between the load %llu and the height %llu",
                 (unsigned long long)result->lower_bound, (unsigned long long)load, (unsigned long long)result->height);
    if (!result->optimal && result->height == result->lower_bound) fail_msg("optimal, but does not say so");
}
