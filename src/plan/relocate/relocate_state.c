/* See relocate_state.h. */
#include "plan/relocate/relocate_state.h"

#include <string.h>

void tide__walk_count(tide__walk *w, uint64_t looks) {
    if (*w->o.work < looks) w->failed = true;
    *w->o.work -= tide__min_u64(looks, *w->o.work);
}

uint32_t tide__walk_rank(const tide__walk *w, uint64_t offset) {
    uint32_t low = 0, high = w->n_resting;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->offset[w->resting[middle]] < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void tide__walk_insert(tide__walk *w, uint32_t block, uint64_t offset) {
    uint32_t at = tide__walk_rank(w, offset);
    memmove(w->resting + at + 1, w->resting + at, (w->n_resting - at) * sizeof *w->resting);
    w->resting[at] = block;
    w->offset[block] = offset;
    w->n_resting++;
}

void tide__walk_take_out(tide__walk *w, uint32_t block) {
    uint32_t at = tide__walk_rank(w, w->offset[block]);
    memmove(w->resting + at, w->resting + at + 1, (w->n_resting - at - 1) * sizeof *w->resting);
    w->n_resting--;
}

bool tide__walk_is_free(const tide__walk *w, uint64_t offset, uint64_t size) {
    tide__hole h = tide__walk_hole(w, tide__walk_rank(w, offset));
    return h.offset <= offset && offset - h.offset <= h.size && size <= h.size - (offset - h.offset);
}

tide__walk_way tide__walk_window(const tide__walk *w, uint64_t offset, uint64_t size) {
    uint32_t first = tide__walk_rank(w, offset), last = tide__walk_rank(w, offset + size);
    if (first > 0 && tide__walk_end_of(w, w->resting[first - 1]) > offset) first--;
    return (tide__walk_way){.first = first, .last = last, .offset = offset};
}

/* ---- prices ---- */

static uint64_t price(const tide__walk *w, uint32_t block, uint64_t offset) {
    uint64_t old = w->offset[block];
    if (w->fresh[block] || old == offset) return 0;
    tide_id moved = tide__relocate_blocks_member(w->table, w->plan, block, w->now);
    return tide_machine_relocate_ns(w->machine, w->plan->residencies.data[moved].size_bytes,
                                    old < offset ? offset - old : old - offset);
}

uint64_t tide__walk_cost(const tide__walk *w, uint32_t block, uint64_t offset) {
    uint64_t ns = price(w, block, offset);
    return ns ? tide__add_capped(ns, w->busy_ns[block]) : 0;
}

tide_status tide__walk_relocate(tide__walk *w, uint32_t block, uint64_t offset) {
    if (w->offset[block] == offset) return TIDE_OK;
    w->out.price_ns = tide__add_capped(w->out.price_ns, price(w, block, offset));
    if (w->out.price_ns > w->o.limit_ns) w->failed = true;
    tide__walk_take_out(w, block);
    tide__walk_insert(w, block, offset);
    if (!w->fresh[block]) return tide__vec_push(&w->out.moves, ((tide__relocation){w->now, block, offset}));
    w->out.offsets[block] = offset;
    return TIDE_OK;
}
