/* What the files of relocate_walk.h share: the arena at one moment of the walk.
 *
 * Invariant: `resting` lists the blocks that have bytes now, by offset, without overlaps, all between base and capacity. A block is
 * *fresh* before the action that makes it has run: it can go elsewhere for nothing. */
#ifndef TIDE_PLAN_RELOCATE_STATE_H
#define TIDE_PLAN_RELOCATE_STATE_H

#include "base/size.h"
#include "plan/relocate/relocate_walk.h"

/* A stretch of free bytes. */
typedef struct tide__hole {
    uint64_t offset, size;
} tide__hole;

typedef struct tide__walk {
    const tide_plan *plan;
    const tide_machine *machine;
    const tide__relocate_block *blocks;
    const tide__relocate_blocks *table;
    tide__walk_options o;
    tide__layout out;
    uint64_t base; /* below it lie the blocks that stay for the whole step, packed; they never rest or move */
    uint32_t now, n_resting;
    uint32_t *resting; /* blocks */
    uint64_t *offset;  /* per block, while it rests */
    uint64_t *busy_ns; /* per block: a transfer that may be under way */
    bool *fresh;       /* per block */
    uint32_t *evicted; /* scratch: blocks that have to leave a window */
    uint64_t *targets; /* scratch: where those go */
    tide__hole *holes; /* scratch */
    uint32_t *homing;  /* blocks that come into being late in the step and have a home */
    uint32_t *kept;    /* scratch: of those, whose home is kept free */
    uint32_t n_homing;
    bool failed; /* it does not fit, costs too much or takes too long */
} tide__walk;

/* Blocks in the way: resting[first ... last), of a window at `offset`; what it costs if they make way. */
typedef struct tide__walk_way {
    bool slides; /* they slide down as far as they can, which leaves a hole above them; else: for holes elsewhere */
    uint32_t first, last;
    uint64_t offset, cost;
} tide__walk_way;

static inline uint64_t tide__walk_end_of(const tide__walk *w, uint32_t block) {
    return w->offset[block] + w->blocks[block].size;
}

/* The hole below resting block i; i == n_resting: the one at the top. */
static inline tide__hole tide__walk_hole(const tide__walk *w, uint32_t i) {
    uint64_t begin = i ? tide__walk_end_of(w, w->resting[i - 1]) : w->base;
    return (tide__hole){begin, (i < w->n_resting ? w->offset[w->resting[i]] : w->o.capacity) - begin};
}

/* The lowest offset in a hole for a block; false: it is too small. */
static inline bool tide__hole_fit_low(tide__hole h, const tide__relocate_block *b, uint64_t *offset) {
    return tide__align_up(h.offset, b->align, offset) && *offset - h.offset <= h.size &&
           b->size <= h.size - (*offset - h.offset);
}

static inline bool tide__hole_fit_high(tide__hole h, const tide__relocate_block *b, uint64_t *offset) {
    if (b->size > h.size) return false;
    *offset = (h.offset + h.size - b->size) & ~(b->align - 1);
    return *offset >= h.offset;
}

/* So many looks at blocks: fails when there were too many. */
void tide__walk_count(tide__walk *w, uint64_t looks);
/* How many rest below an offset. */
uint32_t tide__walk_rank(const tide__walk *w, uint64_t offset);
void tide__walk_insert(tide__walk *w, uint32_t block, uint64_t offset);
void tide__walk_take_out(tide__walk *w, uint32_t block);
bool tide__walk_is_free(const tide__walk *w, uint64_t offset, uint64_t size);
/* Who rests in the window. */
tide__walk_way tide__walk_window(const tide__walk *w, uint64_t offset, uint64_t size);

/* What to go by when there is a choice: a transfer under way would have to be waited for. */
uint64_t tide__walk_cost(const tide__walk *w, uint32_t block, uint64_t offset);
/* A resting block goes to another offset, where bytes are free or its own. */
tide_status tide__walk_relocate(tide__walk *w, uint32_t block, uint64_t offset);

/* relocate_holes.c: a hole for a block, as it is; false: there is none. */
bool tide__walk_find_hole(tide__walk *w, uint32_t block, uint64_t *offset);
bool tide__walk_find_tightest(const tide__walk *w, const tide__relocate_block *b, uint64_t *offset);

/* relocate_room.c: a hole for a block where there is none, in the cheapest way. */
tide_status tide__walk_make_room(tide__walk *w, uint32_t block, uint64_t *offset);

#endif
