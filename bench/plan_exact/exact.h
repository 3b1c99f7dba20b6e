/* Small training steps and their exact optimum by re-runs, found in two independent ways. */
#ifndef TIDE_BENCH_PLAN_EXACT_H
#define TIDE_BENCH_PLAN_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#include <tidemark/tidemark.h>

#include "common.h"

enum { MAX_LAYERS = 12, MAX_OPS = 2 * MAX_LAYERS + 1, UNIT_BYTES = 64, UNIT_NS = 1000 };

/* Op i writes value i; the input is no value: it always stays. Sizes and costs are in units. */
typedef struct example {
    uint32_t n_ops, input_units;
    uint32_t reads[MAX_OPS]; /* as a set */
    uint32_t units[MAX_OPS], cost[MAX_OPS];
} example;

/* Layers forward, then back: the gradient of a layer reads its output, often its input, and the gradient above. The
 * next in a sequence that is always the same; `state` starts anywhere. */
example example_draw(uint64_t *state, uint32_t layers);
tide_program *example_program(const example *x);
uint32_t draw_below(uint64_t *state, uint32_t n);

/* The least time in units, 0 if nothing fits; room is for values, beside the input. For SHORT_OPS ops at most.
 *
 * A shortest path: a state is how many ops have run for the first time and which values are in memory; an edge runs an
 * op whose reads are there, at its cost, if the load stays within the room, or drops a value for nothing. */
enum { SHORT_LAYERS = 7, SHORT_OPS = 2 * SHORT_LAYERS + 1 };
uint32_t optimum_by_paths(const example *x, uint32_t room);

/* The same by an integer program and the solver cbc (Debian: coinor-cbc), which is a separate process.
 *
 * The formulation is of Checkmate's kind (Jain et al., MLSys 2020): stage t re-runs some of the ops before t, in order,
 * and then runs op t. r[t,k] = 1: stage t runs op k. p[t,k,i]: value i is in memory while stage t is at op k; it can be
 * only if it was there one place before or is made right there. Given r, the least p follows, so only r is integer. */
typedef struct integer_answer {
    bool known;   /* it fits, or the solver ran out of time before it could tell */
    bool optimal; /* bound == time */
    double time;  /* units, of the best found; at most `known_time` */
    double bound; /* no plan is faster */
    double seconds;
} integer_answer;
bool integer_solver_found(void);
/* known_time: of a plan that exists. */
integer_answer optimum_by_integers(const example *x, uint32_t room, double known_time, uint32_t limit_seconds);

#endif
