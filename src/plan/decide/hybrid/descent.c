/* See descent.h. */
#include "plan/decide/hybrid/descent.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/decide/hybrid/moves.h"
#include "plan/decide/hybrid/search.h"
#include "plan/decide/hybrid/waits.h"

typedef struct descent {
    tide__generation *g;
    const tide__descent_options *options;
    tide__sketch *s;
    tide__transfers *moves;   /* NULL: nothing moves */
    tide__states *states;     /* of this kind of descent */
    TIDE_VEC(uint64_t) rungs; /* that were visited and fit, downwards */
} descent;

/* Of the work of a rung, what a choice of moves takes for itself. */
enum { MOVES_PART = 4 };
/* A start from scratch gets as much as so many rungs. */
enum { FRESH_TIMES = 10 };

/* ---- proposals ---- */

/* Workspaces fill a rung; without them a plan may need no more than its own load. */
static tide_status propose(descent *d, uint64_t rung_bytes, bool *fits) {
    tide__plans_outcome o = {.arena_bytes = UINT64_MAX};
    bool kept;
    TIDE_TRY(tide__states_keep(d->states, d->s, d->moves, &kept));
    if (!d->g->has_variants) TIDE_TRY(tide__generation_try_load(d->g, d->s, d->moves, &o));
    if (o.arena_bytes > rung_bytes) TIDE_TRY(tide__generation_propose_sketch(d->g, d->s, d->moves, rung_bytes, &o));
    *fits = o.arena_bytes <= rung_bytes;
    return TIDE_OK;
}

/* The sketch's re-runs, and moves beside them for which compute waits where they do not hide. */
static tide_status propose_waiting(descent *d, uint64_t rung_bytes, tide__plans_outcome *o) {
    tide__decisions decisions = {0};
    tide__transfers t;
    TIDE_TRY(tide__waits_init(&d->g->in, d->s, &t));
    tide_status status = tide__moves_choose(&t, TIDE__MOVES_WAIT, rung_bytes, d->options->work / MOVES_PART);
    if (status == TIDE_OK) status = tide__swaps_decide(&t.swaps, t.chosen, &decisions);
    if (status == TIDE_OK) status = tide__generation_add_reruns(d->s, &decisions);
    tide__transfers_deinit(&t);
    if (status == TIDE_OK) return tide__generation_propose(d->g, &decisions, rung_bytes, o);
    tide__decisions_free(&decisions);
    return status;
}

/* For less where placement misses the rung. */
enum { MAX_WAITS = 3, WAIT_FINENESS = 10 };

static tide_status wait_at(descent *d, uint64_t rung_bytes, bool *fits) {
    uint64_t target = rung_bytes;
    *fits = false;
    for (int i = 0; i < MAX_WAITS && !*fits; i++) {
        tide__plans_outcome o;
        TIDE_TRY(propose_waiting(d, target, &o));
        *fits = o.arena_bytes <= rung_bytes;
        uint64_t over = o.arena_bytes - tide__min_u64(o.arena_bytes, rung_bytes);
        if (over >= target / 4) break;
        target -= over;
    }
    return TIDE_OK;
}

/* ---- one rung ---- */

static tide_status search(descent *d, uint64_t rung_bytes, bool warm) {
    tide__search_options options = {.work = d->options->work * (warm ? 1 : FRESH_TIMES),
                                    .most = d->options->most,
                                    .seed = d->options->seed + rung_bytes,
                                    .warm = warm};
    d->s->target_bytes = rung_bytes;
    if (warm && d->moves) { /* moves that hide cost nothing, so they come first */
        TIDE_TRY(tide__transfers_sync(d->moves, d->s));
        TIDE_TRY(tide__transfers_fill(d->moves, d->s, (tide__transfers_taste){.power = 0.5}));
    }
    if (d->options->reruns) return tide__search(d->s, d->moves, &options, &d->g->work);
    return tide__sketch_build(d->s);
}

/* What is known to be faster there. */
static tide_status take_known(descent *d, uint64_t rung_bytes) {
    const tide__state *known = tide__states_find(d->states, rung_bytes);
    bool fits = tide__sketch_fits(d->s);
    if (!known || (fits && known->run_ns >= d->s->run_ns)) return TIDE_OK;
    d->s->target_bytes = rung_bytes;
    return tide__states_restore(known, d->s, d->moves);
}

/* Moves chosen anew for this rung, and re-runs for what they leave. */
static tide_status start_fresh(descent *d, uint64_t rung_bytes, tide__moves_way way) {
    bool fits;
    tide__sketch_clear(d->s);
    d->s->target_bytes = rung_bytes;
    if (d->moves) {
        TIDE_TRY(tide__moves_choose(d->moves, way, rung_bytes, FRESH_TIMES * d->options->work));
        TIDE_TRY(tide__transfers_apply(d->moves, d->s));
    }
    TIDE_TRY(tide__sketch_build(d->s));
    TIDE_TRY(search(d, rung_bytes, false));
    if (!tide__sketch_fits(d->s)) return TIDE_OK;
    return propose(d, rung_bytes, &fits);
}

static bool is_tenth(const descent *d, uint64_t rung_bytes, uint64_t last_bytes) {
    uint64_t each = d->g->whole_bytes / 10;
    return each && rung_bytes / each != last_bytes / each;
}

/* Leaves the best in the sketch; it may be above the rung. */
static tide_status visit(descent *d, uint64_t rung_bytes, uint64_t last_bytes) {
    TIDE_TRY(search(d, rung_bytes, true));
    const tide__state *known = tide__states_find(d->states, rung_bytes);
    if (known && (!tide__sketch_fits(d->s) || known->run_ns < d->s->run_ns)) {
        TIDE_TRY(take_known(d, rung_bytes));
        TIDE_TRY(search(d, rung_bytes, true));
    }
    bool fits = tide__sketch_fits(d->s), kept;
    if (fits && !(d->options->fresh && is_tenth(d, rung_bytes, last_bytes))) return TIDE_OK;
    if (fits) TIDE_TRY(tide__states_keep(d->states, d->s, d->moves, &kept));
    TIDE_TRY(start_fresh(d, rung_bytes, TIDE__MOVES_LEAST));
    if (d->moves && d->options->reruns) TIDE_TRY(start_fresh(d, rung_bytes, TIDE__MOVES_DEAREST));
    return take_known(d, rung_bytes);
}

/* ---- the way down and up ---- */

/* Rungs in a row that nothing fits: lower ones have nothing, either. */
enum { MAX_MISSES = 2 };

/* *lowest: the last rung that was visited. */
static tide_status go_down(descent *d, uint64_t *lowest) {
    uint64_t load = tide__sketch_peak(d->s);
    int misses = 0;
    *lowest = d->g->whole_bytes;
    for (uint64_t rung; (rung = tide__generation_rung(d->g, load, d->options->fineness)) > 0 && misses < MAX_MISSES;) {
        bool fits;
        tide__generation_tell(d->g);
        if (tide__generation_is_over(d->g)) break;
        TIDE_TRY(visit(d, rung, *lowest));
        load = rung;
        if (tide__sketch_fits(d->s)) {
            TIDE_TRY(propose(d, rung, &fits));
            if (d->moves && is_tenth(d, rung, *lowest)) TIDE_TRY(wait_at(d, rung, &fits));
            TIDE_TRY(tide__vec_push(&d->rungs, rung));
            load = tide__min_u64(rung, tide__sketch_peak(d->s));
        }
        misses = tide__sketch_fits(d->s) ? 0 : misses + 1;
        *lowest = rung;
    }
    return TIDE_OK;
}

/* Below what hides: on from the fewest bytes that are known, with moves that compute waits for. */
static tide_status wait_below(descent *d, uint64_t bytes) {
    const tide__state *least = d->states->items.count ? &d->states->items.data[0] : NULL;
    int misses = 0;
    if (least) TIDE_TRY(tide__states_restore(least, d->s, d->moves));
    for (uint64_t rung = bytes; rung > 0 && misses < MAX_MISSES;
         rung = tide__generation_rung(d->g, rung, WAIT_FINENESS)) {
        bool fits;
        TIDE_TRY(wait_at(d, rung, &fits));
        misses = fits ? 0 : misses + 1;
    }
    return TIDE_OK;
}

static tide_status go_up(descent *d) {
    for (size_t i = d->rungs.count; i-- > 0;) {
        bool fits;
        const tide__state *known = tide__states_find(d->states, d->rungs.data[i]);
        tide__generation_tell(d->g);
        if (tide__generation_is_over(d->g)) break;
        if (!known) continue;
        uint64_t before = known->run_ns;
        d->s->target_bytes = d->rungs.data[i];
        TIDE_TRY(tide__states_restore(known, d->s, d->moves));
        TIDE_TRY(search(d, d->rungs.data[i], true));
        if (tide__sketch_fits(d->s) && d->s->run_ns < before) TIDE_TRY(propose(d, d->rungs.data[i], &fits));
    }
    return TIDE_OK;
}

tide_status tide__descend(tide__generation *g, const tide__descent_options *options) {
    descent d = {.g = g,
                 .options = options,
                 .s = g->sketch,
                 .moves = options->moves ? &g->transfers : NULL,
                 .states = &g->states[options->moves][options->reruns]};
    tide__sketch_clear(d.s);
    d.s->target_bytes = UINT64_MAX;
    for (size_t i = 0; d.moves && i < d.moves->swaps.gaps.count; i++)
        d.moves->chosen[i] = d.moves->swaps.gaps.data[i].forced;
    tide_status status = d.moves ? tide__transfers_sync(d.moves, d.s) : tide__sketch_build(d.s);
    uint64_t lowest = 0;
    if (status == TIDE_OK) status = go_down(&d, &lowest);
    if (status == TIDE_OK && d.moves) status = wait_below(&d, lowest);
    if (status == TIDE_OK && options->ascends) status = go_up(&d);
    tide__vec_free(&d.rungs);
    return status;
}
