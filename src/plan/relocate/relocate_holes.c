/* Which hole a block takes: see tide__hole_choice. */
#include "base/hash.h"
#include "plan/relocate/relocate_state.h"

static bool stays_long(const tide__walk *w, const tide__relocate_block *b) {
    return b->end - w->now > (w->plan->actions.count - w->now) / 8;
}

bool tide__walk_find_tightest(const tide__walk *w, const tide__relocate_block *b, uint64_t *offset) {
    uint64_t least = UINT64_MAX, at;
    for (uint32_t i = 0; i <= w->n_resting; i++) {
        tide__hole h = tide__walk_hole(w, i);
        if (h.size >= least || !tide__hole_fit_low(h, b, &at)) continue;
        least = h.size;
        *offset = at;
    }
    return least != UINT64_MAX;
}

static bool find_lowest(const tide__walk *w, const tide__relocate_block *b, uint64_t *offset) {
    for (uint32_t i = 0; i <= w->n_resting; i++)
        if (tide__hole_fit_low(tide__walk_hole(w, i), b, offset)) return true;
    return false;
}

static bool find_highest(const tide__walk *w, const tide__relocate_block *b, uint64_t *offset) {
    for (uint32_t i = w->n_resting + 1; i-- > 0;)
        if (tide__hole_fit_high(tide__walk_hole(w, i), b, offset)) return true;
    return false;
}

/* How far apart in time block b leaves and its neighbour does; resting[i], or the end of the arena, which never leaves. */
static uint32_t death_gap(const tide__walk *w, const tide__relocate_block *b, uint32_t i) {
    uint32_t end = i < w->n_resting ? w->blocks[w->resting[i]].end : (uint32_t)w->plan->actions.count + 1;
    return end > b->end ? end - b->end : b->end - end;
}

static bool find_companion(const tide__walk *w, const tide__relocate_block *b, uint64_t *offset) {
    uint32_t least = UINT32_MAX;
    uint64_t at;
    for (uint32_t i = 0; i <= w->n_resting; i++) {
        tide__hole h = tide__walk_hole(w, i);
        uint32_t below = death_gap(w, b, i - 1), above = death_gap(w, b, i); /* i - 1 may be UINT32_MAX: the bottom */
        if (below < least && tide__hole_fit_low(h, b, &at)) {
            least = below;
            *offset = at;
        }
        if (above < least && tide__hole_fit_high(h, b, &at)) {
            least = above;
            *offset = at;
        }
    }
    return least != UINT32_MAX;
}

/* In the way that the options ask for. */
static bool choose_hole(const tide__walk *w, uint32_t block, uint64_t *offset) {
    const tide__relocate_block *b = &w->blocks[block];
    uint64_t lot = tide__hash_word(w->o.seed, block);
    bool other = w->o.seed && lot % 8 == 0;
    switch (other ? (tide__hole_choice)(lot / 8 % TIDE__N_HOLE_CHOICES) : w->o.choice) {
    case TIDE__HOLE_TIGHTEST: return tide__walk_find_tightest(w, b, offset);
    case TIDE__HOLE_BY_DEATH: return find_companion(w, b, offset);
    case TIDE__HOLE_BY_LIFE:
        if (!stays_long(w, b)) return find_highest(w, b, offset);
        break;
    default: break;
    }
    return find_lowest(w, b, offset);
}

/* Somebody will come home to these bytes while the block is there: as if they had come already. How many, first in `kept`. */
static uint32_t keep_homes(tide__walk *w, const tide__relocate_block *b) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_homing; i++) {
        uint32_t other = w->homing[i];
        const tide__relocate_block *o = &w->blocks[other];
        if (o->begin <= w->now || o->begin >= b->end || !tide__walk_is_free(w, w->out.offsets[o->home], o->size))
            continue;
        tide__walk_insert(w, other, w->out.offsets[o->home]);
        w->kept[n++] = other;
    }
    tide__walk_count(w, w->n_homing);
    return n;
}

bool tide__walk_find_hole(tide__walk *w, uint32_t block, uint64_t *offset) {
    const tide__relocate_block *b = &w->blocks[block];
    tide__walk_count(w, w->n_resting + 1);
    if (b->home != TIDE_NONE && b->home != block && tide__walk_is_free(w, w->out.offsets[b->home], b->size)) {
        *offset = w->out.offsets[b->home];
        return true;
    }
    if (tide__walk_is_free(w, w->o.guides[block], b->size)) {
        *offset = w->o.guides[block];
        return true;
    }
    uint32_t n = w->o.keeps_homes ? keep_homes(w, b) : 0;
    bool found = choose_hole(w, block, offset);
    for (uint32_t i = 0; i < n; i++) tide__walk_take_out(w, w->kept[i]);
    return found || (n && choose_hole(w, block, offset));
}
