/* The kinds of kernels one step is made of: each distinct descriptor once, with operand sizes, layouts, variants,
 * work and costs, from the device or from the analytic model. Deep networks repeat a few dozen of them, so 10^5
 * layers cost a few dozen device queries.
 *
 * Invariant: recipes never move, so pointers to them (and to their descriptors) stay valid; equal descriptors share
 * one recipe. */
#ifndef TIDE_NN_RECIPES_H
#define TIDE_NN_RECIPES_H

#include <tidemark/device.h>

#include "base/vec.h"
#include "nn/cost.h"

#define TIDE__DESC_KEY_WORDS 34

typedef struct tide__recipe {
    tide_op_desc desc;
    tide_kernel_info info;   /* variants carry their costs */
    tide_kernel *kernel;     /* NULL: of the analytic model, or dropped */
    uint64_t flops, bytes;   /* of the default variant; bytes of all operands */
    uint64_t *grad_elements; /* copies of what desc points to */
    int64_t *part_channels;
    uint64_t key[TIDE__DESC_KEY_WORDS];
} tide__recipe;

typedef struct tide__recipes {
    tide_device *device;         /* NULL: the analytic model */
    const tide_machine *machine; /* NULL: costs are 0 */
    tide_dtype dtype;            /* of activations and their gradients */
    TIDE_VEC(tide__recipe *) all;
    uint32_t *slots; /* open addressing; index + 1, 0 = empty */
    size_t n_slots;  /* a power of two */
} tide__recipes;

void tide__recipes_init(tide__recipes *r, tide_device *device, const tide_machine *machine, tide_dtype dtype);
void tide__recipes_deinit(tide__recipes *r);
/* Nobody is going to run them: the device may go. */
void tide__recipes_drop_kernels(tide__recipes *r);
tide_status tide__recipes_find(tide__recipes *r, const tide_op_desc *desc, const tide__recipe **out);

/* Of operand i, reads first, then writes. Of reads that are too many to be listed the first stands for all. */
const tide_operand_info *tide__recipe_operand(const tide__recipe *recipe, uint32_t i);
/* That of operand i where it is an activation of 2 bytes, else `otherwise`. */
tide_dtype tide__recipe_dtype(const tide__recipes *r, const tide__recipe *recipe, uint32_t i, tide_dtype otherwise);

#endif
