/* See descent.h. */
#include "plan/decide/hybrid/descent.h"

#include <stdlib.h>

#include "base/size.h"
#include "plan/decide/hybrid/moves.h"
#include "plan/decide/hybrid/search.h"

/* A descent at work: the generation's sketch and moves are its own for that time. */
typedef struct descent {
    tide__generation *g;
    tide__descent *at;
    const tide__descent_options *options;
    tide__sketch *s;
    tide__transfers *moves; /* NULL: nothing moves */
    tide__states *states;
} descent;

/* Of the work of a rung, what a choice of moves takes for itself. */
enum { MOVES_PART = 4 };
/* A start from scratch gets as much as so many rungs. */
enum { FRESH_TIMES = 4 };
/* Parts of the whole at whose first rungs a descent starts from scratch; every how many rungs it tries all amounts of waiting, and
 * how many of these rungs the whole has at least. */
enum { FRESH_PARTS = 10, WAIT_EVERY = 3, MIN_WAITS = 10 };

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

static tide_status add_waiting(descent *d, tide__moves_way way, uint64_t rung_bytes, tide__decisions *out) {
    tide__swaps_options options = {.beside = out};
    tide__swaps swaps;
    TIDE_TRY(tide__swap_least_bytes(&d->g->in, &options.min_bytes));
    TIDE_TRY(tide__swaps_init(&swaps, &d->g->in, &options));
    bool *chosen = calloc(swaps.gaps.count + 1, sizeof *chosen);
    tide_status status = chosen ? TIDE_OK : tide__fail_memory();
    uint64_t work = d->options->work / MOVES_PART;
    if (status == TIDE_OK) status = tide__moves_choose(&swaps, NULL, way, rung_bytes, work, chosen);
    if (status == TIDE_OK) status = tide__swaps_decide(&swaps, chosen, out);
    free(chosen);
    tide__swaps_deinit(&swaps);
    return status;
}

/* The sketch's re-runs, and moves beside them for which compute waits where they do not hide. Weights and optimizer state cannot
 * be made again: where they are most of what is there, neither moves that hide nor re-runs get below a small budget. */
static tide_status propose_waiting(descent *d, tide__moves_way way, uint64_t rung_bytes, tide__plans_outcome *o) {
    tide__decisions decisions = {0};
    tide_status status = tide__generation_add_reruns(d->s, &decisions);
    if (status == TIDE_OK) status = tide__generation_add_variants(d->g, &decisions);
    if (status == TIDE_OK) status = add_waiting(d, way, rung_bytes, &decisions);
    if (status == TIDE_OK) return tide__generation_propose(d->g, &decisions, rung_bytes, o);
    tide__decisions_free(&decisions);
    return status;
}

/* For less where placement misses the rung, and for much less where that helps little. */
enum { MAX_WAITS = 4 };

static tide_status wait_by(descent *d, tide__moves_way way, uint64_t rung_bytes, bool *fits) {
    uint64_t target = rung_bytes, step = 0;
    for (int i = 0; i < MAX_WAITS && step < target / 2; i++) {
        tide__plans_outcome o;
        target -= step;
        TIDE_TRY(propose_waiting(d, way, target, &o));
        *fits = *fits || o.arena_bytes <= rung_bytes;
        bool is_slow = o.step_ns != UINT64_MAX && o.step_ns >= tide__plans_time(d->g->plans, rung_bytes);
        if (o.arena_bytes <= rung_bytes || is_slow) break;
        step = tide__max_u64(2 * step, o.arena_bytes - rung_bytes);
    }
    return TIDE_OK;
}

/* Moves with the best scores hide best where some do; where none does, few are waited for. */
static tide_status wait_at(descent *d, uint64_t rung_bytes, bool *fits) {
    *fits = false;
    TIDE_TRY(wait_by(d, TIDE__MOVES_WAIT_QUICK, rung_bytes, fits));
    if (!d->g->reruns) TIDE_TRY(wait_by(d, TIDE__MOVES_WAIT, rung_bytes, fits));
    return wait_by(d, TIDE__MOVES_WAIT_FEWEST, rung_bytes, fits);
}

/* Few re-runs and long waits, or the other way round: from what is known for this rung, and for larger ones. Leaves the sketch at
 * what is known for the rung, or nearest to it. */
static tide_status wait_from_each(descent *d, uint64_t rung_bytes, bool *fits) {
    static const uint32_t quarters[] = {16, 8, 6, 5, 4};
    const tide__state *last = NULL, *restored = NULL;
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
        restored = known;
        TIDE_TRY(tide__states_restore(known, d->s, d->moves));
        TIDE_TRY(wait_at(d, rung_bytes, &one));
        *fits = *fits || one;
    }
    const tide__state *known = tide__states_find(d->states, least);
    return known && known != restored ? tide__states_restore(known, d->s, d->moves) : TIDE_OK;
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
    if (d->g->reruns) return tide__search(d->s, d->moves, &options, &d->g->work);
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
        TIDE_TRY(tide__moves_choose(&d->moves->swaps, d->moves->price, way, rung_bytes, FRESH_TIMES * d->options->work,
                                    d->moves->chosen));
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
    if (d->moves && d->g->reruns && d->options->stretch <= 1) TIDE_TRY(start_fresh(d, rung_bytes, TIDE__MOVES_DEAREST));
    return take_known(d, rung_bytes);
}

/* ---- the way down and up ---- */

/* Rungs in a row that nothing fits: lower ones have nothing, either. What compute waits for misses by how it packs. */
enum { MAX_MISSES = 2, MAX_WAIT_MISSES = 6 };

/* Waiting pays only where what is known takes longer. */
static bool is_fast(const descent *d, uint64_t rung_bytes) {
    double stretch = d->options->stretch, least = (double)d->g->least_ns;
    return stretch > 1 && (double)tide__plans_time(d->g->plans, rung_bytes) < least * (1 + (stretch - 1) / 2);
}

static bool is_over(descent *d) {
    tide__generation_tell(d->g);
    return tide__generation_is_over(d->g);
}

static tide_status go_down_to(descent *d, uint64_t rung_bytes) {
    tide__descent *at = d->at;
    bool fits;
    TIDE_TRY(visit(d, rung_bytes, at->last_bytes));
    if (tide__sketch_fits(d->s)) {
        TIDE_TRY(propose_lower(d, rung_bytes));
        bool all = is_first(d, d->options->fineness / WAIT_EVERY, rung_bytes, at->last_bytes);
        if (d->moves && d->options->stretch <= 1)
            TIDE_TRY(all ? wait_from_each(d, rung_bytes, &fits) : wait_at(d, rung_bytes, &fits));
        TIDE_TRY(tide__vec_push(&at->rungs, rung_bytes));
        at->load_bytes = tide__min_u64(rung_bytes, tide__sketch_peak(d->s));
    }
    at->misses = tide__sketch_fits(d->s) ? 0 : at->misses + 1;
    at->last_bytes = rung_bytes;
    return TIDE_OK;
}

static tide_status go_down(descent *d, uint64_t floor_bytes) {
    tide__descent *at = d->at;
    while (!at->is_down && !is_over(d)) {
        uint64_t rung = tide__generation_rung(d->g, at->load_bytes, d->options->fineness);
        at->is_down = rung == 0 || at->misses >= MAX_MISSES;
        if (at->is_down && d->moves && d->options->stretch <= 1) at->wait_bytes = at->last_bytes;
        if (at->is_down || rung < floor_bytes) break;
        at->load_bytes = rung;
        if (!is_fast(d, rung)) TIDE_TRY(go_down_to(d, rung));
    }
    return TIDE_OK;
}

static uint32_t wait_fineness(const descent *d) {
    uint32_t fineness = d->options->fineness / WAIT_EVERY;
    return fineness > MIN_WAITS ? fineness : MIN_WAITS;
}

/* Below what hides: moves that compute waits for, whatever it takes. */
static tide_status wait_below(descent *d, uint64_t floor_bytes) {
    tide__descent *at = d->at;
    while (at->wait_bytes && at->wait_bytes >= floor_bytes && !is_over(d)) {
        bool fits;
        TIDE_TRY(wait_from_each(d, at->wait_bytes, &fits));
        at->wait_misses = fits ? 0 : at->wait_misses + 1;
        at->wait_bytes = tide__generation_rung(d->g, at->wait_bytes, wait_fineness(d));
        if (at->wait_misses >= MAX_WAIT_MISSES) at->wait_bytes = 0;
    }
    return TIDE_OK;
}

static tide_status go_up(descent *d) {
    for (size_t i = d->at->rungs.count; i-- > 0;) {
        uint64_t rung = d->at->rungs.data[i];
        const tide__state *known = tide__states_find(d->states, rung);
        if (is_over(d)) break;
        if (!known) continue;
        uint64_t before = known->run_ns;
        d->s->target_bytes = rung;
        TIDE_TRY(tide__states_restore(known, d->s, d->moves));
        TIDE_TRY(search(d, rung, true));
        if (tide__sketch_fits(d->s) && d->s->run_ns < before) TIDE_TRY(propose_lower(d, rung));
    }
    return TIDE_OK;
}

/* Where it begins, or stopped. */
static tide_status go_on(descent *d) {
    tide__descent *at = d->at;
    bool kept;
    d->s->target_bytes = at->load_bytes ? at->last_bytes : UINT64_MAX;
    if (d->moves) d->moves->stretch = d->options->stretch;
    if (at->load_bytes) return tide__states_restore(&at->now, d->s, d->moves);
    tide__sketch_clear(d->s);
    for (size_t i = 0; d->moves && i < d->moves->swaps.gaps.count; i++)
        d->moves->chosen[i] = d->moves->swaps.gaps.data[i].forced;
    TIDE_TRY(d->moves ? tide__transfers_sync(d->moves, d->s) : tide__sketch_build(d->s));
    at->load_bytes = tide__sketch_peak(d->s);
    at->last_bytes = d->g->whole_bytes;
    return tide__states_keep(d->states, d->s, d->moves, &kept);
}

static tide_status stop_here(descent *d) {
    tide__state_deinit(&d->at->now);
    return tide__state_copy(d->s, d->moves, &d->at->now);
}

static void forget_rungs(tide__descent *at, uint64_t ceiling_bytes) {
    size_t n = 0;
    for (size_t i = 0; i < at->rungs.count; i++)
        if (at->rungs.data[i] < ceiling_bytes) at->rungs.data[n++] = at->rungs.data[i];
    at->rungs.count = n;
}

tide_status tide__descent_go(tide__generation *g, uint64_t floor_bytes, uint64_t ceiling_bytes, tide__descent *at) {
    descent d = {.g = g,
                 .at = at,
                 .options = &at->options,
                 .s = g->sketch,
                 .moves = g->moves ? &g->transfers : NULL,
                 .states = &at->states};
    if (at->is_down && at->wait_bytes == 0) return TIDE_OK;
    forget_rungs(at, ceiling_bytes);
    TIDE_TRY(go_on(&d));
    TIDE_TRY(go_down(&d, floor_bytes));
    TIDE_TRY(stop_here(&d));
    if (d.moves) TIDE_TRY(wait_below(&d, floor_bytes));
    return at->options.ascends ? go_up(&d) : TIDE_OK;
}

void tide__descent_init(const tide__descent_options *options, tide__descent *d) {
    *d = (tide__descent){.options = *options};
}

void tide__descent_deinit(tide__descent *d) {
    tide__states_deinit(&d->states);
    tide__state_deinit(&d->now);
    tide__vec_free(&d->rungs);
}
