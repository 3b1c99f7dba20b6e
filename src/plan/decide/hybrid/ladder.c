/* See ladder.h. */
#include "plan/decide/hybrid/ladder.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/schedule.h"

/* ---- the rungs ---- */

/* The arena of policy liveness: what percentages of memory refer to. */
static tide_status measure_whole(const tide__policy_input *in, uint64_t *out) {
    static const tide__decisions nothing;
    tide_plan *plan;
    TIDE_TRY(tide__plan_new(&plan));
    plan->n_queues = 1 + in->machine->n_channels;
    plan->n_tiers = in->machine->n_tiers;
    tide_status status = tide__schedule(in->program, in->machine, &nothing, plan);
    if (status == TIDE_OK) status = tide__place_plan(in->program, in->machine, false, NULL, plan);
    if (status == TIDE_OK) *out = plan->arena_bytes;
    tide_plan_destroy(plan);
    return status;
}

/* Rungs are counted in parts of a percent of that arena. */
enum { PARTS = 16, WHOLE = 100 * PARTS, FEW = WHOLE / 5, MOST = 64 * WHOLE };

static uint64_t bytes_of(uint64_t whole_bytes, uint32_t parts) {
    uint64_t percent = whole_bytes / 100;
    return tide__add_capped(percent * (parts / PARTS), percent * (parts % PARTS) / PARTS);
}

/* Percent from one rung to the next: what the effort pays for. Each rung takes time in proportion to the ops. */
static uint32_t spacing_of(const tide__policy_input *in) {
    static const uint32_t most_ops[] = {1000, 4000};
    static const uint32_t normal[] = {1, 2, 5}, high[] = {1, 1, 2};
    uint32_t n = tide_program_op_count(in->program), k = 0;
    while (k < 2 && n > most_ops[k]) k++;
    return in->options->effort == TIDE_EFFORT_HIGH ? high[k] : normal[k];
}

/* Steps get smaller as budgets do, where each byte counts more, and larger above the whole. */
static uint32_t step_at(uint32_t parts, uint32_t spacing) {
    uint32_t step = spacing * PARTS;
    for (uint32_t limit = FEW; parts < limit && step > 1; limit /= 2) step = (step + 1) / 2;
    return parts < WHOLE ? step : parts < 2 * WHOLE ? 10 * PARTS : parts;
}

/* Multiples of ten percent are rungs at every spacing. */
static uint32_t next_rung(uint32_t parts, uint32_t spacing) {
    uint32_t step = step_at(parts, spacing), tens = 10 * PARTS;
    uint32_t next = parts + step, ten = (parts / tens + 1) * tens;
    return next < ten || parts >= WHOLE ? next : ten;
}

static tide_status list_rungs(tide__ladder *l, uint64_t whole_bytes, uint64_t least_bytes) {
    uint32_t spacing = spacing_of(l->in), main = 10 * PARTS;
    uint64_t budget = l->in->options->budgets.arena_bytes;
    for (uint32_t parts = PARTS; parts <= MOST; parts = next_rung(parts, spacing)) {
        uint64_t bytes = bytes_of(whole_bytes, parts);
        if (bytes > budget) break;
        tide__rung rung = {.bytes = bytes, .main = parts % main == 0};
        if (bytes >= least_bytes && bytes > 0) TIDE_TRY(tide__vec_push(&l->rungs, rung));
    }
    return TIDE_OK;
}

tide_status tide__ladder_init(const tide__policy_input *in, tide__ladder *l) {
    tide_liveness *liveness;
    *l = (tide__ladder){.in = in};
    TIDE_TRY(tide_liveness_create(in->program, &liveness));
    uint64_t least_bytes = liveness->largest_op_bytes;
    tide_liveness_destroy(liveness);
    TIDE_TRY(measure_whole(in, &l->whole_bytes));
    tide_status status = list_rungs(l, l->whole_bytes, least_bytes);
    if (status != TIDE_OK) tide__ladder_deinit(l);
    return status;
}

void tide__ladder_deinit(tide__ladder *l) {
    tide__vec_free(&l->rungs);
    tide__vec_free(&l->seen);
    tide_plan_destroy(l->best);
    *l = (tide__ladder){0};
}

/* ---- the choice ---- */

static bool tiers_fit(const tide__ladder *l, const tide_plan *draft) {
    const tide_machine *m = l->in->machine;
    for (uint32_t t = 0; t < m->n_tiers; t++)
        if (draft->tier_bytes[t] > tide__min_u64(l->in->options->budgets.tier_bytes[t], m->tier[t].capacity_bytes))
            return false;
    return true;
}

static bool is_better(const tide__ladder_draft *a, const tide__ladder_draft *b) {
    if (a->step_ns != b->step_ns) return a->step_ns < b->step_ns;
    return a->moved_bytes != b->moved_bytes ? a->moved_bytes < b->moved_bytes : a->arena_bytes < b->arena_bytes;
}

static tide__ladder_draft figures_of(const tide__ladder *l, const tide_plan *draft) {
    return (tide__ladder_draft){draft->arena_bytes, draft->prediction.step_ns, draft->prediction.moved_bytes, l->rung};
}

tide_status tide__ladder_offer(tide__ladder *l, tide_plan **draft) {
    tide__ladder_draft d = figures_of(l, *draft), best = l->best ? figures_of(l, l->best) : d;
    if (!tiers_fit(l, *draft) || d.arena_bytes > l->in->options->budgets.arena_bytes) return TIDE_OK;
    TIDE_TRY(tide__vec_push(&l->seen, d));
    if (l->best && !is_better(&d, &best)) return TIDE_OK;
    tide_plan_destroy(l->best);
    l->best = *draft;
    *draft = NULL;
    return TIDE_OK;
}

/* The arena that a budget gets, without what smaller ones demand; 0: none fits. */
static uint64_t arena_within(const tide__ladder *l, uint32_t rung, uint64_t budget) {
    const tide__ladder_draft *best = NULL;
    for (size_t i = 0; i < l->seen.count; i++) {
        const tide__ladder_draft *d = &l->seen.data[i];
        if (d->rung <= rung && d->arena_bytes <= budget && (!best || is_better(d, best))) best = d;
    }
    return best ? best->arena_bytes : 0;
}

/* Of the budgets between two rungs, which all choose from the same drafts, the largest has the largest arena. */
tide_plan *tide__ladder_take(tide__ladder *l) {
    tide_plan *best = l->best;
    for (uint32_t r = 0; best && r + 1 < l->rungs.count; r++)
        best->arena_bytes = tide__max_u64(best->arena_bytes, arena_within(l, r, l->rungs.data[r + 1].bytes - 1));
    l->best = NULL;
    return best;
}
