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
enum { FRESH_TIMES = 4 };
/* Parts of the whole at whose first rungs a descent starts from scratch; every how many rungs it tries all amounts of waiting. */
enum { FRESH_PARTS = 10, WAIT_EVERY = 3 };

/* ---- proposals ---- */

/* Workspaces fill a rung; without them a plan may need no more than its own load. */
static tide_status propose(descent *d, uint64_t rung_bytes, tide__plans_outcome *o) {
    bool kept;
    o->arena_bytes = UINT64_MAX;
    TIDE_TRY(tide__states_keep(d->states, d->s, d->moves, &kept));
    if (!d->g->has_variants) TIDE_TRY(tide__generation_try_load(d->g, d->s, d->moves, o));
    if (o->arena_bytes <= rung_bytes) return TIDE_OK;
    return tide__generation_propose_sketch(d->g, d->s, d->moves, rung_bytes, o);
}

/* The sketch's re-runs, and moves beside them for which compute waits where they do not hide. */
static tide_status propose_waiting(descent *d, tide__moves_way way, uint64_t rung_bytes, tide__plans_outcome *o) {
    tide__decisions decisions = {0};
    tide__transfers t;
    TIDE_TRY(tide__waits_init(&d->g->in, d->s, &t));
    tide_status status = tide__moves_choose(&t, way, rung_bytes, d->options->work / MOVES_PART);
    if (status == TIDE_OK) status = tide__swaps_decide(&t.swaps, t.chosen, &decisions);
    if (status == TIDE_OK) status = tide__generation_add_reruns(d->s, &decisions);
    tide__transfers_deinit(&t);
    if (status == TIDE_OK) return tide__generation_propose(d->g, &decisions, rung_bytes, o);
    tide__decisions_free(&decisions);
    return status;
}

/* For less where placement misses the rung. */
enum { MAX_WAITS = 3 };

static tide_status wait_by(descent *d, tide__moves_way way, uint64_t rung_bytes, bool *fits) {
    uint64_t target = rung_bytes;
    *fits = false;
    for (int i = 0; i < MAX_WAITS && !*fits; i++) {
        tide__plans_outcome o;
        TIDE_TRY(propose_waiting(d, way, target, &o));
        *fits = o.arena_bytes <= rung_bytes;
        uint64_t over = o.arena_bytes - tide__min_u64(o.arena_bytes, rung_bytes);
        if (over >= target / 4) break;
        target -= over;
    }
    return TIDE_OK;
}

/* Both ways lead to others where nothing but moves helps. */
static tide_status wait_at(descent *d, uint64_t rung_bytes, bool *fits) {
    bool also = false;
    TIDE_TRY(wait_by(d, TIDE__MOVES_WAIT_QUICK, rung_bytes, fits));
    if (!d->options->reruns) TIDE_TRY(wait_by(d, TIDE__MOVES_WAIT, rung_bytes, &also));
    *fits = *fits || also;
    return TIDE_OK;
}

/* Few re-runs and long waits, or the other way round: from what is known for this rung, and for larger ones. Leaves the sketch at
 * what is known for the rung, or nearest to it. */
static tide_status wait_from_each(descent *d, uint64_t rung_bytes, bool *fits) {
    static const uint32_t quarters[] = {16, 8, 6, 5, 4};
    const tide__state *last = NULL;
    uint64_t spare_ns = d->g->slowest_ns - d->g->least_ns; /* that faster variants save */
    *fits = false;
    if (!d->states->items.count) return TIDE_OK;
    uint64_t least = tide__max_u64(rung_bytes, d->states->items.data[0].load_bytes);
    for (size_t i = 0; i < sizeof quarters / sizeof *quarters; i++) {
        const tide__state *known = tide__states_find(d->states, least / 4 * quarters[i]);
        bool one;
        if (known == last || !known) continue;
        last = known;
        if (known->run_ns - tide__min_u64(known->run_ns, spare_ns) >= tide__plans_time(d->g->plans, rung_bytes))
            continue;
        TIDE_TRY(tide__states_restore(known, d->s, d->moves));
        TIDE_TRY(wait_at(d, rung_bytes, &one));
        *fits = *fits || one;
    }
    const tide__state *known = tide__states_find(d->states, least);
    return known && known != last ? tide__states_restore(known, d->s, d->moves) : TIDE_OK;
}

/* ---- one rung ---- */

/* The fewer bytes, the more there is to win. A round of re-runs alone is quick, so there are more of them. */
enum { MAX_TIMES = 16 };

static uint64_t work_at(const descent *d, uint64_t rung_bytes) {
    uint64_t times = tide__min_u64(d->g->whole_bytes / rung_bytes, MAX_TIMES);
    if (!d->moves) times = tide__min_u64(times * times, MAX_TIMES);
    return tide__max_u64(times, 1) * d->options->work;
}

static tide_status search(descent *d, uint64_t rung_bytes, bool warm) {
    tide__search_options options = {.work =
                                        work_at(d, rung_bytes) * (warm || d->options->stretch > 1 ? 1 : FRESH_TIMES),
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

/* For less load where placement misses the rung. */
enum { MAX_LOWER = 3 };

static tide_status propose_lower(descent *d, uint64_t rung_bytes) {
    tide__plans_outcome o;
    uint64_t target = rung_bytes;
    TIDE_TRY(propose(d, rung_bytes, &o));
    for (int i = 0; i < MAX_LOWER && o.arena_bytes > rung_bytes; i++) {
        uint64_t over = o.arena_bytes - rung_bytes;
        if (over >= target / 8) break;
        target -= over;
        TIDE_TRY(search(d, target, true));
        if (!tide__sketch_fits(d->s)) break;
        TIDE_TRY(propose(d, rung_bytes, &o));
    }
    d->s->target_bytes = rung_bytes;
    return TIDE_OK;
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
    tide__plans_outcome o;
    tide__sketch_clear(d->s);
    d->s->target_bytes = rung_bytes;
    if (d->moves) {
        TIDE_TRY(tide__moves_choose(d->moves, way, rung_bytes, FRESH_TIMES * d->options->work));
        TIDE_TRY(tide__transfers_apply(d->moves, d->s));
    }
    TIDE_TRY(tide__sketch_build(d->s));
    TIDE_TRY(search(d, rung_bytes, false));
    if (!tide__sketch_fits(d->s)) return TIDE_OK;
    return propose(d, rung_bytes, &o);
}

/* The first rung of each of so many parts of the whole. */
static bool is_first(const descent *d, uint32_t parts, uint64_t rung_bytes, uint64_t last_bytes) {
    uint64_t each = d->g->whole_bytes / parts;
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
    if (fits && !(d->options->fresh && is_first(d, FRESH_PARTS, rung_bytes, last_bytes))) return TIDE_OK;
    if (fits) TIDE_TRY(tide__states_keep(d->states, d->s, d->moves, &kept));
    TIDE_TRY(start_fresh(d, rung_bytes, TIDE__MOVES_LEAST));
    if (d->moves && d->options->reruns && d->options->stretch <= 1)
        TIDE_TRY(start_fresh(d, rung_bytes, TIDE__MOVES_DEAREST));
    return take_known(d, rung_bytes);
}

/* ---- the way down and up ---- */

/* Rungs in a row that nothing fits: lower ones have nothing, either. */
enum { MAX_MISSES = 2 };

/* Waiting pays only where what is known takes longer. */
static bool is_fast(const descent *d, uint64_t rung_bytes) {
    double stretch = d->options->stretch, least = (double)d->g->least_ns;
    return stretch > 1 && (double)tide__plans_time(d->g->plans, rung_bytes) < least * (1 + (stretch - 1) / 2);
}

/* *lowest: the last rung that was visited. */
static tide_status go_down(descent *d, uint64_t *lowest) {
    uint64_t load = tide__sketch_peak(d->s);
    int misses = 0;
    *lowest = d->g->whole_bytes;
    for (uint64_t rung; (rung = tide__generation_rung(d->g, load, d->options->fineness)) > 0 && misses < MAX_MISSES;) {
        bool fits;
        tide__generation_tell(d->g);
        if (tide__generation_is_over(d->g)) break;
        load = rung;
        if (is_fast(d, rung)) continue;
        TIDE_TRY(visit(d, rung, *lowest));
        if (tide__sketch_fits(d->s)) {
            TIDE_TRY(propose_lower(d, rung));
            if (d->moves && d->options->stretch <= 1)
                TIDE_TRY(is_first(d, d->options->fineness / WAIT_EVERY, rung, *lowest) ? wait_from_each(d, rung, &fits)
                                                                                       : wait_at(d, rung, &fits));
            TIDE_TRY(tide__vec_push(&d->rungs, rung));
            load = tide__min_u64(rung, tide__sketch_peak(d->s));
        }
        misses = tide__sketch_fits(d->s) ? 0 : misses + 1;
        *lowest = rung;
    }
    return TIDE_OK;
}

/* Below what hides: moves that compute waits for, whatever it takes. */
static tide_status wait_below(descent *d, uint64_t bytes) {
    int misses = 0;
    for (uint64_t rung = bytes; rung > 0 && misses < MAX_MISSES;
         rung = tide__generation_rung(d->g, rung, d->options->fineness / WAIT_EVERY)) {
        bool fits;
        tide__generation_tell(d->g);
        if (tide__generation_is_over(d->g)) break;
        TIDE_TRY(wait_from_each(d, rung, &fits));
        misses = fits ? 0 : misses + 1;
    }
    return TIDE_OK;
}

static tide_status go_up(descent *d) {
    for (size_t i = d->rungs.count; i-- > 0;) {
        const tide__state *known = tide__states_find(d->states, d->rungs.data[i]);
        tide__generation_tell(d->g);
        if (tide__generation_is_over(d->g)) break;
        if (!known) continue;
        uint64_t before = known->run_ns;
        d->s->target_bytes = d->rungs.data[i];
        TIDE_TRY(tide__states_restore(known, d->s, d->moves));
        TIDE_TRY(search(d, d->rungs.data[i], true));
        if (tide__sketch_fits(d->s) && d->s->run_ns < before) TIDE_TRY(propose_lower(d, d->rungs.data[i]));
    }
    return TIDE_OK;
}

tide_status tide__descend(tide__generation *g, const tide__descent_options *options) {
    tide__states own = {0};
    descent d = {.g = g,
                 .options = options,
                 .s = g->sketch,
                 .moves = options->moves ? &g->transfers : NULL,
                 .states = options->stretch > 1 ? &own : &g->states[options->moves][options->reruns]};
    tide__sketch_clear(d.s);
    d.s->target_bytes = UINT64_MAX;
    if (d.moves) d.moves->stretch = options->stretch;
    for (size_t i = 0; d.moves && i < d.moves->swaps.gaps.count; i++)
        d.moves->chosen[i] = d.moves->swaps.gaps.data[i].forced;
    tide_status status = d.moves ? tide__transfers_sync(d.moves, d.s) : tide__sketch_build(d.s);
    uint64_t lowest = 0;
    if (status == TIDE_OK) status = go_down(&d, &lowest);
    if (status == TIDE_OK && d.moves && options->stretch <= 1) status = wait_below(&d, lowest);
    if (status == TIDE_OK && options->ascends) status = go_up(&d);
    tide__vec_free(&d.rungs);
    tide__states_deinit(&own);
    return status;
}
