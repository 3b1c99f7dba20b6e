/* Policy `hybrid`: keep, move or re-run, per gap, jointly, for the least time inside the budget.
 *
 *   hybrid            both; above low effort a larger budget is never slower (hybrid/ladder.h)
 *   hybrid:norerun    moves only
 *   hybrid:nomove     re-runs only
 *   hybrid:steady     never slower at every effort; also steady,nomove and so on
 *
 * Moves that hide behind compute are free, so they come first; re-runs take what they leave above the target; then a
 * search exchanges moves and re-runs together (hybrid/search.h).
 * Drafts of these, of either kind alone and of moves that compute waits for are compared by the simulator. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/decide/draft.h"
#include "plan/decide/hybrid/effort.h"
#include "plan/decide/hybrid/ladder.h"
#include "plan/decide/hybrid/moves.h"
#include "plan/decide/hybrid/passes.h"
#include "plan/decide/hybrid/search.h"
#include "plan/decide/hybrid/waits.h"
#include "plan/decide/policies.h"
#include "plan/decide/workspaces.h"

/* What a search has ended with, to go on from. */
typedef struct warm_start {
    tide__sketch *sketch; /* NULL: nothing */
    tide__transfers moves;
} warm_start;

typedef struct hybrid {
    const tide__policy_input *in; /* &own */
    tide__policy_input own;       /* with less room in tiers whose slots came out too large */
    tide__model *model;
    tide__sketch *sketch;
    uint64_t work;  /* for one search */
    uint64_t spent; /* in all: searches, and DRAFT_WORK per action of a draft */
    uint64_t limit; /* of what is spent, once there is a plan */
    bool moves, reruns;
    tide__decisions best;
    bool any, fits;  /* there is a best; its arena is within the target */
    bool found;      /* a search has led to a draft within the budget */
    uint32_t n_best; /* how often there was a new one */
    uint64_t best_ns, best_bytes;
    bool care;           /* drafts that would be the fastest, but for a little, are placed with care */
    uint64_t last_bytes; /* the arena of the latest draft */
    uint64_t last_ns;    /* its time */
    tide_plan *strict;   /* the fastest draft within the budgets, to the byte; NULL: none */
    bool keeps;          /* on a ladder: what becomes the best is kept, to go on from */
    warm_start warm;     /* it */
} hybrid;

/* Ops above which the search over re-runs takes too long for normal effort. */
enum { LARGE = 20000 };
enum { MAX_TRIES = 5, MAX_POLICY_TRIES = 8, MAX_FILLS = 3, WARM_PART = 16, WALK_PART = 4, NEAR_PART = 400 };

/* There is a plan, and no work left for a better one. */
static bool is_spent(const hybrid *h) { return h->strict && h->spent >= h->limit; }

/* ---- what the search found, as decisions ---- */
static tide_status add_reruns(const tide__sketch *s, tide__decisions *out) {
    for (size_t i = 0; i < s->extra.count; i++) {
        uint64_t key = s->extra.data[i];
        tide__rerun rerun = {.slot = tide__event_slot(key), .op = tide__event_id(key)};
        if (tide__event_kind_of(key) == TIDE__EVENT_RUN) TIDE_TRY(tide__vec_push(&out->reruns, rerun));
    }
    return TIDE_OK;
}

static bool is_better(const hybrid *h, const tide_plan *draft, bool fits) {
    if (!h->any || fits != h->fits) return !h->any || fits;
    uint64_t ns = draft->prediction.step_ns;
    if (!fits) return draft->arena_bytes < h->best_bytes;
    return ns != h->best_ns ? ns < h->best_ns : draft->arena_bytes < h->best_bytes;
}

/* Workspaces as large as the load leaves room for below `limit`. */
static tide_status fill_workspaces(const hybrid *h, uint64_t limit, tide__decisions *d) {
    tide__policy_input in = *h->in;
    in.target_bytes = limit;
    uint64_t *loads = malloc((h->model->n_ops + (size_t)1) * sizeof *loads);
    tide_status status = loads ? tide__workspaces_shrink(&in, d) : tide__fail_memory();
    if (status == TIDE_OK) status = tide__draft_loads(&in, d, loads);
    if (status == TIDE_OK) status = tide__workspaces_fill(&in, loads, d);
    free(loads);
    return status;
}

/* Drafts are placed quickly, the plan then with care: a draft may be above the budget by this part of it, unless
 * that was tried and the pipeline asks for less. */
enum { SLACK_PART = 100 };

static uint64_t above_budget(const hybrid *h, uint64_t arena_bytes) {
    uint64_t budget = h->in->options->budgets.arena_bytes, over = arena_bytes - tide__min_u64(arena_bytes, budget);
    uint64_t slack = h->in->target_bytes == budget ? budget / SLACK_PART : 0;
    return over <= slack ? 0 : over;
}

static bool fits_tiers(const hybrid *h, const tide_plan *draft) {
    const tide_budgets *b = &h->in->options->budgets;
    for (uint32_t t = 0; t < h->in->machine->n_tiers; t++)
        if (draft->tier_bytes[t] > tide__min_u64(b->tier_bytes[t], h->in->machine->tier[t].capacity_bytes))
            return false;
    return true;
}

static bool fits(const hybrid *h, const tide_plan *draft) {
    return fits_tiers(h, draft) && above_budget(h, draft->arena_bytes) == 0;
}

/* Takes the draft over (*draft is NULL then) if it is the fastest that could be the plan as it is. */
static void keep_strict(hybrid *h, tide_plan **draft) {
    if ((*draft)->arena_bytes > h->in->options->budgets.arena_bytes || !fits_tiers(h, *draft)) return;
    if (h->strict && (*draft)->prediction.step_ns >= h->strict->prediction.step_ns) return;
    tide_plan_destroy(h->strict);
    h->strict = *draft;
    *draft = NULL;
}

static void take_over(hybrid *h, tide__decisions *d, const tide_plan *draft) {
    tide__decisions_free(&h->best);
    h->best = *d;
    *d = (tide__decisions){0};
    h->any = true;
    h->n_best++;
    h->fits = fits(h, draft);
    h->best_ns = draft->prediction.step_ns;
    h->best_bytes = draft->arena_bytes;
}

static tide_status draft(hybrid *h, const tide__decisions *d, tide_plan **out) {
    TIDE_TRY(tide__draft(h->in, d, out));
    h->spent += (uint64_t)TIDE__DRAFT_WORK * (*out)->actions.count;
    return TIDE_OK;
}

/* A draft with workspaces; smaller ones where placement finds no room for them. */
static tide_status draft_filled(hybrid *h, tide__decisions *d, tide_plan **out) {
    uint64_t limit = h->in->target_bytes;
    for (int i = 0; i < MAX_FILLS; i++) {
        tide_plan *filled;
        TIDE_TRY(fill_workspaces(h, limit, d));
        TIDE_TRY(draft(h, d, &filled));
        if (*out && filled->arena_bytes >= (*out)->arena_bytes) {
            tide_plan_destroy(filled);
            return TIDE_OK;
        }
        tide_plan_destroy(*out);
        *out = filled;
        uint64_t over = above_budget(h, filled->arena_bytes);
        if (over == 0) return TIDE_OK;
        limit -= tide__min_u64(limit, 2 * over);
    }
    return TIDE_OK;
}

/* Above the budget by less than this part of it: placing with care may do. */
enum { CARE_PART = 8 };

static bool is_worth_care(const hybrid *h, const tide_plan *draft) {
    uint64_t budget = h->in->options->budgets.arena_bytes;
    if (!h->care || draft->arena_bytes <= budget || draft->arena_bytes - budget > budget / CARE_PART) return false;
    return !h->strict || draft->prediction.step_ns < h->strict->prediction.step_ns;
}

static tide_status draft_with_care(hybrid *h, const tide__decisions *d, tide_plan **plan) {
    tide_plan *careful;
    TIDE_TRY(tide__draft_with_care(h->in, d, &careful));
    tide_plan_destroy(*plan);
    *plan = careful;
    return TIDE_OK;
}

/* Takes *d over if it is the best so far; empties it in any case. */
static tide_status judge(hybrid *h, tide__decisions *d) {
    tide_plan *plan = NULL;
    tide_status status = d->variants.count ? draft(h, d, &plan) : draft_filled(h, d, &plan);
    if (status == TIDE_OK && is_worth_care(h, plan)) status = draft_with_care(h, d, &plan);
    if (status == TIDE_OK) h->last_bytes = plan->arena_bytes;
    if (status == TIDE_OK) h->last_ns = plan->prediction.step_ns;
    if (status == TIDE_OK) (void)tide__tiers_shrink(&h->own, plan->tier_bytes);
    if (status == TIDE_OK && is_better(h, plan, fits(h, plan))) take_over(h, d, plan);
    if (status == TIDE_OK) keep_strict(h, &plan);
    tide_plan_destroy(plan);
    tide__decisions_free(d);
    *d = (tide__decisions){0};
    return status;
}

static bool is_slower(const hybrid *h) { return h->strict && h->last_ns >= h->strict->prediction.step_ns; }

/* ---- searches ---- */
/* The search over moves goes step by step, and each takes a look at the whole: in vain on large programs. */
static uint64_t most_moves_work(const hybrid *h) { return h->model->n_ops > LARGE ? 8 * 1000 * 1000 : UINT64_MAX; }

/* A choice of moves, alone in the sketch. */
static tide_status begin_from(hybrid *h, tide__transfers *t, tide__moves_way way) {
    tide__sketch_clear(h->sketch);
    h->sketch->target_bytes = h->in->target_bytes;
    if (t->swaps.work) {
        TIDE_TRY(tide__moves_choose(t, way, h->in->target_bytes, tide__min_u64(h->work, most_moves_work(h))));
        TIDE_TRY(tide__transfers_apply(t, h->sketch));
    }
    return tide__sketch_build(h->sketch);
}

/* So far above the target that no placement makes a plan of it; drafts of such sketches also take the longest. */
static bool is_wreck(const hybrid *h) {
    uint64_t target = h->sketch->target_bytes;
    return h->reruns && tide__sketch_peak(h->sketch) > tide__add_capped(target, target / 4);
}

/* Low effort has other ways to a plan than to search for the first that fits; once there is a draft of a search, it
 * searches no further than it must. */
static uint64_t most_work(const hybrid *h, uint64_t work, bool again) {
    if (h->limit == UINT64_MAX) return UINT64_MAX;
    uint64_t left = h->limit - tide__min_u64(h->limit, h->spent);
    return again ? work : left / 3;
}

/* Re-runs for what the moves leave, then both together. Moves that compute waits for stay as chosen. */
static tide_status search_on(hybrid *h, tide__transfers *t, bool joint, uint64_t work, uint64_t most) {
    tide__decisions d = {0};
    uint64_t spent = 0;
    tide_status status = TIDE_OK;
    if (h->reruns) status = tide__search(h->sketch, joint ? t : NULL, work, most, &spent);
    h->spent += spent;
    if (status == TIDE_OK && is_wreck(h)) return TIDE_OK;
    if (status == TIDE_OK && t->swaps.work) status = tide__swaps_decide(&t->swaps, t->chosen, &d);
    if (status == TIDE_OK) status = add_reruns(h->sketch, &d);
    if (status == TIDE_OK) status = judge(h, &d);
    if (status == TIDE_OK) h->found = h->found || h->last_bytes <= h->in->options->budgets.arena_bytes;
    tide__decisions_free(&d);
    return status;
}

/* Low effort has no time for small ones. */
static uint64_t least_step(const hybrid *h) { return h->limit == UINT64_MAX ? 0 : h->in->target_bytes / 2048; }

/* Where placement misses the budget, on from there for a load that is smaller by as much, by ever more where that did
 * not help; half as much smaller where none is found; half-way back once one has met it. */
static tide_status search_from(hybrid *h, tide__transfers *t, tide__moves_way way) {
    bool joint = t->swaps.work && way != TIDE__MOVES_WAIT, is_low = h->limit != UINT64_MAX;
    uint64_t work = h->work, step = 0, last = UINT64_MAX, met = 0, missed = 0, *target = &h->sketch->target_bytes;
    TIDE_TRY(begin_from(h, t, way));
    for (int i = 0; i < MAX_TRIES && !(i > 0 && is_spent(h)); i++, work = h->work / MAX_TRIES) {
        TIDE_TRY(search_on(h, t, joint, work, most_work(h, work, i > 0)));
        uint64_t over = h->last_bytes - tide__min_u64(h->last_bytes, h->in->options->budgets.arena_bytes);
        bool found = tide__sketch_fits(h->sketch);
        if (found) *(over == 0 ? &met : &missed) = *target;
        if (met && (is_low || h->keeps || !missed || !found || missed - met <= missed / NEAR_PART)) break;
        if (met) {
            *target = met + (missed - met) / 2;
        } else if (found) {
            step = tide__max_u64(over, h->last_bytes < last ? least_step(h) : 2 * step);
            if (step >= *target / 8 || !h->reruns || (is_low && is_slower(h))) break;
            last = h->last_bytes;
            if (is_low) *target = tide__min_u64(*target, tide__sketch_peak(h->sketch)); /* else it has that */
            *target -= tide__min_u64(*target, step);
        } else {
            if (step == 0) break;
            step /= 2;
            *target += step;
        }
    }
    return TIDE_OK;
}

/* The re-runs that the search ended with, and moves for what is left, for which compute waits if need be; for less where
 * placement misses the budget. */
static tide_status wait_beside(hybrid *h) {
    uint64_t target = h->in->target_bytes;
    for (int i = 0; i < MAX_TRIES; i++) {
        tide__decisions d = {0};
        tide__transfers t;
        TIDE_TRY(tide__waits_init(h->in, h->sketch, &t));
        tide_status status = tide__moves_choose(&t, TIDE__MOVES_WAIT, target, h->work / MAX_TRIES);
        if (status == TIDE_OK) status = tide__swaps_decide(&t.swaps, t.chosen, &d);
        if (status == TIDE_OK) status = add_reruns(h->sketch, &d);
        if (status == TIDE_OK) status = judge(h, &d);
        tide__transfers_deinit(&t);
        tide__decisions_free(&d);
        TIDE_TRY(status);
        uint64_t over = h->last_bytes - tide__min_u64(h->last_bytes, h->in->options->budgets.arena_bytes);
        if (over == 0 || over >= target / 4) break;
        target -= over;
    }
    return TIDE_OK;
}

/* ---- from rung to rung ---- */
static void drop(warm_start *f) {
    tide__sketch_destroy(f->sketch);
    tide__transfers_deinit(&f->moves);
    *f = (warm_start){0};
}

/* What has become the best is where the next rung starts from. */
static tide_status keep_warm(hybrid *h, tide__transfers *t) {
    tide__sketch *fresh;
    TIDE_TRY(tide__sketch_create(h->model, h->in->target_bytes, &fresh));
    drop(&h->warm);
    h->warm = (warm_start){h->sketch, *t};
    h->sketch = fresh;
    *t = (tide__transfers){0};
    return TIDE_OK;
}

/* On from what the rung below has found: it fits, and there is more room now. */
static tide_status try_warm(hybrid *h) {
    tide__sketch *own = h->sketch;
    bool can_move = h->moves && tide__tiers_with_room(h->in).n > 0;
    if (can_move && !h->warm.moves.swaps.work) TIDE_TRY(tide__transfers_init(h->in, h->model, &h->warm.moves));
    h->sketch = h->warm.sketch;
    h->sketch->target_bytes = h->in->target_bytes;
    tide_status status = search_on(h, &h->warm.moves, can_move, h->work / WARM_PART, UINT64_MAX);
    h->sketch = own;
    if (status == TIDE_OK && !tide__sketch_fits(h->warm.sketch)) drop(&h->warm);
    return status;
}

/* ---- ways to a plan ---- */
static tide_status try_from(hybrid *h, tide__moves_way way) {
    tide__transfers t = {0};
    uint32_t n_best = h->n_best;
    if (h->moves && tide__tiers_with_room(h->in).n > 0) TIDE_TRY(tide__transfers_init(h->in, h->model, &t));
    tide_status status = search_from(h, &t, way);
    bool waits = h->moves && way == TIDE__MOVES_WAIT;
    if (status == TIDE_OK && t.swaps.work && h->reruns && !waits && !tide__sketch_fits(h->sketch) && !is_spent(h))
        status = wait_beside(h);
    if (status == TIDE_OK && h->keeps && !waits && h->n_best > n_best && tide__sketch_fits(h->sketch))
        status = keep_warm(h, &t);
    tide__transfers_deinit(&t);
    return status;
}

/* Everything that cannot be made again is moved, whatever that takes; re-runs for the rest; and then moves for which
 * compute waits beside those re-runs. Where weights are most of what is there, this is what fits. */
static tide_status try_waiting(hybrid *h) {
    tide__transfers t;
    uint64_t spent = 0;
    if (tide__tiers_with_room(h->in).n == 0) return TIDE_OK;
    TIDE_TRY(tide__transfers_init(h->in, h->model, &t));
    tide__sketch_clear(h->sketch);
    h->sketch->target_bytes = h->in->target_bytes;
    tide_status status = tide__moves_choose(&t, TIDE__MOVES_FIXED, h->in->target_bytes, 0);
    if (status == TIDE_OK) status = tide__transfers_apply(&t, h->sketch);
    if (status == TIDE_OK) status = tide__sketch_build(h->sketch);
    if (status == TIDE_OK) status = tide__search(h->sketch, NULL, h->work / WALK_PART, h->work, &spent);
    h->spent += spent;
    tide__transfers_deinit(&t);
    return status == TIDE_OK ? wait_beside(h) : status;
}

static tide_status try_alone(hybrid *h, bool moves) {
    bool both = h->moves;
    h->moves = moves;
    tide_status status = try_from(h, TIDE__MOVES_WAIT);
    h->moves = both;
    return status;
}

static bool is_ideal(const hybrid *h) { return h->fits && h->best_ns <= tide__workspaces_least_ns(h->in); }

/* Another policy's decisions. Where placement missed the budget it is asked again for a smaller load, as the pipeline
 * does, while it could still be the fastest. */
static tide_status try_policy(hybrid *h, tide__policy_fn decide, const char *argument) {
    uint64_t budget = h->in->options->budgets.arena_bytes, before = UINT64_MAX, step = 0;
    tide__policy_input in = *h->in;
    in.argument = argument;
    for (int i = 0; i < MAX_POLICY_TRIES && !(i > 0 && (is_slower(h) || is_spent(h))); i++) {
        tide__decisions d = {0};
        tide_status status = decide(&in, &d);
        if (status == TIDE_OK) status = judge(h, &d);
        tide__decisions_free(&d);
        TIDE_TRY(status);
        uint64_t over = h->last_bytes - tide__min_u64(h->last_bytes, budget);
        step = tide__max_u64(over, h->last_bytes >= before ? 2 * step : 0);
        if (over == 0 || step >= in.target_bytes / 2) break;
        before = h->last_bytes;
        in.target_bytes -= step;
    }
    return TIDE_OK;
}

/* Which of the papers' policies to ask. FIRST, SECOND: those that fit small budgets; QUICK: others that take a few
 * drafts; SLOW: the rest. */
typedef enum policy_kind { FIRST, SECOND, QUICK, SLOW } policy_kind;

/* What the papers would do; now and then that is better than what the search finds. The slower ones are for programs
 * so small that one wrong choice shows. */
static tide_status try_policies(hybrid *h, policy_kind from, policy_kind to) {
    enum { FEW = 300, MEDIUM = 3000, ANY = INT32_MAX };
    static const struct {
        tide__policy_fn decide;
        const char *argument;
        bool moves, reruns;
        uint32_t most_ops;
        policy_kind kind;
    } others[] = {{tide__decide_delta, "", true, true, ANY, FIRST},
                  {tide__decide_superneurons, "", true, true, ANY, SECOND},
                  {tide__decide_superneurons, "norecompute", true, false, ANY, SLOW},
                  {tide__decide_superneurons, "noswap", false, true, ANY, QUICK},
                  {tide__decide_checkpoint, "", false, true, ANY, QUICK},
                  {tide__decide_capuchin, "", true, true, ANY, SLOW},
                  {tide__decide_autoswap, "swdoa", true, false, ANY, SLOW},
                  {tide__decide_autoswap, "search", true, false, FEW, SLOW},
                  {tide__decide_autoswap, "doa", true, false, FEW, SLOW},
                  {tide__decide_autoswap, "aoa", true, false, FEW, SLOW},
                  {tide__decide_autoswap, "wdoa", true, false, FEW, SLOW},
                  {tide__decide_cache, "", true, false, FEW, SLOW},
                  {tide__decide_dtr, "", false, true, MEDIUM, SLOW}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].kind >= from && others[i].kind <= to && (h->moves || !others[i].moves) &&
            (h->reruns || !others[i].reruns) && !is_spent(h) && h->model->n_ops <= others[i].most_ops &&
            !(h->keeps && h->model->n_ops <= TIDE__SMALL_OPS && others[i].most_ops < ANY))
            TIDE_TRY(try_policy(h, others[i].decide, others[i].argument));
    return TIDE_OK;
}

static tide_status try_others(hybrid *h) {
    h->care = true;
    tide_status status = try_policies(h, FIRST, SLOW);
    h->care = false;
    return status;
}

/* The step with its passes, for a load of the target, and for less where placement misses the budget. */
static tide_status search_passes(hybrid *h, const tide__passes *p) {
    tide__sketch *s;
    bool found = true;
    TIDE_TRY(tide__sketch_create(p->model, h->in->target_bytes, &s));
    tide_status status = TIDE_OK;
    for (int i = 0; i < MAX_TRIES && status == TIDE_OK && found && !h->strict; i++) {
        tide__decisions d = {0};
        tide__sketch_clear(s);
        status = tide__search_by_walks(s, h->work, &found);
        if (status == TIDE_OK && found) status = tide__passes_decide(p, s, &d);
        if (status == TIDE_OK && found) status = judge(h, &d);
        uint64_t over = h->last_bytes - tide__min_u64(h->last_bytes, h->in->options->budgets.arena_bytes);
        s->target_bytes -= tide__min_u64(s->target_bytes, over);
        tide__decisions_free(&d);
    }
    tide__sketch_destroy(s);
    return status;
}

/* Where nothing else fits because of what is kept: several passes. How much room they need beside it is tried. */
static tide_status try_passes(hybrid *h) {
    static const uint32_t spare_parts[] = {64, 40, 24, 12};
    if (h->in->target_bytes != h->in->options->budgets.arena_bytes) return TIDE_OK; /* this was tried */
    for (size_t i = 0; i < sizeof spare_parts / sizeof *spare_parts && !h->strict; i++) {
        tide__passes p;
        TIDE_TRY(tide__passes_init(h->model, h->in->target_bytes, h->in->target_bytes / spare_parts[i], &p));
        tide_status status = p.model ? search_passes(h, &p) : TIDE_OK;
        tide__passes_deinit(&p);
        TIDE_TRY(status);
    }
    return TIDE_OK;
}

/* So near to the ideal that looking further, at this size, takes longer than it could save. */
static bool is_near_ideal(const hybrid *h) {
    uint64_t least = tide__workspaces_least_ns(h->in);
    return h->fits && h->best_ns <= tide__add_capped(least, least / 100);
}

/* Moves alone, hidden or waited for, and what the papers do. */
static tide_status try_large(hybrid *h) {
    bool reruns = h->reruns;
    h->reruns = false;
    tide_status status = h->moves ? try_from(h, TIDE__MOVES_LEAST) : TIDE_OK;
    if (status == TIDE_OK && h->moves && !is_near_ideal(h)) status = try_alone(h, true);
    h->reruns = reruns;
    if (status == TIDE_OK && !is_near_ideal(h)) status = try_others(h);
    return status;
}

/* A plan soon, and a better one as long as there is work left. */
static tide_status try_low(hybrid *h) {
    bool large = h->model->n_ops > LARGE;
    TIDE_TRY(try_policies(h, FIRST, large ? FIRST : SECOND));
    if (large && is_near_ideal(h)) return TIDE_OK;
    TIDE_TRY(try_from(h, TIDE__MOVES_LEAST));
    if (is_ideal(h) || (large && h->found)) return TIDE_OK;
    if (h->moves && h->reruns && !is_spent(h)) TIDE_TRY(try_from(h, TIDE__MOVES_DEAREST));
    return try_policies(h, QUICK, QUICK);
}

/* All ways, in turn; but LEAST where low effort has tried it before. */
static tide_status try_every_way(hybrid *h, bool least) {
    bool both = h->moves && h->reruns;
    if (least) TIDE_TRY(try_from(h, TIDE__MOVES_LEAST));
    if (is_ideal(h)) return TIDE_OK;
    if (both && !is_spent(h)) TIDE_TRY(try_from(h, TIDE__MOVES_DEAREST));
    if (both && !is_spent(h) && !h->found) TIDE_TRY(try_waiting(h));
    if (both && !is_spent(h)) TIDE_TRY(try_alone(h, false));
    if (h->moves && !is_spent(h)) TIDE_TRY(try_alone(h, true));
    if (!is_ideal(h)) TIDE_TRY(try_others(h));
    return h->reruns && !h->strict ? try_passes(h) : TIDE_OK;
}

static tide_status try_all(hybrid *h) {
    bool low = h->in->options->effort == TIDE_EFFORT_LOW;
    if (h->model->n_ops > LARGE && !low) {
        TIDE_TRY(try_large(h));
        if (h->fits && (h->in->options->effort != TIDE_EFFORT_HIGH || is_near_ideal(h))) return TIDE_OK;
    }
    if (!low) return try_every_way(h, true);
    TIDE_TRY(try_low(h));
    if ((h->strict && h->found) || is_ideal(h) || is_spent(h)) return TIDE_OK;
    uint64_t normal = tide__effort_work(TIDE_EFFORT_NORMAL, h->model->n_ops);
    h->work = tide__max_u64(h->work, normal); /* else the search would find nothing */
    if (!h->strict) h->limit = UINT64_MAX;
    return try_every_way(h, false);
}

static tide_status check_argument(const char *argument) {
    static const char *const words[] = {"nomove", "norerun", "steady"};
    for (size_t length; *argument; argument += length + (argument[length] == ',')) {
        bool known = false;
        length = strcspn(argument, ",");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            known = known || (strlen(words[i]) == length && strncmp(argument, words[i], length) == 0);
        if (!known)
            return tide__fail(TIDE_E_ARGUMENT, "policy hybrid:%.32s: it takes nomove, norerun or steady", argument);
    }
    return TIDE_OK;
}

/* Searches for one target, by `try`; the best is in h. */
static tide_status search_target(hybrid *h, const tide__policy_input *in, tide_status (*try)(hybrid *)) {
    h->own = *in;
    h->in = &h->own;
    h->moves = !tide__policy_has(in->argument, "nomove");
    h->reruns = !tide__policy_has(in->argument, "norerun");
    h->any = h->fits = false;
    TIDE_TRY(tide__sketch_create(h->model, in->target_bytes, &h->sketch));
    tide_status status = try(h);
    tide__sketch_destroy(h->sketch);
    h->sketch = NULL;
    return status;
}

/* One search for the input's target. */
static tide_status search_once(hybrid *h, const tide__policy_input *in) {
    uint32_t n_ops = tide_program_op_count(in->program);
    h->work = in->options->effort == TIDE_EFFORT_LOW ? tide__effort_low_work(n_ops)
                                                     : tide__effort_work(in->options->effort, n_ops);
    h->limit = tide__effort_limit(in->options->effort, n_ops);
    bool one = tide__policy_has(in->argument, "nomove") && in->options->effort == TIDE_EFFORT_NORMAL;
    if (one) h->work *= 3; /* with moves there are four */
    TIDE_TRY(tide__model_create(in, &h->model));
    tide_status status = search_target(h, in, try_all);
    tide__model_destroy(h->model);
    h->model = NULL;
    return status;
}

tide_status tide__decide_hybrid(const tide__policy_input *in, tide__decisions *out) {
    TIDE_TRY(check_argument(in->argument));
    hybrid h = {0};
    if (in->target_bytes == UINT64_MAX) return TIDE_OK;
    tide_status status = search_once(&h, in);
    tide_plan_destroy(h.strict);
    if (status == TIDE_OK)
        *out = h.best;
    else
        tide__decisions_free(&h.best);
    return status;
}

/* Placing with care takes as long as several drafts: low effort does without where that saves less than 1/LITTLE_PART. */
enum { LITTLE_PART = 400 };

/* The best that was found, placed with care, where that makes it fit; else the fastest draft that fits as it is. */
static tide_status finish(hybrid *h, tide_plan **out) {
    tide_plan *careful = NULL;
    uint64_t slack = h->in->options->effort == TIDE_EFFORT_LOW ? h->best_ns / LITTLE_PART : 0;
    bool is_strict_best = h->strict && h->strict->prediction.step_ns <= h->best_ns + slack;
    if (h->any && !is_strict_best) TIDE_TRY(tide__draft_with_care(h->in, &h->best, &careful));
    if (careful) keep_strict(h, &careful);
    tide_plan_destroy(careful);
    *out = h->strict;
    h->strict = NULL;
    return TIDE_OK;
}

/* NULL where nothing fits at the first attempt: the pipeline then asks for smaller loads. */
static tide_status plan_at_budget(const tide__policy_input *in, tide_plan **out) {
    hybrid h = {0};
    if (in->target_bytes == UINT64_MAX) return TIDE_OK;
    tide_status status = search_once(&h, in);
    if (status == TIDE_OK) status = finish(&h, out);
    tide_plan_destroy(h.strict);
    tide__decisions_free(&h.best);
    return status;
}

/* ---- the ladder ---- */
/* Slower than the ops alone by so much that moves which compute waits for, or none, may be better. */
static bool is_slow(const hybrid *h) {
    uint64_t least = tide__workspaces_least_ns(h->in);
    return !h->fits || h->best_ns > tide__add_capped(least, least / 8);
}

/* From scratch. */
static tide_status try_main(hybrid *h) {
    bool both = h->moves && h->reruns;
    TIDE_TRY(try_from(h, TIDE__MOVES_LEAST));
    if (both && !is_ideal(h)) TIDE_TRY(try_from(h, TIDE__MOVES_DEAREST));
    if (both && is_slow(h)) TIDE_TRY(try_alone(h, false));
    if (h->moves && is_slow(h)) TIDE_TRY(try_alone(h, true));
    return is_ideal(h) ? TIDE_OK : try_others(h);
}

/* A climb: the searches, and the input for the present one. */
typedef struct climb {
    hybrid h;
    tide__ladder ladder;
    tide_plan_options options;
    tide__policy_input in;
} climb;

/* With what the search has found placed with care, at the main rungs. */
static tide_status search_rung(climb *c, uint32_t r, tide_status (*try)(hybrid *), bool with_care) {
    tide_plan *plan = NULL;
    c->ladder.rung = r;
    c->options.budgets.arena_bytes = c->in.target_bytes = c->ladder.rungs.data[r].bytes;
    TIDE_TRY(search_target(&c->h, &c->in, try));
    if (with_care) TIDE_TRY(finish(&c->h, &plan));
    if (!with_care) plan = c->h.strict, c->h.strict = NULL;
    tide_status status = plan ? tide__ladder_offer(&c->ladder, &plan) : TIDE_OK;
    tide_plan_destroy(plan);
    return status;
}

/* From a main rung to the next, not included. There is a little more room each time, so some re-runs go and others are
 * exchanged. What is found depends on the main rung alone. */
static tide_status ascend(climb *c, uint32_t main) {
    const tide__ladder *l = &c->ladder;
    for (uint32_t r = main + 1; r < l->rungs.count && !l->rungs.data[r].main; r++)
        if (c->h.warm.sketch && c->h.reruns && !is_ideal(&c->h)) TIDE_TRY(search_rung(c, r, try_warm, false));
    return TIDE_OK;
}

/* Downwards to where nothing fits, or only what is slower by a fifth: below that, searches take the longest, for plans that
 * no larger budget would want. */
static tide_status descend(climb *c) {
    const tide__ladder *l = &c->ladder;
    const hybrid *h = &c->h;
    uint64_t fastest_ns = UINT64_MAX;
    for (uint32_t r = (uint32_t)l->rungs.count; r-- > 0;) {
        if (!l->rungs.data[r].main) continue;
        TIDE_TRY(search_rung(c, r, try_main, true));
        bool ends = h->model->n_ops > TIDE__SMALL_OPS && (!h->fits || h->best_ns / 6 > fastest_ns / 5);
        if (h->fits) fastest_ns = tide__min_u64(fastest_ns, h->best_ns);
        if (!ends) TIDE_TRY(ascend(c, r));
        drop(&c->h.warm);
        if (ends) break;
    }
    return TIDE_OK;
}

static tide_status plan_on_ladder(const tide__policy_input *in, tide_plan **out) {
    climb c = {.h = {.limit = UINT64_MAX, .keeps = true}, .options = *in->options, .in = *in};
    c.h.work = tide__effort_rung_work(in->options->effort, tide_program_op_count(in->program));
    c.in.options = &c.options;
    TIDE_TRY(tide__ladder_init(in, &c.ladder));
    tide_status status = tide__model_create(in, &c.h.model);
    if (status == TIDE_OK) status = descend(&c);
    if (status == TIDE_OK) *out = tide__ladder_take(&c.ladder);
    drop(&c.h.warm);
    tide_plan_destroy(c.h.strict);
    tide__decisions_free(&c.h.best);
    tide__model_destroy(c.h.model);
    tide__ladder_deinit(&c.ladder);
    return status;
}

/* ---- which of them ---- */

/* Low effort is for quick plans, the restricted kinds are for single figures: one search, unless asked. */
static bool is_steady(const tide__policy_input *in) {
    uint32_t n_ops = tide_program_op_count(in->program);
    if (n_ops > LARGE || tide__policy_has(in->argument, "steady")) return n_ops <= LARGE;
    return !in->argument[0] && in->options->effort != TIDE_EFFORT_LOW && n_ops > TIDE__SMALL_OPS &&
           tide__tiers_with_room(in).n > 0;
}

tide_status tide__plan_hybrid(const tide__policy_input *in, tide_plan **out) {
    TIDE_TRY(check_argument(in->argument));
    *out = NULL;
    if (is_steady(in)) TIDE_TRY(plan_on_ladder(in, out));
    bool asked = tide__policy_has(in->argument, "steady"); /* then below the ladder there is nothing to promise */
    return *out || (asked && is_steady(in)) ? TIDE_OK : plan_at_budget(in, out);
}
