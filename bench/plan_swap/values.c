/* What values gain by being absent (swap_prices.h): weighted bytes less the price of their transfers.
 *
 * A value leaves and comes back as a whole. One SAVE serves all its absences after it; absent over the end of the step, it
 * also has a copy at the start of the next. Each value by itself, so the largest gain is found exactly. */
#include <math.h>

#include "base/size.h"
#include "plan_swap/prices.h"

/* ---- what a gap gains ---- */

static bool is_across(const tide__swap_gap *g) { return g->head != TIDE_NONE; }

/* Weighted bytes absent less the price of the transfers. */
static double gain(const swap_prices *p, uint32_t gap, bool saves) {
    const tide__swap_gap *g = &p->s->gaps.data[gap];
    double bytes = (double)g->size_bytes;
    double leaving = saves ? p->saves[gap].cost : bytes * p->lost[1][p->saves[gap].least];
    return (is_across(g) ? 2 : 1) * bytes - leaving - p->loads[gap].cost;
}

static void leave(swap_prices *p, uint32_t from, uint32_t to, double bytes) {
    p->absent[from] += bytes;
    p->absent[to] -= bytes;
}

/* Watched slots before a place. */
static uint32_t slots_before(uint32_t place) { return place > 0 ? place - 1 : 0; }

static void take(swap_prices *p, uint32_t gap, bool saves) {
    const tide__swap_gap *g = &p->s->gaps.data[gap];
    double bytes = (double)g->size_bytes;
    uint32_t from = slots_before(saves ? p->saves[gap].done : p->saves[gap].least);
    uint32_t to = p->n_watched - slots_before(p->loads[gap].done);
    if (is_across(g)) leave(p, 0, p->n_watched, bytes);
    leave(p, from, to, bytes);
    if (saves) swap_line_use(&p->saves[gap]);
    if (!g->forced) swap_line_use(&p->loads[gap]);
}

/* ---- what a value gains ---- */

/* A SAVE of the members [begin, end) serves the first that is chosen and all after it. Which is that, if the gain is to be
 * the largest? `end`: none. A last one that has to be chosen counts even if it gains nothing. */
static size_t first_chosen(const swap_prices *p, size_t begin, size_t end, bool last_too, double *best) {
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

static void take_chosen(swap_prices *p, size_t first, size_t end, bool last_too) {
    if (first == end) return;
    take(p, p->members[first].gap, true);
    for (size_t i = first + 1; i < end; i++)
        if ((last_too && i + 1 == end) || gain(p, p->members[i].gap, false) > 0) take(p, p->members[i].gap, false);
}

static double take_saved(swap_prices *p, size_t begin, size_t end, bool really) {
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
static double take_carried(swap_prices *p, size_t begin, size_t middle, size_t end) {
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
static double take_forced(swap_prices *p, uint32_t gap) {
    const tide__swap_gap *g = &p->s->gaps.data[gap];
    swap_line_transfer *t = &p->loads[gap];
    double bytes = (double)g->size_bytes;
    if (g->to == TIDE_NONE) {
        leave(p, 0, p->n_watched, bytes);
        return bytes;
    }
    t->done = (uint32_t)tide__min_u64(tide__max_u64(t->waited_end, t->least), p->n_places - 1);
    take(p, gap, false);
    return bytes * (1 - p->lost[0][t->done]);
}

/* It may have a copy from the start, which costs no SAVE. */
static bool may_start_away(const swap_prices *p, const tide__swap_gap *g) {
    return g->across != TIDE_NONE && p->s->gaps.data[g->across].head == TIDE_NONE;
}

/* Of the members [begin, end), all of one value. */
static double take_value(swap_prices *p, size_t begin, size_t end) {
    const tide__swap_gap *g = &p->s->gaps.data[p->members[begin].gap];
    size_t middle = begin;
    double best;
    if (g->forced) return take_forced(p, p->members[begin].gap);
    if (g->clean || may_start_away(p, g)) return take_saved(p, begin, end, true);
    while (middle < end && p->members[middle].part == CARRIED_TO) middle++;
    if (p->members[end - 1].part == ACROSS) return take_carried(p, begin, middle, end);
    size_t first = first_chosen(p, begin, end, false, &best);
    take_chosen(p, first, end, false);
    return best;
}

/* Every absence by itself, where it saves in any case and where none does. */
static bool is_together(const swap_prices *p, size_t a, size_t b) {
    const tide__swap_gap *x = &p->s->gaps.data[p->members[a].gap], *y = &p->s->gaps.data[p->members[b].gap];
    return !p->s->options.always_save && !x->clean && !y->clean && p->members[a].value == p->members[b].value;
}

double swap_prices_take(swap_prices *p) {
    double sum = 0;
    for (size_t i = 0, end; i < p->s->gaps.count; i = end) {
        for (end = i + 1; end < p->s->gaps.count && is_together(p, i, end); end++) {
        }
        sum += take_value(p, i, end);
    }
    return sum;
}
