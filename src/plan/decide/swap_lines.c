/* See swap_lines.h. Costs of one length are found in one pass over the places. */
#include "plan/decide/swap_lines.h"

#include <math.h>
#include <stdlib.h>

/* ---- places ---- */

/* The first at or after a moment; n: none is. */
static uint32_t place_from(const tide__axis *a, double ns) {
    uint32_t low = 0, high = a->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (a->at[middle] < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void tide__line_transfer_place(tide__line_transfer *t) {
    t->first_start = place_from(t->line->axis, t->ready_ns);
    t->first_end = place_from(t->line->axis, t->ready_ns + t->ns);
    t->waited_end = place_from(t->line->axis, t->ready_ns + fmax(0, t->ns - t->line->wait_ns));
    t->cost = INFINITY;
}

void tide__line_sum(tide__line *l) {
    const tide__axis *a = l->axis;
    l->sum[0] = 0;
    for (uint32_t i = 0; i + 1 < a->n; i++) l->sum[i + 1] = l->sum[i] + l->price[i] * (a->at[i + 1] - a->at[i]);
}

/* The price of all time before a moment; `next` is the first place at or after it. */
static double price_before(const tide__line *l, uint32_t next, double ns) {
    if (next == 0) return 0;
    return l->sum[next - 1] + (ns - l->axis->at[next - 1]) * l->price[next - 1];
}

/* ---- all transfers of one length ---- */

tide_status tide__line_costs_init(tide__line_costs *c, uint32_t n) {
    size_t rows = n + (size_t)1;
    double *numbers = malloc(4 * rows * sizeof *numbers);
    uint32_t *places = malloc(3 * rows * sizeof *places);
    if (!numbers || !places) {
        free(numbers);
        free(places);
        return tide__fail_memory();
    }
    *c = (tide__line_costs){.n = n, .from = numbers, .end = places};
    c->upto = numbers + rows;
    c->best_from = c->upto + rows;
    c->best_upto = c->best_from + rows;
    c->which_from = places + rows;
    c->which_upto = c->which_from + rows;
    return TIDE_OK;
}

void tide__line_costs_deinit(tide__line_costs *c) {
    free(c->from);
    free(c->end);
    *c = (tide__line_costs){0};
}

static void find_prices(tide__line_costs *c, const tide__line *l, double ns) {
    const double *at = l->axis->at;
    for (uint32_t i = 0, end = 0, start = 0; i < c->n; i++) {
        while (end < c->n && at[end] < at[i] + ns) end++;
        while (at[start] < at[i] - ns) start++;
        c->end[i] = end;
        c->from[i] = end < c->n ? price_before(l, end, at[i] + ns) - l->sum[i] : INFINITY;
        c->upto[i] = at[i] < ns ? INFINITY : l->sum[i] - price_before(l, start, at[i] - ns);
    }
}

static void find_best(tide__line_costs *c, const double *lost, double bytes) {
    uint32_t from = c->n, upto = c->n;
    c->best_from[c->n] = c->best_upto[c->n] = INFINITY;
    for (uint32_t i = c->n; i-- > 0;) {
        double a = c->end[i] < c->n ? c->from[i] + bytes * lost[c->end[i]] : INFINITY;
        double b = c->upto[i] + bytes * lost[i];
        if (a < c->best_from[i + 1]) from = i;
        if (b < c->best_upto[i + 1]) upto = i;
        c->best_from[i] = fmin(a, c->best_from[i + 1]);
        c->best_upto[i] = fmin(b, c->best_upto[i + 1]);
        c->which_from[i] = from;
        c->which_upto[i] = upto;
    }
}

void tide__line_costs_of(tide__line_costs *c, const tide__line_transfer *like) {
    find_prices(c, like->line, like->ns);
    find_best(c, like->line->axis->lost, like->bytes);
}

/* ---- one transfer ---- */

static void consider(tide__line_transfer *t, double cost, double start_ns, uint32_t done) {
    if (cost >= t->cost) return;
    t->cost = cost;
    t->start_ns = start_ns;
    t->waited_ns = 0;
    t->done = done;
}

static void consider_ready(tide__line_transfer *t) {
    const tide__line *l = t->line;
    uint32_t done = t->first_end > t->least ? t->first_end : t->least;
    double price = price_before(l, t->first_end, t->ready_ns + t->ns) - price_before(l, t->first_start, t->ready_ns);
    consider(t, price + t->bytes * l->axis->lost[done], t->ready_ns, done);
}

/* The piece with the cheapest waits of those that have been met, which are those before `next`. */
typedef struct cheapest {
    uint32_t piece, next;
} cheapest;

/* Meets all that begin by some moment; at least the one that the moment is in. */
static void meet(const tide__line *l, cheapest *w, double ns) {
    for (; w->next + 1 < l->axis->n && l->axis->at[w->next] <= ns; w->next++)
        if (l->wait_price[w->next] < l->wait_price[w->piece]) w->piece = w->next;
}

/* Under way from when it is ready to some moment before place `done`, and in waits for the rest. */
static void consider_waiting(tide__line_transfer *t, cheapest *w, double end_ns, uint32_t done) {
    const tide__line *l = t->line;
    double waited_ns = t->ready_ns + t->ns - end_ns;
    double price = price_before(l, done, end_ns) - price_before(l, t->first_start, t->ready_ns);
    meet(l, w, end_ns);
    if (done < t->least) done = t->least;
    double cost = price + waited_ns * l->wait_price[w->piece] + t->bytes * l->axis->lost[done];
    if (cost >= t->cost) return;
    consider(t, cost, t->ready_ns, done);
    t->waited_ns = waited_ns;
    t->wait_piece = w->piece;
}

static void consider_waits(tide__line_transfer *t) {
    const tide__axis *a = t->line->axis;
    uint32_t first = t->first_start > 0 ? t->first_start - 1 : 0;
    cheapest w = {.piece = first, .next = first};
    if (t->waited_end >= a->n) return;
    consider_waiting(t, &w, t->ready_ns + fmax(0, t->ns - t->line->wait_ns), t->waited_end);
    for (uint32_t i = t->waited_end; i < a->n && a->at[i] < t->ready_ns + t->ns; i++)
        consider_waiting(t, &w, a->at[i], i);
}

/* The ways that need no wait. */
static void consider_all(const tide__line_costs *c, tide__line_transfer *t) {
    const double *at = t->line->axis->at;
    double early = t->bytes * t->line->axis->lost[t->least];
    uint32_t i = t->first_start;
    consider_ready(t);
    for (; i < c->n && c->end[i] < t->least; i++) consider(t, c->from[i] + early, at[i], t->least);
    if (c->best_from[i] < t->cost) consider(t, c->best_from[i], at[c->which_from[i]], c->end[c->which_from[i]]);
    for (i = t->first_end; i < t->least; i++) consider(t, c->upto[i] + early, at[i] - t->ns, t->least);
    if (c->best_upto[i] < t->cost) consider(t, c->best_upto[i], at[c->which_upto[i]] - t->ns, c->which_upto[i]);
}

void tide__line_find(const tide__line_costs *c, tide__line_transfer *t) {
    t->cost = INFINITY;
    if (t->first_end < c->n) consider_all(c, t);
    if (t->line->wait_price) consider_waits(t);
}

void tide__line_use(const tide__line_transfer *t) {
    const tide__axis *a = t->line->axis;
    double end_ns = t->start_ns + t->ns - t->waited_ns;
    uint32_t i = place_from(a, t->start_ns);
    for (i -= i > 0; i + 1 < a->n && a->at[i] < end_ns; i++)
        t->line->used[i] += fmax(0, fmin(end_ns, a->at[i + 1]) - fmax(t->start_ns, a->at[i]));
    if (t->waited_ns > 0) t->line->waited[t->wait_piece] += t->waited_ns;
}
