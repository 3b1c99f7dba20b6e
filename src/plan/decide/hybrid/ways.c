/* See ways.h. */
#include "plan/decide/hybrid/ways.h"

#include "base/size.h"
#include "plan/decide/hybrid/passes.h"
#include "plan/decide/hybrid/search.h"
#include "plan/decide/hybrid/waits.h"
#include "plan/decide/tiers.h"
#include "plan/decide/workspaces.h"

enum {
    MAX_TRIES = 5,
    WARM_PART = 16,
    WALK_PART = 4,
    NEAR_PART = 400,
    MAX_ROOMY_OPS = 300,
    EXTRA_PART = 8,
    LOOK_WORK = 2000,
    MAX_LOOKED_OPS = 400
};

bool tide__hybrid_is_spent(const tide__hybrid *h) {
    bool is_low = h->judge.in.options->effort == TIDE_EFFORT_LOW;
    if (h->judge.spent >= h->most) return is_low || !h->judge.strict;
    return h->judge.strict && h->judge.spent >= h->limit;
}

bool tide__hybrid_is_ideal(const tide__hybrid *h) {
    return h->judge.fits && h->judge.best_ns <= tide__workspaces_least_ns(&h->judge.in);
}

bool tide__hybrid_is_slow(const tide__hybrid *h) {
    uint64_t least = tide__workspaces_least_ns(&h->judge.in);
    return !h->judge.fits || h->judge.best_ns > tide__add_capped(least, least / 8);
}

static tide_status add_reruns(const tide__sketch *s, tide__decisions *out) {
    for (size_t i = 0; i < s->extra.count; i++) {
        uint64_t key = s->extra.data[i];
        tide__rerun rerun = {.slot = tide__event_slot(key), .op = tide__event_id(key)};
        if (tide__event_kind_of(key) == TIDE__EVENT_RUN) TIDE_TRY(tide__vec_push(&out->reruns, rerun));
    }
    return TIDE_OK;
}

/* The search over moves goes step by step, and each takes a look at the whole: in vain on large programs. */
static uint64_t moves_work(const tide__hybrid *h) {
    uint64_t most = h->model->n_ops > TIDE__LARGE_OPS ? 8 * 1000 * 1000 : UINT64_MAX;
    return tide__min_u64(h->extra ? h->work / EXTRA_PART : h->work, most);
}

/* A choice of moves, alone in the sketch. */
static tide_status begin_from(tide__hybrid *h, tide__transfers *t, tide__moves_way way) {
    tide__sketch_clear(h->sketch);
    h->sketch->target_bytes = h->judge.in.target_bytes;
    if (t->swaps.work) {
        TIDE_TRY(tide__moves_choose(t, way, h->judge.in.target_bytes, moves_work(h)));
        TIDE_TRY(tide__transfers_apply(t, h->sketch));
    }
    return tide__sketch_build(h->sketch);
}

/* So far above the target that no placement makes a plan of it; drafts of such sketches also take the longest. */
static bool is_wreck(const tide__hybrid *h) {
    uint64_t target = h->sketch->target_bytes;
    return h->reruns && tide__sketch_peak(h->sketch) > tide__add_capped(target, target / 4);
}

/* Low effort has other ways to a plan than to search for the first that fits; once there is a draft of a search, it
 * searches no further than it must. */
static uint64_t most_work(const tide__hybrid *h, uint64_t work, bool again) {
    if (h->extra) return work;
    if (h->limit == UINT64_MAX) return UINT64_MAX;
    uint64_t left = h->limit - tide__min_u64(h->limit, h->judge.spent);
    return again ? work : left / 3;
}

static tide_status judge_sketch(tide__hybrid *h, const tide__transfers *t, const tide__sketch *s) {
    tide__decisions d = {0};
    tide_status status = t->swaps.work ? tide__swaps_decide(&t->swaps, t->chosen, &d) : TIDE_OK;
    if (status == TIDE_OK) status = add_reruns(s, &d);
    if (status == TIDE_OK) status = tide__judge_draft(&h->judge, &d);
    if (status == TIDE_OK) h->found = h->found || tide__judge_over(&h->judge) == 0;
    tide__decisions_free(&d);
    return status;
}

typedef struct looker {
    tide__hybrid *h;
    const tide__transfers *moves;
    bool placed; /* something was */
} looker;

static tide_status look_at(void *self, const tide__sketch *s, bool *placed) {
    looker *l = self;
    TIDE_TRY(judge_sketch(l->h, l->moves, s));
    *placed = tide__judge_over(&l->h->judge) == 0;
    l->placed = l->placed || *placed;
    return TIDE_OK;
}

/* Re-runs for what the moves leave, then both together. Moves that compute waits for stay as chosen. */
static tide_status search_on(tide__hybrid *h, tide__transfers *t, bool joint, uint64_t work, uint64_t most) {
    uint64_t spent = 0;
    if (h->reruns) TIDE_TRY(tide__search(h->sketch, joint ? t : NULL, NULL, work, most, &spent));
    h->judge.spent += spent;
    return is_wreck(h) ? TIDE_OK : judge_sketch(h, t, h->sketch);
}

/* On among sketches that are about as fast as this one, which has no places: all that it comes by are placed with care.
 * *placed: one has places. The sketch is the fastest of its load then, with places or not. */
static tide_status search_places(tide__hybrid *h, tide__transfers *t, bool joint, uint64_t work, bool *placed) {
    uint64_t spent = 0;
    looker l = {.h = h, .moves = t};
    tide__placer placer = {.place = look_at, .self = &l, .work = (uint64_t)LOOK_WORK * h->sketch->n_events};
    h->judge.care = true;
    tide_status status = tide__search(h->sketch, joint ? t : NULL, &placer, work, work, &spent);
    h->judge.care = false;
    h->judge.spent += spent;
    *placed = l.placed;
    return status;
}

/* Low effort has no time for small ones. */
static uint64_t least_step(const tide__hybrid *h) {
    return h->limit == UINT64_MAX ? 0 : h->judge.in.target_bytes / 2048;
}

/* The work is spent; but a draft that is faster by 4 %, and misses the budget by little, is worth half as much again. */
static bool is_over(const tide__hybrid *h) {
    if (!tide__hybrid_is_spent(h)) return false;
    if (!h->judge.strict) return true;
    bool near = tide__judge_over(&h->judge) < h->judge.in.target_bytes / 12 && tide__sketch_fits(h->sketch);
    return !near || h->judge.last_ns / 24 > h->judge.strict->prediction.step_ns / 25 ||
           h->judge.spent > tide__add_capped(h->limit, h->limit / 2);
}

/* Where placement misses the budget, on from there for a load that is smaller by as much, by ever more where that did
 * not help; half as much smaller where none is found; half-way back once one has met it. */
static tide_status search_from(tide__hybrid *h, tide__transfers *t, tide__moves_way way) {
    bool joint = t->swaps.work && way != TIDE__MOVES_WAIT, is_low = h->limit != UINT64_MAX;
    uint64_t work = h->work, step = 0, last = UINT64_MAX, met = 0, missed = 0, *target = &h->sketch->target_bytes;
    TIDE_TRY(begin_from(h, t, way));
    for (int i = 0; i < MAX_TRIES && !(i > 0 && is_over(h)); i++, work = h->work / MAX_TRIES) {
        TIDE_TRY(search_on(h, t, joint, work, most_work(h, work, i > 0)));
        uint64_t over = tide__judge_over(&h->judge), arena = h->judge.last_bytes;
        bool found = tide__sketch_fits(h->sketch);
        if (found) *(over == 0 ? &met : &missed) = *target;
        bool looks = i == 0 || h->model->n_ops <= MAX_LOOKED_OPS; /* placing large ones with care takes long */
        if (looks && found && over && h->reruns && !is_low && !h->keeps) {
            bool placed;
            TIDE_TRY(search_places(h, t, joint, 2 * h->work / MAX_TRIES, &placed));
            if (placed) break;
        }
        if (met && (is_low || h->keeps || !missed || !found || missed - met <= missed / NEAR_PART)) break;
        if (met) {
            *target = met + (missed - met) / 2;
        } else if (found) {
            step = tide__max_u64(over, arena < last ? least_step(h) : 2 * step);
            if (step >= *target / 8 || !h->reruns || (is_low && tide__judge_is_slower(&h->judge))) break;
            last = arena;
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
static tide_status wait_beside(tide__hybrid *h) {
    uint64_t target = h->judge.in.target_bytes;
    for (int i = 0; i < MAX_TRIES && !(i > 0 && tide__hybrid_is_spent(h)); i++) {
        tide__decisions d = {0};
        tide__transfers t;
        TIDE_TRY(tide__waits_init(&h->judge.in, h->sketch, &t));
        tide_status status = tide__moves_choose(&t, TIDE__MOVES_WAIT, target, h->work / MAX_TRIES);
        if (status == TIDE_OK) status = tide__swaps_decide(&t.swaps, t.chosen, &d);
        if (status == TIDE_OK) status = add_reruns(h->sketch, &d);
        if (status == TIDE_OK) status = tide__judge_draft(&h->judge, &d);
        tide__transfers_deinit(&t);
        tide__decisions_free(&d);
        TIDE_TRY(status);
        uint64_t over = tide__judge_over(&h->judge);
        if (over == 0 || over >= target / 4) break;
        target -= over;
    }
    return TIDE_OK;
}

/* ---- from rung to rung ---- */
void tide__warm_drop(tide__warm_start *f) {
    tide__sketch_destroy(f->sketch);
    tide__transfers_deinit(&f->moves);
    *f = (tide__warm_start){0};
}

/* What has become the best is where the next rung starts from. */
static tide_status keep_warm(tide__hybrid *h, tide__transfers *t) {
    tide__sketch *fresh;
    TIDE_TRY(tide__sketch_create(h->model, h->judge.in.target_bytes, &fresh));
    tide__warm_drop(&h->warm);
    h->warm = (tide__warm_start){h->sketch, *t};
    h->sketch = fresh;
    *t = (tide__transfers){0};
    return TIDE_OK;
}

/* On from what the rung below has found: it fits, and there is more room now. */
tide_status tide__try_warm(tide__hybrid *h) {
    tide__sketch *own = h->sketch;
    bool can_move = h->moves && tide__tiers_with_room(&h->judge.in).n > 0;
    if (can_move && !h->warm.moves.swaps.work) TIDE_TRY(tide__transfers_init(&h->judge.in, h->model, &h->warm.moves));
    h->sketch = h->warm.sketch;
    h->sketch->target_bytes = h->judge.in.target_bytes;
    tide_status status = search_on(h, &h->warm.moves, can_move, h->work / WARM_PART, UINT64_MAX);
    h->sketch = own;
    if (status == TIDE_OK && !tide__sketch_fits(h->warm.sketch)) tide__warm_drop(&h->warm);
    return status;
}

/* ---- ways to a plan ---- */
tide_status tide__try_from(tide__hybrid *h, tide__moves_way way) {
    tide__transfers t = {0};
    uint32_t n_best = h->judge.n_best;
    if (h->moves && tide__tiers_with_room(&h->judge.in).n > 0)
        TIDE_TRY(tide__transfers_init(&h->judge.in, h->model, &t));
    tide_status status = search_from(h, &t, way);
    bool waits = h->moves && way == TIDE__MOVES_WAIT;
    if (status == TIDE_OK && t.swaps.work && h->reruns && !waits && !tide__sketch_fits(h->sketch) &&
        !tide__hybrid_is_spent(h))
        status = wait_beside(h);
    if (status == TIDE_OK && h->keeps && !waits && h->judge.n_best > n_best && tide__sketch_fits(h->sketch))
        status = keep_warm(h, &t);
    tide__transfers_deinit(&t);
    return status;
}

/* Everything that cannot be made again is moved, whatever that takes; re-runs for the rest; and then moves for which
 * compute waits beside those re-runs. Where weights are most of what is there, this is what fits. */
tide_status tide__try_waiting(tide__hybrid *h) {
    tide__transfers t;
    uint64_t spent = 0;
    if (tide__tiers_with_room(&h->judge.in).n == 0) return TIDE_OK;
    TIDE_TRY(tide__transfers_init(&h->judge.in, h->model, &t));
    tide__sketch_clear(h->sketch);
    h->sketch->target_bytes = h->judge.in.target_bytes;
    tide_status status = tide__moves_choose(&t, TIDE__MOVES_FIXED, h->judge.in.target_bytes, 0);
    if (status == TIDE_OK) status = tide__transfers_apply(&t, h->sketch);
    if (status == TIDE_OK) status = tide__sketch_build(h->sketch);
    if (status == TIDE_OK) status = tide__search(h->sketch, NULL, NULL, h->work / WALK_PART, h->work, &spent);
    h->judge.spent += spent;
    tide__transfers_deinit(&t);
    return status == TIDE_OK ? wait_beside(h) : status;
}

tide_status tide__try_alone(tide__hybrid *h, bool moves) {
    bool both = h->moves;
    h->moves = moves;
    tide_status status = tide__try_from(h, TIDE__MOVES_WAIT);
    h->moves = both;
    return status;
}

static tide_status try_room(tide__hybrid *h) {
    if (tide__hybrid_is_ideal(h) || tide__hybrid_is_spent(h)) return TIDE_OK;
    TIDE_TRY(tide__try_from(h, TIDE__MOVES_LEAST));
    if (!(h->moves && h->reruns)) return TIDE_OK;
    TIDE_TRY(tide__try_from(h, TIDE__MOVES_DEAREST));
    return tide__hybrid_is_slow(h) ? tide__try_waiting(h) : TIDE_OK;
}

tide_status tide__try_rooms(tide__hybrid *h) {
    static const uint32_t percents[] = {20, 40, 100}; /* of the target: the largest workspace */
    tide_status status = TIDE_OK;
    if (h->model->n_ops > MAX_ROOMY_OPS) return TIDE_OK;
    h->extra = true;
    for (size_t i = 0; i < sizeof percents / sizeof *percents && status == TIDE_OK; i++)
        if (tide__model_want(&h->judge.in, h->judge.in.target_bytes / 100 * percents[i], h->model))
            status = try_room(h);
    h->extra = false;
    (void)tide__model_want(&h->judge.in, 0, h->model);
    return status;
}

/* The step with its passes, for a load of the target, and for less where placement misses the budget. */
static tide_status search_passes(tide__hybrid *h, const tide__passes *p) {
    tide__sketch *s;
    bool found = true;
    TIDE_TRY(tide__sketch_create(p->model, h->judge.in.target_bytes, &s));
    tide_status status = TIDE_OK;
    for (int i = 0; i < MAX_TRIES && status == TIDE_OK && found && !h->judge.strict; i++) {
        tide__decisions d = {0};
        tide__sketch_clear(s);
        status = tide__search_by_walks(s, h->work, &found);
        if (status == TIDE_OK && found) status = tide__passes_decide(p, s, &d);
        if (status == TIDE_OK && found) status = tide__judge_draft(&h->judge, &d);
        uint64_t over = tide__judge_over(&h->judge);
        s->target_bytes -= tide__min_u64(s->target_bytes, over);
        tide__decisions_free(&d);
    }
    tide__sketch_destroy(s);
    return status;
}

/* Where nothing else fits because of what is kept: several passes. How much room they need beside it is tried. */
tide_status tide__try_passes(tide__hybrid *h) {
    static const uint32_t spare_parts[] = {64, 40, 24, 12};
    if (h->judge.in.target_bytes != h->judge.in.options->budgets.arena_bytes) return TIDE_OK; /* this was tried */
    for (size_t i = 0; i < sizeof spare_parts / sizeof *spare_parts && !h->judge.strict; i++) {
        tide__passes p;
        TIDE_TRY(tide__passes_init(h->model, h->judge.in.target_bytes, h->judge.in.target_bytes / spare_parts[i], &p));
        tide_status status = p.model ? search_passes(h, &p) : TIDE_OK;
        tide__passes_deinit(&p);
        TIDE_TRY(status);
    }
    return TIDE_OK;
}

tide_status tide__hybrid_search(tide__hybrid *h, const tide__policy_input *in, tide_status (*try)(tide__hybrid *)) {
    tide__judge_begin(&h->judge, in);
    h->moves = !tide__policy_has(in->argument, "nomove");
    h->reruns = !tide__policy_has(in->argument, "norerun");
    TIDE_TRY(tide__sketch_create(h->model, in->target_bytes, &h->sketch));
    tide_status status = try(h);
    tide__sketch_destroy(h->sketch);
    h->sketch = NULL;
    return status;
}
