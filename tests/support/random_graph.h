/* Random layered graphs as programs, for tests and benchmarks of planners: always valid, the same for a seed.
 *
 *   layer      0      1      2      3
 *              o ───▶ o ───▶ o ───▶ o      `width` ops a layer on average; an op reads `reads` values or more, at least one
 *              o ─┐   o ──┐  o ───▶ o      of the layer before, others of up to `skip_layers` layers before its own. The
 *                 └──────▶└────────▶o      outputs of the last layer are kept; all others are read.
 *
 * A training graph has half as many of these ops, the last (the loss) alone in its layer. Each has a backward op, in the
 * opposite order: it reads the gradient of the op's output, most of what the op read, often its output, and writes a
 * gradient of each value the op read, plus what other readers of that value have added before. Weights are updated in place
 * behind the backward op that makes their gradient.
 *
 * Sizes and costs are spread over `octaves` powers of two, evenly on a logarithmic scale; costs by themselves, or in
 * proportion to the bytes of the op's operands, give or take a factor of two. One variant per op; the only in-place pairs
 * are those of the updates: an optimum over re-runs stays easy to state (bench/plan_graphs/optimum.py). */
#ifndef TIDE_TESTS_RANDOM_GRAPH_H
#define TIDE_TESTS_RANDOM_GRAPH_H

#include <tidemark/machine.h>
#include <tidemark/program.h>

typedef struct random_graph_options {
    uint64_t seed;
    uint32_t n_ops; /* exactly this many, at least 8 */
    bool training;
    uint32_t width, skip_layers, reads; /* each at least 1 */
    uint32_t octaves;                   /* 0: all of one size; up to 16 */
    bool correlated;                    /* the cost of an op goes with the bytes of its operands */
    /* chances in percent */
    uint32_t weight_percent;    /* a forward op reads a value of its own that is there at the start: a weight */
    uint32_t keep_percent;      /* an output is needed at the end */
    uint32_t fixed_percent;     /* an op that cannot be re-run */
    uint32_t workspace_percent; /* an op with a workspace */
    uint64_t bytes_per_s;       /* of the machine, to and from its RAM */
} random_graph_options;

/* Every other field drawn from the seed. */
random_graph_options random_graph_varied(uint64_t seed, uint32_t n_ops);

/* The program is named graph-SEED-OPS. */
tide_status random_graph(const random_graph_options *options, tide_program **out);

/* The machine to plan it for: one tier, and moves that take from a part of an op's time to several. */
void random_graph_machine(const random_graph_options *options, tide_machine *out);

#endif
