/* Sums over the micro-batches of a step: gradients and the loss, by a fixed binary tree.
 *
 *        sum of 0 to 5             Micro-batches are its leaves, in order. A node over n of them has the largest power of two
 *        /           \             below n on its left. So the order of additions, and with it every bit, depends on the number of
 *     0 to 3        4, 5           micro-batches alone: not on plans, nor on who computes which of them.
 *     /    \        /  \
 *   0, 1  2, 3     4    5          Additions happen as soon as both sides are there, as a binary counter carries: partial[k] is a sum
 *   / \    / \                     over 2^k micro-batches, and at most log2(n) + 1 of them are alive. */
#include "nn/tape.h"

tide_status tide__tape_add(tide__tape *tape, const tide__addend *of, uint32_t again, tide_id left, tide_id right,
                           tide_id *out) {
    tide_op_desc desc = {.kind = TIDE_OP_ACCUMULATE, .elements = tide__emitter_floats(&tape->emit, right)};
    tide_id reads[2] = {left}, writes[TIDE__MAX_WRITES];
    tide__draft draft = {&desc, of->phase, of->name, reads, 2, again};
    TIDE_TRY(tide__emit_in_layout_of(&tape->emit, &draft, right, left, &reads[1]));
    TIDE_TRY(tide__emit(&tape->emit, &draft, writes));
    *out = writes[0];
    return TIDE_OK;
}

/* What is left on the way up after the last micro-batch: the smaller sums go right. */
static tide_status fold(tide__tape *tape, const tide__addend *of, const tide_id *partial) {
    tide_id sum = TIDE_NONE;
    for (uint32_t level = 0; tape->n_micros >> level; level++) {
        if (!(tape->n_micros >> level & 1)) continue;
        if (sum == TIDE_NONE)
            sum = partial[level];
        else
            TIDE_TRY(tide__tape_add(tape, of, level + 1, partial[level], sum, &sum));
    }
    return tide__tape_share(tape, of->slot, sum);
}

tide_status tide__tape_sum(tide__tape *tape, const tide__addend *of, tide_id value) {
    tide_id *partial = tape->partials + (size_t)of->slot * tape->n_levels;
    uint32_t level = 0, micro = tape->emit.micro - tape->first_micro;
    for (; micro >> level & 1; level++) TIDE_TRY(tide__tape_add(tape, of, level + 1, partial[level], value, &value));
    partial[level] = value;
    return tide__tape_is_last_micro(tape) ? fold(tape, of, partial) : TIDE_OK;
}
