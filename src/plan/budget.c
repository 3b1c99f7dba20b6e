/* See budget.h. What comes out has its budgets in bytes and none to settle, so settling it again changes nothing. */
#include "plan/budget.h"

#include "base/options.h"
#include "base/size.h"

static const tide_budget no_limit = {.kind = TIDE_BUDGET_BYTES, .bytes = UINT64_MAX};

uint64_t tide_budget_bytes(const tide_budget *budget, uint64_t whole_bytes) {
    switch (budget->kind) {
    case TIDE_BUDGET_BYTES: return budget->bytes;
    case TIDE_BUDGET_SHARE: {
        double bytes = (double)whole_bytes * budget->share;
        return bytes < 0x1p63 ? (uint64_t)bytes : UINT64_MAX;
    }
    case TIDE_BUDGET_SMALLEST: break;
    }
    return UINT64_MAX;
}

/* ---- checking ---- */

static tide_status check_budget(const char *name, const tide_budget *b, bool may_be_smallest) {
    switch (b->kind) {
    case TIDE_BUDGET_BYTES: return TIDE_OK;
    case TIDE_BUDGET_SHARE:
        if (b->share >= 0) return TIDE_OK; /* not so for NaN */
        return tide__fail(TIDE_E_ARGUMENT, "tide_plan_options.%s: a share of %g is no number from 0 up", name,
                          b->share);
    case TIDE_BUDGET_SMALLEST:
        if (may_be_smallest) return TIDE_OK;
        return tide__fail(TIDE_E_ARGUMENT, "tide_plan_options.%s: only an arena can be the smallest", name);
    }
    return tide__fail(TIDE_E_ARGUMENT, "tide_plan_options.%s: there is no budget of kind %d", name, (int)b->kind);
}

static tide_status check(const tide_plan_options *o) {
    if ((unsigned)o->effort > TIDE_EFFORT_HIGH)
        return tide__fail(TIDE_E_ARGUMENT, "tide_plan_options: there is no effort %d", (int)o->effort);
    if ((unsigned)o->order > TIDE_ORDER_PROGRAM)
        return tide__fail(TIDE_E_ARGUMENT, "tide_plan_options: there is no order %d", (int)o->order);
    TIDE_TRY(check_budget("arena_budget", &o->arena_budget, true));
    TIDE_TRY(check_budget("host_budget", &o->host_budget, false));
    return check_budget("disk_budget", &o->disk_budget, false);
}

/* ---- settling ---- */

static tide_status find_whole(const tide_program *program, const tide_machine *machine, uint64_t *bytes) {
    tide_plan_options options;
    tide_plan *plan;
    tide_plan_options_init(&options);
    TIDE_TRY(tide_plan_create(program, machine, &options, NULL, &plan));
    *bytes = tide_plan_arena_bytes(plan);
    tide_plan_destroy(plan);
    return TIDE_OK;
}

static bool has_share(const tide_plan_options *o) {
    return o->arena_budget.kind == TIDE_BUDGET_SHARE || o->host_budget.kind == TIDE_BUDGET_SHARE ||
           o->disk_budget.kind == TIDE_BUDGET_SHARE;
}

bool tide__budget_is_relative(const tide_plan_options *o) {
    return has_share(o) || o->arena_budget.kind == TIDE_BUDGET_SMALLEST;
}

static void lower(uint64_t *limit, const tide_budget *budget, uint64_t whole) {
    *limit = tide__min_u64(*limit, tide_budget_bytes(budget, whole));
}

tide_status tide__budget_limit(const tide_program *program, const tide_machine *machine, const tide_plan_options *given,
                               tide_plan_options *out) {
    uint64_t whole = 0;
    tide_plan_options o;
    tide_plan_options_init(&o);
    TIDE_TRY(tide__options_take("tide_plan_options", given, sizeof o, &o));
    TIDE_TRY(check(&o));
    TIDE_TRY(tide_machine_validate(machine));
    if (!program && tide__budget_is_relative(&o)) return tide__fail(TIDE_E_ARGUMENT, "a plan needs a program");
    if (has_share(&o)) TIDE_TRY(find_whole(program, machine, &whole));
    lower(&o.budgets.arena_bytes, &o.arena_budget, whole);
    for (uint32_t t = 0; t < machine->n_tiers; t++) {
        tide_tier_kind kind = machine->tier[t].kind;
        if (kind == TIDE_TIER_RAM) lower(&o.budgets.tier_bytes[t], &o.host_budget, whole);
        if (kind == TIDE_TIER_DISK) lower(&o.budgets.tier_bytes[t], &o.disk_budget, whole);
    }
    o.arena_budget = o.host_budget = o.disk_budget = no_limit;
    *out = o;
    return TIDE_OK;
}

double tide__budget_tolerance(tide_effort effort) {
    static const double tolerance[] = {
        [TIDE_EFFORT_LOW] = 0.02, [TIDE_EFFORT_NORMAL] = 0.005, [TIDE_EFFORT_HIGH] = 0.002};
    return tolerance[effort];
}

bool tide__budget_wants_smallest(const tide_plan_options *given) {
    tide_plan_options o;
    tide_plan_options_init(&o);
    return tide__options_take("tide_plan_options", given, sizeof o, &o) == TIDE_OK &&
           o.arena_budget.kind == TIDE_BUDGET_SMALLEST;
}

tide_status tide__budget_settle(const tide_program *program, const tide_machine *machine,
                                const tide_plan_options *given, tide_plan_options *out, tide_plan **plan) {
    tide_plan_options o;
    tide_plan *made = NULL;
    tide_smallest smallest = {.works_bytes = UINT64_MAX};
    const double tolerance = 0; /* that of the effort */
    TIDE_TRY(tide__budget_limit(program, machine, given, &o));
    if (tide__budget_wants_smallest(given))
        TIDE_TRY(tide__budget_smallest(program, machine, &o, tolerance, &smallest, &made));
    if (plan)
        *plan = made;
    else
        tide_plan_destroy(made);
    o.budgets.arena_bytes = tide__min_u64(o.budgets.arena_bytes, smallest.works_bytes);
    *out = o;
    return TIDE_OK;
}

tide_status tide_plan_settle_budgets(const tide_program *program, const tide_machine *machine,
                                     tide_plan_options *options) {
    TIDE_NEED(machine, options);
    return tide__budget_settle(program, machine, options, options, NULL);
}
