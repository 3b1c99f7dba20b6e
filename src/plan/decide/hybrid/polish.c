/* See polish.h. A candidate is scheduled first; only what is within the budget by its load, and could be faster if no
 * move waited for room, is placed and simulated. */
#include "plan/decide/hybrid/polish.h"

#include <stdlib.h>

#include "base/rng.h"
#include "base/size.h"
#include "plan/decide/draft.h"
#include "plan/decide/hybrid/polish_edits.h"
#include "plan/decide/tiers.h"
#include "plan/decide/workspaces.h"
#include "plan/schedule.h"

/* Candidates from one start, times ops; some 1 us each. After each of the kicks there is a part of that. */
enum { MAX_WORK = 120 * 1000, KICKS = 24, KICK_EDITS = 3, KICK_PART = 10 };

/* Fewer bytes above the budget are better, then less time. */
typedef struct score {
    uint64_t over_bytes; /* summed over the actions; of what fits by its load, by the arena */
    uint64_t ns;
} score;

typedef struct polisher {
    tide__hybrid *h;
    const tide__policy_input *in;
    tide__decisions now, next, best;
    score at, best_at;         /* of now, of best */
    uint32_t candidates, left; /* from one start; from the present one */
} polisher;

static bool is_better(score a, score b) {
    return a.over_bytes != b.over_bytes ? a.over_bytes < b.over_bytes : a.ns < b.ns;
}

/* ---- scores ---- */

/* No places are known yet: nothing waits for room. made, copied: when a residency or copy is complete. */
static uint64_t relaxed_ns(const tide__policy_input *in, const tide_plan *plan, uint64_t *made, uint64_t *copied) {
    uint64_t free_ns[1 + TIDE_MACHINE_MAX_CHANNELS] = {0}, last = 0;
    for (uint32_t i = 0; i < plan->actions.count; i++) {
        const tide__action *a = &plan->actions.data[i];
        uint64_t start = free_ns[a->queue], ns;
        for (uint32_t k = 0; k < a->n_uses; k++) start = tide__max_u64(start, made[plan->uses.data[a->uses + k]]);
        if (a->kind == TIDE_LOAD) start = tide__max_u64(start, copied[a->copy]);
        if (a->kind == TIDE_RUN)
            ns = tide_program_op(in->program, a->op)->variants[a->variant].cost_ns;
        else
            ns = tide_machine_transfer_ns(in->machine, a->queue - 1, plan->copies.data[a->copy].size_bytes);
        free_ns[a->queue] = start = tide__add_capped(start, ns);
        last = tide__max_u64(last, start);
        if (a->kind == TIDE_SAVE) copied[a->copy] = start;
        for (uint32_t k = 0; k < a->n_uses; k++) {
            tide_id r = plan->uses.data[a->uses + k];
            if (!plan->residencies.data[r].at_start && plan->residencies.data[r].begin == i) made[r] = start;
        }
    }
    return last;
}

/* By the schedule alone: better than it can be, but for what is above the budget. */
static tide_status score_schedule(const polisher *p, tide_plan *plan, score *out) {
    size_t n = plan->actions.count + plan->residencies.count + plan->copies.count + 1;
    uint64_t *loads = calloc(n, sizeof *loads);
    uint64_t budget = p->in->options->budgets.arena_bytes;
    if (!loads) return tide__fail_memory();
    uint64_t *made = loads + plan->actions.count;
    tide_status status = tide__plan_load(p->in->program, p->in->machine, plan, loads);
    *out = (score){0};
    for (size_t i = 0; status == TIDE_OK && i < plan->actions.count; i++)
        out->over_bytes = tide__add_capped(out->over_bytes, loads[i] - tide__min_u64(loads[i], budget));
    if (status == TIDE_OK) out->ns = relaxed_ns(p->in, plan, made, made + plan->residencies.count);
    free(loads);
    return status;
}

static score score_plan(const polisher *p, const tide_plan *plan) {
    uint64_t arena = plan->arena_bytes, budget = p->in->options->budgets.arena_bytes;
    bool holds = tide__tiers_hold(p->in, plan->tier_bytes);
    return (score){holds ? arena - tide__min_u64(arena, budget) : UINT64_MAX, plan->prediction.step_ns};
}

/* Placed quickly, and with care if that decides. */
static tide_status score_draft(polisher *p, const tide__decisions *d, score *out) {
    tide_plan *plan;
    TIDE_TRY(tide__draft(p->in, d, &plan));
    *out = score_plan(p, plan);
    if (out->over_bytes && (out->ns < p->at.ns || p->at.over_bytes)) {
        tide_plan_destroy(plan);
        TIDE_TRY(tide__draft_with_care(p->in, d, &plan));
        *out = score_plan(p, plan);
    }
    tide__judge_plan(&p->h->judge, &plan);
    tide_plan_destroy(plan);
    return TIDE_OK;
}

/* *valid: the decisions can be carried out. */
static tide_status score_of(polisher *p, const tide__decisions *d, bool *valid, score *out) {
    tide_plan *plan;
    TIDE_TRY(tide__draft_new(p->in, &plan));
    tide_status status = tide__schedule(p->in->program, p->in->machine, d, plan);
    *valid = status == TIDE_OK;
    if (*valid) status = score_schedule(p, plan, out);
    tide_plan_destroy(plan);
    if (!*valid) return status == TIDE_E_ARGUMENT ? TIDE_OK : status;
    if (status != TIDE_OK || out->over_bytes || !is_better(*out, p->at)) return status;
    status = score_draft(p, d, out);
    if (status != TIDE_E_UNSUPPORTED) return status;
    *valid = false; /* a carried value beside its successor: they have one place */
    return TIDE_OK;
}

/* ---- the search ---- */

/* a and b, two edits or one twice: taken over if that is better. */
static tide_status try_edits(polisher *p, const tide__edit *a, const tide__edit *b, bool *better) {
    bool valid;
    score s;
    p->left--;
    TIDE_TRY(tide__decisions_copy(&p->now, &p->next));
    TIDE_TRY(tide__edit_apply(a, &p->next));
    if (b != a) TIDE_TRY(tide__edit_apply(b, &p->next));
    tide__edits_clean(&p->next);
    TIDE_TRY(score_of(p, &p->next, &valid, &s));
    *better = valid && is_better(s, p->at);
    if (!*better) return TIDE_OK;
    tide__decisions now = p->now;
    p->now = p->next;
    p->next = now;
    p->at = s;
    return TIDE_OK;
}

/* Single edits, then pairs; those that change what there is come first, so that pairs are exchanges as long as there is
 * work for no more. */
static tide_status improve(polisher *p, const tide__edits *e, bool *better) {
    *better = false;
    for (size_t i = 0; i < e->count && p->left && !*better; i++)
        TIDE_TRY(try_edits(p, &e->data[i], &e->data[i], better));
    for (size_t i = 0; i < e->count && p->left && !*better; i++)
        for (size_t k = i + 1; k < e->count && p->left && !*better; k++)
            if (!tide__edits_clash(&e->data[i], &e->data[k])) TIDE_TRY(try_edits(p, &e->data[i], &e->data[k], better));
    return TIDE_OK;
}

/* From `now` on. */
static tide_status descend(polisher *p, uint32_t candidates) {
    bool valid, better = true;
    score start = {UINT64_MAX, UINT64_MAX};
    p->left = candidates;
    p->at = start; /* anything is better */
    TIDE_TRY(score_of(p, &p->now, &valid, &start));
    p->at = start;
    while (valid && better && p->left) {
        tide__edits e = {0};
        tide_status status = tide__edits_list(p->in, &p->now, p->h->moves, p->h->reruns, &e);
        if (status == TIDE_OK) status = improve(p, &e, &better);
        tide__vec_free(&e);
        TIDE_TRY(status);
    }
    if (!valid || !is_better(p->at, p->best_at)) return TIDE_OK;
    p->best_at = p->at;
    return tide__decisions_copy(&p->now, &p->best);
}

static bool is_done(const polisher *p) {
    return p->best_at.over_bytes == 0 && p->best_at.ns <= tide__workspaces_least_ns(p->in);
}

static tide_status fill_variants(const tide__policy_input *in, uint64_t room, tide__decisions *d) {
    for (tide_id i = 0; i < tide_program_op_count(in->program); i++)
        TIDE_TRY(tide__vec_push(&d->variants,
                                tide__workspaces_pick(tide_program_op(in->program, i), in->options->bits_any, room)));
    return TIDE_OK;
}

/* From these decisions, with variants of so much workspace if they have none. */
static tide_status start_from(polisher *p, const tide__decisions *start, uint64_t room) {
    if (is_done(p)) return TIDE_OK;
    TIDE_TRY(tide__decisions_copy(start, &p->now));
    if (p->now.variants.count == 0) TIDE_TRY(fill_variants(p->in, room, &p->now));
    return descend(p, p->candidates);
}

/* Some edits of the best at random, whatever they do: another start near it. */
static tide_status kick(polisher *p, uint32_t round) {
    tide__edits e = {0};
    TIDE_TRY(tide__decisions_copy(&p->best, &p->now));
    tide_status status = tide__edits_list(p->in, &p->now, p->h->moves, p->h->reruns, &e);
    for (uint32_t i = 0; i < KICK_EDITS && e.count > 0 && status == TIDE_OK; i++)
        status = tide__edit_apply(&e.data[tide__random_u64(0, round, i) % e.count], &p->now);
    tide__edits_clean(&p->now);
    tide__vec_free(&e);
    return status;
}

static tide_status search(polisher *p) {
    static const tide__decisions nothing;
    const tide__judge *j = &p->h->judge;
    p->best_at = (score){UINT64_MAX, UINT64_MAX};
    if (j->any && !j->best.sequence.count && !j->best.keep_everything) TIDE_TRY(start_from(p, &j->best, 0));
    TIDE_TRY(start_from(p, &nothing, UINT64_MAX));
    TIDE_TRY(start_from(p, &nothing, 0));
    for (uint32_t i = 0; i < KICKS && !is_done(p); i++) {
        TIDE_TRY(kick(p, i));
        TIDE_TRY(descend(p, p->candidates / KICK_PART));
    }
    return TIDE_OK;
}

tide_status tide__polish(tide__hybrid *h) {
    polisher p = {.h = h, .in = &h->judge.in, .candidates = MAX_WORK / (h->model->n_ops + 1)};
    tide_status status = search(&p);
    tide__decisions_free(&p.now);
    tide__decisions_free(&p.next);
    tide__decisions_free(&p.best);
    return status;
}
