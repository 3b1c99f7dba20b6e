/* See autoswap_scores.h. SWDOA is a lazy greedy choice: scores only fall as others are chosen, so a gap whose fresh score
 * still beats the next stale one is the best; loads change over ranges of slots and are summed over ranges, both in
 * Fenwick trees. */
#include "plan/decide/policies/autoswap_scores.h"

#include "base/arrays.h"

#include "plan/decide/swaps/gap_heap.h"

/* ---- stretches of a gap ---- */

typedef struct stretch {
    uint32_t begin, end; /* slots, half-open */
} stretch;

/* One stretch inside the step, or two at its ends; returns how many. */
static int stretches_of(const tide__swaps *s, const tide__swap_gap *g, stretch out[2]) {
    if (g->head == TIDE_NONE) {
        out[0] = (stretch){g->from, g->to == TIDE_NONE ? s->n_ops : g->to};
        return 1;
    }
    out[0] = (stretch){g->from, s->n_ops};
    out[1] = (stretch){0, g->to == TIDE_NONE ? g->from : g->to};
    return 2;
}

static double duration_ns(const tide__swaps *s, const tide__swap_gap *g) {
    stretch parts[2];
    double ns = -(double)g->out_ns - (double)g->in_ns;
    for (int i = stretches_of(s, g, parts); i-- > 0;)
        ns += (double)s->slot_ns[parts[i].end] - (double)s->slot_ns[parts[i].begin];
    return ns;
}

static double area(const tide__swap_gap *g, double ns) {
    return ns >= 0 ? ns * (double)g->size_bytes : ns / (double)(g->size_bytes + !g->size_bytes);
}

/* ---- the load, integrated over time, as ranges of it change ---- */

/* load(k) is base(k) minus the bytes taken from ranges that hold k. With `level` a Fenwick tree of the changes at the
 * ranges' ends and `moment` one of change x time, the bytes x time taken before slot k is level(k) t(k) - moment(k). */
typedef struct integral {
    const uint64_t *t_ns;
    double *base, *level, *moment; /* n_slots + 1 each; base: integral of the base load up to a slot */
    tide__scored_gap *heap;        /* scratch */
    uint32_t n_slots;
    tide__arrays arrays; /* owns the arrays above */
} integral;

static void tree_add(double *tree, uint32_t n, uint32_t at, double value) {
    for (uint32_t i = at + 1; i <= n; i += i & (~i + 1)) tree[i] += value;
}

/* Of entries [0, end). */
static double tree_sum(const double *tree, uint32_t end) {
    double sum = 0;
    for (uint32_t i = end; i > 0; i &= i - 1) sum += tree[i];
    return sum;
}

static void integral_take(integral *x, stretch part, double bytes) {
    tree_add(x->level, x->n_slots, part.begin, bytes);
    tree_add(x->moment, x->n_slots, part.begin, bytes * (double)x->t_ns[part.begin]);
    if (part.end >= x->n_slots) return;
    tree_add(x->level, x->n_slots, part.end, -bytes);
    tree_add(x->moment, x->n_slots, part.end, -bytes * (double)x->t_ns[part.end]);
}

static double integral_to(const integral *x, uint32_t slot) {
    return x->base[slot] - (tree_sum(x->level, slot) * (double)x->t_ns[slot] - tree_sum(x->moment, slot));
}

static double weight(const integral *x, const tide__swaps *s, const tide__swap_gap *g) {
    stretch parts[2];
    double sum = 0;
    for (int i = stretches_of(s, g, parts); i-- > 0;)
        sum += integral_to(x, parts[i].end) - integral_to(x, parts[i].begin);
    return sum;
}

static tide_status integral_init(integral *x, const tide__swaps *s) {
    size_t n = s->n_ops + (size_t)2;
    *x = (integral){.t_ns = s->slot_ns, .n_slots = s->n_ops + 1};
    tide__array(&x->arrays, x->base, n);
    tide__array(&x->arrays, x->level, n);
    tide__array(&x->arrays, x->moment, n);
    tide__array(&x->arrays, x->heap, s->gaps.count + 1);
    TIDE_TRY(tide__arrays_check(&x->arrays));
    for (uint32_t k = 0; k < s->n_ops; k++)
        x->base[k + 1] = x->base[k] + (double)s->base_loads[k] * (double)(s->slot_ns[k + 1] - s->slot_ns[k]);
    return TIDE_OK;
}

/* ---- SWDOA ---- */

/* The score of a gap is its rank among the greedy choices, the first the highest. */
static void choose_greedily(integral *x, const tide__swaps *s, double *scores) {
    tide__scored_gap *heap = x->heap;
    size_t n = s->gaps.count;
    for (uint32_t i = 0; i < n; i++) heap[i] = (tide__scored_gap){weight(x, s, &s->gaps.data[i]), i};
    tide__gap_heap_make(heap, n);
    while (n > 0) {
        const tide__swap_gap *g = &s->gaps.data[heap[0].gap];
        tide__scored_gap fresh = {weight(x, s, g), heap[0].gap}, stale = heap[0];
        heap[0] = fresh;
        if (fresh.score < stale.score) {
            tide__gap_heap_sink(heap, n, 0);
            if (heap[0].gap != fresh.gap) continue;
        }
        stretch parts[2];
        for (int i = stretches_of(s, g, parts); i-- > 0;) integral_take(x, parts[i], (double)g->size_bytes);
        scores[fresh.gap] = (double)n;
        tide__gap_heap_pop(heap, &n);
    }
}

static tide_status score_weights(const tide__swaps *s, bool submodular, double *scores) {
    integral x;
    tide_status status = integral_init(&x, s);
    if (status == TIDE_OK && submodular) choose_greedily(&x, s, scores);
    for (size_t i = 0; i < s->gaps.count && status == TIDE_OK && !submodular; i++)
        scores[i] = weight(&x, s, &s->gaps.data[i]);
    tide__arrays_free(&x.arrays);
    return status;
}

tide_status tide__swap_scores(const tide__swaps *s, tide__swap_score kind, double *scores) {
    if (kind == TIDE__SWAP_WDOA || kind == TIDE__SWAP_SWDOA) return score_weights(s, kind == TIDE__SWAP_SWDOA, scores);
    for (size_t i = 0; i < s->gaps.count; i++) {
        double ns = duration_ns(s, &s->gaps.data[i]);
        scores[i] = kind == TIDE__SWAP_DOA ? ns : area(&s->gaps.data[i], ns);
    }
    return TIDE_OK;
}
