/* Policy `hybrid`: keep, move or re-run, per gap, jointly, for the least time inside the budget.
 *
 *   hybrid            both
 *   hybrid:norerun    moves only
 *   hybrid:nomove     re-runs only
 *
 * A list of generators fills pools of plans (plan/plans.h), band by band: the budgets from 90 % of the unconstrained arena up, from
 * 80 % and so on. The budget that was asked for only says which band is the last. A band that is done is closed: what a smaller
 * one comes by changes no answer in it. There is a pool for each effort, filled in the same way whoever asks for more, and the
 * answer is the fastest of all: so more effort is never slower.
 * docs/policies/hybrid.md has the generators and what each of them wins. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/decide/hybrid/effort.h"
#include "plan/decide/hybrid/polish.h"
#include "plan/decide/hybrid/ways.h"
#include "plan/decide/policies/policies.h"
#include "plan/decide/swaps/tiers.h"

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

/* Bands of budgets, from the top; small programs have one, as all of their budgets take less than a second. */
enum { N_BANDS = 20 };

/* The clocks on which descents let compute wait for moves, and the parts of the whole (in percent) up to which workspaces count
 * as load: 0, they get what is left. */
static const double stretches[] = {1.05, 1.15, 1.3, 1.5, 2, 2.5};
static const uint32_t rooms[] = {20, 40, 100};
enum { N_STRETCHES = sizeof stretches / sizeof *stretches, N_ROOMS = sizeof rooms / sizeof *rooms };

/* One kind of decisions: re-runs, moves or both. */
typedef struct lane {
    tide__generation g;
    tide_effort effort;
    tide__descent descent, waits[N_STRETCHES], rooms[N_ROOMS];
    bool passed;   /* passes have been offered */
    uint32_t band; /* that is filled */
} lane;

static uint32_t n_bands(const lane *l) { return tide__effort_is_coarse(&l->g, TIDE_EFFORT_LOW) ? N_BANDS : 1; }

/* The smallest budget of a band. */
static uint64_t floor_of(const lane *l, uint32_t band) {
    return l->g.whole_bytes / n_bands(l) * (n_bands(l) - 1 - band);
}

/* Budgets from here up gain nothing from the bands below any more: what is found for one band often is the best for the lower
 * budgets of the band above. The last closes all. */
static uint64_t closed_by(const lane *l, uint32_t band) {
    if (band + 1 == n_bands(l)) return 0;
    return band ? floor_of(l, band - 1) : l->g.whole_bytes;
}

static void init_descent(const lane *l, double stretch, tide__descent *d) {
    tide__descent_options o = tide__effort_descent(&l->g, l->effort, stretch);
    tide__descent_init(&o, d);
}

/* ---- the generators, in their order ---- */

static tide_status keep(lane *l) {
    return l->effort == TIDE_EFFORT_LOW && l->band == 0 ? tide__ways_keep(&l->g) : TIDE_OK;
}

/* At the tenths of the band; what descents find is faster on most programs. */
static tide_status papers(lane *l) {
    if (l->effort != TIDE_EFFORT_LOW) return TIDE_OK;
    uint64_t ceiling = l->band ? floor_of(l, l->band - 1) : UINT64_MAX;
    return tide__ways_papers(&l->g, floor_of(l, l->band), ceiling, n_bands(l) > 1);
}

static tide_status go(lane *l, tide__descent *d) {
    uint64_t ceiling = l->band < 2 ? UINT64_MAX : floor_of(l, l->band - 2);
    return tide__descent_go(&l->g, floor_of(l, l->band), ceiling, d);
}

static tide_status descend(lane *l) { return go(l, &l->descent); }

/* Clocks in a row on which nothing new is found: slower ones have nothing, either. */
enum { MAX_IDLE = 2 };

/* Moves that compute waits for: the same on clocks on which the step takes longer; on every second one where rungs are few. */
static tide_status wait(lane *l) {
    size_t step = tide__effort_is_coarse(&l->g, l->effort) ? 2 : 1;
    int idle = 0;
    for (size_t i = step - 1; l->g.moves && i < N_STRETCHES && idle < MAX_IDLE; i += step) {
        uint64_t before = l->g.plans->n_kept;
        TIDE_TRY(go(l, &l->waits[i]));
        idle = l->g.plans->n_kept > before ? 0 : idle + 1;
    }
    return TIDE_OK;
}

/* Again with faster variants of the ops: what workspaces need is then not left over but part of the load, for which more moves
 * and re-runs make room. It pays where blocks are few and large, and variants matter. */
enum { MATTER_PART = 50 };

static tide_status make_room(lane *l) {
    tide__generation *g = &l->g;
    if (l->effort == TIDE_EFFORT_LOW || tide__effort_is_coarse(&l->g, l->effort)) return TIDE_OK;
    if (!g->has_variants || g->slowest_ns - g->least_ns < g->least_ns / MATTER_PART) return TIDE_OK;
    for (size_t i = 0; i < N_ROOMS; i++) {
        bool other = tide__generation_want(g, rooms[i]);
        tide_status status = other ? go(l, &l->rooms[i]) : TIDE_OK;
        (void)tide__generation_want(g, 0);
        TIDE_TRY(status);
    }
    return TIDE_OK;
}

/* Below where descents end: what gets through at any price. */
static tide_status pass(lane *l) {
    tide__generation *g = &l->g;
    if (!l->descent.is_down || (g->moves && (g->reruns || l->effort != TIDE_EFFORT_LOW))) return TIDE_OK;
    if (g->moves) return tide__ways_shuttle(g, floor_of(l, l->band), l->band ? floor_of(l, l->band - 1) : UINT64_MAX);
    if (l->passed) return TIDE_OK;
    l->passed = true;
    return tide__ways_pass(g, l->descent.options.most);
}

typedef struct generator {
    const char *name; /* of the phase, for whoever watches */
    tide_status (*run)(lane *l);
} generator;

static const generator generators[] = {
    {"workspaces", keep}, {"descent", descend}, {"waits", wait},
    {"rooms", make_room}, {"papers", papers},   {"the last bytes", pass},
};

enum { N_GENERATORS = sizeof generators / sizeof *generators };

static tide_status run_all(lane *l) {
    for (int i = 0; i < N_GENERATORS && !tide__generation_is_over(&l->g); i++) {
        l->g.phase = generators[i].name;
        tide__generation_tell(&l->g);
        TIDE_TRY(generators[i].run(l));
    }
    return TIDE_OK;
}

/* ---- pools ---- */

enum { N_KINDS = 3, N_EFFORTS = TIDE_EFFORT_HIGH + 1 };

/* What fills one pool: all kinds of decisions that there may be, at one effort. */
typedef struct filler {
    tide__plans plans;
    tide_effort effort;
    lane lanes[N_KINDS]; /* the last has the most liberty */
    size_t n_lanes;
    uint64_t edits; /* that polishing may still try */
} filler;

static tide_status init_lane(const tide__policy_input *in, filler *f, lane *l) {
    l->effort = f->effort;
    TIDE_TRY(tide__generation_init(in, &f->plans, &l->g));
    init_descent(l, 1, &l->descent);
    for (int i = 0; i < N_STRETCHES; i++) init_descent(l, stretches[i], &l->waits[i]);
    for (int i = 0; i < N_ROOMS; i++) init_descent(l, 1, &l->rooms[i]);
    return TIDE_OK;
}

/* More effort leaves re-runs alone and moves alone to the lowest: what they find is nowhere faster than both together. */
static tide_status init_filler(const tide__policy_input *inputs, size_t n, const tide__plans *plans, tide_effort effort,
                               filler *f) {
    tide_status status = TIDE_OK;
    f->effort = effort;
    tide__plans_init(&inputs[0], plans->wanted_bytes, &f->plans);
    f->plans.bound_ns = plans->bound_ns;
    for (size_t i = effort == TIDE_EFFORT_LOW ? 0 : n - 1; i < n && status == TIDE_OK; i++)
        status = init_lane(&inputs[i], f, &f->lanes[f->n_lanes++]);
    return status;
}

static void deinit_filler(filler *f) {
    for (size_t i = 0; i < f->n_lanes; i++) {
        lane *l = &f->lanes[i];
        tide__descent_deinit(&l->descent);
        for (int k = 0; k < N_STRETCHES; k++) tide__descent_deinit(&l->waits[k]);
        for (int k = 0; k < N_ROOMS; k++) tide__descent_deinit(&l->rooms[k]);
        tide__generation_deinit(&l->g);
    }
    tide__plans_deinit(&f->plans);
}

static lane *last_lane(filler *f) { return &f->lanes[f->n_lanes - 1]; }

static tide_status polish(filler *f) {
    lane *l = last_lane(f);
    f->edits += tide__effort_edits(&l->g, l->effort) / n_bands(l);
    l->g.phase = "polish";
    return tide__generation_is_over(&l->g) ? TIDE_OK : tide__polish(&l->g, &f->edits);
}

/* *over: no more is needed. */
static tide_status fill_band(filler *f, uint32_t band, double share, bool *over) {
    for (size_t i = 0; i < f->n_lanes; i++) {
        f->lanes[i].band = band;
        f->lanes[i].g.share = share;
        TIDE_TRY(run_all(&f->lanes[i]));
    }
    TIDE_TRY(polish(f));
    *over = tide__generation_is_over(&last_lane(f)->g);
    tide__plans_close(&f->plans, closed_by(last_lane(f), band));
    return TIDE_OK;
}

/* Every pool has an answer to the budget, and no band that holds it is left. */
static bool is_answered(filler *fillers, size_t n, uint32_t band) {
    uint64_t wanted = fillers[0].plans.wanted_bytes;
    bool all = closed_by(last_lane(&fillers[0]), band) <= wanted;
    for (size_t i = 0; i < n; i++) all = all && tide__plans_smallest(&fillers[i].plans) <= wanted;
    return all;
}

/* More effort begins with what less has found. */
static tide_status learn(filler *f, filler *from) {
    lane *l = last_lane(f), *other = last_lane(from);
    size_t n_gaps = l->g.moves ? l->g.transfers.swaps.gaps.count : 0;
    TIDE_TRY(tide__states_learn(&l->descent.states, &other->descent.states, n_gaps));
    return tide__plans_learn(&f->plans, &from->plans);
}

static tide_status fill(filler *fillers, size_t n) {
    bool over = false;
    uint32_t bands = n_bands(last_lane(fillers));
    for (uint32_t band = 0; band < bands && !over; band++) {
        for (size_t i = 0; i < n && !over; i++) {
            if (i) TIDE_TRY(learn(&fillers[i], &fillers[i - 1]));
            TIDE_TRY(fill_band(&fillers[i], band, (double)(band * n + i) / (double)(bands * n), &over));
        }
        over = over || is_answered(fillers, n, band);
    }
    return TIDE_OK;
}

static tide_status fill_all(const tide__policy_input *inputs, size_t n_inputs, filler *fillers, tide__plans *plans) {
    size_t n = 0;
    tide_status status = TIDE_OK;
    for (int e = TIDE_EFFORT_LOW; e <= (int)inputs[0].options->effort && status == TIDE_OK; e++)
        status = init_filler(inputs, n_inputs, plans, (tide_effort)e, &fillers[n++]);
    if (status == TIDE_OK) status = fill(fillers, n);
    for (size_t i = 0; i < n && status == TIDE_OK; i++) status = tide__plans_merge(plans, &fillers[i].plans);
    for (size_t i = 0; i < n; i++) deinit_filler(&fillers[i]);
    return status;
}

tide_status tide__generate_hybrid(const tide__policy_input *in, tide__plans *plans) {
    static const char *const kinds[N_KINDS] = {"nomove", "norerun", ""};
    tide__policy_input inputs[N_KINDS] = {*in, *in, *in};
    TIDE_TRY(check_argument(in->argument));
    size_t n = !in->argument[0] && tide__tiers_allow_moves(in) ? N_KINDS : 1;
    for (size_t i = 0; i < n && !in->argument[0]; i++) inputs[i].argument = kinds[i];
    filler *fillers = calloc(N_EFFORTS, sizeof *fillers);
    if (!fillers) return tide__fail_memory();
    tide_status status = fill_all(inputs, n, fillers, plans);
    free(fillers);
    return status;
}
