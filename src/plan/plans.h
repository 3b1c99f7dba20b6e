/* The pool of plans: all that generators have found for one program, machine and set of tiers, whatever budget was asked
 * for. A question about a budget of the arena is answered from it.
 *
 *   time ▲  ●                    an entry is faster than every entry with a smaller arena;
 *        │      ●                what is neither faster nor smaller than another is not kept
 *        │          ○  ◀ no entry
 *        │         ●
 *        │                ●
 *        └──────────────────────▶ arena
 *
 * A budget gets the fastest entry that it holds. So a larger budget is never slower, a smaller one never has the larger arena,
 * and nothing that a smaller one holds is refused, as long as what was put into the pool does not depend on the budget. */
#ifndef TIDE_PLAN_PLANS_H
#define TIDE_PLAN_PLANS_H

#include "plan/evaluate.h"

typedef struct tide__plans_entry {
    uint64_t arena_bytes, step_ns;
    tide__evaluate_options placed; /* as it was evaluated */
    tide__decisions decisions;     /* evaluated once more when the plan is wanted */
    const tide__order *order;      /* of the ops, in which they were; NULL: the program's */
    tide_plan *whole;              /* the plan itself where decisions do not say all of it; else NULL */
    bool polished;                 /* its decisions have been edited */
} tide__plans_entry;

/* What became of decisions. */
typedef struct tide__plans_outcome {
    bool holds_tiers; /* no tier's budget is exceeded */
    uint64_t arena_bytes, step_ns;
    uint64_t tier_bytes[TIDE_MACHINE_MAX_TIERS];
} tide__plans_outcome;

typedef struct tide__plans_seen {
    uint64_t fingerprint;
    tide__plans_outcome outcome;
} tide__plans_seen;

typedef struct tide__plans {
    tide__policy_input in;               /* with less room in tiers whose slots came out too large */
    TIDE_VEC(tide__plans_entry) entries; /* by ascending arena, and so by descending time */
    uint64_t n_kept;                     /* entries that there have been */
    TIDE_VEC(tide__plans_seen) seen;     /* by fingerprint: what was evaluated */
    tide_plan *missed;     /* as long as there is no entry: the smallest that is above a tier's budget; NULL */
    uint64_t wanted_bytes; /* the smallest budget that will be asked for: where a fastest possible plan ends a search */
    uint64_t bound_ns;     /* proved: no plan for it is faster; 0: not known */
    bool is_closed;        /* what comes is kept only if it is no faster than closed_ns (tide__plans_close) */
    uint64_t closed_ns;
    tide__order *orders; /* a list of its own, for entries that have another than the program's; NULL: none */
} tide__plans;

/* `in` is copied; what it points to must outlive the pool. Its budget for the arena is not looked at. */
void tide__plans_init(const tide__policy_input *in, uint64_t wanted_bytes, tide__plans *p);
void tide__plans_deinit(tide__plans *p);

/* Evaluates decisions and keeps them if they are worth it; what was evaluated before is not again. Empties *d in any case.
 * options: the work of placement is taken only where the plan could be an entry; worth_ns is found here. */
tide_status tide__plans_offer(tide__plans *p, tide__decisions *d, const tide__evaluate_options *options,
                              tide__plans_outcome *out);
/* A whole plan, but for its proof: takes it over; *plan is NULL then. */
tide_status tide__plans_offer_whole(tide__plans *p, tide_plan **plan);

/* The search is done with budgets from `bytes` up, and with smaller ones that hold an entry if none from `bytes` up does: what comes
 * later is kept only where it is no faster than the answer to any of them. So that answer takes the same time whether the search
 * goes on for smaller budgets or not; moves that hide take no time at all, so equally fast plans in fewer bytes are common. */
void tide__plans_close(tide__plans *p, uint64_t bytes);

/* Takes over what another pool of the same program, in any order, machine and tiers has. */
tide_status tide__plans_merge(tide__plans *p, tide__plans *from);
/* The same by copies. */
tide_status tide__plans_learn(tide__plans *p, const tide__plans *from);

/* The time of the fastest plan within a budget; UINT64_MAX: there is none. */
uint64_t tide__plans_time(const tide__plans *p, uint64_t budget_bytes);
/* The smallest arena of all; UINT64_MAX: there is none. */
uint64_t tide__plans_smallest(const tide__plans *p);

/* The answer to a budget, all but its proof; the caller owns it. Where none is within it: the smallest there is, for the
 * refusal; NULL: there is none at all. */
tide_status tide__plans_take(const tide__plans *p, uint64_t budget_bytes, tide_plan **out);

/* plan.c: the answer to the budgets of in->options, proved and simulated, or the refusal. fit may be NULL. */
tide_status tide__plan_answer(const tide__policy *policy, const tide__policy_input *in, const tide__plans *plans,
                              tide_fit_report *fit, tide_plan **out);

#endif
