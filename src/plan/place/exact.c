/* The exact search of exact.h: decisions, jumps back and restarts on top of exact_state.h. */
#include "plan/place/exact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/size.h"
#include "plan/place/exact_state.h"

#define NONE UINT32_MAX
#define BEGIN_DETOUR 300   /* nodes of the first run beyond the items it has placed */
#define SHORT_DETOUR 64    /* likewise, of other short runs */
#define SHORT_SHARE 6      /* nodes per item for all short runs */
#define LONG_DETOUR 500    /* of a long run, and 2 per item */
#define MOST_DETOUR 1e15   /* longer than anyone waits */
#define RUN_GROWTH 1.2     /* of a long run's detour, every N_ORDERS runs */
#define ORDER_NOISE 0.1    /* added to the logarithm that ranks an item */
#define TROUBLE_WEIGHT 2   /* of failures learnt in earlier runs, against the width, in logarithms */
#define NODES_PER_CLOCK 16 /* how often the clock is read */

/* What ranks items with equal floors. Tight: the highest load of its times comes first. */
enum { BY_WIDTH, BY_TIGHT_AREA, BY_TIGHT_WIDTH, N_ORDERS };

typedef struct ranked {
    double key;
    uint32_t item;
} ranked;

typedef struct search {
    tide__place_exact_state state;
    tide__place_exact_options options;
    const uint64_t *lengths; /* of the problem: compressed times would rank worse */
    double *tightness;       /* per item: highest load of its slots / capacity */
    ranked *ranking;
    uint64_t nodes;   /* in total */
    uint64_t run_end; /* where this run stops, with what is in `deepest` on top */
    uint32_t deepest; /* how many items this run had placed at once */
    bool out_of_limits;
} search;

/* ---- orders ---- */

static int by_key(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return x->item < y->item ? -1 : 1;
}

/* How often the worst of its slots could not go on: where it is tight beyond what the load shows. */
static double trouble_of(const search *s, const tide__place_item *it) {
    uint64_t most = 0;
    for (uint32_t t = it->begin; t != TIDE__PLACE_NO_SLOT; t = tide__place_next_slot(it, t))
        most = tide__max_u64(most, s->state.failures[t]);
    return log(1 + (double)most);
}

static double key_of(const search *s, uint32_t i, uint32_t order, bool learns) {
    const tide__place_item *it = &s->state.items[i];
    double key = log((double)s->lengths[i]) + (learns ? TROUBLE_WEIGHT * trouble_of(s, it) : 0);
    if (order == BY_TIGHT_AREA) key += log((double)it->size);
    return order == BY_WIDTH ? key : 1000 * s->tightness[i] + key;
}

static void apply_ranking(search *s) {
    qsort(s->ranking, s->state.n, sizeof *s->ranking, by_key);
    for (uint32_t k = 0; k < s->state.n; k++) s->state.rank[s->ranking[k].item] = k;
}

static void rank_by_begin(search *s) {
    for (uint32_t i = 0; i < s->state.n; i++) s->ranking[i] = (ranked){-(double)s->state.items[i].begin, i};
    apply_ranking(s);
}

/* The first run of each order is plain, the others are noisy, and every other one learns from failures: that makes
 * most problems much easier, and a few harder. */
static void rank_items(search *s, uint32_t run) {
    bool learns = run / N_ORDERS % 2 == 1;
    for (uint32_t i = 0; i < s->state.n; i++) {
        double noise = ORDER_NOISE * (2 * (double)tide__random_unit(s->options.seed, run, i) - 1);
        s->ranking[i] = (ranked){key_of(s, i, run % N_ORDERS, learns) + (run < N_ORDERS ? 0 : noise), i};
    }
    apply_ranking(s);
}

static void measure_tightness(search *s) {
    for (uint32_t i = 0; i < s->state.n; i++) {
        const tide__place_item *it = &s->state.items[i];
        uint64_t load = 0;
        for (uint32_t t = it->begin; t != TIDE__PLACE_NO_SLOT; t = tide__place_next_slot(it, t))
            load = tide__max_u64(load, s->state.open_load[t]);
        s->tightness[i] = (double)load / (double)s->options.capacity;
    }
}

/* ---- one run ---- */

/* The next item to decide about: lowest floor, then rank. NONE if all wait, or if a waiting item has its top at or
 * below that floor: whatever comes is too high to be put under it. That one is `stuck`. */
static uint32_t choose(const tide__place_exact_state *s, uint32_t *stuck) {
    uint32_t best = NONE;
    uint64_t lowest_top = UINT64_MAX;
    *stuck = NONE;
    for (uint32_t i = 0; i < s->n; i++) {
        const tide__place_exact_bound *b = &s->bounds[i];
        if (s->placed[i]) continue;
        if (b->waits) {
            if (b->floor + s->items[i].size < lowest_top) lowest_top = b->floor + s->items[i].size, *stuck = i;
        } else if (best == NONE || b->floor < s->bounds[best].floor ||
                   (b->floor == s->bounds[best].floor && s->rank[i] < s->rank[best])) {
            best = i;
        }
    }
    return best != NONE && s->bounds[best].floor < lowest_top ? best : NONE;
}

static bool must_stop(search *s) {
    if (s->options.node_limit && s->nodes >= s->options.node_limit) s->out_of_limits = true;
    if (s->options.deadline_ns && s->nodes % NODES_PER_CLOCK == 0 && tide__worked_ns() >= s->options.deadline_ns)
        s->out_of_limits = true;
    return s->out_of_limits || s->nodes >= s->run_end + s->deepest || !tide__place_exact_make_room(&s->state);
}

/* Places items level .. n-1. NONE_EXISTS: not with what is decided below this level, by the conflict, and the state
 * is as it was at the call. */
static tide__place_exact_answer decide(search *s, uint32_t level) {
    tide__place_exact_state *state = &s->state;
    if (level == state->n) return TIDE__PLACE_EXACT_FOUND;
    tide__place_exact_mark entry = tide__place_exact_here(state);
    for (;;) {
        if (must_stop(s)) return TIDE__PLACE_EXACT_GAVE_UP;
        uint32_t stuck, item = choose(state, &stuck);
        if (item == NONE) {
            tide__place_exact_explain_stuck(state, stuck);
            break;
        }
        s->nodes++;
        tide__place_exact_mark before = tide__place_exact_here(state);
        if (tide__place_exact_place(state, item, level)) {
            if (level >= s->deepest) s->deepest = level + 1;
            tide__place_exact_answer answer = decide(s, level + 1);
            if (answer != TIDE__PLACE_EXACT_NONE_EXISTS) return answer;
        }
        tide__place_exact_undo(state, before);
        if (!tide__place_exact_conflict_has(state, level)) break;
        tide__place_exact_conflict_drop(state, level);
        if (!tide__place_exact_wait(state, item)) break;
    }
    tide__place_exact_undo(state, entry);
    return TIDE__PLACE_EXACT_NONE_EXISTS;
}

/* ---- restarts ---- */

/* One attempt in the order that was set, of as many nodes as it places items and a detour beyond. */
static tide__place_exact_answer run_once(search *s, double detour) {
    tide__place_exact_reset(&s->state);
    s->deepest = 0;
    s->run_end = s->nodes + (uint64_t)fmin(detour, MOST_DETOUR);
    return decide(s, 0);
}

/* Runs that find a placement of a real step hardly ever go back on the way: short ones find it soonest. The order of
 * their beginnings is the best of all for most steps. */
static tide__place_exact_answer run_short(search *s) {
    uint64_t end = (uint64_t)SHORT_SHARE * s->state.n;
    rank_by_begin(s);
    tide__place_exact_answer answer = run_once(s, BEGIN_DETOUR);
    for (uint32_t run = 0; answer == TIDE__PLACE_EXACT_GAVE_UP && s->nodes < end && !s->out_of_limits; run++) {
        rank_items(s, run);
        answer = run_once(s, SHORT_DETOUR);
    }
    return answer;
}

/* Harder ones, and proofs, need long runs. They learn for themselves: short runs fail for lesser reasons. */
static tide__place_exact_answer run_long(search *s) {
    double detour = LONG_DETOUR + 2.0 * s->state.n;
    tide__place_exact_answer answer = TIDE__PLACE_EXACT_GAVE_UP;
    memset(s->state.failures, 0, s->state.n_slots * sizeof *s->state.failures);
    for (uint32_t run = 0; answer == TIDE__PLACE_EXACT_GAVE_UP && !s->out_of_limits; run++) {
        rank_items(s, run);
        answer = run_once(s, detour);
        if (run >= N_ORDERS && run % N_ORDERS == N_ORDERS - 1) detour *= RUN_GROWTH;
    }
    return answer;
}

static tide__place_exact_answer run_all(search *s) {
    tide__place_exact_answer answer = run_short(s);
    return answer == TIDE__PLACE_EXACT_GAVE_UP ? run_long(s) : answer;
}

/* Each slot and each item alone. */
static bool may_fit(const tide__place_exact_state *s) {
    for (uint32_t t = 0; t < s->n_slots; t++)
        if (s->open_load[t] > s->capacity) return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->items[i].fixed != TIDE__PLACE_FREE && s->items[i].fixed + s->items[i].size > s->capacity) return false;
    return true;
}

static tide_status start(search *s, const tide__place_problem *p) {
    TIDE_TRY(tide__place_exact_state_init(&s->state, p, s->options.capacity));
    s->tightness = malloc((p->n + 1) * sizeof *s->tightness);
    s->ranking = malloc((p->n + 1) * sizeof *s->ranking);
    return s->tightness && s->ranking ? TIDE_OK : tide__fail_memory();
}

tide_status tide__place_exact(const tide__place_problem *p, const tide__place_exact_options *options, uint64_t *offsets,
                              tide__place_exact_answer *answer, uint64_t *nodes) {
    if (p->huge) return tide__fail(TIDE_E_UNSUPPORTED, "exact: huge sizes");
    if (p->n > TIDE__PLACE_EXACT_MOST_ITEMS)
        return tide__fail(TIDE_E_UNSUPPORTED, "exact: %zu items are too many", p->n);
    if (!options->node_limit && !options->deadline_ns) return tide__fail(TIDE_E_ARGUMENT, "exact: no limit");
    search s = {.options = *options, .lengths = p->lengths};
    tide_status status = start(&s, p);
    if (status == TIDE_OK) {
        bool fits = may_fit(&s.state);
        if (fits) measure_tightness(&s);
        *answer = fits ? run_all(&s) : TIDE__PLACE_EXACT_NONE_EXISTS;
        *nodes = s.nodes;
        if (*answer == TIDE__PLACE_EXACT_FOUND) memcpy(offsets, s.state.offsets, p->n * sizeof *offsets);
    }
    tide__place_exact_state_deinit(&s.state);
    free(s.tightness);
    free(s.ranking);
    return status;
}
