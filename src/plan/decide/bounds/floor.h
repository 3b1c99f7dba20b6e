/* The floor of an arena: what lies where, and which stretch is cheapest to clear for a newcomer.
 *
 *     0        a            b     c                    capacity
 *     ├───────████──────────███──█████────────────────────┤
 *         free    ◀── clear b and c for d? ──▶
 *
 * Blocks are kept by address; all figures are multiples of one unit, so a stretch begins where a block ends or ends where
 * one begins. Looking takes time in proportion to the blocks. */
#ifndef TIDE_PLAN_DECIDE_FLOOR_H
#define TIDE_PLAN_DECIDE_FLOOR_H

#include <tidemark/program.h>

#include "base/vec.h"

typedef struct tide__floor_block {
    uint64_t offset, size; /* size > 0 */
    tide_id tensor;        /* TIDE_NONE: a workspace */
    uint64_t cost;         /* of clearing it away; the sum over all blocks is within 64 bits */
    bool stays;            /* it cannot be */
} tide__floor_block;

typedef struct tide__floor {
    TIDE_VEC(tide__floor_block) blocks; /* by offset, disjoint */
    uint64_t capacity;
} tide__floor;

/* Where `size` > 0 bytes cost the least; of equal costs where the least is left over beside them. False: nowhere. */
bool tide__floor_find(const tide__floor *f, uint64_t size, uint64_t *offset);
/* The first block that ends above `offset`, or the number of blocks. */
size_t tide__floor_at(const tide__floor *f, uint64_t offset);
/* It overlaps no other. */
tide_status tide__floor_insert(tide__floor *f, tide__floor_block block);
/* Takes out what overlaps the stretch. */
void tide__floor_clear(tide__floor *f, uint64_t offset, uint64_t size);

#endif
