/* See search.h. Several greedy starts, then large-neighbourhood search: take some related re-runs out, and moves with
 * them, repair with noise, by moves that hide first and then by re-runs, prune, keep what is not slower. */
#include "plan/decide/hybrid/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/size.h"
#include "plan/decide/hybrid/belady.h"

static const double TOLERANCE = 0.001; /* of the time */
static const double MIN_PROGRESS = 0.02;
enum {
    MAX_REMOVED = 20,
    MAX_MOVES_REMOVED = 6,
    PATIENCE = 50,
    MAX_SYNCS = 3,
    MAX_REFILLS = 8,
    MAX_WALKED = 20 * 1000,
    MAX_WALKED_OPS = 6000,
    WALKED_PART = 4 /* of the ops: how many values each op of a walk looks at */
};

/* Decisions: a sketch's events, and the gaps behind those that are moves. */
typedef struct state {
    tide__keys events;
    bool *chosen;
    uint64_t run_ns;
} state;

typedef struct searcher {
    tide__sketch *s;
    tide__transfers *moves; /* NULL: the sketch's moves stay as they are */
    bool warm;              /* it goes on from what the sketch has, without other starts if that fits */
    tide__repair repair;
    state best, current; /* the best that fits; where the search is */
    state nearest;       /* until one fits: the least above the target */
    double least;        /* its excess */
    bool *given_chosen;  /* the moves that starts begin with */
    tide__keys reruns;   /* scratch */
    bool fits;
    uint64_t limit;  /* of work */
    uint64_t most;   /* of work and walks, as long as nothing fits */
    uint64_t walked; /* work of the walks */
    uint64_t rounds;
} searcher;

static uint64_t work_done(const searcher *x) { return x->repair.work + (x->moves ? x->moves->work : 0); }

/* Another start: there is work left, or nothing fits yet. */
static bool goes_on(const searcher *x, uint64_t limit) {
    uint64_t work = work_done(x);
    return work < limit || (!x->fits && work + x->walked < x->most);
}

/* ---- states ---- */

static size_t chosen_bytes(const searcher *x) { return x->moves->swaps.gaps.count * sizeof(bool); }

static tide_status store(searcher *x, state *to) {
    to->run_ns = x->s->run_ns;
    if (x->moves) memcpy(to->chosen, x->moves->chosen, chosen_bytes(x));
    return tide__keys_copy(&x->s->extra, &to->events);
}

/* The sketch is not built. */
static tide_status restore(searcher *x, const state *from) {
    if (x->moves) memcpy(x->moves->chosen, from->chosen, chosen_bytes(x));
    return tide__keys_copy(&from->events, &x->s->extra);
}

static bool is_better(const searcher *x) {
    return tide__sketch_fits(x->s) && (!x->fits || x->s->run_ns < x->best.run_ns);
}

static tide_status note_best(searcher *x) {
    if (!is_better(x)) return TIDE_OK;
    x->fits = true;
    return store(x, &x->best);
}

static tide_status note_nearest(searcher *x) {
    if (x->fits || x->s->excess >= x->least) return TIDE_OK;
    x->least = x->s->excess;
    return store(x, &x->nearest);
}

/* Re-runs that went or came have changed the clock of the moves; what those then leave is repaired. */
static tide_status sync_moves(searcher *x) {
    if (!x->moves) return TIDE_OK;
    TIDE_TRY(tide__transfers_sync(x->moves, x->s));
    for (int i = 1; i < MAX_SYNCS && !tide__sketch_fits(x->s); i++) {
        TIDE_TRY(tide__repair_run(&x->repair));
        TIDE_TRY(tide__transfers_sync(x->moves, x->s));
    }
    return TIDE_OK;
}

/* ---- starts ---- */

/* All ways to get inputs, or just one of them. */
static uint32_t mask_of(uint32_t way) { return way == 0 ? (1u << TIDE__N_HOLDS) - 1 : 1u << (way - 1); }

/* Where re-runs alone do not get any further: more moves, which have a longer clock to hide on by now, and re-runs for what
 * those leave, by turns. */
static tide_status refill(searcher *x) {
    for (uint32_t i = 0; i < MAX_REFILLS && !tide__sketch_fits(x->s) && work_done(x) < x->repair.limit; i++) {
        double before = x->s->excess;
        TIDE_TRY(tide__transfers_sync(x->moves, x->s));
        TIDE_TRY(tide__transfers_fill(x->moves, x->s, (tide__transfers_taste){.power = i % 2 ? 0.5 : 1}));
        TIDE_TRY(tide__repair_run(&x->repair));
        if (x->s->excess > (1 - MIN_PROGRESS) * before) break;
    }
    return TIDE_OK;
}

static tide_status finish_start(searcher *x) {
    TIDE_TRY(tide__sketch_build(x->s));
    if (!tide__sketch_fits(x->s)) return note_nearest(x);
    x->repair.limit = x->repair.work + x->limit;
    TIDE_TRY(tide__repair_prune(&x->repair, &x->s->extra));
    TIDE_TRY(sync_moves(x));
    TIDE_TRY(note_nearest(x));
    return note_best(x);
}

/* A greedy plan from what is given; `mask` says how inputs are got. Greedy for a part of the target, then pruned for
 * all of it: other chains get long there, and most of the extra re-runs go again. */
static tide_status start(searcher *x, const tide__keys *from, uint32_t mask, double part) {
    uint64_t target = x->s->target_bytes;
    TIDE_TRY(tide__keys_copy(from, &x->s->extra));
    if (x->moves) memcpy(x->moves->chosen, x->given_chosen, chosen_bytes(x));
    x->repair.mask = mask;
    x->repair.noise = 0;
    x->repair.limit = x->repair.work + (x->warm ? x->most : x->limit);
    x->s->target_bytes = (uint64_t)(part * (double)target);
    tide_status status = tide__repair_run(&x->repair);
    x->s->target_bytes = target;
    TIDE_TRY(status);
    if (x->moves && !tide__sketch_fits(x->s)) TIDE_TRY(refill(x));
    return finish_start(x);
}

static uint64_t walk_work(const searcher *x) {
    uint64_t n = x->s->model->n_ops;
    return n * (n / WALKED_PART + 1);
}

/* A walk that drops values when memory is short, for a part of the target, and repaired for the rest. */
static tide_status start_by_walk(searcher *x, const tide__keys *from, tide__belady_way way, double part) {
    uint64_t target = x->s->target_bytes;
    TIDE_TRY(tide__keys_copy(from, &x->s->extra));
    x->s->target_bytes = (uint64_t)(part * (double)target);
    tide_status status = tide__belady(x->s, way, MAX_WALKED);
    x->walked += walk_work(x);
    x->s->target_bytes = target;
    TIDE_TRY(status);
    x->repair.mask = mask_of(0);
    x->repair.noise = 0;
    x->repair.limit = x->repair.work + x->limit;
    TIDE_TRY(tide__repair_run(&x->repair));
    return finish_start(x);
}

/* ---- rounds ---- */

static uint64_t draw(searcher *x, uint64_t below) {
    return tide__random_u64(x->repair.seed, 1, x->repair.draws++) % below;
}

static bool is_rerun(uint64_t key) { return tide__event_kind_of(key) == TIDE__EVENT_RUN; }

static tide_status list_reruns(searcher *x) {
    const tide__keys *extra = &x->s->extra;
    x->reruns.count = 0;
    for (size_t i = 0; i < extra->count; i++)
        if (is_rerun(extra->data[i])) TIDE_TRY(tide__vec_push(&x->reruns, extra->data[i]));
    return TIDE_OK;
}

static uint32_t distance(uint64_t key, uint32_t op) {
    uint32_t other = tide__event_id(key);
    return other > op ? other - op : op - other;
}

static size_t nearest(const tide__keys *keys, uint32_t op) {
    size_t best = 0;
    for (size_t i = 1; i < keys->count; i++)
        if (distance(keys->data[i], op) < distance(keys->data[best], op)) best = i;
    return best;
}

/* Takes out up to n re-runs: neighbours in time, of neighbouring ops, or any. */
static void remove_some(searcher *x, size_t n) {
    tide__keys *list = &x->reruns;
    uint64_t way = draw(x, 3);
    size_t first = draw(x, list->count);
    uint32_t op = tide__event_id(list->data[first]);
    for (size_t k = 0; k < n && list->count; k++) {
        size_t i = way == 0 ? first : way == 1 ? nearest(list, op) : draw(x, list->count);
        if (i >= list->count) i = list->count - 1;
        tide__sketch_remove(x->s, list->data[i]);
        list->count--;
        memmove(&list->data[i], &list->data[i + 1], (list->count - i) * sizeof *list->data);
    }
}

/* Takes out up to n moves: of neighbouring gaps, or any. */
static void remove_moves(searcher *x, uint64_t n) {
    const tide__swaps *swaps = &x->moves->swaps;
    uint64_t gap = draw(x, swaps->gaps.count), near = draw(x, 2);
    for (uint64_t tries = 4 * n; tries > 0 && n > 0; tries--) {
        if (x->moves->chosen[gap] && !swaps->gaps.data[gap].forced) n--;
        if (!swaps->gaps.data[gap].forced) x->moves->chosen[gap] = false;
        gap = near ? (gap + 1) % swaps->gaps.count : draw(x, swaps->gaps.count);
    }
}

/* Other moves for some of them, as far as they hide. */
static tide_status exchange_moves(searcher *x) {
    static const double powers[] = {0, 0.25, 0.5, 1};
    tide__transfers_taste taste = {.noise = 0.5, .seed = x->rounds, .power = powers[draw(x, 4)]};
    remove_moves(x, draw(x, MAX_MOVES_REMOVED));
    TIDE_TRY(tide__transfers_sync(x->moves, x->s));
    return tide__transfers_fill(x->moves, x->s, taste);
}

/* How much slower than the current plan the next one may be: less and less (threshold accepting). */
static uint64_t slowest(searcher *x) {
    double left = 1 - (double)work_done(x) / (double)x->limit;
    double share = TOLERANCE * left * (double)tide__random_unit(x->repair.seed, 2, x->rounds);
    return x->current.run_ns + (uint64_t)(share * (double)x->best.run_ns);
}

static tide_status destroy(searcher *x) {
    TIDE_TRY(restore(x, &x->current));
    TIDE_TRY(list_reruns(x));
    if (x->reruns.count == 0) {
        x->limit = 0;
        return TIDE_OK;
    }
    size_t most = x->reruns.count < MAX_REMOVED ? x->reruns.count : MAX_REMOVED;
    remove_some(x, 1 + (x->rounds % 2 ? draw(x, most) : draw(x, 1 + draw(x, most))));
    if (!x->moves) return TIDE_OK;
    return draw(x, 2) ? exchange_moves(x) : tide__transfers_sync(x->moves, x->s);
}

/* Some re-runs go, and others come. */
static tide_status exchange(searcher *x) {
    TIDE_TRY(destroy(x));
    x->repair.limit = x->repair.work + x->limit / 4 + 1;
    x->repair.noise = x->rounds % 4 ? 0.5 : 0.1;
    x->repair.mask = x->rounds % 3 ? (1u << TIDE__N_HOLDS) - 1 : 1u << draw(x, TIDE__N_HOLDS);
    TIDE_TRY(tide__repair_run(&x->repair));
    if (!tide__sketch_fits(x->s)) return TIDE_OK;
    x->repair.noise = 0;
    return tide__repair_prune(&x->repair, x->rounds % PATIENCE ? &x->repair.added : &x->s->extra);
}

static tide_status improve_once(searcher *x) {
    TIDE_TRY(exchange(x));
    if (!tide__sketch_fits(x->s)) return TIDE_OK;
    TIDE_TRY(sync_moves(x));
    if (!tide__sketch_fits(x->s) || x->s->run_ns > slowest(x)) return TIDE_OK;
    TIDE_TRY(store(x, &x->current));
    return note_best(x);
}

/* What is cheap to walk; and where greedy repair ends up above the target, the only start there is. */
static tide_status start_by_walks(searcher *x, const tide__keys *from) {
    static const double parts[] = {1, 0.95};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (int k = 0; k < TIDE__N_BELADY_WAYS; k++)
            if (goes_on(x, x->limit) && x->walked + walk_work(x) < x->most)
                TIDE_TRY(start_by_walk(x, from, (tide__belady_way)k, parts[i]));
    return TIDE_OK;
}

/* Moves can leave no room for the re-runs that the rest needs. */
static tide_status start_without_moves(searcher *x) {
    tide__keys forced = {0};
    for (size_t i = 0; i < x->moves->swaps.gaps.count; i++) x->moves->chosen[i] = x->moves->swaps.gaps.data[i].forced;
    x->s->extra.count = 0;
    TIDE_TRY(tide__transfers_sync(x->moves, x->s));
    tide_status status = tide__keys_copy(&x->s->extra, &forced);
    memcpy(x->given_chosen, x->moves->chosen, chosen_bytes(x));
    for (uint32_t k = 0; k <= TIDE__N_HOLDS && status == TIDE_OK && goes_on(x, 0); k++)
        status = start(x, &forced, mask_of(k), 1);
    if (status == TIDE_OK) status = start_by_walks(x, &forced);
    tide__vec_free(&forced);
    return status;
}

/* Greedy plans from what is given, and from its moves alone; at least one, more while there is work left. */
static tide_status start_all(searcher *x, const tide__keys *given, const tide__keys *moves) {
    static const double parts[] = {1, 0.97, 0.93, 0.88, 0.8};
    if (x->warm || given->count > moves->count) TIDE_TRY(start(x, given, mask_of(0), 1));
    if (x->warm && x->fits) return TIDE_OK;
    /* Batches take chains at their word, which only those that hold all inputs keep. */
    TIDE_TRY(start(x, moves, mask_of(tide__repair_is_batched(&x->repair) ? 1 + TIDE__HOLD_ALL : 0), 1));
    if (!x->moves && x->s->model->n_ops <= MAX_WALKED_OPS) TIDE_TRY(start_by_walks(x, moves));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (uint32_t k = i == 0; k <= TIDE__N_HOLDS; k++)
            if (work_done(x) < x->limit / 2 || (i == 0 && goes_on(x, 0)))
                TIDE_TRY(start(x, moves, mask_of(k), parts[i]));
    return x->fits || !x->moves ? TIDE_OK : start_without_moves(x);
}

static tide_status search(searcher *x, const tide__keys *given, tide__keys *moves) {
    for (size_t i = 0; i < given->count; i++)
        if (!is_rerun(given->data[i])) TIDE_TRY(tide__vec_push(moves, given->data[i]));
    TIDE_TRY(start_all(x, given, moves));
    TIDE_TRY(restore(x, x->fits ? &x->best : &x->nearest));
    TIDE_TRY(store(x, &x->current));
    x->current.run_ns = x->best.run_ns;
    if (x->warm) x->limit += work_done(x);
    for (; x->fits && work_done(x) < x->limit; x->rounds++) TIDE_TRY(improve_once(x));
    if (x->fits) TIDE_TRY(restore(x, &x->best));
    return x->moves ? tide__transfers_sync(x->moves, x->s) : tide__sketch_build(x->s);
}

static tide_status begin(searcher *x, tide__keys *given) {
    size_t n = x->moves ? chosen_bytes(x) : 0;
    if (x->moves) x->moves->work = 0;
    x->best.chosen = malloc(n + 1);
    x->current.chosen = malloc(n + 1);
    x->nearest.chosen = malloc(n + 1);
    x->given_chosen = malloc(n + 1);
    if (!x->best.chosen || !x->current.chosen || !x->nearest.chosen || !x->given_chosen) return tide__fail_memory();
    x->least = HUGE_VAL;
    if (x->moves) memcpy(x->given_chosen, x->moves->chosen, n);
    TIDE_TRY(tide__repair_init(x->s, &x->repair));
    return tide__keys_copy(&x->s->extra, given);
}

static void end(searcher *x) {
    tide__repair_deinit(&x->repair);
    tide__vec_free(&x->best.events);
    tide__vec_free(&x->current.events);
    tide__vec_free(&x->nearest.events);
    tide__vec_free(&x->reruns);
    free(x->best.chosen);
    free(x->current.chosen);
    free(x->nearest.chosen);
    free(x->given_chosen);
}

tide_status tide__search(tide__sketch *s, tide__transfers *moves, const tide__search_options *options,
                         uint64_t *spent) {
    searcher x = {.s = s, .moves = moves, .limit = options->work, .most = options->most, .warm = options->warm};
    tide__keys given = {0}, given_moves = {0};
    tide_status status = begin(&x, &given);
    x.repair.seed = options->seed;
    if (status == TIDE_OK) status = search(&x, &given, &given_moves);
    if (status == TIDE_OK) *spent += work_done(&x) + x.walked;
    tide__vec_free(&given);
    tide__vec_free(&given_moves);
    end(&x);
    return status;
}

tide_status tide__search_by_walks(tide__sketch *s, uint64_t work, bool *fits) {
    searcher x = {.s = s, .limit = work, .most = UINT64_MAX};
    tide__keys given = {0};
    tide_status status = begin(&x, &given);
    for (int k = 0; k < TIDE__N_BELADY_WAYS && status == TIDE_OK && work_done(&x) < work; k++)
        status = start_by_walk(&x, &given, (tide__belady_way)k, 1);
    if (status == TIDE_OK && x.fits) status = restore(&x, &x.best);
    if (status == TIDE_OK) status = tide__sketch_build(s);
    if (status == TIDE_OK) *fits = x.fits;
    tide__vec_free(&given);
    end(&x);
    return status;
}
