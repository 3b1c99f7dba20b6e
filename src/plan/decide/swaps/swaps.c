/* See swaps.h. One evaluation: SAVEs, LOADs, then the load that remains. */
#include "plan/decide/swaps/swaps.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"
#include "plan/evaluate.h"
#include "plan/decide/swaps/place_heap.h"
#include "plan/decide/swaps/swap_gaps.h"
#include "plan/decide/swaps/swap_tiers.h"
#include "plan/decide/policies/workspaces.h"

/* Gap orders that do not depend on the choice, and room for the walk. */
typedef struct tide__swaps_work {
    uint32_t *by_ready; /* gaps that may save, by tier, ready slot, from */
    uint32_t *by_need;  /* gaps that load, by tier, to descending */
    size_t n_ready, n_need;
    uint32_t *by_leave; /* gaps by from, then the longer ones first: in that order they are saved */
    uint32_t *leaves;   /* per gap: its place there */
    uint32_t *heap;     /* of gaps whose SAVE could start, such places */
    size_t n_heap;
    uint32_t *saved_in;   /* per tensor: the evaluation in which it was saved */
    uint32_t *saved_slot; /* per tensor: before which slot that SAVE ended */
    uint32_t evaluation;
    bool *late;       /* per gap: its transfers reach over an end of the step */
    uint64_t *change; /* n_ops + 2: of the load, slot by slot */
} work;

/* ---- setting up ---- */

typedef struct sort_key {
    uint64_t major, minor;
    uint32_t gap;
} sort_key;

static int by_key(const void *a, const void *b) {
    const sort_key *x = a, *y = b;
    if (x->major != y->major) return x->major < y->major ? -1 : 1;
    if (x->minor != y->minor) return x->minor < y->minor ? -1 : 1;
    return x->gap < y->gap ? -1 : x->gap > y->gap;
}

/* When the op before a slot ends. */
static uint64_t end_ns(const tide__swaps *s, uint32_t slot) { return s->slot_ns[slot] - s->wait_ns[slot]; }

/* When a SAVE may start. */
static uint32_t ready_of(const tide__swaps *s, const tide__swap_gap *g) {
    return s->options.late_saves ? g->from : g->ready;
}

static size_t sort_gaps(const tide__swaps *s, bool saves, sort_key *keys, uint32_t *order) {
    size_t n = 0;
    for (uint32_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        uint64_t tier = (uint64_t)g->tier << 32;
        if (saves && !g->clean)
            keys[n++] = (sort_key){tier | ready_of(s, g), (uint64_t)g->from << 32 | g->to, i};
        else if (!saves && g->to != TIDE_NONE)
            keys[n++] = (sort_key){tier | (TIDE_NONE - g->to), TIDE_NONE - g->from, i};
    }
    qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 0; i < n; i++) order[i] = keys[i].gap;
    return n;
}

static void rank_leaves(const tide__swaps *s, sort_key *keys) {
    for (uint32_t i = 0; i < s->gaps.count; i++)
        keys[i] = (sort_key){s->gaps.data[i].from, TIDE_NONE - s->gaps.data[i].to, i};
    qsort(keys, s->gaps.count, sizeof *keys, by_key);
    for (uint32_t k = 0; k < s->gaps.count; k++) {
        s->work->by_leave[k] = keys[k].gap;
        s->work->leaves[keys[k].gap] = k;
    }
}

tide_status tide__swaps_reset_orders(tide__swaps *s) {
    work *w = s->work;
    sort_key *keys = malloc((s->gaps.count + 1) * sizeof *keys);
    if (!keys) return tide__fail_memory();
    w->n_ready = sort_gaps(s, true, keys, w->by_ready);
    w->n_need = sort_gaps(s, false, keys, w->by_need);
    rank_leaves(s, keys);
    for (size_t i = 0; i < s->gaps.count; i++) s->need_slot[i] = s->gaps.data[i].to;
    free(keys);
    return TIDE_OK;
}

/* Of two LOADs: is `a` to be planned first, from the end of the step backwards? */
static bool is_needed_later(const tide__swaps *s, uint32_t a, uint32_t b) {
    const tide__swap_gap *x = &s->gaps.data[a], *y = &s->gaps.data[b];
    if (x->tier != y->tier) return x->tier < y->tier;
    if (s->need_slot[a] != s->need_slot[b]) return s->need_slot[a] > s->need_slot[b];
    return x->from != y->from ? x->from > y->from : a < b;
}

void tide__swaps_reorder(tide__swaps *s) {
    uint32_t *order = s->work->by_need;
    for (size_t i = 1; i < s->work->n_need; i++) {
        uint32_t gap = order[i];
        size_t k = i;
        for (; k > 0 && is_needed_later(s, gap, order[k - 1]); k--) order[k] = order[k - 1];
        order[k] = gap;
    }
}

static tide_status allocate_work(tide__swaps *s) {
    size_t n = s->gaps.count + 1, tensors = tide_program_tensor_count(s->in->program) + (size_t)1;
    work *w = s->work;
    tide__array(&s->arrays, w->by_ready, n);
    tide__array(&s->arrays, w->by_need, n);
    tide__array(&s->arrays, w->by_leave, n);
    tide__array(&s->arrays, w->leaves, n);
    tide__array(&s->arrays, w->heap, n);
    tide__array(&s->arrays, w->saved_in, tensors);
    tide__array(&s->arrays, w->saved_slot, tensors);
    tide__array(&s->arrays, w->late, n);
    tide__array(&s->arrays, w->change, s->n_ops + (size_t)2);
    tide__array(&s->arrays, s->need_slot, n);
    tide__array(&s->arrays, s->free_slot, n);
    tide__array(&s->arrays, s->save_slot, n);
    tide__array_ones(&s->arrays, s->load_slot, n); /* what ends in a tier never gets another */
    tide__array(&s->arrays, s->save_order, n);
    tide__array(&s->arrays, s->idle, n);
    tide__array(&s->arrays, s->refused, n);
    return tide__arrays_check(&s->arrays);
}

static uint64_t time_of(const tide__swaps *s, const tide__decisions *d, tide_id id) {
    const tide_op *op = tide_program_op(s->in->program, id);
    uint32_t variant = d->variants.count ? d->variants.data[id] : 0;
    if (s->options.fast_ops) variant = tide__workspaces_pick(op, s->in->options->bits_any, UINT64_MAX);
    return op->variants[variant].cost_ns;
}

/* A re-run after the last op counts as one before it. */
static void find_times(tide__swaps *s, const tide__decisions *d) {
    for (tide_id o = 0; o < s->n_ops; o++) s->op_ns[o] = time_of(s, d, o);
    for (size_t i = 0; i < d->reruns.count; i++) {
        uint64_t *slot = &s->op_ns[d->reruns.data[i].slot < s->n_ops ? d->reruns.data[i].slot : s->n_ops - 1];
        *slot = tide__add_capped(*slot, time_of(s, d, d->reruns.data[i].op));
    }
}

void tide__swaps_reset_times(tide__swaps *s) {
    s->slot_ns[0] = 0;
    memset(s->wait_ns, 0, (s->n_ops + (size_t)1) * sizeof *s->wait_ns);
    for (uint32_t k = 0; k < s->n_ops; k++) s->slot_ns[k + 1] = tide__add_capped(s->slot_ns[k], s->op_ns[k]);
}

tide_status tide__swaps_restart(tide__swaps *s) {
    TIDE_TRY(allocate_work(s));
    tide__swaps_reset_times(s);
    TIDE_TRY(tide__swap_rooms_create(s));
    return tide__swaps_reset_orders(s);
}

static tide_status set_up(tide__swaps *s) {
    static const tide__decisions nothing = {0};
    const tide__decisions *beside = s->options.beside ? s->options.beside : &nothing;
    size_t slots = s->n_ops + (size_t)1;
    tide__array(&s->arrays, s->work, 1);
    tide__array(&s->arrays, s->op_ns, slots);
    tide__array(&s->arrays, s->base_loads, slots);
    tide__array(&s->arrays, s->loads, slots);
    tide__array(&s->arrays, s->slot_ns, slots);
    tide__array(&s->arrays, s->wait_ns, slots);
    TIDE_TRY(tide__arrays_check(&s->arrays));
    find_times(s, beside);
    TIDE_TRY(tide__evaluate_loads(s->in, beside, s->base_loads));
    TIDE_TRY(tide__swap_gaps_find(s, beside));
    return tide__swaps_restart(s);
}

tide_status tide__swaps_init(tide__swaps *s, const tide__policy_input *in, const tide__swaps_options *options) {
    *s = (tide__swaps){.in = in, .options = *options, .n_ops = tide_program_op_count(in->program)};
    s->tiers = tide__tiers_with_room(in);
    tide_status status = set_up(s);
    if (status != TIDE_OK) tide__swaps_deinit(s);
    return status;
}

void tide__swaps_deinit(tide__swaps *s) {
    tide__arrays_free(&s->arrays);
    tide__vec_free(&s->gaps);
    *s = (tide__swaps){0};
}

/* ---- SAVEs: as early as they can ---- */

/* A channel's clock, and the slot it has reached. */
typedef struct channel_clock {
    uint64_t t_ns;
    uint32_t slot;
} channel_clock;

/* The tier has the value: from the start of the step, or by an earlier SAVE of this evaluation. */
static bool has_copy(const tide__swaps *s, const bool *chosen, const tide__swap_gap *g) {
    if (s->options.always_save) return false;
    return (g->across != TIDE_NONE && chosen[g->across]) || s->work->saved_in[g->tensor] == s->work->evaluation;
}

static void save(tide__swaps *s, uint32_t gap, channel_clock *clock, uint64_t *late_ns) {
    const tide__swap_gap *g = &s->gaps.data[gap];
    clock->t_ns += g->out_ns;
    while (clock->slot < s->n_ops && s->slot_ns[clock->slot] < clock->t_ns) clock->slot++;
    if (clock->t_ns > s->slot_ns[s->n_ops]) *late_ns = tide__max_u64(*late_ns, clock->t_ns - s->slot_ns[s->n_ops]);
    s->work->late[gap] = clock->t_ns > s->slot_ns[s->n_ops];
    s->save_slot[gap] = clock->slot;
    s->save_order[s->n_saves++] = gap;
    s->work->saved_in[g->tensor] = s->work->evaluation;
    s->work->saved_slot[g->tensor] = clock->slot;
}

static void free_gap(tide__swaps *s, uint32_t gap) {
    const tide__swap_gap *g = &s->gaps.data[gap];
    uint32_t free_slot = g->from;
    if (s->work->saved_in[g->tensor] == s->work->evaluation && s->work->saved_slot[g->tensor] > free_slot)
        free_slot = s->work->saved_slot[g->tensor];
    s->free_slot[gap] = free_slot;
}

static void save_next(tide__swaps *s, const bool *chosen, channel_clock *clock, uint64_t *late_ns) {
    uint32_t gap = s->work->by_leave[tide__place_heap_pop(s->work->heap, &s->work->n_heap)];
    if (!has_copy(s, chosen, &s->gaps.data[gap])) save(s, gap, clock, late_ns);
    free_gap(s, gap);
}

/* All SAVEs to one tier: work->by_ready[at ..] up to the next tier, whose place is returned. */
static size_t save_to_tier(tide__swaps *s, const bool *chosen, size_t at, uint64_t *late_ns) {
    work *w = s->work;
    uint32_t tier = s->gaps.data[w->by_ready[at]].tier;
    channel_clock clock = {0, 0};
    for (;;) {
        for (; at < w->n_ready; at++) {
            uint32_t gap = w->by_ready[at];
            if (!chosen[gap]) continue;
            if (s->gaps.data[gap].tier != tier) break;
            uint64_t ready_ns = end_ns(s, ready_of(s, &s->gaps.data[gap]));
            if (ready_ns > clock.t_ns && w->n_heap > 0) break;
            clock.t_ns = tide__max_u64(clock.t_ns, ready_ns);
            tide__place_heap_push(w->heap, &w->n_heap, w->leaves[gap]);
        }
        if (w->n_heap == 0) return at;
        save_next(s, chosen, &clock, late_ns);
    }
}

/* ---- LOADs: as late as they can ---- */

static void load_all(tide__swaps *s, const bool *chosen, uint64_t *late_ns) {
    const work *w = s->work;
    uint64_t t_ns = UINT64_MAX;
    uint32_t slot = s->n_ops, tier = TIDE_NONE;
    for (size_t i = 0; i < w->n_need; i++) {
        uint32_t gap = w->by_need[i];
        const tide__swap_gap *g = &s->gaps.data[gap];
        if (!chosen[gap]) continue;
        if (g->tier != tier) t_ns = UINT64_MAX, slot = s->n_ops;
        tier = g->tier;
        t_ns = tide__min_u64(t_ns, s->slot_ns[s->need_slot[gap]]);
        if (g->in_ns > t_ns && !g->forced) {
            *late_ns = tide__max_u64(*late_ns, g->in_ns - t_ns);
            s->work->late[gap] = true;
        }
        t_ns -= tide__min_u64(t_ns, g->in_ns);
        if (slot > s->need_slot[gap]) slot = s->need_slot[gap];
        while (slot > 0 && end_ns(s, slot) > t_ns) slot--;
        s->load_slot[gap] = g->forced && slot < g->from ? g->from : slot;
    }
}

/* ---- what remains in the arena ---- */

/* change[] holds differences modulo 2^64: their sums are right wherever they are not negative. */
static void take_out(tide__swaps *s, uint32_t from, uint32_t to, uint64_t bytes) {
    s->work->change[from] -= bytes;
    s->work->change[to] += bytes;
}

static uint32_t remove_absences(tide__swaps *s, const bool *chosen) {
    uint32_t n_idle = 0;
    for (uint32_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        s->idle[i] = s->refused[i];
        n_idle += s->refused[i];
        if (!chosen[i] || s->refused[i]) continue;
        if (g->head != TIDE_NONE) {
            uint32_t load_slot = g->to == TIDE_NONE ? g->from : s->load_slot[i];
            take_out(s, 0, load_slot, g->size_bytes);
            take_out(s, s->free_slot[i], s->n_ops + 1, g->size_bytes);
            n_idle += s->idle[i] = s->work->late[i];
        } else if (g->to == TIDE_NONE) {
            take_out(s, s->free_slot[i], s->n_ops + 1, g->size_bytes);
            n_idle += s->idle[i] = s->work->late[i];
        } else if (s->load_slot[i] > s->free_slot[i]) {
            take_out(s, s->free_slot[i], s->load_slot[i], g->size_bytes);
        } else if (!g->forced) {
            s->idle[i] = true;
            n_idle++;
        }
    }
    return n_idle;
}

static void sum_loads(tide__swaps *s, uint64_t target_bytes, tide__swaps_outcome *o) {
    uint64_t change = 0;
    for (uint32_t k = 0; k <= s->n_ops; k++) {
        change += s->work->change[k];
        /* After the last op nothing may be left to do, and no load be known. */
        uint64_t load = s->loads[k] = (int64_t)(s->base_loads[k] + change) < 0 ? 0 : s->base_loads[k] + change;
        if (load > o->peak_bytes) o->peak_bytes = load;
        if (load <= target_bytes) continue;
        uint64_t ns = k < s->n_ops ? s->slot_ns[k + 1] - s->slot_ns[k] : 0;
        o->excess += (double)(load - target_bytes) * (double)(ns + 1); /* + 1: ops that take no time count, too */
    }
}

/* ---- the whole ---- */

tide__swaps_outcome tide__swaps_evaluate(tide__swaps *s, const bool *chosen, uint64_t target_bytes) {
    tide__swaps_outcome o = {0};
    work *w = s->work;
    w->evaluation++;
    s->n_saves = 0;
    memset(w->change, 0, (s->n_ops + (size_t)2) * sizeof *w->change);
    memset(s->save_slot, 0xff, s->gaps.count * sizeof *s->save_slot);
    memset(w->late, 0, s->gaps.count * sizeof *w->late);
    for (uint32_t i = 0; i < s->gaps.count; i++)
        if (s->gaps.data[i].clean) s->free_slot[i] = s->gaps.data[i].from;
    for (size_t at = 0; at < w->n_ready;) at = save_to_tier(s, chosen, at, &o.late_ns);
    load_all(s, chosen, &o.late_ns);
    tide__swaps_refuse(s, chosen);
    o.n_idle = remove_absences(s, chosen);
    sum_loads(s, target_bytes, &o);
    return o;
}

tide__swaps_outcome tide__swaps_settle(tide__swaps *s, bool *chosen, uint64_t target_bytes) {
    for (;;) {
        tide__swaps_outcome o = tide__swaps_evaluate(s, chosen, target_bytes);
        if (o.n_idle == 0) return o;
        for (size_t i = 0; i < s->gaps.count; i++)
            if (s->idle[i]) chosen[i] = false;
    }
}

tide__swaps_outcome tide__swaps_drop_refused(tide__swaps *s, bool *chosen, uint64_t target_bytes) {
    for (;;) {
        tide__swaps_outcome o = tide__swaps_evaluate(s, chosen, target_bytes);
        if (s->n_refused == 0) return o;
        for (size_t i = 0; i < s->gaps.count; i++) chosen[i] = chosen[i] && !s->refused[i];
    }
}

/* ---- decisions ---- */

/* A SAVE may be asked for before the last use: the bytes stay until both are over. */
static tide_status decide_gap(const tide__swaps *s, uint32_t gap, tide__decisions *out) {
    const tide__swap_gap *g = &s->gaps.data[gap];
    tide__swap swap = {.tensor = g->tensor, .tier = g->tier, .save_slot = s->save_slot[gap], .load_slot = TIDE_NONE};
    if (g->head == TIDE_NONE) {
        if (g->to != TIDE_NONE) swap.load_slot = s->load_slot[gap], swap.needed_slot = s->need_slot[gap];
        return tide__vec_push(&out->swaps, swap);
    }
    if (g->head != g->tensor) TIDE_TRY(tide__vec_push(&out->swaps, swap));
    swap = (tide__swap){.tensor = g->head, .tier = g->tier, .save_slot = TIDE_NONE, .load_slot = TIDE_NONE};
    if (g->to != TIDE_NONE) {
        swap.load_slot = s->load_slot[gap];
        swap.needed_slot = s->need_slot[gap];
    }
    return tide__vec_push(&out->swaps, swap);
}

tide_status tide__swaps_decide(const tide__swaps *s, const bool *chosen, tide__decisions *out) {
    for (uint32_t i = 0; i < s->n_saves; i++) TIDE_TRY(decide_gap(s, s->save_order[i], out));
    for (uint32_t i = 0; i < s->gaps.count; i++)
        if (chosen[i] && s->save_slot[i] == TIDE_NONE) TIDE_TRY(decide_gap(s, i, out));
    return TIDE_OK;
}
