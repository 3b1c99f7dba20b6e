/* Random programs for tests: small training steps in shape, odd in detail, always valid, the same for a seed.
 *
 *   inputs ─▶ forward ops (chain, with skips) ─▶ loss ─▶ backward ops in the opposite order ─▶ updates
 *                │   each output is read again by its backward op: gaps as long as the step     ▲
 *                └────── weights, read in both directions, updated in place (`must`) ───────────┘
 *
 * What varies: sizes, side inputs from long ago, second outputs, outputs nobody reads, kept activations, `may` and
 * `must` pairs, variants with workspaces and bits classes, ops that cannot be re-run, random ops, updates in the middle
 * of backward (as soon as no later op reads the weight) or at the end, weights nobody updates (carried to themselves),
 * optimizer state, gradients accumulated over several uses of a weight.
 *
 *   random_program_options o = random_program_defaults(seed);   // or random_program_varied(seed)
 *   o.n_ops = 50;
 *   tide_program *p = random_program(&o);                       // fails the test on error; never NULL
 */
#ifndef TIDE_TESTS_RANDOM_PROGRAM_H
#define TIDE_TESTS_RANDOM_PROGRAM_H

#include <tidemark/program.h>

#include "support/random_below.h" /* the numbers behind it, for tests that need more random choices */

typedef struct random_program_options {
    uint64_t seed;
    uint32_t n_ops;                /* exactly this many */
    uint64_t min_bytes, max_bytes; /* of a tensor; multiples of 4 in between (min and max rounded down to those) */
    uint64_t max_workspace_bytes;
    uint64_t max_cost_ns; /* costs are 1 to this */
    uint32_t n_weights;   /* at most n_ops / 4 of them are made */
    uint32_t n_inputs;    /* CLIENT tensors, at least 1 */
    bool repeating;       /* carries for everything PRESENT */
    bool prefetch;        /* repeating: one input is PRESENT, carried from a kept CLIENT tensor that no op reads */
    /* chances in percent */
    uint32_t may_percent, must_percent; /* an output takes over the bytes of a read: can, has to */
    uint32_t skip_percent;              /* a read of a value from long ago */
    uint32_t variants_percent;          /* several variants, with workspaces */
    uint32_t fixed_percent;             /* an op that cannot be re-run */
    uint32_t random_percent;            /* an op that draws random numbers */
    uint32_t keep_percent;              /* an activation needed at the end */
    uint32_t update_percent;            /* a weight is updated; else it is carried to itself */
    uint32_t zero_percent;              /* a tensor of 0 bytes, whatever min_bytes says */
    uint32_t split_percent;             /* an op that may be cut into its four units, somehow */
} random_program_options;

/* A repeating step of 40 ops, 4 weights and 1 input, tensors of 64 to 4096 bytes, a bit of everything but prefetch
 * and empty tensors. */
random_program_options random_program_defaults(uint64_t seed);

/* Every field drawn from the seed as well; 1 to 80 ops, tensors of 0 to 64 KiB. */
random_program_options random_program_varied(uint64_t seed);

tide_program *random_program(const random_program_options *options);

#endif
