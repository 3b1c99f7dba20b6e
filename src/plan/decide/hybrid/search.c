/* See search.h. Several greedy starts, then large-neighbourhood search: take some related re-runs out, repair with
 * noise, prune, keep what is not slower. */
#include "plan/decide/hybrid/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static const double TOLERANCE = 0.001; /* of the time */
enum { MAX_REMOVED = 20, PATIENCE = 50 };

typedef struct searcher {
    tide__sketch *s;
    tide__repair repair;
    tide__keys best, current; /* the best that fits; where the search is */
    tide__keys reruns;        /* scratch */
    uint64_t best_ns, current_ns;
    bool fits;
    uint64_t limit; /* of repair.work */
    uint64_t rounds;
} searcher;

static bool is_better(const searcher *x) { return tide__sketch_fits(x->s) && (!x->fits || x->s->run_ns < x->best_ns); }

static tide_status note_best(searcher *x) {
    if (!is_better(x)) return TIDE_OK;
    x->fits = true;
    x->best_ns = x->s->run_ns;
    return tide__keys_copy(&x->s->extra, &x->best);
}

/* A greedy plan from what is given; `mask` says how inputs are got. Greedy for a part of the target, then pruned for
 * all of it: other chains get long there, and most of the extra re-runs go again. */
static tide_status start(searcher *x, const tide__keys *from, uint32_t mask, double part) {
    uint64_t target = x->s->target_bytes;
    TIDE_TRY(tide__keys_copy(from, &x->s->extra));
    x->repair.mask = mask;
    x->repair.noise = 0;
    x->s->target_bytes = (uint64_t)(part * (double)target);
    tide_status status = tide__repair_run(&x->repair);
    x->s->target_bytes = target;
    TIDE_TRY(status);
    TIDE_TRY(tide__sketch_build(x->s));
    if (!tide__sketch_fits(x->s)) return TIDE_OK;
    TIDE_TRY(tide__repair_prune(&x->repair, &x->s->extra));
    return note_best(x);
}

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

/* How much slower than the current plan the next one may be: less and less (threshold accepting). */
static uint64_t tolerance(searcher *x) {
    double left = 1 - (double)x->repair.work / (double)x->limit;
    double share = TOLERANCE * left * (double)tide__random_unit(x->repair.seed, 2, x->rounds);
    return (uint64_t)(share * (double)x->best_ns);
}

static tide_status improve_once(searcher *x) {
    TIDE_TRY(tide__keys_copy(&x->current, &x->s->extra));
    TIDE_TRY(list_reruns(x));
    if (x->reruns.count == 0) {
        x->limit = 0;
        return TIDE_OK;
    }
    size_t most = x->reruns.count < MAX_REMOVED ? x->reruns.count : MAX_REMOVED;
    remove_some(x, 1 + (x->rounds % 2 ? draw(x, most) : draw(x, 1 + draw(x, most))));
    x->repair.noise = x->rounds % 4 ? 0.5 : 0.1;
    x->repair.mask = x->rounds % 3 ? (1u << TIDE__N_HOLDS) - 1 : 1u << draw(x, TIDE__N_HOLDS);
    TIDE_TRY(tide__repair_run(&x->repair));
    if (!tide__sketch_fits(x->s)) return TIDE_OK;
    TIDE_TRY(tide__repair_prune(&x->repair, x->rounds % PATIENCE ? &x->repair.added : &x->s->extra));
    if (x->s->run_ns > x->current_ns + tolerance(x)) return TIDE_OK;
    x->current_ns = x->s->run_ns;
    TIDE_TRY(tide__keys_copy(&x->s->extra, &x->current));
    return note_best(x);
}

/* Greedy plans from what is given, and from its moves alone; at least one, more while there is work left. */
static tide_status start_all(searcher *x, const tide__keys *given, const tide__keys *moves) {
    static const double parts[] = {1, 0.97, 0.93, 0.88, 0.8};
    const uint32_t all = (1u << TIDE__N_HOLDS) - 1;
    if (given->count > moves->count) TIDE_TRY(start(x, given, all, 1));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (uint32_t k = 0; k <= TIDE__N_HOLDS; k++)
            if (x->repair.work < x->limit / 2 || (i == 0 && !x->fits))
                TIDE_TRY(start(x, moves, k == 0 ? all : 1u << (k - 1), parts[i]));
    return TIDE_OK;
}

static tide_status search(searcher *x, const tide__keys *given, tide__keys *moves) {
    for (size_t i = 0; i < given->count; i++)
        if (!is_rerun(given->data[i])) TIDE_TRY(tide__vec_push(moves, given->data[i]));
    TIDE_TRY(start_all(x, given, moves));
    x->current_ns = x->best_ns;
    TIDE_TRY(tide__keys_copy(&x->best, &x->current));
    for (; x->fits && x->repair.work < x->limit; x->rounds++) TIDE_TRY(improve_once(x));
    if (x->fits) TIDE_TRY(tide__keys_copy(&x->best, &x->s->extra));
    return tide__sketch_build(x->s);
}

tide_status tide__search(tide__sketch *s, uint64_t work, bool *fits) {
    searcher x = {.s = s, .limit = work};
    tide__keys given = {0}, moves = {0};
    tide_status status = tide__repair_init(s, &x.repair);
    if (status == TIDE_OK) status = tide__keys_copy(&s->extra, &given);
    if (status == TIDE_OK) status = search(&x, &given, &moves);
    if (status == TIDE_OK) *fits = x.fits;
    tide__repair_deinit(&x.repair);
    tide__vec_free(&x.best);
    tide__vec_free(&x.current);
    tide__vec_free(&x.reruns);
    tide__vec_free(&given);
    tide__vec_free(&moves);
    return status;
}
