/* See states.h. */
#include "plan/decide/hybrid/states.h"

#include <stdlib.h>
#include <string.h>

void tide__state_deinit(tide__state *x) {
    tide__vec_free(&x->events);
    free(x->chosen);
    *x = (tide__state){0};
}

void tide__states_deinit(tide__states *all) {
    for (size_t i = 0; i < all->items.count; i++) tide__state_deinit(&all->items.data[i]);
    tide__vec_free(&all->items);
    *all = (tide__states){0};
}

/* The first with a larger load. */
static size_t place_of(const tide__states *all, uint64_t bytes) {
    size_t low = 0, high = all->items.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (all->items.data[middle].load_bytes <= bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const tide__state *tide__states_find(const tide__states *all, uint64_t bytes) {
    size_t at = place_of(all, bytes);
    return at ? &all->items.data[at - 1] : NULL;
}

tide_status tide__state_copy(const tide__sketch *s, const tide__transfers *moves, tide__state *x) {
    size_t n = moves ? moves->swaps.gaps.count : 0;
    *x = (tide__state){.load_bytes = tide__sketch_peak(s), .run_ns = s->run_ns, .chosen = malloc(n + 1)};
    tide_status status = x->chosen ? tide__keys_copy(&s->extra, &x->events) : tide__fail_memory();
    if (status == TIDE_OK && n) memcpy(x->chosen, moves->chosen, n * sizeof *x->chosen);
    if (status != TIDE_OK) tide__state_deinit(x);
    return status;
}

/* Is there none that is as small and as fast? */
static bool is_wanted(const tide__states *all, uint64_t load_bytes, uint64_t run_ns) {
    size_t at = place_of(all, load_bytes);
    return at == 0 || run_ns < all->items.data[at - 1].run_ns;
}

/* Takes *x over; those that are no smaller and no faster go. */
static tide_status insert(tide__states *all, tide__state *x) {
    TIDE_TRY(tide__vec_reserve(&all->items, 1));
    size_t at = place_of(all, x->load_bytes), end = at;
    if (at && all->items.data[at - 1].load_bytes == x->load_bytes) at--;
    while (end < all->items.count && all->items.data[end].run_ns >= x->run_ns) end++;
    for (size_t i = at; i < end; i++) tide__state_deinit(&all->items.data[i]);
    memmove(&all->items.data[at + 1], &all->items.data[end], (all->items.count - end) * sizeof *x);
    all->items.count = all->items.count - (end - at) + 1;
    all->items.data[at] = *x;
    *x = (tide__state){0};
    return TIDE_OK;
}

tide_status tide__states_keep(tide__states *all, const tide__sketch *s, const tide__transfers *moves, bool *kept) {
    tide__state x;
    *kept = is_wanted(all, tide__sketch_peak(s), s->run_ns);
    if (!*kept) return TIDE_OK;
    TIDE_TRY(tide__state_copy(s, moves, &x));
    tide_status status = insert(all, &x);
    tide__state_deinit(&x);
    return status;
}

tide_status tide__states_learn(tide__states *all, const tide__states *from, size_t n_gaps) {
    for (size_t i = 0; i < from->items.count; i++) {
        const tide__state *known = &from->items.data[i];
        if (!is_wanted(all, known->load_bytes, known->run_ns)) continue;
        tide__state x = {.load_bytes = known->load_bytes, .run_ns = known->run_ns, .chosen = malloc(n_gaps + 1)};
        tide_status status = x.chosen ? tide__keys_copy(&known->events, &x.events) : tide__fail_memory();
        if (status == TIDE_OK && n_gaps) memcpy(x.chosen, known->chosen, n_gaps * sizeof *x.chosen);
        if (status == TIDE_OK) status = insert(all, &x);
        tide__state_deinit(&x);
        TIDE_TRY(status);
    }
    return TIDE_OK;
}

tide_status tide__states_restore(const tide__state *from, tide__sketch *s, tide__transfers *moves) {
    TIDE_TRY(tide__keys_copy(&from->events, &s->extra));
    if (!moves) return tide__sketch_build(s);
    memcpy(moves->chosen, from->chosen, moves->swaps.gaps.count * sizeof *moves->chosen);
    return tide__transfers_sync(moves, s);
}
