/* Policy `autoswap` (Zhang et al. 2019): values leave for a tier between two uses, chosen by a score, and come back in
 * time. Weights and optimizer state count, too: they may be away over the end of the step.
 *
 *   autoswap:doa | aoa | wdoa | swdoa    the gaps of the highest score, until the load fits
 *   autoswap:search (or no argument)     of a weighted sum of the four, the weights found by search
 *
 * docs/policies/autoswap.md has the formulas and what differs from the published implementation. */
#include "plan/decide/policies/policies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/rng.h"
#include "base/size.h"
#include "plan/decide/policies/autoswap_scores.h"
#include "plan/evaluate.h"
#include "plan/decide/swaps/swap_choice.h"
#include "plan/decide/swaps/swap_search.h"

typedef struct autoswap {
    tide__swaps swaps;
    uint64_t target_bytes;
    double *scores[TIDE__SWAP_N_SCORES]; /* per gap, z-normalised */
    double *mixed;                       /* per gap: their weighted sum */
    bool *chosen;
    tide__arrays arrays; /* owns the arrays above */
} autoswap;

/* Smaller values are not worth a transfer: 1 MiB as published, less where all is small. */
static tide_status least_bytes(const tide_program *program, uint64_t *out) {
    tide_liveness *l;
    TIDE_TRY(tide_liveness_create(program, &l));
    *out = tide__min_u64(UINT64_C(1) << 20, l->peak_bytes / 512);
    tide_liveness_destroy(l);
    return TIDE_OK;
}

static tide_status init(autoswap *a, const tide__policy_input *in) {
    tide__swaps_options options = {0};
    TIDE_TRY(least_bytes(in->program, &options.min_bytes));
    TIDE_TRY(tide__swaps_init(&a->swaps, in, &options));
    size_t n = a->swaps.gaps.count + 1;
    tide__array(&a->arrays, a->chosen, n);
    tide__array(&a->arrays, a->mixed, n);
    for (int k = 0; k < TIDE__SWAP_N_SCORES; k++) tide__array(&a->arrays, a->scores[k], n);
    return tide__arrays_check(&a->arrays);
}

static void deinit(autoswap *a) {
    tide__swaps_deinit(&a->swaps);
    tide__arrays_free(&a->arrays);
}

/* ---- scores and their mix ---- */

/* Mean 0, deviation 1: units of different scores do not matter. */
static void normalise(double *scores, size_t n) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += scores[i];
    double mean = n ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++) squares += (scores[i] - mean) * (scores[i] - mean);
    double deviation = n ? sqrt(squares / (double)n) : 0;
    for (size_t i = 0; i < n; i++) scores[i] = deviation > 0 ? (scores[i] - mean) / deviation : 0;
}

typedef struct mix {
    double weight[TIDE__SWAP_N_SCORES];
} mix;

static tide_status choose(autoswap *a, const mix *m, tide__swaps_outcome *out) {
    for (size_t i = 0; i < a->swaps.gaps.count; i++) {
        a->mixed[i] = 0;
        for (int k = 0; k < TIDE__SWAP_N_SCORES; k++) a->mixed[i] += m->weight[k] * a->scores[k][i];
    }
    return tide__swaps_choose_prefix(&a->swaps, a->mixed, a->target_bytes, a->chosen, out);
}

/* Uniform in [-1, 1). */
static double draw(uint64_t index) { return 2 * (double)tide__random_unit(0x617574, 0, index) - 1; }

/* The four scores alone, then samples: at random at first, later around the best. A choice without excess cannot be
 * bettered. Stands in for the paper's Bayesian optimisation; the samples are always the same. */
enum { MIX_SAMPLES = 48, MIX_EXPLORE = 16 };

static mix sample(uint64_t i, const mix *best) {
    mix m = {{0}};
    if (i < TIDE__SWAP_N_SCORES) {
        m.weight[i] = 1;
        return m;
    }
    double width = i < MIX_EXPLORE ? 1 : 0.5 * (double)MIX_EXPLORE / (double)i;
    for (uint64_t k = 0; k < TIDE__SWAP_N_SCORES; k++) {
        double from = i < MIX_EXPLORE ? 0 : best->weight[k];
        m.weight[k] = fmax(-1, fmin(1, from + width * draw(i * TIDE__SWAP_N_SCORES + k)));
    }
    return m;
}

static tide_status search_mix(autoswap *a, mix *best) {
    double least = INFINITY;
    for (uint64_t i = 0; i < MIX_SAMPLES && least > 0; i++) {
        mix m = sample(i, best);
        tide__swaps_outcome o;
        TIDE_TRY(choose(a, &m, &o));
        if (o.excess >= least) continue;
        least = o.excess;
        *best = m;
    }
    return TIDE_OK;
}

/* ---- the policy ---- */

/* What no mix reaches, a local search may. */
enum { SEARCH_MOVES = 1000, SEARCH_WORK = 40000000 /* some 0.1 s */ };

static tide_status search_further(autoswap *a, tide__swaps_outcome *o) {
    uint64_t work = SEARCH_MOVES * ((uint64_t)a->swaps.n_ops + a->swaps.gaps.count + 1);
    tide__swap_search_options options = {.target_bytes = a->target_bytes, .seed = 1};
    options.work = tide__min_u64(work, SEARCH_WORK);
    return tide__swap_search(&a->swaps, &options, a->chosen, o);
}

static bool is_search(const char *argument) { return !*argument || strcmp(argument, "search") == 0; }

static tide_status find_mix(autoswap *a, const char *argument, mix *m) {
    static const char *const names[] = {"doa", "aoa", "wdoa", "swdoa"};
    for (int k = 0; k < TIDE__SWAP_N_SCORES; k++) {
        if (strcmp(argument, names[k]) != 0) continue;
        m->weight[k] = 1;
        return TIDE_OK;
    }
    if (!is_search(argument))
        return tide__fail(TIDE_E_ARGUMENT, "policy autoswap:%.32s: the scores are doa, aoa, wdoa, swdoa, search",
                          argument);
    return search_mix(a, m);
}

/* Chooses by one mix, waiting included. */
static tide_status decide_waiting(autoswap *a, const mix *m, tide__decisions *out) {
    tide__swaps_outcome o;
    TIDE_TRY(choose(a, m, &o));
    TIDE_TRY(tide__swaps_choose_waits(&a->swaps, a->mixed, a->target_bytes, a->chosen));
    return tide__swaps_decide(&a->swaps, a->chosen, out);
}

/* What a draft of these decisions is worth: the step's time; the worst of all if the load is above the target. */
static tide_status judge(const autoswap *a, const tide__decisions *d, uint64_t *step_ns) {
    tide_plan *plan;
    tide__evaluate_options placed = {.capacity_bytes = a->swaps.in->options->budgets.arena_bytes};
    TIDE_TRY(tide__evaluate(a->swaps.in, d, &placed, &plan));
    *step_ns = plan->prediction.step_ns;
    tide_plan_destroy(plan);
    for (uint32_t k = 0; k <= a->swaps.n_ops; k++)
        if (a->swaps.loads[k] > a->target_bytes) *step_ns = UINT64_MAX - 1;
    return TIDE_OK;
}

/* When there must be waits, which score is best only the simulator can tell: the searched mix and the four alone. */
static tide_status decide_by_draft(autoswap *a, const mix *searched, tide__decisions *out) {
    uint64_t best_ns = UINT64_MAX;
    for (int k = -1; k < TIDE__SWAP_N_SCORES; k++) {
        tide__decisions d = {0};
        uint64_t step_ns = 0;
        mix m = k < 0 ? *searched : (mix){{0}};
        if (k >= 0) m.weight[k] = 1;
        tide_status status = decide_waiting(a, &m, &d);
        if (status == TIDE_OK) status = judge(a, &d, &step_ns);
        if (status == TIDE_OK && step_ns < best_ns) {
            tide__decisions swapped = *out;
            *out = d;
            d = swapped;
            best_ns = step_ns;
        }
        tide__decisions_free(&d);
        TIDE_TRY(status);
    }
    return TIDE_OK;
}

static tide_status decide(autoswap *a, const tide__policy_input *in, tide__decisions *out) {
    tide__swaps_outcome o;
    mix m = {{0}};
    TIDE_TRY(init(a, in));
    for (int k = 0; k < TIDE__SWAP_N_SCORES; k++) {
        TIDE_TRY(tide__swap_scores(&a->swaps, (tide__swap_score)k, a->scores[k]));
        normalise(a->scores[k], a->swaps.gaps.count);
    }
    TIDE_TRY(find_mix(a, in->argument, &m));
    TIDE_TRY(choose(a, &m, &o));
    if (o.excess > 0 && is_search(in->argument)) TIDE_TRY(search_further(a, &o));
    if (o.excess > 0 && is_search(in->argument)) return decide_by_draft(a, &m, out);
    if (o.excess > 0) TIDE_TRY(tide__swaps_choose_waits(&a->swaps, a->mixed, a->target_bytes, a->chosen));
    return tide__swaps_decide(&a->swaps, a->chosen, out);
}

tide_status tide__decide_autoswap(const tide__policy_input *in, tide__decisions *out) {
    autoswap a = {.target_bytes = in->target_bytes};
    tide_status status = decide(&a, in, out);
    deinit(&a);
    return status;
}
