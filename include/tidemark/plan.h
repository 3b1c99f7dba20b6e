/* A plan: what runs, what moves, where every byte lies, and who waits for whom, for one step of one program.
 *
 * Actions stand in one total *issue order*. Each belongs to a queue (0 = compute, 1 + i = channel i of the
 * machine). A queue runs its actions in order; across queues an action waits for the *completion* of the actions
 * it lists, all earlier in issue order, so a plan cannot deadlock.
 *
 *   issue order   0        1          2            3          4            5
 *   compute       RUN a    .          RUN b        .          RUN c ◀wait4 .
 *   ram out       .        SAVE x ◀0  .            .          .            .
 *   ram in        .        .          .            LOAD x ◀1,2 .           .
 *
 * A *residency* is a stretch in which a tensor is in the arena, at one offset; it exists on the half-open interval
 * [begin, end) of issue indices. begin is the action that creates it (RUN that writes it, LOAD) or 0 when it is in
 * the start map; every access to it lies inside the interval. Two residencies alive at the same index do not
 * overlap in addresses, except an in-place pair at the op that hands over: the read ends at i + 1, the write begins
 * at i, same offset. A *copy* is the same for the bytes of a tier. RUN actions bind residencies explicitly.
 *
 * A RELOCATE copies a value to another offset of the arena, on the compute queue: it reads one residency and makes
 * another of the same tensor and size. Where the read ends with it, the two may overlap (as by memmove).
 *
 * A step ends when all its actions are complete. */
#ifndef TIDEMARK_PLAN_H
#define TIDEMARK_PLAN_H

#include <tidemark/machine.h>
#include <tidemark/program.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_plan tide_plan;

typedef enum tide_action_kind { TIDE_RUN, TIDE_SAVE, TIDE_LOAD, TIDE_RELOCATE } tide_action_kind;

typedef struct tide_action {
    tide_action_kind kind;
    uint32_t queue;
    tide_id op;       /* RUN: the op; else TIDE_NONE */
    uint32_t variant; /* RUN: index into the op's variants; else 0 */
    tide_id copy;     /* SAVE: the copy it makes; LOAD: the copy it reads; else TIDE_NONE */
    /* RUN: one residency per read, then one per write, in the op's order, then one for the workspace if the
     * variant's workspace_bytes > 0. SAVE: the residency read. LOAD: the residency made. RELOCATE: both, in this order. */
    uint32_t n_uses, n_waits;
    const tide_id *uses;
    const uint32_t *waits; /* issue indices, ascending */
} tide_action;

typedef struct tide_residency {
    tide_id tensor;        /* TIDE_NONE: workspace */
    uint64_t offset_bytes; /* in the arena */
    uint64_t size_bytes;   /* >= the tensor's; rounded up to the block of every tier it moves to or from */
    uint32_t begin, end;   /* issue indices, half-open */
    bool at_start, at_end; /* member of the start map / end map */
} tide_residency;

typedef struct tide_copy {
    tide_id tensor;
    uint32_t tier;
    uint64_t offset_bytes; /* slot in the tier; 0 and without meaning in a client tier */
    uint64_t size_bytes;   /* as moved; equal to the size of every residency it is saved from or loaded to */
    uint32_t begin, end;
    bool at_start, at_end;
} tide_copy;

/* What the simulator predicts for a plan, and the figures every report prints. */
typedef struct tide_prediction {
    uint64_t step_ns;
    uint64_t compute_ns;    /* sum of the RUNs, re-runs included */
    uint64_t recomputed_ns; /* the re-runs alone */
    uint64_t exposed_ns;    /* the rest of step_ns: compute idle, waiting for transfers or draining them */
    uint64_t moved_bytes;   /* saved + loaded, all tiers, client excluded */
    uint64_t transfer_ns;   /* sum of the channels' busy times */
    uint64_t peak_bytes;    /* most bytes of live residencies at one virtual instant */
    uint64_t relocated_bytes;
    uint64_t relocated_ns; /* sum of the RELOCATEs, which take the compute queue's time */
} tide_prediction;

TIDE_API void tide_plan_destroy(tide_plan *plan); /* NULL is fine */
/* What it consists of. What is returned holds until tide_plan_destroy; NULL: there is none of this id. */
TIDE_API uint32_t tide_plan_action_count(const tide_plan *plan);
TIDE_API uint32_t tide_plan_residency_count(const tide_plan *plan);
TIDE_API uint32_t tide_plan_copy_count(const tide_plan *plan);
TIDE_API tide_action tide_plan_action(const tide_plan *plan, uint32_t i); /* i must be in range */
TIDE_API const tide_residency *tide_plan_residency(const tide_plan *plan, tide_id id);
TIDE_API const tide_copy *tide_plan_copy(const tide_plan *plan, tide_id id);
TIDE_API uint64_t tide_plan_arena_bytes(const tide_plan *plan);               /* what the plan needs */
TIDE_API uint64_t tide_plan_tier_bytes(const tide_plan *plan, uint32_t tier); /* what it needs of a tier */
TIDE_API const char *tide_plan_policy(const tide_plan *plan);                 /* by which it was made */
TIDE_API bool tide_plan_bits_any(const tide_plan *plan);                      /* variants of other bits were allowed */
TIDE_API bool tide_plan_is_reordered(const tide_plan *plan); /* first runs are not in the program's order */
/* In how many parts it runs the program. Above 1 it is a plan for tide_program_split(program, parts, tide_plan_bits_any(plan)). */
TIDE_API uint32_t tide_plan_parts(const tide_plan *plan);
TIDE_API uint64_t tide_plan_fingerprint(const tide_plan *plan); /* of its content */
TIDE_API const tide_prediction *tide_plan_prediction(const tide_plan *plan);

/* ---- making plans ---- */
typedef struct tide_budgets {
    uint64_t arena_bytes;                        /* UINT64_MAX: unconstrained */
    uint64_t tier_bytes[TIDE_MACHINE_MAX_TIERS]; /* on top of the machine's capacities */
} tide_budgets;
TIDE_API void tide_budgets_init(tide_budgets *b); /* everything unconstrained */

/* One budget as people give it. */
typedef enum tide_budget_kind {
    TIDE_BUDGET_BYTES,   /* `bytes`; UINT64_MAX: no limit */
    TIDE_BUDGET_SHARE,   /* `share` of the unconstrained arena, which is that of policy "liveness" without budgets */
    TIDE_BUDGET_SMALLEST /* the smallest arena that the policy works in, as tide_plan_smallest finds it */
} tide_budget_kind;
typedef struct tide_budget {
    tide_budget_kind kind;
    uint64_t bytes;
    double share; /* 0.4 is 40 % */
} tide_budget;
/* In bytes, where the unconstrained arena has `whole_bytes`; UINT64_MAX for the smallest, which takes plans to find. */
TIDE_API uint64_t tide_budget_bytes(const tide_budget *budget, uint64_t whole_bytes);

/* How long a policy may search; counted in work, not in time, so that plans are the same everywhere. */
#define TIDE_EFFORT_TABLE(X)                                                         \
    X(TIDE_EFFORT_LOW, "low")       /* the first good plan */                        \
    X(TIDE_EFFORT_NORMAL, "normal") /* some tenths of a second for a thousand ops */ \
    X(TIDE_EFFORT_HIGH, "high")     /* some ten seconds: for a plan that is used for long */
typedef enum tide_effort {
#define TIDE_ENUM_MEMBER(e, name) e,
    TIDE_EFFORT_TABLE(TIDE_ENUM_MEMBER)
#undef TIDE_ENUM_MEMBER
} tide_effort;

/* In which order ops may run. */
#define TIDE_ORDER_TABLE(X)                                                                                       \
    X(TIDE_ORDER_FREE, "free")       /* policy "hybrid" may reorder within dependencies where that saves bytes */ \
    X(TIDE_ORDER_PROGRAM, "program") /* the program's: for clients that submit ops in their own order */
typedef enum tide_order {
#define TIDE_ENUM_MEMBER(e, name) e,
    TIDE_ORDER_TABLE(TIDE_ENUM_MEMBER)
#undef TIDE_ENUM_MEMBER
} tide_order;

/* How far planning is. */
typedef struct tide_plan_progress {
    size_t size;       /* sizeof(tide_plan_progress) */
    const char *phase; /* what is tried */
    uint64_t
        best_ns; /* the step time of the best plan so far for the budget, or the smallest of several; UINT64_MAX: none */
    uint64_t bound_ns; /* proved: no plan for it is faster */
    double share;      /* of the work that is done, 0 to 1; a guess */
} tide_plan_progress;

typedef struct tide_plan_options {
    size_t size;           /* sizeof(tide_plan_options) */
    const char *policy;    /* a name of tide_policy_name, with ":argument" where it takes one; NULL: "liveness" */
    const char *decisions; /* policy "manual": path of a decisions file (docs/formats.md) */
    tide_budgets budgets;
    bool bits_any; /* free the choice of variants from the bits class of the default one */
    tide_effort effort;
    /* tide_plan_smallest, for whomever, tells of every budget it is about to try; NULL: nobody asks. */
    void (*trying)(void *self, uint64_t budget_bytes);
    void *trying_self;
    /* Policy "hybrid" tells how far it is, some times a second at least on programs of up to some thousand ops. On false it stops
     * and gives the best plan so far, as soon as there is one. The plan then depends on when that was. NULL: nobody asks. */
    bool (*progress)(void *self, const tide_plan_progress *progress);
    void *progress_self;
    /* Of the arena, of every RAM tier and of every disk tier; they and `budgets` hold, whichever is less. */
    tide_budget arena_budget, host_budget, disk_budget;
    tide_order order;
} tide_plan_options;
TIDE_API void tide_plan_options_init(tide_plan_options *options);
/* Puts the three into options->budgets, in bytes, as each call below does by itself: to know them, or to settle them once
 * for several calls. The program may be NULL if all of them are bytes. */
TIDE_API tide_status tide_plan_settle_budgets(const tide_program *program, const tide_machine *machine,
                                              tide_plan_options *options);

/* Policies for help texts; NULL after the last. `summary` may be NULL. */
TIDE_API const char *tide_policy_name(uint32_t i, const char **summary);

/* When a plan does not fit: why, and what would. Init with {.op = TIDE_NONE} or leave it to tide_plan_create. */
typedef struct tide_fit_report {
    uint64_t needed_bytes; /* the smallest arena that was found to work; the bound below if is_bound; 0: not known */
    tide_id op;            /* the op at its peak; TIDE_NONE if none decides it */
    bool is_bound;         /* the budget is below the bound: told at once, without a search */
    /* Proved: no arena below works with these tiers, whatever moves and is run again; for policies that never move,
     * whatever is run again. 0: not known. And the op that needs so much; TIDE_NONE: what is kept at the end does. */
    uint64_t bound_bytes;
    tide_id bound_op;
    /* TIDE_E_TIER_FULL: a tier that is too small for this arena, the bytes that are known to be enough there, and the
     * largest value in it. */
    uint32_t tier;
    uint64_t tier_needed_bytes, tier_has_bytes;
    tide_id tier_tensor; /* TIDE_NONE: not known */
} tide_fit_report;

/* liveness, decide, schedule, place, sync, verify, simulate. TIDE_E_FIT and TIDE_E_TIER_FULL fill *fit (may be NULL). The
 * same arguments give the same plan. With policy "hybrid", and all else being equal, a larger budgets.arena_bytes never gives a
 * larger step_ns, nor a smaller one a larger arena; more effort never gives a larger step_ns; and what a smaller budget or
 * less effort fits is never refused. The same holds for "hybrid:nomove" and "hybrid:norerun", than which "hybrid" is never
 * slower, and TIDE_ORDER_FREE is never slower than TIDE_ORDER_PROGRAM. */
TIDE_API tide_status tide_plan_create(const tide_program *program, const tide_machine *machine,
                                      const tide_plan_options *options, tide_fit_report *fit, tide_plan **out);

/* tide_plan_create for the program in parts (tide_program_split), which *in_parts gets; the caller destroys both. Budgets that are
 * shares are of the unconstrained arena of the program as it is. parts 0: 1, 2, 4 ... as far as ops have units; the fastest plan
 * that fits, of equal ones that of fewer parts; for the smallest budget that of the smallest arena. Where no number fits, *fit has
 * the least that one of them needs, and the least bound; its ops and tensors are TIDE_NONE where they would be those of parts. */
TIDE_API tide_status tide_plan_create_in_parts(const tide_program *program, const tide_machine *machine,
                                               const tide_plan_options *options, uint32_t parts, tide_fit_report *fit,
                                               tide_program **in_parts, tide_plan **out);

/* Whether a plan for these options is known to exist, however slow it would be: found in milliseconds for policies that may
 * move everything. Else, and where that is not enough, *fits is false, and only tide_plan_create can tell. */
TIDE_API tide_status tide_plan_fits(const tide_program *program, const tide_machine *machine,
                                    const tide_plan_options *options, bool *fits);

/* Plans for n budgets of the arena at once, instead of the one in options: plans[i] is for budgets[i], NULL where
 * it does not fit; fits[i] then says why. fits may be NULL. With policy "hybrid" they take about as long as a single plan, and
 * are the same plans. */
TIDE_API tide_status tide_plan_frontier(const tide_program *program, const tide_machine *machine,
                                        const tide_plan_options *options, const uint64_t *budgets, size_t n,
                                        tide_fit_report *fits, tide_plan **plans);

/* A lower bound on the step time of any plan for options->budgets.arena_bytes, whatever moves and is re-run, in the program's order
 * and in the other one that policy "hybrid" plans in where options->order is free; of those
 * without moves or re-runs for the policies "hybrid:nomove" and "hybrid:norerun". From a relaxation, so the best plan may
 * well be above it. Some tenths of a second at most. Astronomic for some budgets in which no plan works. */
TIDE_API tide_status tide_plan_bound(const tide_program *program, const tide_machine *machine,
                                     const tide_plan_options *options, uint64_t *bound_ns);

/* The smallest budget of a policy: bracketed by a budget that works and one that does not. Policies search, so a budget
 * between the two, or even below, may work by luck; only the bound is proved. */
typedef struct tide_smallest {
    uint64_t bound_bytes;  /* no budget below works: as in tide_fit_report */
    uint64_t failed_bytes; /* the largest budget tried that does not work; bound_bytes - 1 if none was above */
    uint64_t works_bytes;  /* the smallest budget tried that does: tide_plan_create gives a plan for it */
    tide_id op;     /* what decides: the op at the peak of that plan, or the largest op where bound and it meet */
    uint32_t tried; /* plans made on the way */
} tide_smallest;
/* Where a policy may move everything to tiers with room the bound itself works, but for alignment: milliseconds. Else by
 * bisection, until works - failed <= works * tolerance (0: 2, 0.5 or 0.2 % by effort), over plans of low effort, and then a
 * few of options->effort, with which works_bytes works and failed_bytes does not. A policy that heeds no budget has one
 * arena, which is the answer. The budget of the arena in options is where the search starts (one known to work, or none). TIDE_E_FIT or
 * TIDE_E_TIER_FULL if no plan works there. */
TIDE_API tide_status tide_plan_smallest(const tide_program *program, const tide_machine *machine,
                                        const tide_plan_options *options, double tolerance, tide_smallest *out);

/* ---- files: JSON Lines, fingerprinted, docs/formats.md ---- */
TIDE_API tide_status tide_plan_read(const char *path, tide_plan **out);
TIDE_API tide_status tide_plan_read_memory(const void *text, size_t size, const char *name_in_errors, tide_plan **out);
TIDE_API tide_status tide_plan_write(const tide_plan *plan, const char *path);

/* ---- proving plans ---- */
typedef struct tide_verdict {
    uint32_t action;   /* where it fails; TIDE_NONE: not at one action (maps, budgets) */
    char rule[32];     /* short name of the broken rule, listed in docs/verify.md; "" when the plan is valid */
    char message[256]; /* one sentence that names tensors, ops, offsets */
} tide_verdict;
/* TIDE_OK or TIDE_E_PLAN (with *verdict filled). Shares no code with what makes plans. budgets may be NULL. */
TIDE_API tide_status tide_plan_verify(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                                      const tide_budgets *budgets, tide_verdict *verdict);

/* ---- predicting plans ---- */
typedef struct tide_timeline {
    uint32_t n_actions;
    uint64_t *start_ns, *end_ns; /* per action */
    /* load curve: load_bytes[i] holds from t_ns[i] to t_ns[i+1] */
    size_t n_points;
    uint64_t *t_ns, *load_bytes;
    tide_prediction prediction;
} tide_timeline;
TIDE_API tide_status tide_plan_simulate(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                                        tide_timeline **out);
/* The same from times that somebody measured: per action when it began and when it ended, since the step began.
 * TIDE_E_ARGUMENT if an action ends before it begins. */
TIDE_API tide_status tide_timeline_create(const tide_plan *plan, const tide_program *program,
                                          const tide_machine *machine, const uint64_t *start_ns, const uint64_t *end_ns,
                                          tide_timeline **out);
TIDE_API void tide_timeline_destroy(tide_timeline *timeline);

#ifdef __cplusplus
}
#endif
#endif
