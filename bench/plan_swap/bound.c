/* A bound for swapping (bound.h), by Lagrange multipliers of the loads and of the channels' time.
 *
 * Give every slot k a weight w(k) >= 0, all together 1, and the time of every channel a price >= 0. Then in any schedule
 *
 *   peak  >=  sum of w(k) load(k)                  no load is above the peak
 *         >=  sum of w(k) (load without swaps)(k)
 *             - price of all time of all channels  no channel does two things at once
 *             - sum over values of its gain        = w-weighted bytes absent - price of the time of its transfers
 *
 * and what a value gains at most is found by itself, exactly: it leaves and comes back as a whole, each transfer in one piece,
 * one SAVE for all its absences. So the right side is a bound, whatever weights and prices are; how good it is depends on
 * them. They are found by subgradients: weights rise where the load is high, prices where many want the channel at once.
 * Each coordinate has a step of its own size, by the size of its latest gradients (Kingma and Ba, Adam, 2015).
 *
 * Waits have a price, too, at most some number at any moment for all channels together; that number for all of the waiting
 * is taken off as well. */
#include "plan_swap/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan_swap/prices.h"

enum { STEPS = 200, STEPS_PER_SLOT = 8, MIN_STEPS = 50, WORK = 1400 * 1000 * 1000 };

/* ---- the bound of some weights and prices ---- */

static void sum_weights(swap_prices *p) {
    const double *weight = p->number;
    for (uint32_t d = 0; d < 2; d++) p->lost[d][0] = p->lost[d][1] = 0;
    for (uint32_t i = 1; i <= p->n_watched; i++) {
        p->lost[0][i + 1] = p->lost[0][i] + weight[p->n_watched - i];
        p->lost[1][i + 1] = p->lost[1][i] + weight[i - 1];
    }
}

static bool is_alike(const swap_line_transfer *a, const swap_line_transfer *b) {
    return a->line == b->line && a->ns <= b->ns && a->ns >= b->ns && a->bytes <= b->bytes && a->bytes >= b->bytes;
}

static void find_ways(swap_prices *p) {
    for (size_t i = 0; i < p->n_alike; i++) {
        if (i == 0 || !is_alike(p->alike[i - 1], p->alike[i])) swap_line_costs_of(&p->costs, p->alike[i]);
        swap_line_find(&p->costs, p->alike[i]);
    }
}

static double *price_of_waits(const swap_prices *p) { return &p->number[p->n_numbers - 1]; }

/* Loads that remain, and time that is wanted but not there. */
static void find_gradient(swap_prices *p) {
    double absent = 0;
    for (uint32_t k = 0; k < p->n_watched; k++) p->gradient[k] = p->load[k] - (absent += p->absent[k]);
    for (uint32_t c = 0; c < p->n_channels; c++) {
        const swap_line *l = p->lines[c];
        for (uint32_t i = 0; i + 1 < p->n_places; i++) l->used[i] -= l->axis->at[i + 1] - l->axis->at[i];
    }
    if (p->wait_ns > 0)
        p->gradient[p->n_numbers - 1] = swap_lines_gain_waits(p->lines, p->n_channels, *price_of_waits(p)) - p->wait_ns;
    for (uint32_t c = 0; c < p->n_channels; c++)
        if (p->channels[c].tier == TIDE_NONE) memset(p->lines[c]->used, 0, (p->n_places - 1) * sizeof(double));
}

static double evaluate(swap_prices *p) {
    double bound = -p->wait_ns * *price_of_waits(p);
    sum_weights(p);
    memset(p->absent, 0, (p->n_watched + (size_t)1) * sizeof *p->absent);
    memset(p->gradient, 0, p->n_numbers * sizeof *p->gradient);
    for (uint32_t c = 0; c < p->n_channels; c++) {
        swap_line_sum(p->lines[c]);
        bound -= p->lines[c]->sum[p->n_places - 1];
        if (p->wait_ns > 0) memset(p->lines[c]->waited, 0, p->n_places * sizeof(double));
    }
    for (uint32_t k = 0; k < p->n_watched; k++) bound += p->number[k] * p->load[k];
    find_ways(p);
    bound -= swap_prices_take(p);
    find_gradient(p);
    return bound;
}

/* ---- better weights and prices ---- */

/* The nearest weights that are not negative and 1 together: all less the same, as far as they go. */
static void project(double *weight, uint32_t n) {
    double less = -INFINITY;
    for (uint32_t kept = 0, before = n + 1; kept != before;) {
        double sum = -1;
        before = kept;
        kept = 0;
        for (uint32_t k = 0; k < n; k++)
            if (weight[k] > less) sum += weight[k], kept++;
        less = sum / kept;
    }
    for (uint32_t k = 0; k < n; k++) weight[k] = fmax(0, weight[k] - less);
}

/* Of weights only differences matter; and nothing falls below 0. */
static void restrict_gradient(swap_prices *p) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_watched; k++)
        if (p->number[k] > 0) sum += p->gradient[k], n++;
    for (uint32_t k = 0; k < p->n_watched; k++) p->gradient[k] -= sum / n;
    for (size_t i = 0; i < p->n_numbers; i++)
        if (p->number[i] <= 0 && p->gradient[i] < 0) p->gradient[i] = 0;
}

/* What a number changes by in a step, at first. */
static double size_of_step(const swap_prices *p, size_t i) {
    if (i < p->n_watched) return fmin(0.1, 10.0 / p->n_watched);
    size_t c = (i - p->n_watched) / (p->n_places - 1);
    return c < p->n_channels ? p->channels[c].rate / 4 : p->best_rate / 4;
}

static const double keep[] = {0.9, 0.99}; /* of the means over gradients and their squares, from step to step */

/* Weights have one square for all of them: what one gains others lose. */
static void mean_of_weights(swap_prices *p) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_watched; k++) {
        sum += p->gradient[k] * p->gradient[k];
        n += p->number[k] > 0;
    }
    double square = keep[1] * p->square[0] + (1 - keep[1]) * sum / n;
    for (uint32_t k = 0; k < p->n_watched; k++) p->square[k] = square;
}

/* i: the steps made before. */
static void step(swap_prices *p, uint32_t i, double size) {
    double mean_part = 1 - pow(keep[0], i + 1.0), square_part = 1 - pow(keep[1], i + 1.0);
    mean_of_weights(p);
    for (size_t k = 0; k < p->n_numbers; k++) {
        double g = p->gradient[k];
        p->mean[k] = keep[0] * p->mean[k] + (1 - keep[0]) * g;
        if (k >= p->n_watched) p->square[k] = keep[1] * p->square[k] + (1 - keep[1]) * g * g;
        if (p->square[k] <= 0) continue;
        double way = p->mean[k] / mean_part / sqrt(p->square[k] / square_part);
        p->number[k] += size * size_of_step(p, k) * way;
        if (k >= p->n_watched) p->number[k] = fmax(0, p->number[k]);
    }
    project(p->number, p->n_watched);
    if (p->wait_ns > 0) swap_lines_set_waits(p->lines, p->n_channels, *price_of_waits(p));
}

/* At first only what is full counts, and time costs nothing. */
static void begin(swap_prices *p) {
    double peak = 0;
    for (uint32_t k = 0; k < p->n_watched; k++) peak = fmax(peak, p->load[k]);
    for (uint32_t k = 0; k < p->n_watched; k++) p->number[k] = (p->load[k] >= 0.9 * peak) * 1e6;
    project(p->number, p->n_watched);
    if (p->wait_ns > 0) *price_of_waits(p) = p->best_rate / 2;
    if (p->wait_ns > 0) swap_lines_set_waits(p->lines, p->n_channels, *price_of_waits(p));
}

static uint32_t count_steps(const swap_prices *p) {
    uint64_t kinds = 0;
    for (size_t i = 0; i < p->n_alike; i++) kinds += i == 0 || !is_alike(p->alike[i - 1], p->alike[i]);
    uint64_t work = (10 * kinds + 8 * p->n_channels) * p->n_places + 20 * p->n_alike + 1;
    return (uint32_t)tide__max_u64(MIN_STEPS, tide__min_u64(STEPS + STEPS_PER_SLOT * p->n_watched, WORK / work));
}

static double ascend(swap_prices *p) {
    double best = 0;
    uint32_t n = count_steps(p);
    begin(p);
    for (uint32_t i = 0; i < n; i++) {
        best = fmax(best, evaluate(p));
        restrict_gradient(p);
        step(p, i, pow(0.001, (double)i / n));
    }
    return best;
}

tide_status swap_bound(const tide__swaps *s, uint64_t wait_ns, uint64_t *out) {
    swap_prices p;
    TIDE_TRY(swap_prices_init(&p, s, wait_ns));
    /* Sums of doubles: a little less is surely right. */
    *out = (uint64_t)(ascend(&p) * (1 - 1e-9));
    swap_prices_deinit(&p);
    return TIDE_OK;
}
