/* A bound for swapping (swap_search.h) by prices: Lagrange multipliers of the loads and of the time of the channels.
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
 * Only some slots have a weight, the fullest of equal stretches, and prices change only there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/decide/swap_lines.h"
#include "plan/decide/swap_search.h"

enum { MAX_WATCHED = 512, STEPS = 200, STEPS_PER_SLOT = 8, MIN_STEPS = 50, WORK = 1400 * 1000 * 1000 };

typedef struct channel {
    tide__line line;
    uint32_t tier; /* TIDE_NONE: of any of those that have room for a part only; its time costs nothing */
    bool out;
    double rate; /* bytes per ns: the best that any transfer has */
} channel;

/* A gap, in the order of values. */
typedef struct member {
    tide_id value; /* the tensor, or the one that it is carried from */
    enum { CARRIED_TO, INSIDE, ACROSS } part;
    uint32_t from, gap;
} member;

typedef struct prices {
    const tide__swaps *s;
    uint32_t n_watched, n_channels, n_places;
    uint32_t *watched; /* slots, ascending */
    double *load;      /* per watched slot, when nothing is absent */
    double *absent;    /* n_watched + 1: bytes, first as changes */
    double *at[2], *lost[2];
    tide__axis axes[2];                               /* of LOADs, of SAVEs */
    channel channels[2 * TIDE_MACHINE_MAX_TIERS + 2]; /* and those of any tier */
    tide__line_transfer *loads, *saves;               /* per gap */
    tide__line_transfer **alike;                      /* those that count, the same lengths and sizes together */
    size_t n_alike;
    member *members; /* all gaps */
    double *sums;    /* of the lines, n_places each */
    tide__line_costs costs;
    size_t n_numbers;
    double *number, *gradient; /* the weights, then the prices channel by channel */
    double *mean, *square;     /* per number: of the latest gradients */
} prices;

/* ---- what a gap gains ---- */

static bool is_across(const tide__swap_gap *g) { return g->head != TIDE_NONE; }

/* Weighted bytes absent less the price of the transfers. */
static double gain(const prices *p, uint32_t gap, bool saves) {
    const tide__swap_gap *g = &p->s->gaps.data[gap];
    double bytes = (double)g->size_bytes;
    double leaving = saves ? p->saves[gap].cost : bytes * p->lost[1][p->saves[gap].least];
    return (is_across(g) ? 2 : 1) * bytes - leaving - p->loads[gap].cost;
}

static void leave(prices *p, uint32_t from, uint32_t to, double bytes) {
    p->absent[from] += bytes;
    p->absent[to] -= bytes;
}

/* Watched slots before a place. */
static uint32_t slots_before(uint32_t place) { return place > 0 ? place - 1 : 0; }

static void take(prices *p, uint32_t gap, bool saves) {
    const tide__swap_gap *g = &p->s->gaps.data[gap];
    double bytes = (double)g->size_bytes;
    uint32_t from = slots_before(saves ? p->saves[gap].done : p->saves[gap].least);
    uint32_t to = p->n_watched - slots_before(p->loads[gap].done);
    if (is_across(g)) leave(p, 0, p->n_watched, bytes);
    leave(p, from, to, bytes);
    if (saves) tide__line_use(&p->saves[gap]);
    if (!g->forced) tide__line_use(&p->loads[gap]);
}

/* ---- what a value gains ---- */

/* A SAVE of the members [begin, end) serves the first that is chosen and all after it. Which is that, if the gain is to be
 * the largest? `end`: none. A last one that has to be chosen counts even if it gains nothing. */
static size_t first_chosen(const prices *p, size_t begin, size_t end, bool last_too, double *best) {
    double later = 0;
    size_t first = end;
    *best = last_too ? -INFINITY : 0;
    for (size_t i = end; i-- > begin;) {
        uint32_t gap = p->members[i].gap;
        double saving = gain(p, gap, true) + later, saved = gain(p, gap, false);
        if (saving > *best) *best = saving, first = i;
        later += last_too && i + 1 == end ? saved : fmax(0, saved);
    }
    return first;
}

static void take_chosen(prices *p, size_t first, size_t end, bool last_too) {
    if (first == end) return;
    take(p, p->members[first].gap, true);
    for (size_t i = first + 1; i < end; i++)
        if ((last_too && i + 1 == end) || gain(p, p->members[i].gap, false) > 0) take(p, p->members[i].gap, false);
}

static double take_saved(prices *p, size_t begin, size_t end, bool really) {
    double sum = 0;
    for (size_t i = begin; i < end; i++) {
        double gained = gain(p, p->members[i].gap, false);
        if (gained > 0) sum += gained;
        if (gained > 0 && really) take(p, p->members[i].gap, false);
    }
    return sum;
}

/* Members [begin, middle) are of what the last member is carried to: absent over the end of the step, it has a copy at the
 * start, which serves them. */
static double take_carried(prices *p, size_t begin, size_t middle, size_t end) {
    double over, head, tail;
    size_t first = first_chosen(p, middle, end, true, &over);
    size_t first_head = first_chosen(p, begin, middle, false, &head);
    size_t first_tail = first_chosen(p, middle, end - 1, false, &tail);
    over += take_saved(p, begin, middle, false);
    if (over > head + tail) {
        take_chosen(p, first, end, true);
        take_saved(p, begin, middle, true);
        return over;
    }
    take_chosen(p, first_head, middle, false);
    take_chosen(p, first_tail, end - 1, false);
    return head + tail;
}

/* What is always chosen: absent from the start on; its way in is not charged for, it may have no time at all. */
static double take_forced(prices *p, uint32_t gap) {
    const tide__swap_gap *g = &p->s->gaps.data[gap];
    tide__line_transfer *t = &p->loads[gap];
    double bytes = (double)g->size_bytes;
    if (g->to == TIDE_NONE) {
        leave(p, 0, p->n_watched, bytes);
        return bytes;
    }
    t->done = (uint32_t)tide__min_u64(tide__max_u64(t->first_end, t->least), p->n_places - 1);
    take(p, gap, false);
    return bytes * (1 - p->lost[0][t->done]);
}

/* Of the members [begin, end), all of one value. */
static double take_value(prices *p, size_t begin, size_t end) {
    const tide__swap_gap *g = &p->s->gaps.data[p->members[begin].gap];
    size_t middle = begin;
    double best;
    if (g->forced) return take_forced(p, p->members[begin].gap);
    if (g->clean) return take_saved(p, begin, end, true);
    while (middle < end && p->members[middle].part == CARRIED_TO) middle++;
    if (p->members[end - 1].part == ACROSS) return take_carried(p, begin, middle, end);
    size_t first = first_chosen(p, begin, end, false, &best);
    take_chosen(p, first, end, false);
    return best;
}

/* Every absence by itself, where it saves in any case and where none does. */
static bool is_together(const prices *p, size_t a, size_t b) {
    const tide__swap_gap *x = &p->s->gaps.data[p->members[a].gap], *y = &p->s->gaps.data[p->members[b].gap];
    return !p->s->options.always_save && !x->clean && !y->clean && p->members[a].value == p->members[b].value;
}

static double take_all(prices *p) {
    double sum = 0;
    for (size_t i = 0, end; i < p->s->gaps.count; i = end) {
        for (end = i + 1; end < p->s->gaps.count && is_together(p, i, end); end++) {
        }
        sum += take_value(p, i, end);
    }
    return sum;
}

/* ---- the bound of some weights and prices ---- */

static void sum_weights(prices *p) {
    const double *weight = p->number;
    for (uint32_t d = 0; d < 2; d++) p->lost[d][0] = p->lost[d][1] = 0;
    for (uint32_t i = 1; i <= p->n_watched; i++) {
        p->lost[0][i + 1] = p->lost[0][i] + weight[p->n_watched - i];
        p->lost[1][i + 1] = p->lost[1][i] + weight[i - 1];
    }
}

static bool is_alike(const tide__line_transfer *a, const tide__line_transfer *b) {
    return a->line == b->line && a->ns <= b->ns && a->ns >= b->ns && a->bytes <= b->bytes && a->bytes >= b->bytes;
}

static void find_ways(prices *p) {
    for (size_t i = 0; i < p->n_alike; i++) {
        if (i == 0 || !is_alike(p->alike[i - 1], p->alike[i])) tide__line_costs_of(&p->costs, p->alike[i]);
        tide__line_find(&p->costs, p->alike[i]);
    }
}

/* Loads that remain, and time that is wanted but not there. */
static void find_gradient(prices *p) {
    double absent = 0;
    for (uint32_t k = 0; k < p->n_watched; k++) p->gradient[k] = p->load[k] - (absent += p->absent[k]);
    for (uint32_t c = 0; c < p->n_channels; c++) {
        const tide__line *l = &p->channels[c].line;
        bool counts = p->channels[c].tier != TIDE_NONE;
        for (uint32_t i = 0; i + 1 < p->n_places; i++)
            l->used[i] = counts ? l->used[i] - (l->axis->at[i + 1] - l->axis->at[i]) : 0;
    }
}

static double evaluate(prices *p) {
    double bound = 0;
    sum_weights(p);
    memset(p->absent, 0, (p->n_watched + (size_t)1) * sizeof *p->absent);
    memset(p->gradient, 0, p->n_numbers * sizeof *p->gradient);
    for (uint32_t c = 0; c < p->n_channels; c++) {
        tide__line_sum(&p->channels[c].line);
        bound -= p->channels[c].line.sum[p->n_places - 1];
    }
    for (uint32_t k = 0; k < p->n_watched; k++) bound += p->number[k] * p->load[k];
    find_ways(p);
    bound -= take_all(p);
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
static void restrict_gradient(prices *p) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_watched; k++)
        if (p->number[k] > 0) sum += p->gradient[k], n++;
    for (uint32_t k = 0; k < p->n_watched; k++) p->gradient[k] -= sum / n;
    for (size_t i = 0; i < p->n_numbers; i++)
        if (p->number[i] <= 0 && p->gradient[i] < 0) p->gradient[i] = 0;
}

/* What a number changes by in a step, at first. */
static double size_of_step(const prices *p, size_t i) {
    if (i < p->n_watched) return fmin(0.1, 10.0 / p->n_watched);
    return p->channels[(i - p->n_watched) / (p->n_places - 1)].rate / 4;
}

static const double keep[] = {0.9, 0.99}; /* of the means over gradients and their squares, from step to step */

/* Weights have one square for all of them: what one gains others lose. */
static void mean_of_weights(prices *p) {
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
static void step(prices *p, uint32_t i, double size) {
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
}

/* At first only what is full counts, and time costs nothing. */
static void begin(prices *p) {
    double peak = 0;
    for (uint32_t k = 0; k < p->n_watched; k++) peak = fmax(peak, p->load[k]);
    for (uint32_t k = 0; k < p->n_watched; k++) p->number[k] = (p->load[k] >= 0.9 * peak) * 1e6;
    project(p->number, p->n_watched);
}

static uint32_t count_steps(const prices *p) {
    uint64_t kinds = 0;
    for (size_t i = 0; i < p->n_alike; i++) kinds += i == 0 || !is_alike(p->alike[i - 1], p->alike[i]);
    uint64_t work = (10 * kinds + 8 * p->n_channels) * p->n_places + 20 * p->n_alike + 1;
    return (uint32_t)tide__max_u64(MIN_STEPS, tide__min_u64(STEPS + STEPS_PER_SLOT * p->n_watched, WORK / work));
}

static double ascend(prices *p) {
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

/* ---- places, lines and transfers ---- */

static void watch(prices *p) {
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
        p->axes[d] = (tide__axis){.n = p->n_places, .at = p->at[d], .lost = p->lost[d]};
    }
}

static uint32_t watched_before(const prices *p, uint32_t slot) {
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

static channel *find_channel(prices *p, uint32_t tier, bool out) {
    for (uint32_t i = 0; i < p->n_channels; i++)
        if (p->channels[i].tier == tier && p->channels[i].out == out) return &p->channels[i];
    p->channels[p->n_channels] = (channel){.line = {.axis = &p->axes[out]}, .tier = tier, .out = out};
    return &p->channels[p->n_channels++];
}

/* With the channel for itself; both directions are taken to be busy by the gap's own times. */
static uint64_t alone_ns(const prices *p, const tide__swap_gap *g, uint32_t tier, bool out) {
    const tide_machine *m = p->s->in->machine;
    uint32_t queue = tide_machine_queue(m, tier, out);
    return queue == TIDE_NONE ? 0 : tide_machine_transfer_ns(m, queue - 1, g->size_bytes);
}

/* A value may go to any tier where the best has too little room. */
static bool has_tiers(const prices *p, const tide__swap_gap *g) {
    bool one_of_them = false;
    for (uint32_t i = 0; i < p->s->tiers.n; i++) one_of_them = one_of_them || p->s->tiers.tier[i] == g->tier;
    return p->s->limited && p->s->tiers.n > 1 && one_of_them;
}

static uint64_t least_ns(const prices *p, const tide__swap_gap *g, bool out) {
    uint64_t ns = alone_ns(p, g, g->tier, out);
    for (uint32_t i = 0; i < p->s->tiers.n && has_tiers(p, g); i++)
        ns = tide__min_u64(ns, alone_ns(p, g, p->s->tiers.tier[i], out));
    return tide__min_u64(ns, out ? g->out_ns : g->in_ns);
}

static void set_transfer(prices *p, uint32_t gap, bool out, tide__line_transfer *t) {
    const tide__swaps *s = p->s;
    const tide__swap_gap *g = &s->gaps.data[gap];
    channel *c = find_channel(p, has_tiers(p, g) ? TIDE_NONE : g->tier, out);
    uint32_t needed = g->to == TIDE_NONE ? s->n_ops : g->to;
    *t = (tide__line_transfer){.line = &c->line, .bytes = (double)g->size_bytes, .ns = (double)least_ns(p, g, out)};
    if (out) {
        t->ready_ns = (double)s->slot_ns[s->options.late_saves ? g->from : g->ready];
        t->least = 1 + watched_before(p, g->from);
    } else {
        t->ready_ns = (double)(s->slot_ns[s->n_ops] - s->slot_ns[needed]);
        t->least = 1 + p->n_watched - watched_before(p, needed);
    }
    tide__line_transfer_place(t);
    if (t->ns > 0) c->rate = fmax(c->rate, t->bytes / t->ns);
    if (!g->forced && !(out && g->clean) && t->first_end < p->n_places) p->alike[p->n_alike++] = t;
}

static int compare(double a, double b) { return a < b ? -1 : a > b; }

static int by_kind(const void *a, const void *b) {
    const tide__line_transfer *x = *(tide__line_transfer *const *)a, *y = *(tide__line_transfer *const *)b;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return compare(x->ns, y->ns) ? compare(x->ns, y->ns) : compare(x->bytes, y->bytes);
}

static member member_of(const prices *p, uint32_t gap) {
    const tide__swap_gap *gaps = p->s->gaps.data, *g = &gaps[gap];
    member m = {.value = g->tensor, .part = is_across(g) ? ACROSS : INSIDE, .from = g->from, .gap = gap};
    if (!is_across(g) && g->across != TIDE_NONE) m.value = gaps[g->across].tensor, m.part = CARRIED_TO;
    return m;
}

static int by_value(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    if (x->part != y->part) return x->part < y->part ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void set_gaps(prices *p) {
    for (uint32_t i = 0; i < p->s->gaps.count; i++) {
        set_transfer(p, i, false, &p->loads[i]);
        set_transfer(p, i, true, &p->saves[i]);
        p->members[i] = member_of(p, i);
    }
    qsort(p->alike, p->n_alike, sizeof *p->alike, by_kind);
    qsort(p->members, p->s->gaps.count, sizeof *p->members, by_value);
}

/* ---- the whole ---- */

static tide_status allocate(prices *p) {
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
        ok = ok && p->at[d] && p->lost[d];
    }
    TIDE_TRY(tide__line_costs_init(&p->costs, p->n_places));
    return ok ? TIDE_OK : tide__fail_memory();
}

/* When the lines are known. */
static tide_status allocate_numbers(prices *p) {
    size_t pieces = p->n_places - 1;
    p->n_numbers = p->n_watched + p->n_channels * pieces;
    p->sums = calloc(p->n_channels + (size_t)1, p->n_places * sizeof *p->sums);
    p->number = calloc(p->n_numbers, sizeof *p->number);
    p->gradient = calloc(p->n_numbers, sizeof *p->gradient);
    p->mean = calloc(p->n_numbers, sizeof *p->mean);
    p->square = calloc(p->n_numbers, sizeof *p->square);
    if (!p->sums || !p->number || !p->gradient || !p->mean || !p->square) return tide__fail_memory();
    for (uint32_t c = 0; c < p->n_channels; c++) {
        tide__line *l = &p->channels[c].line;
        l->price = p->number + p->n_watched + c * pieces;
        l->used = p->gradient + p->n_watched + c * pieces;
        l->sum = p->sums + c * (size_t)p->n_places;
    }
    return TIDE_OK;
}

static void release(prices *p) {
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
    }
    free(p->sums);
    free(p->number);
    free(p->gradient);
    free(p->mean);
    free(p->square);
    tide__line_costs_deinit(&p->costs);
}

static tide_status find(prices *p, double *bound) {
    TIDE_TRY(allocate(p));
    watch(p);
    set_gaps(p);
    TIDE_TRY(allocate_numbers(p));
    *bound = ascend(p);
    return TIDE_OK;
}

tide_status tide__swap_prices(const tide__swaps *s, uint64_t *bound) {
    prices p = {.s = s, .n_watched = (uint32_t)tide__min_u64(MAX_WATCHED, s->n_ops + UINT64_C(1))};
    p.n_places = p.n_watched + 2;
    double found = 0;
    tide_status status = find(&p, &found);
    /* Sums of doubles: a little less is surely right. */
    if (status == TIDE_OK) *bound = tide__max_u64(*bound, (uint64_t)(found * (1 - 1e-9)));
    release(&p);
    return status;
}
