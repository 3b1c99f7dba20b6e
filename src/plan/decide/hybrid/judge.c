/* See judge.h. */
#include "plan/decide/hybrid/judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/decide/draft.h"
#include "plan/decide/hybrid/effort.h"
#include "plan/decide/shuttle.h"
#include "plan/decide/tiers.h"
#include "plan/decide/workspaces.h"

void tide__judge_begin(tide__judge *j, const tide__policy_input *in) {
    j->in = *in;
    j->any = j->fits = false;
}

void tide__judge_deinit(tide__judge *j) {
    tide_plan_destroy(j->strict);
    tide__decisions_free(&j->best);
    *j = (tide__judge){0};
}

static bool is_better(const tide__judge *j, const tide_plan *draft, bool fits) {
    if (!j->any || fits != j->fits) return !j->any || fits;
    uint64_t ns = draft->prediction.step_ns;
    if (!fits) return draft->arena_bytes < j->best_bytes;
    return ns != j->best_ns ? ns < j->best_ns : draft->arena_bytes < j->best_bytes;
}

/* Workspaces as large as the load leaves room for below `limit`. */
static tide_status fill_workspaces(const tide__judge *j, uint64_t limit, tide__decisions *d) {
    tide__policy_input in = j->in;
    in.target_bytes = limit;
    uint64_t *loads = malloc((tide_program_op_count(j->in.program) + (size_t)1) * sizeof *loads);
    tide_status status = loads ? tide__workspaces_shrink(&in, d) : tide__fail_memory();
    if (status == TIDE_OK) status = tide__draft_loads(&in, d, loads);
    if (status == TIDE_OK) status = tide__workspaces_fill(&in, loads, d);
    free(loads);
    return status;
}

static uint64_t over_budget(const tide__judge *j, uint64_t arena_bytes) {
    return arena_bytes - tide__min_u64(arena_bytes, j->in.options->budgets.arena_bytes);
}

uint64_t tide__judge_over(const tide__judge *j) { return over_budget(j, j->last_bytes); }

static bool is_low(const tide__judge *j) { return j->in.options->effort == TIDE_EFFORT_LOW; }

/* Drafts are placed quickly, the plan then with care: a draft may be above the budget by this part of it, unless
 * that was tried and less is asked for. Low effort has no time for care in vain once it has a plan. */
enum { SLACK_PART = 100, LOW_SLACK_PART = 256 };

static uint64_t above_budget(const tide__judge *j, uint64_t arena_bytes) {
    uint64_t budget = j->in.options->budgets.arena_bytes, over = over_budget(j, arena_bytes);
    uint64_t part = is_low(j) && j->strict ? LOW_SLACK_PART : SLACK_PART;
    uint64_t slack = j->in.target_bytes == budget ? budget / part : 0;
    return over <= slack ? 0 : over;
}

static bool fits(const tide__judge *j, const tide_plan *draft) {
    return tide__tiers_hold(&j->in, draft->tier_bytes) && above_budget(j, draft->arena_bytes) == 0;
}

void tide__judge_plan(tide__judge *j, tide_plan **draft) {
    if ((*draft)->arena_bytes > j->in.options->budgets.arena_bytes || !tide__tiers_hold(&j->in, (*draft)->tier_bytes))
        return;
    if (j->strict && (*draft)->prediction.step_ns >= j->strict->prediction.step_ns) return;
    tide_plan_destroy(j->strict);
    j->strict = *draft;
    *draft = NULL;
}

static void take_over(tide__judge *j, tide__decisions *d, const tide_plan *draft) {
    tide__decisions_free(&j->best);
    j->best = *d;
    *d = (tide__decisions){0};
    j->any = true;
    j->n_best++;
    j->fits = fits(j, draft);
    j->best_ns = draft->prediction.step_ns;
    j->best_bytes = draft->arena_bytes;
}

static tide_status draft(tide__judge *j, const tide__decisions *d, tide_plan **out) {
    TIDE_TRY(tide__draft(&j->in, d, out));
    j->spent += (uint64_t)TIDE__DRAFT_WORK * (*out)->actions.count;
    return TIDE_OK;
}

/* Attempts with ever smaller workspaces. */
enum { MAX_FILLS = 3 };

/* A draft with workspaces; smaller ones where placement finds no room for them. */
static tide_status draft_filled(tide__judge *j, tide__decisions *d, tide_plan **out) {
    uint64_t limit = j->in.target_bytes;
    for (int i = 0; i < MAX_FILLS; i++) {
        tide_plan *filled;
        TIDE_TRY(fill_workspaces(j, limit, d));
        TIDE_TRY(draft(j, d, &filled));
        if (*out && filled->arena_bytes >= (*out)->arena_bytes) {
            tide_plan_destroy(filled);
            return TIDE_OK;
        }
        tide_plan_destroy(*out);
        *out = filled;
        uint64_t over = above_budget(j, filled->arena_bytes);
        if (over == 0) return TIDE_OK;
        limit -= tide__min_u64(limit, 2 * over);
    }
    return TIDE_OK;
}

/* Above the budget by less than this part of it: placing with care may do. */
enum { CARE_PART = 8 };

static bool is_worth_care(const tide__judge *j, const tide_plan *draft) {
    uint64_t budget = j->in.options->budgets.arena_bytes;
    if (!j->care || draft->arena_bytes <= budget || draft->arena_bytes - budget > budget / CARE_PART) return false;
    return !j->strict || draft->prediction.step_ns < j->strict->prediction.step_ns;
}

static tide_status draft_with_care(tide__judge *j, const tide__decisions *d, tide_plan **plan) {
    tide_plan *careful;
    TIDE_TRY(tide__draft_with_care(&j->in, d, &careful));
    tide_plan_destroy(*plan);
    *plan = careful;
    return TIDE_OK;
}

tide_status tide__judge_draft(tide__judge *j, tide__decisions *d) {
    tide_plan *plan = NULL;
    tide_status status = d->variants.count ? draft(j, d, &plan) : draft_filled(j, d, &plan);
    if (status == TIDE_OK && is_worth_care(j, plan)) status = draft_with_care(j, d, &plan);
    if (status == TIDE_OK) j->last_bytes = plan->arena_bytes;
    if (status == TIDE_OK) j->last_ns = plan->prediction.step_ns;
    if (status == TIDE_OK) (void)tide__tiers_shrink(&j->in, plan->tier_bytes);
    if (status == TIDE_OK && is_better(j, plan, fits(j, plan))) take_over(j, d, plan);
    if (status == TIDE_OK) tide__judge_plan(j, &plan);
    tide_plan_destroy(plan);
    tide__decisions_free(d);
    *d = (tide__decisions){0};
    return status;
}

bool tide__judge_is_slower(const tide__judge *j) { return j->strict && j->last_ns >= j->strict->prediction.step_ns; }

/* Placing with care takes as long as several drafts: low effort does without where that saves less than 1/LITTLE_PART. */
enum { LITTLE_PART = 400 };

tide_plan *tide__judge_take_strict(tide__judge *j) {
    tide_plan *plan = j->strict;
    j->strict = NULL;
    return plan;
}

/* Where a step takes long, or nothing fits: everything in tiers, brought in for its ops, may be better. */
static tide_status try_shuttle(tide__judge *j) {
    tide__policy_input in = j->in;
    tide_plan *plan;
    uint64_t least = tide__workspaces_least_ns(&in);
    if (tide__policy_has(in.argument, "nomove")) return TIDE_OK;
    if (j->strict && j->strict->prediction.step_ns / (is_low(j) ? 4 : 2) <= least) return TIDE_OK;
    memset(in.tier_missed_bytes, 0, sizeof in.tier_missed_bytes); /* it keeps the tiers' budgets by itself */
    TIDE_TRY(tide__shuttle(&in, &plan));
    if (plan) tide__judge_plan(j, &plan);
    tide_plan_destroy(plan);
    return TIDE_OK;
}

tide_status tide__judge_settle(tide__judge *j) {
    tide_plan *careful;
    TIDE_TRY(tide__draft_with_care(&j->in, &j->best, &careful));
    tide__judge_plan(j, &careful);
    tide_plan_destroy(careful);
    return TIDE_OK;
}

tide_status tide__judge_finish(tide__judge *j, tide_plan **out) {
    tide_plan *careful = NULL;
    uint64_t slack = is_low(j) ? j->best_ns / LITTLE_PART : 0;
    bool is_strict_best = j->strict && j->strict->prediction.step_ns <= j->best_ns + slack;
    if (j->any && !is_strict_best) TIDE_TRY(tide__draft_with_care(&j->in, &j->best, &careful));
    if (careful) tide__judge_plan(j, &careful);
    tide_plan_destroy(careful);
    TIDE_TRY(try_shuttle(j));
    *out = tide__judge_take_strict(j);
    return TIDE_OK;
}
