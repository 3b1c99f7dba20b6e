/* Online policies in simulation: a virtual clock with a compute queue and channels, and a byte counter for an arena.
 * What happens is recorded as decisions, in the order in which it happened. */
#ifndef TIDE_PLAN_DECIDE_ONLINE_SIM_H
#define TIDE_PLAN_DECIDE_ONLINE_SIM_H

#include "plan/decide/decide.h"
#include "plan/decide/online/online.h"

typedef struct tide__online_run {
    const tide_program *program;
    const tide_machine *machine;
    const tide_budgets *budgets; /* of the tiers */
    const tide__online_policy *policy;
    const char *argument;
    uint64_t budget_bytes;         /* of the load */
    const uint32_t *release_after; /* per tensor; NULL: the last use */
    bool as_dtr;                   /* no sharing in place, leftovers stay: what DTR's own simulator does */
} tide__online_run;

typedef struct tide__online_figures {
    uint64_t compute_ns, recomputed_ns, step_ns; /* step: with the waits for transfers */
    uint64_t peak_bytes;
    uint64_t n_reruns, n_swaps;
} tide__online_figures;

/* One step from the steady state: what does not fit into the arena over the step's end starts and ends in a tier.
 * `out` may be NULL. TIDE_E_FIT: not with this budget. */
tide_status tide__online_simulate(const tide__online_run *run, tide__decisions *out, tide__online_figures *figures);

/* What the policies of the table call. If the target is too small: decisions of the smallest load that works. */
tide_status tide__decide_online(const tide__policy_input *in, const tide__online_policy *policy, tide__decisions *out);

#endif
