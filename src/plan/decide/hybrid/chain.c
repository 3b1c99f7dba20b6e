/* See chain.h. Loads are changed by intervals only, so a proposal costs as much as the events it covers. */
#include "plan/decide/hybrid/chain.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"

/* Holding an input "adds little" while it adds less than this part of its bytes x events above the target. */
static const double LITTLE = 0.25;
/* Values below this part of the target are held, never re-run: they save nothing and force long chains. */
static const uint64_t TINY_PART = 20000;

tide_status tide__chain_init(const tide__model *m, tide__chain *c) {
    *c = (tide__chain){0};
    tide__array(&c->arrays, c->op_stamp, m->n_ops + (size_t)1);
    tide__array(&c->arrays, c->need_stamp, m->n_tensors + (size_t)1);
    tide__array(&c->arrays, c->last_need, m->n_tensors + (size_t)1);
    return tide__arrays_check(&c->arrays);
}

void tide__chain_deinit(tide__chain *c) {
    tide__vec_free(&c->ops);
    tide__vec_free(&c->held);
    tide__arrays_free(&c->arrays);
    free(c->change);
}

/* Where op would be re-run in the chain's slot: before this event. */
static uint32_t place_of(const tide__sketch *s, const tide__chain *c, tide_id op) {
    return tide__sketch_after(s, tide__event_key(c->slot, TIDE__EVENT_RUN, op));
}

/* The stay of a tensor that began before an event; TIDE_NONE if none did. */
static uint32_t stay_before(const tide__sketch *s, tide_id tensor, uint32_t event) {
    uint32_t i = s->latest[tensor];
    while (i != TIDE_NONE && s->stays.data[i].begin >= event) i = s->stays.data[i].before;
    return i;
}

/* Long intervals are estimated: every event above the target stays above it by more than one value's bytes. */
enum { LONG_EVENTS = 4096, LONG_WORK = 100 };
static bool is_long(uint32_t from, uint32_t to) { return to - from > LONG_EVENTS; }

/* Each op of a chain takes as long as some events: its operands are looked up, in what is held, too. */
enum { OP_WORK = 12 };

uint64_t tide__chain_work(const tide__chain *c, tide__span gap) {
    uint64_t covered = is_long(gap.from, gap.to) ? LONG_WORK : gap.to - gap.from;
    return covered + c->ops.count * (OP_WORK + c->held.count / 4);
}

static double bytes_over(const tide__sketch *s, uint64_t size, uint32_t from, uint32_t to) {
    return (double)size * (double)(s->over[to + 1] - s->over[from]);
}

/* Does holding these bytes add more than `most` to the excess? */
static bool adds_more(const tide__sketch *s, uint64_t size, uint32_t from, uint32_t to, double most) {
    if (bytes_over(s, size, from, to) > most) return true; /* there no byte of it has room */
    if (is_long(from, to)) return false;
    double sum = 0;
    for (uint32_t e = from; e <= to && sum <= most; e++) {
        uint64_t room = s->target_bytes - tide__min_u64(s->load[e], s->target_bytes);
        if (size > room) sum += (double)(size - room);
    }
    return sum > most;
}

static bool wants_hold(const tide__sketch *s, tide__hold hold, uint64_t size, uint32_t from, uint32_t to) {
    if (hold == TIDE__HOLD_ALL || from > to || size <= s->target_bytes / TINY_PART) return true;
    double little = hold == TIDE__HOLD_LITTLE ? LITTLE * (double)size * (double)(to - from + 1) : 0;
    return !adds_more(s, size, from, to, little);
}

static tide_status hold_input(tide__chain *c, tide_id tensor, uint32_t from, uint32_t to) {
    for (size_t i = 0; i < c->held.count; i++) {
        if (c->held.data[i].tensor != tensor) continue;
        if (to > c->held.data[i].to) c->held.data[i].to = to;
        return TIDE_OK;
    }
    return tide__vec_push(&c->held, ((tide__held){.tensor = tensor, .from = from, .to = to}));
}

static tide_status add_op(tide__chain *c, tide_id op) {
    if (c->op_stamp[op] == c->stamp) return TIDE_OK;
    c->op_stamp[op] = c->stamp;
    return tide__vec_push(&c->ops, op);
}

/* Makes sure that op's input is there when it is re-run at event `at`. */
static tide_status get_input(const tide__sketch *s, tide__chain *c, tide_id tensor, uint32_t at, tide__hold hold,
                             bool *possible) {
    const tide__model *m = s->model;
    tide_id producer = m->producer[tensor];
    if (producer != TIDE_NONE && c->op_stamp[producer] == c->stamp) return TIDE_OK;
    uint32_t stay = stay_before(s, tensor, at);
    if (stay != TIDE_NONE && s->stays.data[stay].end >= at) return TIDE_OK;
    bool lost = stay == TIDE_NONE || (m->destroyer[tensor] != TIDE_NONE && m->destroyer[tensor] < c->slot);
    bool can_rerun = producer != TIDE_NONE && m->rerunnable[producer];
    uint32_t from = stay == TIDE_NONE ? 0 : s->stays.data[stay].end + 1;
    if (!lost && (!can_rerun || wants_hold(s, hold, m->size[tensor], from, at - 1)))
        return hold_input(c, tensor, from, at - 1);
    *possible = can_rerun;
    return can_rerun ? add_op(c, producer) : TIDE_OK;
}

/* Longer chains are given up: they cost more than they relieve, and looking at them costs the most. */
static size_t longest_chain(const tide__sketch *s) { return s->n_events > LONG_EVENTS ? 24 : 400; }

static tide_status collect_ops(const tide__sketch *s, tide__chain *c, tide__hold hold, bool *possible) {
    const tide__model *m = s->model;
    for (size_t k = 0; k < c->ops.count && *possible; k++) {
        tide_id op = c->ops.data[k];
        uint32_t at = place_of(s, c, op);
        for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1] && *possible; i++)
            TIDE_TRY(get_input(s, c, m->reads[i], at, hold, possible));
        if (c->ops.count > longest_chain(s)) *possible = false;
    }
    return TIDE_OK;
}

static int by_id(const void *a, const void *b) {
    tide_id x = *(const tide_id *)a, y = *(const tide_id *)b;
    return x < y ? -1 : x > y;
}

/* Chains are short, mostly. */
enum { SHORT_CHAIN = 32 };

static void sort_ops(tide__chain *c) {
    if (c->ops.count > SHORT_CHAIN) {
        qsort(c->ops.data, c->ops.count, sizeof *c->ops.data, by_id);
        return;
    }
    for (size_t i = 1; i < c->ops.count; i++) {
        tide_id op = c->ops.data[i];
        size_t k = i;
        for (; k > 0 && c->ops.data[k - 1] > op; k--) c->ops.data[k] = c->ops.data[k - 1];
        c->ops.data[k] = op;
    }
}

/* A held input whose producer joined the chain later need not be held. */
static void drop_needless_holds(const tide__model *m, tide__chain *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->held.count; i++) {
        tide_id producer = m->producer[c->held.data[i].tensor];
        bool rerun = producer != TIDE_NONE && c->op_stamp[producer] == c->stamp;
        if (!rerun) c->held.data[kept++] = c->held.data[i];
    }
    c->held.count = kept;
}

/* ---- what it does to the load ---- */

typedef struct tally {
    const tide__sketch *s;
    tide__chain *c;
    uint32_t low, high;             /* events with changes */
    double estimated;               /* relief of changes that are too long to sum */
    uint64_t freed, held, children; /* bytes, while the chain runs: see excess_of_chain */
} tally;

static void change(tally *t, uint32_t from, uint32_t to, int64_t bytes) {
    if (from > to) return;
    if (is_long(from, to)) {
        t->estimated -= (bytes < 0 ? -1 : 1) * bytes_over(t->s, (uint64_t)(bytes < 0 ? -bytes : bytes), from, to);
        return;
    }
    t->c->change[from] += bytes;
    t->c->change[to + 1] -= bytes;
    if (from < t->low) t->low = from;
    if (to + 1 > t->high) t->high = to + 1;
}

/* The stay of an output that the re-run at `at` cuts in two; TIDE_NONE if it is not there then anyway. */
static uint32_t stay_through(const tide__sketch *s, tide_id tensor, uint32_t at) {
    uint32_t stay = stay_before(s, tensor, at);
    return stay != TIDE_NONE && s->stays.data[stay].end >= at ? stay : TIDE_NONE;
}

static uint32_t last_use_before(const tide__sketch *s, uint32_t stay, uint32_t event) {
    uint32_t use = s->stays.data[stay].last_use;
    while (s->uses.data[use].event >= event && s->uses.data[use].before != TIDE_NONE) use = s->uses.data[use].before;
    return s->uses.data[use].event;
}

static void free_outputs(tally *t) {
    const tide__model *m = t->s->model;
    for (size_t k = 0; k < t->c->ops.count; k++) {
        tide_id op = t->c->ops.data[k];
        uint32_t at = place_of(t->s, t->c, op);
        for (uint32_t i = m->write_at[op]; i < m->write_at[op + 1]; i++) {
            uint32_t stay = stay_through(t->s, m->writes[i], at);
            if (stay == TIDE_NONE) continue;
            change(t, last_use_before(t->s, stay, at) + 1, at - 1, -(int64_t)m->size[m->writes[i]]);
            t->freed += m->size[m->writes[i]];
        }
    }
}

static void note_needs(tally *t) {
    const tide__model *m = t->s->model;
    for (size_t k = 0; k < t->c->ops.count; k++)
        for (uint32_t i = m->read_at[t->c->ops.data[k]]; i < m->read_at[t->c->ops.data[k] + 1]; i++) {
            t->c->need_stamp[m->reads[i]] = t->c->stamp;
            t->c->last_need[m->reads[i]] = t->c->ops.data[k];
        }
}

static bool is_needed_after(const tide__chain *c, tide_id tensor, tide_id op) {
    return c->need_stamp[tensor] == c->stamp && c->last_need[tensor] > op;
}

static void pass_outputs(tally *t, tide_id op, uint32_t at) {
    const tide__model *m = t->s->model;
    for (uint32_t i = m->write_at[op]; i < m->write_at[op + 1]; i++) {
        uint64_t size = m->size[m->writes[i]];
        if (stay_through(t->s, m->writes[i], at) != TIDE_NONE)
            t->freed -= size; /* it is back, and counts in `through` again */
        else if (is_needed_after(t->c, m->writes[i], op))
            t->children += size;
    }
}

static void pass_inputs(tally *t, tide_id op) {
    const tide__model *m = t->s->model;
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++) {
        tide_id tensor = m->reads[i], producer = m->producer[tensor];
        if (t->c->last_need[tensor] != op) continue;
        bool child = producer != TIDE_NONE && t->c->op_stamp[producer] == t->c->stamp;
        if (child && stay_through(t->s, tensor, place_of(t->s, t->c, producer)) == TIDE_NONE)
            t->children -= m->size[tensor];
    }
    for (size_t i = 0; i < t->c->held.count; i++)
        if (t->c->last_need[t->c->held.data[i].tensor] == op) t->held -= m->size[t->c->held.data[i].tensor];
}

/* Excess while the re-runs themselves run: what passes through, less what is still freed, plus what is held for
 * them, their intermediate values and their outputs. */
static double excess_of_chain(tally *t) {
    const tide__model *m = t->s->model;
    double excess = 0;
    for (size_t k = 0; k < t->c->ops.count; k++) {
        tide_id op = t->c->ops.data[k];
        uint32_t at = place_of(t->s, t->c, op);
        uint64_t load = t->s->through[at] - tide__min_u64(t->freed, t->s->through[at]);
        load += t->held + t->children + m->workspace_bytes[op];
        for (uint32_t i = m->write_at[op]; i < m->write_at[op + 1]; i++) load += m->size[m->writes[i]];
        if (load > t->s->target_bytes) excess += (double)(load - t->s->target_bytes);
        pass_outputs(t, op, at);
        pass_inputs(t, op);
    }
    return excess;
}

/* Sums the changes, and clears them. */
static double relief_of_changes(tally *t) {
    int64_t bytes = 0;
    double relief = 0;
    for (uint32_t e = t->low; e < t->high; e++) {
        bytes += t->c->change[e];
        t->c->change[e] = 0;
        if (bytes == 0) continue;
        uint64_t load = t->s->load[e], target = t->s->target_bytes;
        uint64_t then = bytes < 0 ? load - tide__min_u64(load, (uint64_t)-bytes) : load + (uint64_t)bytes;
        relief += (double)(int64_t)(tide__max_u64(load, target) - tide__max_u64(then, target));
    }
    t->c->change[t->high] = 0;
    return relief;
}

static tide_status make_room(const tide__sketch *s, tide__chain *c) {
    size_t n = s->n_events + (size_t)2;
    if (n <= c->room) return TIDE_OK;
    int64_t *larger = calloc(n + n / 4, sizeof *larger);
    if (!larger) return tide__fail_memory();
    free(c->change);
    c->change = larger;
    c->room = n + n / 4;
    return TIDE_OK;
}

static void weigh(const tide__sketch *s, tide__chain *c) {
    tally t = {.s = s, .c = c, .low = UINT32_MAX};
    c->cost_ns = 0;
    for (size_t k = 0; k < c->ops.count; k++) c->cost_ns += s->model->cost_ns[c->ops.data[k]];
    free_outputs(&t);
    note_needs(&t);
    for (size_t i = 0; i < c->held.count; i++) {
        tide__held *h = &c->held.data[i];
        change(&t, h->from, h->to, (int64_t)s->model->size[h->tensor]);
        t.held += s->model->size[h->tensor];
    }
    c->relief = t.estimated - excess_of_chain(&t);
    if (t.low != UINT32_MAX) c->relief += relief_of_changes(&t);
}

tide_status tide__chain_propose(const tide__sketch *s, tide__span gap, tide__hold hold, tide__chain *c,
                                bool *possible) {
    tide_id producer = s->model->producer[gap.tensor];
    *possible = producer != TIDE_NONE && s->model->rerunnable[producer];
    if (!*possible) return TIDE_OK;
    TIDE_TRY(make_room(s, c));
    c->slot = gap.to == s->n_events ? s->model->n_ops : tide__event_slot(s->keys[gap.to]);
    c->ops.count = c->held.count = 0;
    c->stamp++;
    TIDE_TRY(add_op(c, producer));
    TIDE_TRY(collect_ops(s, c, hold, possible));
    if (!*possible) return TIDE_OK;
    sort_ops(c);
    drop_needless_holds(s->model, c);
    weigh(s, c);
    return TIDE_OK;
}
