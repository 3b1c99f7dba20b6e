/* See ladder.h. */
#include "plan/decide/hybrid/ladder.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/decide/hybrid/effort.h"
#include "plan/decide/tiers.h"
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

/* Blocks so few and large that each rung is searched from scratch. */
static bool is_small(const tide__policy_input *in) {
    uint32_t n = tide_program_op_count(in->program);
    return n > TIDE__TINY_OPS && n <= TIDE__SMALL_OPS;
}

/* Parts from one rung to the next: what the effort pays for. Each rung takes time in proportion to the ops. */
static uint32_t spacing_of(const tide__policy_input *in) {
    enum { FEW_OPS = 60, SOME_OPS = 1000, MANY_OPS = 4000 };
    uint32_t n = tide_program_op_count(in->program);
    bool high = in->options->effort == TIDE_EFFORT_HIGH;
    if (is_small(in) && n <= FEW_OPS) return PARTS / 2;
    if (n <= SOME_OPS) return PARTS;
    return (n <= MANY_OPS ? high ? 1 : 2 : high ? 2 : 5) * PARTS;
}

/* Steps get smaller as budgets do, where each byte counts more, and larger above the whole. */
static uint32_t step_at(uint32_t parts, uint32_t spacing) {
    uint32_t step = spacing;
    for (uint32_t limit = FEW; parts < limit && step > 1; limit /= 2) step = (step + 1) / 2;
    return parts < WHOLE ? step : parts < 2 * WHOLE ? 10 * PARTS : parts;
}

/* Multiples of ten percent are rungs at every spacing. */
static uint32_t next_rung(uint32_t parts, uint32_t spacing) {
    uint32_t step = step_at(parts, spacing), tens = 10 * PARTS;
    uint32_t next = parts + step, ten = (parts / tens + 1) * tens;
    return next < ten || parts >= WHOLE ? next : ten;
}

/* Up to the first main one from which a budget takes nothing: the cellar may end there. */
static tide_status list_rungs(tide__ladder *l, uint64_t most_bytes) {
    uint32_t spacing = spacing_of(l->in);
    for (uint32_t parts = PARTS; parts <= MOST; parts = next_rung(parts, spacing)) {
        tide__rung rung = {.bytes = bytes_of(l->whole_bytes, parts),
                           .main = is_small(l->in) || parts % (10 * PARTS) == 0};
        if (rung.bytes >= l->least_bytes && rung.bytes > 0) TIDE_TRY(tide__vec_push(&l->rungs, rung));
        if (rung.main && rung.bytes > most_bytes) break;
    }
    return TIDE_OK;
}

static tide_status fill(tide__ladder *l, const uint64_t *budgets, size_t n) {
    uint64_t most_bytes = 0;
    TIDE_TRY(measure_whole(l->in, &l->whole_bytes));
    for (size_t i = 0; i < n; i++) {
        tide__ladder_ask ask = {.budget_bytes = budgets[i], .fastest_ns = UINT64_MAX};
        TIDE_TRY(tide__vec_push(&l->asks, ask));
        most_bytes = tide__max_u64(most_bytes, budgets[i]);
    }
    return list_rungs(l, most_bytes);
}

tide_status tide__ladder_init(const tide__policy_input *in, const uint64_t *budgets, size_t n, tide__ladder *l) {
    tide_liveness *liveness;
    *l = (tide__ladder){.in = in};
    TIDE_TRY(tide_liveness_create(in->program, &liveness));
    l->least_bytes = liveness->largest_op_bytes;
    tide_liveness_destroy(liveness);
    tide_status status = fill(l, budgets, n);
    if (status != TIDE_OK) tide__ladder_deinit(l);
    return status;
}

void tide__ladder_deinit(tide__ladder *l) {
    for (size_t i = 0; i < l->asks.count; i++) {
        tide__vec_free(&l->asks.data[i].seen);
        tide_plan_destroy(l->asks.data[i].best);
    }
    tide__vec_free(&l->asks);
    tide__vec_free(&l->rungs);
    *l = (tide__ladder){0};
}

/* ---- the choice ---- */

static bool is_better(const tide__ladder_draft *a, const tide__ladder_draft *b) {
    if (a->step_ns != b->step_ns) return a->step_ns < b->step_ns;
    return a->moved_bytes != b->moved_bytes ? a->moved_bytes < b->moved_bytes : a->arena_bytes < b->arena_bytes;
}

static tide__ladder_draft figures_of(const tide_plan *draft, uint64_t rung_bytes) {
    return (tide__ladder_draft){draft->arena_bytes, draft->prediction.step_ns, draft->prediction.moved_bytes,
                                rung_bytes};
}

static bool is_open(const tide__ladder_ask *a, uint64_t rung_bytes) {
    return !a->ended && a->budget_bytes >= rung_bytes;
}

bool tide__ladder_is_wanted(const tide__ladder *l, uint64_t rung_bytes) {
    for (size_t i = 0; i < l->asks.count; i++)
        if (is_open(&l->asks.data[i], rung_bytes)) return true;
    return false;
}

static tide_status offer_to(tide__ladder_ask *a, const tide__ladder_draft *d, const tide_plan *draft) {
    tide__ladder_draft best = a->best ? figures_of(a->best, 0) : *d;
    tide_plan *copy;
    TIDE_TRY(tide__vec_push(&a->seen, *d));
    if (a->best && !is_better(d, &best)) return TIDE_OK;
    TIDE_TRY(tide__plan_clone(draft, &copy));
    tide_plan_destroy(a->best);
    a->best = copy;
    return TIDE_OK;
}

tide_status tide__ladder_offer(tide__ladder *l, uint64_t rung_bytes, const tide_plan *draft) {
    tide__ladder_draft d = figures_of(draft, rung_bytes);
    if (!tide__tiers_hold(l->in, draft->tier_bytes)) return TIDE_OK;
    for (size_t i = 0; i < l->asks.count; i++) {
        tide__ladder_ask *a = &l->asks.data[i];
        if (is_open(a, rung_bytes) && d.arena_bytes <= a->budget_bytes) TIDE_TRY(offer_to(a, &d, draft));
    }
    return TIDE_OK;
}

/* Below where plans are slower by a fifth, searches take the longest, for what no larger budget would want. */
void tide__ladder_note(tide__ladder *l, uint64_t bytes, uint64_t step_ns) {
    for (size_t i = 0; i < l->asks.count; i++) {
        tide__ladder_ask *a = &l->asks.data[i];
        if (!is_open(a, bytes)) continue;
        a->ended = step_ns / 6 > a->fastest_ns / 5;
        a->fastest_ns = tide__min_u64(a->fastest_ns, step_ns);
    }
}

/* The arena that a budget gets, without what smaller ones demand; 0: none fits. */
static uint64_t arena_within(const tide__ladder_ask *a, uint64_t rung_bytes, uint64_t budget) {
    const tide__ladder_draft *best = NULL;
    for (size_t i = 0; i < a->seen.count; i++) {
        const tide__ladder_draft *d = &a->seen.data[i];
        if (d->rung_bytes <= rung_bytes && d->arena_bytes <= budget && (!best || is_better(d, best))) best = d;
    }
    return best ? best->arena_bytes : 0;
}

/* Of the budgets between two rungs, which all choose from the same drafts, the largest has the largest arena. */
tide_plan *tide__ladder_take(tide__ladder *l, size_t i) {
    tide__ladder_ask *a = &l->asks.data[i];
    tide_plan *best = a->best;
    uint64_t from = 0;
    for (size_t r = 0; best && r < l->rungs.count && l->rungs.data[r].bytes <= a->budget_bytes; r++) {
        best->arena_bytes = tide__max_u64(best->arena_bytes, arena_within(a, from, l->rungs.data[r].bytes - 1));
        from = l->rungs.data[r].bytes;
    }
    a->best = NULL;
    return best;
}
