/* The arena of a plan as blocks: a block is one place over one stretch of time. It is one residency, or several that hand
 * their bytes over in place. A block moves as a whole; what is moved is the residency that has its bytes then. */
#ifndef TIDE_PLAN_RELOCATE_BLOCKS_H
#define TIDE_PLAN_RELOCATE_BLOCKS_H

#include "plan/plan_data.h"

typedef struct tide__relocate_block {
    uint32_t begin, end; /* issue indices, half-open */
    bool at_start, at_end;
    uint64_t size, align;
    uint64_t guide;        /* the offset that placement gave it */
    uint32_t first, count; /* its residencies: members[first ...], in order of time */
    uint32_t home; /* of a value carried over the end: the block whose place at the start it needs then; or TIDE_NONE */
} tide__relocate_block;

/* When a block comes: at the start 0, with action i at i + 1. */
static inline uint64_t tide__relocate_arrival(const tide__relocate_block *b) {
    return b->at_start ? 0 : (uint64_t)b->begin + 1;
}

typedef struct tide__relocate_blocks {
    tide__relocate_block *data;
    uint32_t count;
    tide_id *members;
    uint32_t *block_of; /* per residency; TIDE_NONE: it has no bytes */
    uint32_t *arrivals; /* all blocks, as they come: those of the start first, the largest of an action first */
} tide__relocate_blocks;

tide_status tide__relocate_blocks_init(const tide_program *program, const tide_machine *machine, const tide_plan *plan,
                                       tide__relocate_blocks *out);
void tide__relocate_blocks_deinit(tide__relocate_blocks *b); /* after a failed init, too */

/* The residency that has the block's bytes just before action i. */
tide_id tide__relocate_blocks_member(const tide__relocate_blocks *b, const tide_plan *plan, uint32_t block, uint32_t i);

#endif
