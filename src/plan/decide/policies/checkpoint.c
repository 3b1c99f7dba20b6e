/* Policy `checkpoint`: gradient checkpointing as people do it by hand (docs/policies/checkpoint.md). Forward is cut into
 * stretches; only what crosses a cut is kept, and backward re-runs a stretch, once, where it first needs one of its
 * values. The last stretch is not cut off: backward begins where it ends.
 *
 *   sqrt    as many stretches as each has ops (Chen et al. 2016)
 *   block   cuts where forward is narrow: fewer bytes cross than on either side
 *   (none)  narrow cuts, thinned out, and only as many stretches from the front as the target needs
 */
#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"
#include "plan/evaluate.h"
#include "plan/decide/policies/policies.h"
#include "plan/decide/policies/segments.h"

enum { MAX_THINNING = 64, MAX_REFINED = 2 };

typedef struct chain {
    const tide__policy_input *in;
    uint32_t n_ops, n_forward;
    tide_id *op;             /* the forward ops, in order */
    uint32_t *place;         /* per op: its place among them, TIDE_NONE for others */
    uint32_t *last_place;    /* per tensor: place of the last forward op that reads it, 0 if none does */
    uint32_t *first_need;    /* per tensor: first op after forward that reads it, TIDE_NONE if none does */
    uint32_t *destroyed;     /* per tensor: op that updates it in place, n_ops if none does */
    bool *side;              /* per tensor: too small to matter (segments.h) */
    TIDE_VEC(uint32_t) cuts; /* places after which forward is cut, ascending */
    bool *again;             /* per op: scratch, is to be re-run */
    uint64_t *loads;         /* scratch */
    tide__arrays arrays;     /* owns the arrays above */
} chain;

static const tide_op *op_at(const chain *c, uint32_t place) { return tide_program_op(c->in->program, c->op[place]); }

static uint64_t bytes_of(const chain *c, tide_id t) { return tide_program_tensor(c->in->program, t)->size_bytes; }

static uint32_t producer_place(const chain *c, tide_id t) {
    tide_id producer = tide_program_producer(c->in->program, t);
    return producer == TIDE_NONE ? TIDE_NONE : c->place[producer];
}

/* ---- reading the program ---- */

static void note_op(chain *c, tide_id id) {
    const tide_op *op = tide_program_op(c->in->program, id);
    bool forward = op->phase == TIDE_FORWARD;
    c->place[id] = forward ? c->n_forward : TIDE_NONE;
    for (uint32_t i = 0; i < op->n_reads; i++) {
        tide_id t = op->reads[i];
        if (forward)
            c->last_place[t] = c->n_forward;
        else if (c->first_need[t] == TIDE_NONE)
            c->first_need[t] = id;
    }
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) c->destroyed[op->reads[op->inplace[i].read]] = id;
    if (forward) c->op[c->n_forward++] = id;
}

static tide_status chain_init(const tide__policy_input *in, chain *c) {
    *c = (chain){.in = in, .n_ops = tide_program_op_count(in->program)};
    uint32_t n_tensors = tide_program_tensor_count(in->program);
    size_t ops = c->n_ops + (size_t)1, tensors = n_tensors + (size_t)1;
    tide__array(&c->arrays, c->op, ops);
    tide__array(&c->arrays, c->place, ops);
    tide__array(&c->arrays, c->again, ops);
    tide__array(&c->arrays, c->loads, ops);
    tide__array(&c->arrays, c->last_place, tensors);
    tide__array_ones(&c->arrays, c->first_need, tensors);
    tide__array(&c->arrays, c->destroyed, tensors);
    tide__array(&c->arrays, c->side, tensors);
    TIDE_TRY(tide__arrays_check(&c->arrays));
    for (tide_id t = 0; t < n_tensors; t++) c->destroyed[t] = c->n_ops;
    for (tide_id i = 0; i < c->n_ops; i++) note_op(c, i);
    tide__find_side_results(in->program, c->side);
    return TIDE_OK;
}

static void chain_free(chain *c) {
    tide__arrays_free(&c->arrays);
    tide__vec_free(&c->cuts);
}

/* ---- cuts ---- */

static uint32_t square_root(uint32_t n) {
    uint32_t root = 0;
    while ((uint64_t)(root + 1) * (root + 1) <= n) root++;
    return root;
}

static tide_status cut_evenly(chain *c) {
    uint32_t n = square_root(c->n_forward);
    for (uint32_t i = 1; i < n; i++) TIDE_TRY(tide__vec_push(&c->cuts, (uint32_t)((uint64_t)i * c->n_forward / n) - 1));
    return TIDE_OK;
}

/* crossing[i]: bytes written by forward ops up to place i and read by later ones. */
static void sum_crossing(const chain *c, uint64_t *crossing) {
    for (uint32_t i = 0; i < c->n_forward; i++) {
        const tide_op *op = op_at(c, i);
        for (uint32_t k = 0; k < op->n_writes; k++) {
            tide_id t = op->writes[k];
            if (c->side[t] || c->last_place[t] <= i) continue;
            crossing[i] += bytes_of(c, t);
            crossing[c->last_place[t]] -= bytes_of(c, t); /* modulo 2^64 */
        }
    }
    for (uint32_t i = 1; i < c->n_forward; i++) crossing[i] += crossing[i - 1];
}

/* Behind the last op of each level stretch that is lower than what comes before and after. */
static tide_status cut_where_narrow(chain *c) {
    uint64_t *crossing = calloc(c->n_forward + (size_t)1, sizeof *crossing);
    if (!crossing) return tide__fail_memory();
    sum_crossing(c, crossing);
    tide_status status = TIDE_OK;
    bool falling = false;
    for (uint32_t i = 0; i + 1 < c->n_forward && status == TIDE_OK; i++) {
        if (i > 0 && crossing[i] != crossing[i - 1]) falling = crossing[i] < crossing[i - 1];
        if (falling && crossing[i + 1] > crossing[i]) status = tide__vec_push(&c->cuts, i);
    }
    free(crossing);
    return status;
}

/* ---- re-running one stretch, places [begin, end) ---- */

static bool is_inside(const chain *c, tide_id t, uint32_t begin, uint32_t end) {
    uint32_t place = producer_place(c, t);
    return place != TIDE_NONE && place >= begin && place < end;
}

/* Not kept over the cut for other reasons, and worth bringing back. */
static bool is_dropped(const chain *c, tide_id t, uint32_t end) {
    return !c->side[t] && c->last_place[t] < end && !tide_program_tensor(c->in->program, t)->keep;
}

/* Where backward first needs a value that is dropped; TIDE_NONE if nowhere. */
static uint32_t find_first_need(const chain *c, uint32_t begin, uint32_t end) {
    uint32_t first = TIDE_NONE;
    for (uint32_t i = begin; i < end; i++) {
        const tide_op *op = op_at(c, i);
        for (uint32_t k = 0; k < op->n_writes; k++)
            if (is_dropped(c, op->writes[k], end) && c->first_need[op->writes[k]] < first)
                first = c->first_need[op->writes[k]];
    }
    return first;
}

/* All it reads is there before op `slot`, or comes from the same stretch and can be run again itself. */
static bool can_run_again(const chain *c, tide_id id, uint32_t slot, uint32_t begin, uint32_t end) {
    const tide_op *op = tide_program_op(c->in->program, id);
    if (!op->rerunnable || id >= slot) return false;
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) return false;
    for (uint32_t i = 0; i < op->n_reads; i++) {
        tide_id t = op->reads[i];
        bool comes_back =
            is_inside(c, t, begin, end) && is_dropped(c, t, end) && c->again[tide_program_producer(c->in->program, t)];
        if (!comes_back && c->destroyed[t] < slot) return false;
    }
    return true;
}

/* Does anything after forward, or an op that is re-run, read what it writes? */
static bool is_wanted(const chain *c, const tide_op *op, uint32_t end, const bool *wanted) {
    for (uint32_t i = 0; i < op->n_writes; i++) {
        tide_id t = op->writes[i];
        if (is_dropped(c, t, end) && (c->first_need[t] != TIDE_NONE || wanted[t])) return true;
    }
    return false;
}

/* Keeps of the ops that can run again those that are wanted, last first. wanted: per tensor, by an op that is re-run. */
static void keep_wanted(const chain *c, uint32_t begin, uint32_t end, bool *wanted) {
    for (uint32_t i = end; i-- > begin;) {
        const tide_op *op = op_at(c, i);
        c->again[c->op[i]] &= is_wanted(c, op, end, wanted);
        for (uint32_t k = 0; k < op->n_reads && c->again[c->op[i]]; k++) wanted[op->reads[k]] = true;
    }
}

static tide_status rerun_stretch(const chain *c, uint32_t begin, uint32_t end, bool *wanted, tide__decisions *out) {
    uint32_t slot = find_first_need(c, begin, end);
    if (slot == TIDE_NONE) return TIDE_OK;
    for (uint32_t i = begin; i < end; i++) c->again[c->op[i]] = can_run_again(c, c->op[i], slot, begin, end);
    keep_wanted(c, begin, end, wanted);
    for (uint32_t i = begin; i < end; i++)
        if (c->again[c->op[i]]) TIDE_TRY(tide__vec_push(&out->reruns, ((tide__rerun){.slot = slot, .op = c->op[i]})));
    return TIDE_OK;
}

/* Every `thinning`-th cut counts; the first n of the stretches are re-run. */
static tide_status rerun_stretches(const chain *c, uint32_t thinning, size_t n, tide__decisions *out) {
    bool *wanted = calloc(tide_program_tensor_count(c->in->program) + (size_t)1, sizeof *wanted);
    tide_status status = wanted ? TIDE_OK : tide__fail_memory();
    uint32_t begin = 0;
    out->reruns.count = 0;
    for (size_t i = thinning - 1; i < c->cuts.count && n > 0 && status == TIDE_OK; i += thinning, n--) {
        status = rerun_stretch(c, begin, c->cuts.data[i] + 1, wanted, out);
        begin = c->cuts.data[i] + 1;
    }
    free(wanted);
    return status;
}

/* ---- fitting ---- */

/* One way to do it and what it comes to. */
typedef struct trial {
    uint32_t thinning;
    size_t n;
    uint64_t load_bytes, cost_ns;
} trial;

static tide_status try_out(chain *c, tide__decisions *out, trial *t) {
    TIDE_TRY(rerun_stretches(c, t->thinning, t->n, out));
    TIDE_TRY(tide__evaluate_loads(c->in, out, c->loads));
    t->load_bytes = t->cost_ns = 0;
    for (uint32_t k = 0; k <= c->n_ops; k++) t->load_bytes = tide__max_u64(t->load_bytes, c->loads[k]);
    for (size_t i = 0; i < out->reruns.count; i++)
        t->cost_ns += tide_program_op(c->in->program, out->reruns.data[i].op)->variants[0].cost_ns;
    return TIDE_OK;
}

static bool is_better(const chain *c, const trial *a, const trial *b) {
    bool fits = a->load_bytes <= c->in->target_bytes, other = b->load_bytes <= c->in->target_bytes;
    if (fits != other) return fits;
    if (fits && a->cost_ns != b->cost_ns) return a->cost_ns < b->cost_ns;
    return a->load_bytes < b->load_bytes;
}

/* As few stretches from the front as fit, by bisection: more of them never hold more at once, or hardly. */
static tide_status refine(chain *c, tide__decisions *out, trial *best, trial t) {
    size_t too_few = 0, enough = t.n;
    while (enough > too_few + 1 && t.load_bytes <= c->in->target_bytes) {
        trial less = {.thinning = t.thinning, .n = too_few + (enough - too_few) / 2};
        TIDE_TRY(try_out(c, out, &less));
        if (is_better(c, &less, best)) *best = less;
        if (less.load_bytes <= c->in->target_bytes)
            enough = less.n;
        else
            too_few = less.n;
    }
    return TIDE_OK;
}

static int by_load(const void *a, const void *b) {
    const trial *x = a, *y = b;
    if (x->load_bytes != y->load_bytes) return x->load_bytes < y->load_bytes ? -1 : 1;
    return (x->thinning > y->thinning) - (x->thinning < y->thinning);
}

static tide_status fit(chain *c, tide__decisions *out) {
    trial trials[8], best = {.thinning = 1, .n = 0};
    size_t count = 0;
    TIDE_TRY(try_out(c, out, &best)); /* nothing re-run at all */
    if (best.load_bytes <= c->in->target_bytes) return TIDE_OK;
    for (uint32_t thinning = 1; thinning <= MAX_THINNING && thinning <= c->cuts.count; thinning *= 2) {
        trials[count] = (trial){.thinning = thinning, .n = c->cuts.count / thinning};
        TIDE_TRY(try_out(c, out, &trials[count]));
        if (is_better(c, &trials[count], &best)) best = trials[count];
        count++;
    }
    qsort(trials, count, sizeof *trials, by_load);
    for (size_t i = 0; i < count && i < MAX_REFINED; i++) TIDE_TRY(refine(c, out, &best, trials[i]));
    return rerun_stretches(c, best.thinning, best.n, out);
}

static tide_status decide(chain *c, tide__decisions *out) {
    const char *argument = c->in->argument;
    bool evenly = strcmp(argument, "sqrt") == 0, fits = *argument == '\0';
    TIDE_TRY(evenly ? cut_evenly(c) : cut_where_narrow(c));
    return fits ? fit(c, out) : rerun_stretches(c, 1, c->cuts.count, out);
}

tide_status tide__decide_checkpoint(const tide__policy_input *in, tide__decisions *out) {
    const char *argument = in->argument;
    if (*argument && strcmp(argument, "sqrt") != 0 && strcmp(argument, "block") != 0)
        return tide__fail(TIDE_E_ARGUMENT, "checkpoint has no \"%.64s\" (known: sqrt, block)", argument);
    chain c;
    tide_status status = chain_init(in, &c);
    if (status == TIDE_OK) status = decide(&c, out);
    chain_free(&c);
    return status;
}
