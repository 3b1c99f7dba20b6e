/* Small training steps and their exact optimum: by re-runs, found in two independent ways, and by moves, re-runs and
 * variants together. */
#ifndef TIDE_BENCH_PLAN_EXACT_H
#define TIDE_BENCH_PLAN_EXACT_H

#include <stdbool.h>
#include <stdint.h>

#include <tidemark/tidemark.h>

#include "common.h"

enum { MAX_LAYERS = 12, MAX_OPS = 2 * MAX_LAYERS + 1, UNIT_BYTES = 64, UNIT_NS = 1000 };

/* Op i writes value i; the input is no value: it always stays. Sizes and costs are in units. */
typedef struct example {
    uint32_t n_ops, input_units; /* 0: no input */
    uint32_t reads[MAX_OPS];     /* as a set */
    uint32_t units[MAX_OPS], cost[MAX_OPS];
    uint32_t workspace[MAX_OPS], slow_cost[MAX_OPS]; /* 0: one variant; else `cost` is with it, slow_cost without */
    bool once[MAX_OPS];                              /* never runs again */
} example;

/* Layers forward, then back: the gradient of a layer reads its output, often its input, and the gradient above. The
 * next in a sequence that is always the same; `state` starts anywhere. */
example example_draw(uint64_t *state, uint32_t layers);
/* The same without an input; some ops have a faster variant with a workspace, some run once only. */
example example_draw_joint(uint64_t *state, uint32_t layers);
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

/* The least time over all of these decisions, as decide.h means them, each placed and simulated as a plan is:
 *
 *   variants   every op by every one of its variants
 *   re-runs    every set of pairs (slot, op), but for re-runs whose value nothing uses
 *   moves      every stretch between two uses of an instance is kept, or the value leaves: its SAVE in any slot from where
 *              it was made to the one after the last use before the stretch, its LOAD in any slot up to the next use. A
 *              value that was saved is not saved again.
 *
 * SAVEs of one slot go by value, its LOADs by their next use, re-runs by op; a plan with a `sequence` of its own may be
 * faster than what is found here. The search is depth first; cut is what takes at least the time known by a relaxation
 * (no address is known, so less waits), or has more bytes in the arena than the budget in any order of addresses. */
typedef struct joint_answer {
    bool complete;   /* false: given up */
    uint64_t ns;     /* of the best found, at most known_ns */
    uint64_t drafts; /* placed and simulated */
} joint_answer;
/* For MAX_JOINT_OPS ops at most. known_ns: of a plan that exists; UINT64_MAX: none. `machine` has one tier of RAM. */
enum { MAX_JOINT_LAYERS = 5, MAX_JOINT_OPS = 2 * MAX_JOINT_LAYERS + 1 };
joint_answer optimum_by_decisions(const example *x, const tide_program *p, const tide_machine *machine,
                                  uint32_t budget_units, uint64_t known_ns);

#endif
