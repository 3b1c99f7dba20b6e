/* The walk of relocate.h: blocks come and go in issue order, and find holes or make room. */
#ifndef TIDE_PLAN_RELOCATE_WALK_H
#define TIDE_PLAN_RELOCATE_WALK_H

#include "plan/relocate/relocate_blocks.h"

/* A block goes elsewhere, just before an action; before == number of actions: at the end. */
typedef struct tide__relocation {
    uint32_t before, block;
    uint64_t offset;
} tide__relocation;

/* Where blocks lie: where they are made, and where they go from there. */
typedef struct tide__layout {
    uint64_t *offsets; /* per block */
    TIDE_VEC(tide__relocation) moves;
    uint64_t price_ns;
} tide__layout;

void tide__layout_deinit(tide__layout *l);

/* Which hole a block takes where placement's own guess is taken or outside. */
typedef enum tide__hole_choice {
    TIDE__HOLE_TIGHTEST,
    TIDE__HOLE_LOWEST,
    TIDE__HOLE_BY_LIFE,  /* what stays long lies low, what leaves soon lies high */
    TIDE__HOLE_BY_DEATH, /* beside whoever leaves at about the same time */
    TIDE__N_HOLE_CHOICES
} tide__hole_choice;

typedef struct tide__walk_options {
    uint64_t capacity;
    tide__hole_choice choice;
    bool keeps_homes;       /* away from the homes of those to come, where there is a choice */
    uint64_t seed;          /* not 0: an eighth of the blocks choose otherwise, by lot */
    const uint64_t *guides; /* per block: where it goes if it can; UINT64_MAX: nowhere in particular */
    uint64_t limit_ns;      /* of all copies */
    uint64_t *work;         /* left; becomes less */
} tide__walk_options;

/* *fits: out is filled, and the caller's to deinit. Else it is left alone. */
tide_status tide__relocate_walk(const tide_plan *plan, const tide_machine *machine, const tide__relocate_blocks *blocks,
                                const tide__walk_options *options, tide__layout *out, bool *fits);

#endif
