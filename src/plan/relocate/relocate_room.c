/* Making room where no hole is large enough. Either some blocks leave a window for holes elsewhere, or neighbours slide down
 * so that the holes between them become one. The second always works if the bytes suffice, and is often dearer. */
#include "plan/relocate/relocate_state.h"

/* The holes that blocks may leave the window for. Bytes of those that have to leave are none: who moves first would
 * overwrite another. */
static uint32_t list_holes(tide__walk *w, const tide__walk_way *y, uint64_t size) {
    uint32_t n = 0;
    tide__hole below = tide__walk_hole(w, y->first), above = tide__walk_hole(w, y->last);
    uint64_t end = tide__max_u64(above.offset, y->offset + size);
    for (uint32_t i = 0; i < y->first; i++) w->holes[n++] = tide__walk_hole(w, i);
    w->holes[n++] =
        (tide__hole){below.offset, tide__min_u64(below.size, y->offset - tide__min_u64(below.offset, y->offset))};
    w->holes[n++] = (tide__hole){end, above.size - (end - above.offset)};
    for (uint32_t i = y->last + 1; i <= w->n_resting; i++) w->holes[n++] = tide__walk_hole(w, i);
    return n;
}

/* The tightest of n holes, which is made smaller; false: all are too small. */
static bool take_hole(tide__walk *w, uint32_t n, const tide__relocate_block *b, uint64_t *offset) {
    tide__hole *best = NULL;
    uint64_t at;
    for (uint32_t i = 0; i < n; i++)
        if ((!best || w->holes[i].size < best->size) && tide__hole_fit_low(w->holes[i], b, &at)) {
            best = &w->holes[i];
            *offset = at;
        }
    if (!best) return false;
    uint64_t end = best->offset + best->size;
    best->offset = *offset + b->size;
    best->size = end - best->offset;
    return true;
}

/* evicted[] = the blocks of a way, the largest first. */
static uint32_t list_evicted(tide__walk *w, const tide__walk_way *y) {
    uint32_t n = 0;
    for (uint32_t i = y->first; i < y->last; i++, n++) {
        uint32_t k = n;
        for (; k > 0 && w->blocks[w->evicted[k - 1]].size < w->blocks[w->resting[i]].size; k--)
            w->evicted[k] = w->evicted[k - 1];
        w->evicted[k] = w->resting[i];
    }
    return n;
}

/* targets[i]: where evicted[i] goes. False: there is no hole for one, or together they cost `most` or more. */
static bool try_eviction(tide__walk *w, tide__walk_way *y, uint64_t size, uint64_t most) {
    uint32_t n_evicted = list_evicted(w, y), n_holes = list_holes(w, y, size);
    y->cost = 0;
    tide__walk_count(w, (uint64_t)(n_evicted + 1) * n_holes);
    for (uint32_t i = 0; i < n_evicted; i++) {
        if (!take_hole(w, n_holes, &w->blocks[w->evicted[i]], &w->targets[i])) return false;
        y->cost = tide__add_capped(y->cost, tide__walk_cost(w, w->evicted[i], w->targets[i]));
        if (y->cost >= most) return false;
    }
    return true;
}

/* Does leaving the window cost less than `most`, if every block goes far away? A look at each, not at every hole. */
static bool is_cheap(tide__walk *w, const tide__walk_way *y, uint64_t most) {
    uint64_t sum = 0;
    for (uint32_t i = y->first; i < y->last && sum < most; i++) {
        sum = tide__add_capped(sum, tide__walk_cost(w, w->resting[i], UINT64_MAX));
        tide__walk_count(w, 1);
    }
    return sum < most;
}

/* Windows that begin where a hole begins, or end where one ends. */
static void find_eviction(tide__walk *w, const tide__relocate_block *b, tide__walk_way *best) {
    uint64_t offset;
    for (uint32_t i = 0; i <= w->n_resting && !w->failed; i++) {
        tide__hole h = tide__walk_hole(w, i), from = {h.offset, w->o.capacity - h.offset},
                   to = {w->base, h.offset + h.size - w->base};
        for (int side = 0; side < 2; side++) {
            if (!(side ? tide__hole_fit_high(to, b, &offset) : tide__hole_fit_low(from, b, &offset))) continue;
            tide__walk_way y = tide__walk_window(w, offset, b->size);
            if (is_cheap(w, &y, best->cost) && try_eviction(w, &y, b->size, best->cost)) *best = y;
        }
    }
}

/* Blocks from resting[first] on slide down until the hole above them is large enough. */
static void find_slide(tide__walk *w, const tide__relocate_block *b, uint32_t first, tide__walk_way *best) {
    uint64_t top = tide__walk_hole(w, first).offset, sum = 0, at;
    for (uint32_t i = first; i < w->n_resting; i++) {
        const tide__relocate_block *x = &w->blocks[w->resting[i]];
        if (!tide__align_up(top, x->align, &at)) return;
        sum = tide__add_capped(sum, tide__walk_cost(w, w->resting[i], at));
        if (sum >= best->cost) return;
        top = at + x->size;
        tide__hole above = tide__walk_hole(w, i + 1);
        tide__walk_count(w, 1);
        if (!tide__hole_fit_low((tide__hole){top, above.offset + above.size - top}, b, &at)) continue;
        *best = (tide__walk_way){.slides = true, .first = first, .last = i + 1, .offset = at, .cost = sum};
        return;
    }
}

/* Upwards, so that the order stays and nobody is overwritten. */
static tide_status slide(tide__walk *w, const tide__walk_way *y) {
    uint64_t top = tide__walk_hole(w, y->first).offset, at = 0;
    for (uint32_t i = y->first; i < y->last; i++) {
        uint32_t block = w->resting[i];
        (void)tide__align_up(top, w->blocks[block].align, &at);
        top = at + w->blocks[block].size;
        TIDE_TRY(tide__walk_relocate(w, block, at));
    }
    return TIDE_OK;
}

static tide_status evict(tide__walk *w, tide__walk_way *y, uint64_t size) {
    uint32_t n = y->last - y->first;
    (void)try_eviction(w, y, size, UINT64_MAX); /* targets[] again */
    for (uint32_t i = 0; i < n; i++) TIDE_TRY(tide__walk_relocate(w, w->evicted[i], w->targets[i]));
    return TIDE_OK;
}

tide_status tide__walk_make_room(tide__walk *w, uint32_t block, uint64_t *offset) {
    const tide__relocate_block *b = &w->blocks[block];
    tide__walk_way best = {.cost = UINT64_MAX};
    for (uint32_t i = 0; i < w->n_resting && !w->failed; i++) find_slide(w, b, i, &best);
    find_eviction(w, b, &best);
    if (best.cost == UINT64_MAX) w->failed = true;
    if (w->failed) return TIDE_OK;
    *offset = best.offset;
    return best.slides ? slide(w, &best) : evict(w, &best, b->size);
}
