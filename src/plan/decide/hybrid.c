/* Policy `hybrid`: keep, move or re-run, per gap, jointly, for the least time inside the budget.
 *
 *   hybrid            both
 *   hybrid:norerun    moves only
 *   hybrid:nomove     re-runs only
 *
 * A list of generators fills the pool of plans (plan/plans.h), in one order, whatever budget was asked for. More effort begins
 * with what less effort does, and `hybrid` does what the two others do: so neither more effort nor more liberty is ever slower.
 * docs/policies/hybrid.md has the generators and what each of them wins. */
#include <string.h>

#include "base/size.h"
#include "plan/decide/hybrid/descent.h"
#include "plan/decide/hybrid/polish.h"
#include "plan/decide/hybrid/ways.h"
#include "plan/decide/policies.h"
#include "plan/decide/tiers.h"

static tide_status check_argument(const char *argument) {
    static const char *const words[] = {"nomove", "norerun"};
    for (size_t length; *argument; argument += length + (argument[length] == ',')) {
        bool known = false;
        length = strcspn(argument, ",");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            known = known || (strlen(words[i]) == length && strncmp(argument, words[i], length) == 0);
        if (!known) return tide__fail(TIDE_E_ARGUMENT, "policy hybrid:%.32s: it takes nomove or norerun", argument);
    }
    return TIDE_OK;
}

/* How much a level of effort looks for. */
typedef struct level {
    uint32_t tenths_times_ops; /* rungs to a tenth of the whole, times ops: evaluations take as long for all sizes */
    uint64_t work_per_op;      /* of one rung */
    bool thorough;             /* with starts from scratch and the ascent */
    uint64_t edits_times_ops2; /* candidates of polishing, times the square of the ops: entries times edits take that */
} level;

static const level levels[] = {
    [TIDE_EFFORT_LOW] = {1500, 100, false, 100 * 1000},
    [TIDE_EFFORT_NORMAL] = {4000, 300, true, 1000 * 1000},
    [TIDE_EFFORT_HIGH] = {8000, 5000, true, 10 * 1000 * 1000},
};

/* Steps below a third of a percent of the whole are not worth a search; with few, some ways are left out. */
enum { MAX_TENTHS = 30, FEW_TENTHS = 10 };

/* Greedy repair takes n builds of n events, at most so many times; and where nothing fits, so many rungs' work. */
enum { GREEDY_TIMES = 8, MOST_TIMES = 10 };

static uint64_t tenths_of(const tide__generation *g, tide_effort effort) {
    uint64_t n = g->model->n_ops + (uint64_t)1;
    return tide__min_u64(tide__max_u64(levels[effort].tenths_times_ops / n, 1), MAX_TENTHS);
}

static tide_status descend(tide__generation *g, tide_effort effort, bool moves, bool reruns, double stretch) {
    const level *l = &levels[effort];
    uint64_t n = g->model->n_ops + (uint64_t)1;
    uint64_t work = levels[stretch > 1 ? TIDE_EFFORT_LOW : effort].work_per_op * n;
    tide__descent_options o = {.fineness = (uint32_t)(10 * tenths_of(g, effort)),
                               .work = work,
                               .most = tide__max_u64(MOST_TIMES * work, stretch > 1 ? 0 : GREEDY_TIMES * n * n),
                               .moves = moves,
                               .reruns = reruns,
                               .fresh = l->thorough,
                               .ascends = l->thorough,
                               .stretch = stretch,
                               .seed = effort};
    return tide__descend(g, &o);
}

/* ---- the generators, in their order ---- */

static tide_status keep(tide__generation *g, tide_effort effort) {
    return effort == TIDE_EFFORT_LOW ? tide__ways_keep(g) : TIDE_OK;
}

static tide_status rerun(tide__generation *g, tide_effort effort) {
    return g->reruns && !g->moves ? descend(g, effort, false, true, 1) : TIDE_OK;
}

static tide_status move(tide__generation *g, tide_effort effort) {
    return g->moves && !g->reruns ? descend(g, effort, true, false, 1) : TIDE_OK;
}

static tide_status move_and_rerun(tide__generation *g, tide_effort effort) {
    return g->moves && g->reruns ? descend(g, effort, true, true, 1) : TIDE_OK;
}

/* Moves that compute waits for: the same on clocks on which the step takes longer; on every second one where rungs are few. */
static tide_status wait(tide__generation *g, tide_effort effort) {
    static const double stretches[] = {1.05, 1.15, 1.3, 1.5, 2, 2.5};
    size_t step = tenths_of(g, effort) < FEW_TENTHS ? 2 : 1;
    for (size_t i = step - 1; g->moves && i < sizeof stretches / sizeof *stretches; i += step)
        TIDE_TRY(descend(g, effort, true, g->reruns, stretches[i]));
    return TIDE_OK;
}

/* Again with faster variants of the ops: what workspaces need is then not left over but part of the load, for which more moves
 * and re-runs make room. It pays where blocks are few and large, and variants matter. */
enum { MATTER_PART = 50 };

static tide_status make_room(tide__generation *g, tide_effort effort) {
    static const uint32_t percents[] = {20, 40, 100}; /* of the whole: the largest workspace */
    if (!levels[effort].thorough || tenths_of(g, effort) < FEW_TENTHS) return TIDE_OK;
    if (!g->has_variants || g->slowest_ns - g->least_ns < g->least_ns / MATTER_PART) return TIDE_OK;
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        bool other;
        tide__generation_want(g, percents[i], &other);
        tide_status status = other ? descend(g, effort, g->moves, g->reruns, 1) : TIDE_OK;
        tide__generation_want(g, 0, &other);
        TIDE_TRY(status);
    }
    return TIDE_OK;
}

static tide_status papers(tide__generation *g, tide_effort effort) {
    bool few = tenths_of(g, effort) < FEW_TENTHS; /* large programs: it takes long, and descents find better ones */
    return effort == TIDE_EFFORT_LOW && !few ? tide__ways_papers(g) : TIDE_OK;
}

static tide_status pass(tide__generation *g, tide_effort effort) {
    uint64_t n = g->model->n_ops + (uint64_t)1;
    return g->reruns && !g->moves ? tide__ways_pass(g, MOST_TIMES * levels[effort].work_per_op * n) : TIDE_OK;
}

static tide_status shuttle(tide__generation *g, tide_effort effort) {
    return effort == TIDE_EFFORT_LOW && g->moves && !g->reruns ? tide__ways_shuttle(g) : TIDE_OK;
}

static tide_status polish(tide__generation *g, tide_effort effort) {
    uint64_t n = g->model->n_ops + (uint64_t)1;
    return tide__polish(g, levels[effort].edits_times_ops2 / (n * n));
}

typedef struct generator {
    const char *name; /* of the phase, for whoever watches */
    tide_status (*run)(tide__generation *g, tide_effort effort);
} generator;

static const generator generators[] = {
    {"keep", keep},
    {"papers", papers},
    {"re-runs", rerun},
    {"moves", move},
    {"moves and re-runs", move_and_rerun},
    {"waits", wait},
    {"workspaces", make_room},
    {"passes", pass},
    {"shuttle", shuttle},
    {"polish", polish},
};

enum { N_GENERATORS = sizeof generators / sizeof *generators };

tide_status tide__generation_run(tide__generation *g) {
    g->n_all = N_GENERATORS * ((uint32_t)g->in.options->effort + 1);
    for (int effort = TIDE_EFFORT_LOW; effort <= (int)g->in.options->effort; effort++)
        for (int i = 0; i < N_GENERATORS; i++) {
            if (tide__generation_is_over(g)) return TIDE_OK;
            g->phase = generators[i].name;
            tide__generation_tell(g);
            TIDE_TRY(generators[i].run(g, (tide_effort)effort));
            g->n_done++;
        }
    return TIDE_OK;
}

/* ---- kinds ---- */

/* One kind of decisions, in a pool of its own, so that what it finds is the same whoever asks for it. */
static tide_status generate_kind(const tide__policy_input *in, const char *kind, tide__plans *plans) {
    tide__policy_input own_in = *in;
    tide__plans own;
    tide__generation g;
    own_in.argument = kind;
    tide__plans_init(&own_in, plans->wanted_bytes, &own);
    own.bound_ns = plans->bound_ns;
    tide_status status = tide__generation_init(&own_in, &own, &g);
    if (status == TIDE_OK) {
        status = tide__generation_run(&g);
        plans->is_over = tide__generation_is_over(&g);
        tide__generation_deinit(&g);
    }
    if (status == TIDE_OK) status = tide__plans_merge(plans, &own);
    tide__plans_deinit(&own);
    return status;
}

tide_status tide__generate_hybrid(const tide__policy_input *in, tide__plans *plans) {
    static const char *const kinds[] = {"nomove", "norerun", ""};
    TIDE_TRY(check_argument(in->argument));
    if (in->argument[0]) return generate_kind(in, in->argument, plans);
    bool can_move = tide__tiers_with_room(in).n > 0;
    for (size_t i = 0; i < (can_move ? 3 : 1) && !plans->is_over; i++) TIDE_TRY(generate_kind(in, kinds[i], plans));
    return TIDE_OK;
}
