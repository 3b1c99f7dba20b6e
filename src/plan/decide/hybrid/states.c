/* See states.h. */
#include "plan/decide/hybrid/states.h"

#include <stdlib.h>
#include <string.h>

static void free_state(tide__state *x) {
    tide__vec_free(&x->events);
    free(x->chosen);
}

void tide__states_deinit(tide__states *all) {
    for (size_t i = 0; i < all->items.count; i++) free_state(&all->items.data[i]);
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

static tide_status copy_state(const tide__sketch *s, const tide__transfers *moves, tide__state *x) {
    size_t n = moves ? moves->swaps.gaps.count : 0;
    *x = (tide__state){.load_bytes = tide__sketch_peak(s), .run_ns = s->run_ns, .chosen = malloc(n + 1)};
    tide_status status = x->chosen ? tide__keys_copy(&s->extra, &x->events) : tide__fail_memory();
    if (status == TIDE_OK && n) memcpy(x->chosen, moves->chosen, n * sizeof *x->chosen);
    if (status != TIDE_OK) free_state(x);
    return status;
}

tide_status tide__states_keep(tide__states *all, const tide__sketch *s, const tide__transfers *moves, bool *kept) {
    tide__state x;
    uint64_t load = tide__sketch_peak(s);
    size_t at = place_of(all, load), end = at;
    *kept = at == 0 || s->run_ns < all->items.data[at - 1].run_ns;
    if (!*kept) return TIDE_OK;
    TIDE_TRY(tide__vec_reserve(&all->items, 1));
    TIDE_TRY(copy_state(s, moves, &x));
    if (at && all->items.data[at - 1].load_bytes == load) at--;
    while (end < all->items.count && all->items.data[end].run_ns >= x.run_ns) end++;
    for (size_t i = at; i < end; i++) free_state(&all->items.data[i]);
    memmove(&all->items.data[at + 1], &all->items.data[end], (all->items.count - end) * sizeof x);
    all->items.count = all->items.count - (end - at) + 1;
    all->items.data[at] = x;
    return TIDE_OK;
}

tide_status tide__states_restore(const tide__state *from, tide__sketch *s, tide__transfers *moves) {
    TIDE_TRY(tide__keys_copy(&from->events, &s->extra));
    if (!moves) return tide__sketch_build(s);
    memcpy(moves->chosen, from->chosen, moves->swaps.gaps.count * sizeof *moves->chosen);
    return tide__transfers_sync(moves, s);
}
