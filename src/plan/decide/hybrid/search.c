/* See search.h. Several greedy starts, then large-neighbourhood search: take some related re-runs out, repair with
 * noise, prune, keep what is not slower. */
#include "plan/decide/hybrid/search.h"

#include <stdlib.h>

#include "base/rng.h"

static const double TOLERANCE = 0.001; /* of the time */
enum { MAX_REMOVED = 20, PATIENCE = 50 };

typedef struct searcher {
    tide__sketch *s;
    tide__repair repair;
    tide__keys best, current; /* the best that fits; where the search is */
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

/* Takes out up to n re-runs: a window of neighbours in time, of one op, or any. */
static void remove_some(searcher *x, size_t n) {
    tide__keys *extra = &x->s->extra;
    uint64_t way = draw(x, 3);
    size_t first = draw(x, extra->count);
    uint32_t op = tide__event_id(extra->data[first]);
    for (size_t k = 0; k < n && extra->count; k++) {
        size_t i = way == 0 ? first : draw(x, extra->count);
        if (way == 1) /* the nearest op */
            for (size_t j = 0; j < extra->count; j++) {
                uint32_t a = tide__event_id(extra->data[j]), b = tide__event_id(extra->data[i]);
                if ((a > op ? a - op : op - a) < (b > op ? b - op : op - b)) i = j;
            }
        if (i >= extra->count) i = extra->count - 1;
        tide__sketch_remove(x->s, extra->data[i]);
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
    size_t most = x->current.count < MAX_REMOVED ? x->current.count : MAX_REMOVED;
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

static tide_status search(searcher *x, const tide__keys *given) {
    static const double parts[] = {1, 0.97, 0.93, 0.88, 0.8};
    for (size_t i = 0; i < sizeof parts / sizeof *parts && (i == 0 || x->repair.work < x->limit); i++)
        for (uint32_t hold = 0; hold <= TIDE__N_HOLDS; hold++)
            TIDE_TRY(start(x, given, hold < TIDE__N_HOLDS ? 1u << hold : (1u << TIDE__N_HOLDS) - 1, parts[i]));
    x->current_ns = x->best_ns;
    TIDE_TRY(tide__keys_copy(&x->best, &x->current));
    for (; x->fits && x->best.count && x->repair.work < x->limit; x->rounds++) TIDE_TRY(improve_once(x));
    if (x->fits) TIDE_TRY(tide__keys_copy(&x->best, &x->s->extra));
    return tide__sketch_build(x->s);
}

tide_status tide__search(tide__sketch *s, uint64_t work, bool *fits) {
    searcher x = {.s = s, .limit = work};
    tide__keys given = {0};
    tide_status status = tide__repair_init(s, &x.repair);
    if (status == TIDE_OK) status = tide__keys_copy(&s->extra, &given);
    if (status == TIDE_OK) status = search(&x, &given);
    if (status == TIDE_OK) *fits = x.fits;
    tide__repair_deinit(&x.repair);
    tide__vec_free(&x.best);
    tide__vec_free(&x.current);
    tide__vec_free(&given);
    return status;
}
