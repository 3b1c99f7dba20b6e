/* Policy `capuchin` (Peng et al. 2020): from one measured iteration, here the program's costs. Swap first, by free time,
 * as long as transfers hide behind compute; then drop and recompute, by memory saved per second (MSPS), re-scoring what
 * a dropped source makes dearer; what is left waits for transfers. docs/policies/capuchin.md tells more. */
#include "plan/decide/policies/policies.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"
#include "plan/decide/policies/autoswap_scores.h"
#include "plan/decide/swaps/gap_heap.h"
#include "plan/decide/swaps/swap_choice.h"

enum { MAX_CHAIN = 16 }; /* ops of one recomputation */

typedef struct capuchin {
    const tide__policy_input *in;
    const tide_program *program;
    tide__swaps swaps;
    bool *chosen;
    double *scores;
    uint32_t *last_use;     /* per tensor: the last op that uses it; n_ops if kept */
    uint32_t *destroyed;    /* per tensor: the op that overwrites it in place; TIDE_NONE: none */
    uint32_t *dropped;      /* per tensor: the newest of its gaps that is recomputed; TIDE_NONE: none */
    uint32_t *next_drop;    /* per gap: the tensor's dropped gap before it */
    tide__scored_gap *heap; /* by memory saved per second */
    size_t n_heap;
    tide__decisions reruns;
    uint32_t *inside;    /* per tensor: its first gap between two uses; they follow each other. TIDE_NONE: none */
    uint32_t n_above;    /* slots above the target */
    tide__arrays arrays; /* owns the arrays above */
} capuchin;

/* ---- what a recomputation takes ---- */

typedef struct chain {
    tide_id op[MAX_CHAIN];
    uint32_t n;
    uint64_t cost_ns;
} chain;

static bool can_rerun(const tide_op *op) {
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) return false;
    return op->rerunnable;
}

/* Is the value in the arena, or on its way back, in this slot? */
static bool is_at_hand(const capuchin *c, tide_id tensor, uint32_t slot) {
    if (c->destroyed[tensor] != TIDE_NONE && c->destroyed[tensor] < slot) return false;
    if (c->last_use[tensor] == TIDE_NONE || c->last_use[tensor] < slot) return false;
    for (uint32_t g = c->dropped[tensor]; g != TIDE_NONE; g = c->next_drop[g])
        if (c->swaps.gaps.data[g].from <= slot && slot < c->swaps.gaps.data[g].to) return false;
    return true;
}

static bool in_chain(const chain *x, tide_id op) {
    for (uint32_t i = 0; i < x->n; i++)
        if (x->op[i] == op) return true;
    return false;
}

/* Adds the op that makes the value, and, one after the other, those that make what it reads and is not at hand. */
static bool find_chain(const capuchin *c, tide_id tensor, uint32_t slot, chain *x) {
    *x = (chain){.n = 1};
    x->op[0] = tide_program_producer(c->program, tensor);
    for (uint32_t i = 0; i < x->n; i++) {
        const tide_op *op = tide_program_op(c->program, x->op[i]);
        if (!can_rerun(op)) return false;
        x->cost_ns += op->variants[0].cost_ns;
        for (uint32_t k = 0; k < op->n_reads; k++) {
            if (is_at_hand(c, op->reads[k], slot)) continue;
            tide_id producer = tide_program_producer(c->program, op->reads[k]);
            if (producer == TIDE_NONE || x->n == MAX_CHAIN) return false;
            if (!in_chain(x, producer)) x->op[x->n++] = producer;
        }
    }
    return true;
}

/* Memory saved per second; 0 if it cannot be recomputed. */
static double msps(const capuchin *c, uint32_t gap) {
    const tide__swap_gap *g = &c->swaps.gaps.data[gap];
    chain x;
    if (!find_chain(c, g->tensor, g->to, &x)) return 0;
    return (double)g->size_bytes / (double)(x.cost_ns + 1);
}

/* ---- the greedy choice of what is recomputed ---- */

static void fill_heap(capuchin *c) {
    for (uint32_t i = 0; i < c->swaps.gaps.count; i++) {
        const tide__swap_gap *g = &c->swaps.gaps.data[i];
        bool made = tide_program_tensor(c->program, g->tensor)->start == TIDE_START_ABSENT;
        if (c->chosen[i] || g->head != TIDE_NONE || g->forced || g->to == TIDE_NONE || !made) continue;
        tide__scored_gap x = {msps(c, i), i};
        if (x.score > 0) c->heap[c->n_heap++] = x;
    }
    tide__gap_heap_make(c->heap, c->n_heap);
}

/* Chains only get longer, so a candidate that still leads with its fresh score is the best. */
static uint32_t pop_best(capuchin *c) {
    while (c->n_heap > 0) {
        tide__scored_gap fresh = {msps(c, c->heap[0].gap), c->heap[0].gap};
        bool stale = fresh.score < c->heap[0].score;
        c->heap[0] = fresh;
        if (stale && fresh.score > 0) {
            tide__gap_heap_sink(c->heap, c->n_heap, 0);
            if (c->heap[0].gap != fresh.gap) continue;
        }
        tide__gap_heap_pop(c->heap, &c->n_heap);
        if (fresh.score > 0) return fresh.gap;
    }
    return TIDE_NONE;
}

static bool helps(const tide__swaps *s, const tide__swap_gap *g, uint64_t target_bytes) {
    for (uint32_t k = g->from; k < tide__swap_gap_end(s, g); k++)
        if (s->loads[k] > target_bytes) return true;
    return false;
}

/* A source that a re-run reads is back by then, or leaves after it. */
static void bring_back(capuchin *c, tide_id tensor, uint32_t slot) {
    tide__swap_gap *gaps = c->swaps.gaps.data;
    for (uint32_t i = c->inside[tensor]; i < c->swaps.gaps.count && gaps[i].tensor == tensor; i++)
        if (gaps[i].from < slot && slot < gaps[i].to) gaps[i].to = slot;
}

static void take_off(capuchin *c, uint32_t from, uint32_t to, uint64_t bytes) {
    for (uint32_t k = from; k < to; k++) {
        bool above = c->swaps.loads[k] > c->in->target_bytes;
        c->swaps.loads[k] -= tide__min_u64(c->swaps.loads[k], bytes);
        c->n_above -= above && c->swaps.loads[k] <= c->in->target_bytes;
    }
}

static tide_status drop(capuchin *c, uint32_t gap) {
    const tide__swap_gap *g = &c->swaps.gaps.data[gap];
    chain x;
    if (!find_chain(c, g->tensor, g->to, &x)) return TIDE_OK;
    for (uint32_t i = 0; i < x.n; i++) {
        const tide_op *op = tide_program_op(c->program, x.op[i]);
        TIDE_TRY(tide__vec_push(&c->reruns.reruns, ((tide__rerun){.slot = g->to, .op = x.op[i]})));
        for (uint32_t k = 0; k < op->n_reads; k++) bring_back(c, op->reads[k], g->to);
    }
    take_off(c, g->from, g->to, g->size_bytes);
    c->next_drop[gap] = c->dropped[g->tensor];
    c->dropped[g->tensor] = gap;
    return TIDE_OK;
}

static int by_slot_and_op(const void *a, const void *b) {
    const tide__rerun *x = a, *y = b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static void remove_twins(tide__decisions *d) {
    if (d->reruns.count == 0) return;
    tide__rerun *r = d->reruns.data;
    size_t n = 1;
    qsort(r, d->reruns.count, sizeof *r, by_slot_and_op);
    for (size_t i = 1; i < d->reruns.count; i++)
        if (by_slot_and_op(&r[i], &r[n - 1]) != 0) r[n++] = r[i];
    d->reruns.count = n;
}

static tide_status recompute(capuchin *c) {
    uint64_t target = c->in->target_bytes;
    fill_heap(c);
    for (uint32_t k = 0; k <= c->swaps.n_ops; k++) c->n_above += c->swaps.loads[k] > target;
    for (uint32_t gap; c->n_above > 0 && (gap = pop_best(c)) != TIDE_NONE;)
        if (helps(&c->swaps, &c->swaps.gaps.data[gap], target)) TIDE_TRY(drop(c, gap));
    remove_twins(&c->reruns);
    return TIDE_OK;
}

/* ---- swaps, before and after ---- */

static tide_status swap_by_free_time(capuchin *c, tide__swaps_outcome *out) {
    TIDE_TRY(tide__swap_scores(&c->swaps, TIDE__SWAP_DOA, c->scores));
    return tide__swaps_choose_prefix(&c->swaps, c->scores, c->in->target_bytes, c->chosen, out);
}

/* Moves on the loads and the clock that the re-runs make; what does not hide is waited for. */
static tide_status swap_beside(capuchin *c) {
    tide__swaps_options options = {.beside = &c->reruns};
    tide__swaps_outcome o;
    tide__swaps_deinit(&c->swaps);
    TIDE_TRY(tide__swaps_init(&c->swaps, c->in, &options));
    TIDE_TRY(swap_by_free_time(c, &o));
    if (o.excess <= 0) return TIDE_OK;
    return tide__swaps_choose_waits(&c->swaps, c->scores, c->in->target_bytes, c->chosen);
}

/* ---- life ---- */

static void find_uses(capuchin *c, uint32_t n_tensors, uint32_t n_ops) {
    for (tide_id o = 0; o < n_ops; o++) {
        const tide_op *op = tide_program_op(c->program, o);
        for (uint32_t k = 0; k < op->n_reads; k++) c->last_use[op->reads[k]] = o;
        for (uint32_t k = 0; k < op->n_writes; k++) c->last_use[op->writes[k]] = o;
        for (uint32_t k = 0; k < op->n_inplace; k++)
            if (op->inplace[k].must) c->destroyed[op->reads[op->inplace[k].read]] = o;
    }
    for (tide_id t = 0; t < n_tensors; t++)
        if (tide_program_tensor(c->program, t)->keep) c->last_use[t] = n_ops;
    for (uint32_t i = (uint32_t)c->swaps.gaps.count; i-- > 0;) {
        const tide__swap_gap *g = &c->swaps.gaps.data[i];
        if (g->head == TIDE_NONE && g->from > 0 && g->to != TIDE_NONE) c->inside[g->tensor] = i;
    }
}

static tide_status init(capuchin *c) {
    tide__swaps_options options = {0};
    TIDE_TRY(tide__swaps_init(&c->swaps, c->in, &options));
    uint32_t n_tensors = tide_program_tensor_count(c->program), n_ops = c->swaps.n_ops;
    size_t gaps = c->swaps.gaps.count + 1, tensors = n_tensors + (size_t)1;
    tide__array(&c->arrays, c->chosen, gaps);
    tide__array(&c->arrays, c->scores, gaps);
    tide__array(&c->arrays, c->next_drop, gaps);
    tide__array(&c->arrays, c->heap, gaps);
    tide__array_ones(&c->arrays, c->last_use, tensors);
    tide__array_ones(&c->arrays, c->destroyed, tensors);
    tide__array_ones(&c->arrays, c->dropped, tensors);
    tide__array_ones(&c->arrays, c->inside, tensors);
    TIDE_TRY(tide__arrays_check(&c->arrays));
    find_uses(c, n_tensors, n_ops);
    return TIDE_OK;
}

static void deinit(capuchin *c) {
    tide__swaps_deinit(&c->swaps);
    tide__arrays_free(&c->arrays);
    tide__decisions_free(&c->reruns);
}

/* ---- the policy ---- */

static bool is_within(const tide__swaps *s, uint64_t target_bytes) {
    for (uint32_t k = 0; k <= s->n_ops; k++)
        if (s->loads[k] > target_bytes) return false;
    return true;
}

static tide_status decide(capuchin *c, tide__decisions *out) {
    tide__swaps_outcome o;
    TIDE_TRY(init(c));
    TIDE_TRY(swap_by_free_time(c, &o));
    if (o.excess > 0) {
        TIDE_TRY(recompute(c));
        TIDE_TRY(swap_beside(c));
        if (!is_within(&c->swaps, c->in->target_bytes)) {
            c->reruns.reruns.count = 0; /* that keep their sources alive for too long can make matters worse */
            TIDE_TRY(swap_beside(c));
        }
    }
    for (size_t i = 0; i < c->reruns.reruns.count; i++)
        TIDE_TRY(tide__vec_push(&out->reruns, c->reruns.reruns.data[i]));
    return tide__swaps_decide(&c->swaps, c->chosen, out);
}

tide_status tide__decide_capuchin(const tide__policy_input *in, tide__decisions *out) {
    capuchin c = {.in = in, .program = in->program};
    tide_status status = decide(&c, out);
    deinit(&c);
    return status;
}
