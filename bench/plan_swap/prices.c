/* See swap_prices.h: places, lines and transfers of a step. */
#include "plan_swap/prices.h"

#include <math.h>
#include <stdlib.h>

#include "base/size.h"

enum { MAX_WATCHED = 512 };

/* ---- places, lines and transfers ---- */

/* Moments that differ by rounding only count as the same, or as in common: one piece more or less does no harm. */
static void face(const swap_prices *p, const double *at, const double *other, double end_ns, uint32_t *const *facing) {
    uint32_t last = p->n_places - 2, first = last;
    for (uint32_t i = 0; i <= p->n_places - 2; i++) {
        while (last > 0 && other[last] >= end_ns - at[i]) last--;
        while (first > 0 && other[first] > end_ns - at[i + 1]) first--;
        facing[0][i] = first;
        facing[1][i] = last > first ? last : first;
    }
}

static void watch(swap_prices *p) {
    const tide__swaps *s = p->s;
    uint32_t n = p->n_watched, slots = s->n_ops + 1, last = p->n_places - 1;
    double end_ns = (double)s->slot_ns[s->n_ops];
    for (uint32_t w = 0; w < n; w++) {
        uint32_t begin = (uint32_t)((uint64_t)slots * w / n), end = (uint32_t)((uint64_t)slots * (w + 1) / n);
        uint32_t k = begin;
        for (uint32_t i = begin; i < end; i++)
            if (s->base_loads[i] > s->base_loads[k]) k = i;
        p->watched[w] = k;
        p->load[w] = (double)s->base_loads[k];
        p->at[1][w + 1] = (double)s->slot_ns[k];
        p->at[0][n - w] = end_ns - (double)s->slot_ns[k < s->n_ops ? k + 1 : k];
    }
    for (uint32_t d = 0; d < 2; d++) {
        p->at[d][0] = 0;
        p->at[d][last] = end_ns;
        p->axes[d] = (swap_axis){.n = p->n_places, .at = p->at[d], .lost = p->lost[d]};
        p->axes[d].first_facing = p->facing[d][0];
        p->axes[d].last_facing = p->facing[d][1];
    }
    for (uint32_t d = 0; d < 2; d++) face(p, p->at[d], p->at[1 - d], end_ns, p->facing[d]);
}

static uint32_t watched_before(const swap_prices *p, uint32_t slot) {
    uint32_t low = 0, high = p->n_watched;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->watched[middle] < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static swap_price_channel *find_channel(swap_prices *p, uint32_t tier, bool out) {
    for (uint32_t i = 0; i < p->n_channels; i++)
        if (p->channels[i].tier == tier && p->channels[i].out == out) return &p->channels[i];
    p->channels[p->n_channels] = (swap_price_channel){.tier = tier, .out = out};
    p->channels[p->n_channels].line = (swap_line){.axis = &p->axes[out], .wait_ns = p->wait_ns};
    return &p->channels[p->n_channels++];
}

/* With the channel for itself; both directions are taken to be busy by the gap's own times. */
static uint64_t alone_ns(const swap_prices *p, const tide__swap_gap *g, uint32_t tier, bool out) {
    const tide_machine *m = p->s->in->machine;
    uint32_t queue = tide_machine_queue(m, tier, out);
    return queue == TIDE_NONE ? 0 : tide_machine_transfer_ns(m, queue - 1, g->size_bytes);
}

/* A value may go to any tier where the best has too little room. */
static bool has_tiers(const swap_prices *p, const tide__swap_gap *g) {
    bool one_of_them = false;
    for (uint32_t i = 0; i < p->s->tiers.n; i++) one_of_them = one_of_them || p->s->tiers.tier[i] == g->tier;
    return p->s->limited && p->s->tiers.n > 1 && one_of_them;
}

static uint64_t least_ns(const swap_prices *p, const tide__swap_gap *g, bool out) {
    uint64_t ns = alone_ns(p, g, g->tier, out);
    for (uint32_t i = 0; i < p->s->tiers.n && has_tiers(p, g); i++)
        ns = tide__min_u64(ns, alone_ns(p, g, p->s->tiers.tier[i], out));
    return tide__min_u64(ns, out ? g->out_ns : g->in_ns);
}

static void set_transfer(swap_prices *p, uint32_t gap, bool out, swap_line_transfer *t) {
    const tide__swaps *s = p->s;
    const tide__swap_gap *g = &s->gaps.data[gap];
    swap_price_channel *c = find_channel(p, has_tiers(p, g) ? TIDE_NONE : g->tier, out);
    uint32_t needed = g->to == TIDE_NONE ? s->n_ops : g->to;
    *t = (swap_line_transfer){.line = &c->line, .bytes = (double)g->size_bytes, .ns = (double)least_ns(p, g, out)};
    if (out) {
        t->ready_ns = (double)s->slot_ns[s->options.late_saves ? g->from : g->ready];
        t->least = 1 + watched_before(p, g->from);
    } else {
        t->ready_ns = (double)(s->slot_ns[s->n_ops] - s->slot_ns[needed]);
        bool comes_back = g->head != TIDE_NONE || g->to != TIDE_NONE;
        t->least = 1 + (comes_back ? p->n_watched - watched_before(p, needed) : 0);
    }
    swap_line_transfer_place(t);
    if (t->ns > 0) c->rate = fmax(c->rate, t->bytes / t->ns);
    p->best_rate = fmax(p->best_rate, c->rate);
    if (!g->forced && !(out && g->clean) && t->waited_end < p->n_places) p->alike[p->n_alike++] = t;
}

static int compare(double a, double b) { return a < b ? -1 : a > b; }

static int by_kind(const void *a, const void *b) {
    const swap_line_transfer *x = *(swap_line_transfer *const *)a, *y = *(swap_line_transfer *const *)b;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return compare(x->ns, y->ns) ? compare(x->ns, y->ns) : compare(x->bytes, y->bytes);
}

static swap_price_member member_of(const swap_prices *p, uint32_t gap) {
    const tide__swap_gap *gaps = p->s->gaps.data, *g = &gaps[gap];
    swap_price_member m = {.value = g->tensor, .part = INSIDE, .from = g->from, .gap = gap};
    if (g->head != TIDE_NONE)
        m.part = ACROSS;
    else if (g->across != TIDE_NONE)
        m.value = gaps[g->across].tensor, m.part = CARRIED_TO;
    return m;
}

static int by_value(const void *a, const void *b) {
    const swap_price_member *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void set_gaps(swap_prices *p) {
    for (uint32_t i = 0; i < p->s->gaps.count; i++) {
        set_transfer(p, i, false, &p->loads[i]);
        set_transfer(p, i, true, &p->saves[i]);
        p->members[i] = member_of(p, i);
    }
    qsort(p->alike, p->n_alike, sizeof *p->alike, by_kind);
    qsort(p->members, p->s->gaps.count, sizeof *p->members, by_value);
}

/* ---- the whole ---- */

static tide_status allocate(swap_prices *p) {
    size_t gaps = p->s->gaps.count + 1, places = p->n_places;
    p->watched = calloc(places, sizeof *p->watched);
    p->load = calloc(places, sizeof *p->load);
    p->absent = calloc(places, sizeof *p->absent);
    p->loads = calloc(gaps, sizeof *p->loads);
    p->saves = calloc(gaps, sizeof *p->saves);
    p->alike = calloc(2 * gaps, sizeof *p->alike);
    p->members = calloc(gaps, sizeof *p->members);
    bool ok = p->watched && p->load && p->absent && p->loads && p->saves && p->alike && p->members;
    for (uint32_t d = 0; d < 2; d++) {
        p->at[d] = calloc(places, sizeof *p->at[d]);
        p->lost[d] = calloc(places, sizeof *p->lost[d]);
        for (uint32_t k = 0; k < 2; k++) ok = (p->facing[d][k] = calloc(places, sizeof *p->facing[d][k])) && ok;
        ok = ok && p->at[d] && p->lost[d];
    }
    TIDE_TRY(swap_line_costs_init(&p->costs, p->n_places));
    return ok ? TIDE_OK : tide__fail_memory();
}

/* When the lines are known. */
static tide_status allocate_numbers(swap_prices *p) {
    size_t pieces = p->n_places - 1, row = p->n_places;
    p->n_numbers = p->n_watched + p->n_channels * pieces + 1;
    p->rows = calloc(3 * p->n_channels + (size_t)1, row * sizeof *p->rows);
    p->last_dear = calloc(2 * p->n_channels + (size_t)1, pieces * sizeof *p->last_dear);
    p->number = calloc(p->n_numbers, sizeof *p->number);
    p->gradient = calloc(p->n_numbers, sizeof *p->gradient);
    p->mean = calloc(p->n_numbers, sizeof *p->mean);
    p->square = calloc(p->n_numbers, sizeof *p->square);
    if (!p->rows || !p->last_dear || !p->number || !p->gradient || !p->mean || !p->square) return tide__fail_memory();
    for (uint32_t c = 0; c < p->n_channels; c++) {
        swap_line *l = &p->channels[c].line;
        l->price = p->number + p->n_watched + c * pieces;
        l->used = p->gradient + p->n_watched + c * pieces;
        l->sum = p->rows + 3 * c * row;
        if (p->wait_ns > 0) l->wait_price = l->sum + row;
        if (p->wait_ns > 0) l->waited = l->wait_price + row;
        if (p->wait_ns > 0) l->last_dear = p->last_dear + 2 * c * pieces;
        p->lines[c] = l;
    }
    return TIDE_OK;
}

void swap_prices_deinit(swap_prices *p) {
    free(p->watched);
    free(p->load);
    free(p->absent);
    free(p->loads);
    free(p->saves);
    free(p->alike);
    free(p->members);
    for (uint32_t d = 0; d < 2; d++) {
        free(p->at[d]);
        free(p->lost[d]);
        free(p->facing[d][0]);
        free(p->facing[d][1]);
    }
    free(p->rows);
    free(p->last_dear);
    free(p->number);
    free(p->gradient);
    free(p->mean);
    free(p->square);
    swap_line_costs_deinit(&p->costs);
}

static tide_status set_up(swap_prices *p) {
    TIDE_TRY(allocate(p));
    watch(p);
    set_gaps(p);
    return allocate_numbers(p);
}

tide_status swap_prices_init(swap_prices *p, const tide__swaps *s, uint64_t wait_ns) {
    *p = (swap_prices){.s = s, .wait_ns = (double)wait_ns};
    p->n_watched = (uint32_t)tide__min_u64(MAX_WATCHED, s->n_ops + UINT64_C(1));
    p->n_places = p->n_watched + 2;
    tide_status status = set_up(p);
    if (status != TIDE_OK) swap_prices_deinit(p);
    return status;
}
