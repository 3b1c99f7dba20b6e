/* See swap_lines.h. Costs of one length are found in one pass over the places. */
#include "plan_swap/lines.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- places ---- */

/* The first at or after a moment; n: none is. */
static uint32_t place_from(const swap_axis *a, double ns) {
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

void swap_line_transfer_place(swap_line_transfer *t) {
    t->first_start = place_from(t->line->axis, t->ready_ns);
    t->first_end = place_from(t->line->axis, t->ready_ns + t->ns);
    t->waited_end = place_from(t->line->axis, t->ready_ns + fmax(0, t->ns - t->line->wait_ns));
    t->cost = INFINITY;
}

void swap_line_sum(swap_line *l) {
    const swap_axis *a = l->axis;
    l->sum[0] = 0;
    for (uint32_t i = 0; i + 1 < a->n; i++) l->sum[i + 1] = l->sum[i] + l->price[i] * (a->at[i + 1] - a->at[i]);
}

/* The price of all time before a moment; `next` is the first place at or after it. */
static double price_before(const swap_line *l, uint32_t next, double ns) {
    if (next == 0) return 0;
    return l->sum[next - 1] + (ns - l->axis->at[next - 1]) * l->price[next - 1];
}

/* ---- all transfers of one length ---- */

tide_status swap_line_costs_init(swap_line_costs *c, uint32_t n) {
    size_t rows = n + (size_t)1;
    double *numbers = malloc(4 * rows * sizeof *numbers);
    uint32_t *places = malloc(3 * rows * sizeof *places);
    if (!numbers || !places) {
        free(numbers);
        free(places);
        return tide__fail_memory();
    }
    *c = (swap_line_costs){.n = n, .from = numbers, .end = places};
    c->upto = numbers + rows;
    c->best_from = c->upto + rows;
    c->best_upto = c->best_from + rows;
    c->which_from = places + rows;
    c->which_upto = c->which_from + rows;
    return TIDE_OK;
}

void swap_line_costs_deinit(swap_line_costs *c) {
    free(c->from);
    free(c->end);
    *c = (swap_line_costs){0};
}

/* The last piece that a moment is in, or is an end of; `next` is the first place at or after it. */
static uint32_t last_piece(const swap_axis *a, uint32_t next, double ns) {
    uint32_t last = next > 0 ? next - 1 : 0;
    for (uint32_t i = next; i + 1 < a->n && a->at[i] <= ns; i++) last = i;
    return last;
}

/* The price from one moment to another, of time or of waits between there and the end, whichever is cheaper; `next` is the
 * first place at or after the end. With `make`, uses it up. *cheapest: the piece of the cheapest waits of all. */
static double price_waiting(const swap_line *l, double from_ns, double to_ns, uint32_t next, bool make,
                            uint32_t *cheapest) {
    const double *at = l->axis->at;
    uint32_t i = last_piece(l->axis, next, to_ns), best = i;
    double sum = 0;
    for (;; i--) {
        if (l->wait_price[i] < l->wait_price[best]) best = i;
        double ns = fmax(0, fmin(to_ns, at[i + 1]) - fmax(from_ns, at[i]));
        sum += ns * fmin(l->price[i], l->wait_price[best]);
        if (make && l->price[i] <= l->wait_price[best])
            l->used[i] += ns;
        else if (make)
            l->waited[best] += ns;
        if (i == 0 || at[i] < from_ns) break;
    }
    *cheapest = best;
    return sum;
}

/* The same, for the most part without a walk. `from` is the first place at or after from_ns. */
static double price_between(const swap_line *l, double from_ns, uint32_t from, double to_ns, uint32_t to) {
    uint32_t cheapest;
    if (l->wait_price && l->last_dear[last_piece(l->axis, to, to_ns)] >= from)
        return price_waiting(l, from_ns, to_ns, to, false, &cheapest);
    return price_before(l, to, to_ns) - price_before(l, from, from_ns);
}

static void find_prices(swap_line_costs *c, const swap_line *l, double ns) {
    const double *at = l->axis->at;
    for (uint32_t i = 0, end = 0, start = 0; i < c->n; i++) {
        while (end < c->n && at[end] < at[i] + ns) end++;
        while (at[start] < at[i] - ns) start++;
        c->end[i] = end;
        c->from[i] = end < c->n ? price_between(l, at[i], i, at[i] + ns, end) : INFINITY;
        c->upto[i] = at[i] < ns ? INFINITY : price_between(l, at[i] - ns, start, at[i], i);
    }
}

static void find_best(swap_line_costs *c, const double *lost, double bytes) {
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

void swap_line_costs_of(swap_line_costs *c, const swap_line_transfer *like) {
    find_prices(c, like->line, like->ns);
    find_best(c, like->line->axis->lost, like->bytes);
}

/* ---- one transfer ---- */

static void consider(swap_line_transfer *t, double cost, double start_ns, uint32_t done) {
    if (cost >= t->cost) return;
    t->cost = cost;
    t->start_ns = start_ns;
    t->waited_ns = 0;
    t->done = done;
}

static void consider_ready(swap_line_transfer *t) {
    const swap_line *l = t->line;
    uint32_t done = t->first_end > t->least ? t->first_end : t->least;
    double price = price_between(l, t->ready_ns, t->first_start, t->ready_ns + t->ns, t->first_end);
    consider(t, price + t->bytes * l->axis->lost[done], t->ready_ns, done);
}

/* Under way from when it is ready to some moment, and in waits for the rest. `done` is the first place from there on;
 * waits in the pieces before *next have been looked at, and those in *cheapest were the cheapest. */
static void consider_waiting(swap_line_transfer *t, double end_ns, uint32_t done, uint32_t *next, uint32_t *cheapest) {
    const swap_line *l = t->line;
    double waited_ns = t->ready_ns + t->ns - end_ns;
    for (uint32_t last = last_piece(l->axis, done, end_ns); *next <= last; ++*next)
        if (l->wait_price[*next] < l->wait_price[*cheapest]) *cheapest = *next;
    double price = price_between(l, t->ready_ns, t->first_start, end_ns, done);
    if (done < t->least) done = t->least;
    double cost = price + waited_ns * l->wait_price[*cheapest] + t->bytes * l->axis->lost[done];
    if (cost >= t->cost) return;
    consider(t, cost, t->ready_ns, done);
    t->waited_ns = waited_ns;
}

static void consider_waits(swap_line_transfer *t) {
    const swap_axis *a = t->line->axis;
    uint32_t cheapest = t->first_start > 0 ? t->first_start - 1 : 0, next = cheapest;
    if (t->waited_end >= a->n) return;
    consider_waiting(t, t->ready_ns + fmax(0, t->ns - t->line->wait_ns), t->waited_end, &next, &cheapest);
    for (uint32_t i = t->waited_end; i < a->n && a->at[i] < t->ready_ns + t->ns; i++)
        consider_waiting(t, a->at[i], i, &next, &cheapest);
}

/* The ways that start at any time. */
static void consider_all(const swap_line_costs *c, swap_line_transfer *t) {
    const double *at = t->line->axis->at;
    double early = t->bytes * t->line->axis->lost[t->least];
    uint32_t i = t->first_start;
    consider_ready(t);
    for (; i < c->n && c->end[i] < t->least; i++) consider(t, c->from[i] + early, at[i], t->least);
    if (c->best_from[i] < t->cost) consider(t, c->best_from[i], at[c->which_from[i]], c->end[c->which_from[i]]);
    for (i = t->first_end; i < t->least; i++) consider(t, c->upto[i] + early, at[i] - t->ns, t->least);
    if (c->best_upto[i] < t->cost) consider(t, c->best_upto[i], at[c->which_upto[i]] - t->ns, c->which_upto[i]);
}

void swap_line_find(const swap_line_costs *c, swap_line_transfer *t) {
    t->cost = INFINITY;
    if (t->first_end < c->n) consider_all(c, t);
    if (t->line->wait_price) consider_waits(t);
}

static void use_waiting(const swap_line_transfer *t) {
    const swap_line *l = t->line;
    double end_ns = t->start_ns + t->ns - t->waited_ns;
    uint32_t cheapest;
    (void)price_waiting(l, t->start_ns, end_ns, place_from(l->axis, end_ns), true, &cheapest);
    l->waited[cheapest] += t->waited_ns;
}

void swap_line_use(const swap_line_transfer *t) {
    const swap_axis *a = t->line->axis;
    double end_ns = t->start_ns + t->ns;
    uint32_t i = place_from(a, t->start_ns);
    if (t->line->wait_price) {
        use_waiting(t);
        return;
    }
    for (i -= i > 0; i + 1 < a->n && a->at[i] < end_ns; i++)
        t->line->used[i] += fmax(0, fmin(end_ns, a->at[i + 1]) - fmax(t->start_ns, a->at[i]));
}
