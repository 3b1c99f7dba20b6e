/* See bound.h. The ascent is a volume algorithm: steps go from the best prices so far along an average of the recent
 * slopes, and are cut when they stop helping. */
#include "plan/decide/bounds/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"
#include "plan/decide/bounds/bound_gaps.h"
#include "plan/decide/swaps/tiers.h"

enum { MAX_LINKS = 1 + TIDE_MACHINE_MAX_CHANNELS };

/* Weights and use of compute (0) and of each link: a channel, or several that share their bandwidth. */
typedef struct links {
    double value[MAX_LINKS];
} links;

typedef struct prices {
    double *byte; /* per op, per budget's worth of bytes */
    links weight;
} prices;

typedef struct solver {
    const tide__policy_input *in;
    tide__absences absences;
    double budget, scale_ns; /* bytes and ns are counted in these */
    uint32_t n_links;
    uint32_t link_of[TIDE_MACHINE_MAX_CHANNELS];
    bool usable[TIDE_MACHINE_MAX_CHANNELS]; /* its tier has room */
    prices best, tried;
    double *slope, *average; /* per op: load - absent - budget at the tried prices; and its running average */
    double *sum;             /* n_ops + 1: of tried.byte */
    links used, average_used;
    tide__arrays arrays; /* owns the arrays above */
} solver;

/* ---- what moves cost ---- */

static void find_links(solver *s) {
    const tide_machine *m = s->in->machine;
    s->n_links = 1;
    for (uint32_t c = 0; c < m->n_channels; c++) {
        uint32_t tier = m->channel[c].tier;
        s->usable[c] = m->tier[tier].kind == TIDE_TIER_CLIENT || tide__tier_room(s->in, tier) > 0;
        s->link_of[c] = TIDE_NONE;
        for (uint32_t b = 0; b < c && m->channel[c].share; b++)
            if (m->channel[b].share == m->channel[c].share) s->link_of[c] = s->link_of[b];
        if (s->link_of[c] == TIDE_NONE) s->link_of[c] = s->n_links++;
    }
}

/* Latencies of channels that share can pass at the same time. */
static double transfer_ns(const tide_machine_channel *c, uint64_t bytes) {
    double ns = (double)bytes / (double)c->bytes_per_s * 1e9;
    return c->share ? ns : ns + (double)c->latency_ns;
}

typedef struct move {
    uint32_t link; /* TIDE_NONE: no channel goes there */
    double ns;     /* in scale_ns */
    double cost;   /* ns by the weight of the link */
} move;

static move cheapest_move(const solver *s, bool out, uint64_t bytes) {
    const tide_machine *m = s->in->machine;
    move best = {.link = TIDE_NONE, .cost = HUGE_VAL};
    for (uint32_t c = 0; c < m->n_channels; c++) {
        if (m->channel[c].out != out || !s->usable[c]) continue;
        double ns = transfer_ns(&m->channel[c], bytes) / s->scale_ns;
        double cost = s->tried.weight.value[s->link_of[c]] * ns;
        if (cost < best.cost) best = (move){s->link_of[c], ns, cost};
    }
    return best;
}

static void use_link(solver *s, move m) {
    if (m.link != TIDE_NONE) s->used.value[m.link] += m.ns;
}

/* ---- the Lagrangian ---- */

static double price_between(const solver *s, uint32_t from, uint32_t to) {
    return from < to ? s->sum[to] - s->sum[from] : 0;
}

typedef enum choice { STAY, RUN_AGAIN, MOVE } choice;

/* What it costs, with the SAVE paid for or not needed if can_move; at most 0, what staying costs. */
static double choose(const solver *s, const tide__absence *a, bool can_move, choice *what, move *load) {
    double bytes = (double)a->size_bytes / s->budget, inside = bytes * price_between(s, a->from, a->to), least = 0;
    *what = STAY;
    double run = s->tried.weight.value[0] * a->run_ns / s->scale_ns - inside;
    if (run < least) least = run, *what = RUN_AGAIN;
    if (!can_move || !a->moves) return least;
    *load = a->loads ? cheapest_move(s, false, a->size_bytes) : (move){.link = TIDE_NONE};
    double moved = load->cost - inside - bytes * price_between(s, 0, a->head);
    if (moved < least) least = moved, *what = MOVE;
    return least;
}

/* slope[] holds changes until they are summed up. */
static void leave(solver *s, uint32_t from, uint32_t to, double bytes) {
    if (from >= to) return;
    s->slope[from] -= bytes;
    if (to < s->absences.n_ops) s->slope[to] += bytes;
}

static void apply(solver *s, const tide__absence *a, bool can_move) {
    choice what;
    move load;
    double bytes = (double)a->size_bytes / s->budget;
    choose(s, a, can_move, &what, &load);
    if (what == STAY) return;
    leave(s, a->from, a->to, bytes);
    if (what == RUN_AGAIN)
        s->used.value[0] += a->run_ns / s->scale_ns;
    else
        leave(s, 0, a->head, bytes), use_link(s, load);
}

/* Absences [i, end) share one SAVE: with it or without, whatever costs less. */
static double choose_saver(solver *s, size_t i, size_t end, bool is_clean) {
    double without = 0, with = 0;
    uint64_t bytes = UINT64_MAX;
    choice what;
    move load;
    for (size_t k = i; k < end; k++) {
        const tide__absence *a = &s->absences.all.data[k];
        without += choose(s, a, is_clean, &what, &load);
        with += choose(s, a, true, &what, &load);
        bytes = tide__min_u64(bytes, a->size_bytes);
    }
    move save = {.link = TIDE_NONE, .cost = 0};
    if (!is_clean) save = cheapest_move(s, true, bytes);
    bool saves = !is_clean && with + save.cost < without;
    for (size_t k = i; k < end; k++) apply(s, &s->absences.all.data[k], is_clean || saves);
    if (saves) use_link(s, save);
    return saves ? with + save.cost : without;
}

static double choose_absences(solver *s) {
    const tide__absence *all = s->absences.all.data;
    double total = 0;
    for (size_t i = 0, end; i < s->absences.all.count; i = end) {
        bool is_clean = all[i].saver == TIDE_NONE;
        for (end = i + 1; !is_clean && end < s->absences.all.count && all[end].saver == all[i].saver;) end++;
        total += choose_saver(s, i, end, is_clean);
    }
    return total;
}

/* The variant that costs least, its workspace at the op's price. */
static double choose_variant(solver *s, uint32_t i) {
    const tide_op *op = tide_program_op(s->in->program, i);
    double least = HUGE_VAL;
    const tide_variant *chosen = &op->variants[0];
    for (uint32_t k = 0; k < op->n_variants; k++) {
        const tide_variant *v = &op->variants[k];
        if (!s->in->options->bits_any && v->bits_class != op->variants[0].bits_class) continue;
        double cost = s->tried.weight.value[0] * (double)v->cost_ns / s->scale_ns +
                      s->tried.byte[i] * (double)v->workspace_bytes / s->budget;
        if (cost < least) least = cost, chosen = v;
    }
    s->used.value[0] += (double)chosen->cost_ns / s->scale_ns;
    s->slope[i] += (double)chosen->workspace_bytes / s->budget;
    return least;
}

/* The bound that the tried prices give; its slopes are left in slope and used. */
static double evaluate(solver *s) {
    uint32_t n = s->absences.n_ops;
    memset(s->slope, 0, n * sizeof *s->slope);
    s->used = (links){{0}};
    for (uint32_t i = 0; i < n; i++) s->sum[i + 1] = s->sum[i] + s->tried.byte[i];
    double bound = choose_absences(s), absent = 0;
    for (uint32_t i = 0; i < n; i++) {
        double over = (double)s->absences.load_bytes[i] / s->budget - 1;
        absent += s->slope[i];
        s->slope[i] = absent + over;
        bound += choose_variant(s, i) + s->tried.byte[i] * over;
    }
    return bound;
}

/* ---- ascent ---- */

static double norm_of(const solver *s) {
    double norm = 0;
    for (uint32_t i = 0; i < s->absences.n_ops; i++) {
        bool stuck = s->best.byte[i] <= 0 && s->average[i] < 0;
        if (!stuck) norm += s->average[i] * s->average[i];
    }
    return norm;
}

static void step_weights(solver *s, double rate) {
    double mean = 0, total = 0;
    for (uint32_t i = 0; i < s->n_links; i++) mean += s->best.weight.value[i] * s->average_used.value[i];
    for (uint32_t i = 0; i < s->n_links; i++) {
        double pull = mean > 0 ? s->average_used.value[i] / mean - 1 : 0;
        s->tried.weight.value[i] = s->best.weight.value[i] * exp(rate * fmin(fmax(pull, -2), 2));
        total += s->tried.weight.value[i];
    }
    for (uint32_t i = 0; i < s->n_links; i++) s->tried.weight.value[i] /= total;
}

static void step(solver *s, double length, double rate) {
    double norm = norm_of(s), factor = norm > 0 ? length / norm : 0;
    for (uint32_t i = 0; i < s->absences.n_ops; i++)
        s->tried.byte[i] = fmax(0, s->best.byte[i] + factor * s->average[i]);
    step_weights(s, rate);
}

static void average(solver *s, double share) {
    for (uint32_t i = 0; i < s->absences.n_ops; i++) s->average[i] += share * (s->slope[i] - s->average[i]);
    for (uint32_t i = 0; i < s->n_links; i++)
        s->average_used.value[i] += share * (s->used.value[i] - s->average_used.value[i]);
}

static void keep(solver *s) {
    memcpy(s->best.byte, s->tried.byte, s->absences.n_ops * sizeof *s->best.byte);
    s->best.weight = s->tried.weight;
}

static uint32_t rounds_of(const solver *s) {
    uint64_t size = s->absences.n_ops + s->absences.all.count + UINT64_C(1), work = UINT64_C(20000000);
    return (uint32_t)tide__min_u64(3000, tide__max_u64(30, work / size));
}

/* Starts from no price at all, where the bound is the time of the fastest variants. A bound beyond `enough` is one of a
 * budget in which nothing works. */
static double ascend(solver *s) {
    enum { PATIENCE = 10 };
    const double enough = 1e6;
    double best = evaluate(s), base = best, factor = 1, goal = 0.02;
    uint32_t failures = 0;
    average(s, 1);
    for (uint32_t i = rounds_of(s); i > 0 && best < enough && factor > 1e-5; i--) {
        while (best - base > 0.9 * goal) goal *= 1.2;
        step(s, factor * (goal - (best - base)), 0.2 * factor);
        double bound = evaluate(s);
        average(s, 0.1);
        if (bound > best) {
            best = bound, failures = 0;
            factor = fmin(factor * 1.1, 2);
            keep(s);
        } else if (++failures % PATIENCE == 0) {
            factor *= 0.7;
        }
    }
    return best;
}

/* ---- the whole ---- */

static tide_status allocate(solver *s) {
    size_t n = s->absences.n_ops + (size_t)1;
    tide__array(&s->arrays, s->best.byte, n);
    tide__array(&s->arrays, s->tried.byte, n);
    tide__array(&s->arrays, s->slope, n);
    tide__array(&s->arrays, s->average, n);
    tide__array(&s->arrays, s->sum, n);
    return tide__arrays_check(&s->arrays);
}

static void release(solver *s) {
    tide__arrays_free(&s->arrays);
    tide__absences_free(&s->absences);
}

/* Mostly compute: moves are found out to be better where they are. */
static void start_weights(solver *s) {
    bool moves = !tide__policy_has(s->in->argument, "nomove");
    double others = moves ? 0.02 : 0;
    s->tried.weight.value[0] = 1 - others * (s->n_links - 1);
    for (uint32_t i = 1; i < s->n_links; i++) s->tried.weight.value[i] = others;
    s->best.weight = s->tried.weight;
}

static uint64_t fastest_sum(const tide__policy_input *in) {
    uint64_t total = 0;
    for (tide_id i = 0; i < tide_program_op_count(in->program); i++) {
        const tide_op *op = tide_program_op(in->program, i);
        uint64_t least = op->variants[0].cost_ns;
        for (uint32_t k = 1; k < op->n_variants; k++)
            if (in->options->bits_any || op->variants[k].bits_class == op->variants[0].bits_class)
                least = tide__min_u64(least, op->variants[k].cost_ns);
        total += least;
    }
    return total;
}

static tide_status solve(solver *s, uint64_t fastest, uint64_t *bound_ns) {
    TIDE_TRY(tide__absences_find(s->in, &s->absences));
    TIDE_TRY(allocate(s));
    find_links(s);
    start_weights(s);
    /* Sums of doubles are off by far less than this. */
    double bound = floor(ascend(s) * s->scale_ns * (1 - 1e-9));
    *bound_ns = bound > (double)fastest ? (uint64_t)fmin(bound, 0x1p62) : fastest;
    return TIDE_OK;
}

tide_status tide__bound_step(const tide__policy_input *in, uint64_t budget_bytes, uint64_t *bound_ns) {
    uint64_t fastest = fastest_sum(in);
    if (budget_bytes == UINT64_MAX || budget_bytes == 0 || fastest == 0) {
        *bound_ns = fastest;
        return TIDE_OK;
    }
    /* A little more than the budget: what prices of any height gain by it is beyond the rounding of their sums. */
    solver s = {.in = in, .budget = (double)budget_bytes * (1 + 1e-8), .scale_ns = (double)fastest};
    tide_status status = solve(&s, fastest, bound_ns);
    release(&s);
    return status;
}
