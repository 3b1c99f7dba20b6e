/* See repair.h. Scores only fall while others are accepted, mostly; so the heap holds what was last seen, and the top
 * is looked at again before it is believed (lazy greedy). */
#include "plan/decide/hybrid/repair.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

tide_status tide__repair_init(tide__sketch *sketch, tide__repair *r) {
    *r = (tide__repair){.sketch = sketch, .limit = UINT64_MAX, .mask = (1u << TIDE__N_HOLDS) - 1};
    r->dropped = calloc(sketch->model->n_tensors + (size_t)1, sizeof *r->dropped);
    r->needed = calloc(sketch->model->n_tensors + (size_t)1, sizeof *r->needed);
    TIDE_TRY(tide__chain_init(sketch->model, &r->chain));
    return r->dropped && r->needed ? TIDE_OK : tide__fail_memory();
}

void tide__repair_deinit(tide__repair *r) {
    tide__chain_deinit(&r->chain);
    tide__vec_free(&r->heap);
    tide__vec_free(&r->added);
    tide__vec_free(&r->changed);
    free(r->dropped);
    free(r->needed);
}

/* ---- the heap ---- */

static void sift_down(tide__candidate *heap, size_t n, size_t i) {
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1].score > heap[child].score) child++;
        if (heap[i].score >= heap[child].score) return;
        tide__candidate swap = heap[i];
        heap[i] = heap[child];
        heap[child] = swap;
    }
}

static tide_status push(tide__repair *r, tide__candidate candidate) {
    TIDE_TRY(tide__vec_push(&r->heap, candidate));
    tide__candidate *heap = r->heap.data;
    for (size_t i = r->heap.count - 1; i > 0 && heap[(i - 1) / 2].score < heap[i].score; i = (i - 1) / 2) {
        tide__candidate swap = heap[i];
        heap[i] = heap[(i - 1) / 2];
        heap[(i - 1) / 2] = swap;
    }
    return TIDE_OK;
}

static tide__candidate pop(tide__repair *r) {
    tide__candidate top = r->heap.data[0];
    r->heap.data[0] = r->heap.data[--r->heap.count];
    sift_down(r->heap.data, r->heap.count, 0);
    return top;
}

/* ---- candidates ---- */

static double draw(tide__repair *r) {
    return r->noise > 0 ? 1 + r->noise * (double)tide__random_unit(r->seed, 0, r->draws++) : 1;
}

static bool covers_excess(const tide__sketch *s, tide__span gap) {
    return gap.to > gap.from + 1 && s->over[gap.to] > s->over[gap.from + 1];
}

/* A gap inside one slot lies between re-runs of a chain; dropping it there would only repeat the chain. */
static bool is_candidate(const tide__sketch *s, tide__span gap) {
    tide_id producer = s->model->producer[gap.tensor];
    if (producer == TIDE_NONE || !s->model->rerunnable[producer] || !covers_excess(s, gap)) return false;
    uint32_t slot = gap.to == s->n_events ? s->model->n_ops : tide__event_slot(s->keys[gap.to]);
    return tide__event_slot(s->keys[gap.from]) != slot;
}

/* The best way to close a gap, left in the chain; score 0 if none helps. */
static tide_status score(tide__repair *r, tide__span gap, tide__candidate *best) {
    tide__sketch *s = r->sketch;
    *best = (tide__candidate){.tensor = gap.tensor, .to_key = gap.to == s->n_events ? UINT64_MAX : s->keys[gap.to]};
    for (uint32_t hold = 0; hold < TIDE__N_HOLDS; hold++) {
        bool possible;
        if (!(r->mask >> hold & 1)) continue;
        TIDE_TRY(tide__chain_propose(s, gap, (tide__hold)hold, &r->chain, &possible));
        r->work += tide__chain_work(&r->chain, gap);
        if (!possible || r->chain.relief <= 0) continue;
        double value = r->chain.relief / (double)(r->chain.cost_ns + 1);
        if (value > best->score) {
            best->score = value;
            best->hold = (tide__hold)hold;
        }
        if (r->chain.held.count == 0 && r->chain.ops.count == 1) break; /* nothing to hold: all ways are one */
    }
    return TIDE_OK;
}

/* More than any chain for this gap scores, but for what else it frees: all bytes gone, at the price of one op. */
static tide__candidate hope(const tide__sketch *s, tide__span gap) {
    double relief = (double)s->model->size[gap.tensor] * (double)(s->over[gap.to] - s->over[gap.from + 1]);
    double cost = (double)s->model->cost_ns[s->model->producer[gap.tensor]] + 1;
    return (tide__candidate){.tensor = gap.tensor,
                             .to_key = gap.to == s->n_events ? UINT64_MAX : s->keys[gap.to],
                             .score = (relief < s->excess ? relief : s->excess) / cost};
}

/* Events above which batches are taken, at the word of their scores; else the top is scored when it gets there. */
enum { LARGE = 6000, LARGE_PRUNED = 100, FEW_PART = 16 };

bool tide__repair_is_batched(const tide__repair *r) { return r->sketch->n_events > LARGE; }

static tide_status consider(tide__repair *r, tide__span gap) {
    tide__candidate candidate;
    if (!is_candidate(r->sketch, gap)) return TIDE_OK;
    r->work++;
    candidate = hope(r->sketch, gap);
    if (tide__repair_is_batched(r)) TIDE_TRY(score(r, gap, &candidate));
    candidate.score *= draw(r);
    return candidate.score > 0 ? push(r, candidate) : TIDE_OK;
}

/* All gaps of a tensor's stays. */
static tide_status consider_tensor(tide__repair *r, tide_id tensor) {
    const tide__sketch *s = r->sketch;
    for (uint32_t i = s->latest[tensor]; i != TIDE_NONE; i = s->stays.data[i].before)
        for (uint32_t u = s->stays.data[i].last_use; s->uses.data[u].before != TIDE_NONE; u = s->uses.data[u].before)
            TIDE_TRY(consider(r, (tide__span){.tensor = tensor,
                                              .from = s->uses.data[s->uses.data[u].before].event,
                                              .to = s->uses.data[u].event}));
    return TIDE_OK;
}

/* The gap that a candidate meant, if it is still there. */
static bool find_gap(const tide__sketch *s, const tide__candidate *c, tide__span *out) {
    uint32_t to = c->to_key == UINT64_MAX ? s->n_events : tide__sketch_after(s, c->to_key) - 1;
    for (uint32_t i = s->latest[c->tensor]; i != TIDE_NONE; i = s->stays.data[i].before) {
        if (s->stays.data[i].begin >= to) continue;
        for (uint32_t u = s->stays.data[i].last_use; s->uses.data[u].before != TIDE_NONE; u = s->uses.data[u].before) {
            if (s->uses.data[u].event != to) continue;
            *out = (tide__span){.tensor = c->tensor, .from = s->uses.data[s->uses.data[u].before].event, .to = to};
            return is_candidate(s, *out);
        }
        return false;
    }
    return false;
}

/* ---- acceptance ---- */

static tide_status add_chain(tide__repair *r) {
    const tide__chain *c = &r->chain;
    const tide__model *m = r->sketch->model;
    for (size_t k = 0; k < c->ops.count; k++) {
        tide_id op = c->ops.data[k];
        uint64_t key = tide__event_key(c->slot, TIDE__EVENT_RUN, op);
        TIDE_TRY(tide__sketch_add(r->sketch, key));
        TIDE_TRY(tide__vec_push(&r->added, key));
        for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++)
            TIDE_TRY(tide__vec_push(&r->changed, m->reads[i]));
    }
    return TIDE_OK;
}

static tide_status rebuild(tide__repair *r) {
    r->work += 4 * (uint64_t)r->sketch->n_events;
    return tide__sketch_build(r->sketch);
}

/* Takes the chain's re-runs over; tensors that they read have new gaps. */
static tide_status accept(tide__repair *r) {
    r->changed.count = 0;
    TIDE_TRY(add_chain(r));
    TIDE_TRY(rebuild(r));
    for (size_t i = 0; i < r->changed.count; i++) TIDE_TRY(consider_tensor(r, r->changed.data[i]));
    return TIDE_OK;
}

/* The top as it is now: accepted if it still beats the next, pushed back otherwise. */
static tide_status take_top(tide__repair *r) {
    tide__candidate top = pop(r), now;
    tide__span gap;
    bool possible;
    if (!find_gap(r->sketch, &top, &gap)) return TIDE_OK;
    TIDE_TRY(score(r, gap, &now));
    now.score *= draw(r);
    if (now.score <= 0) return TIDE_OK;
    if (r->heap.count && now.score < r->heap.data[0].score) return push(r, now);
    TIDE_TRY(tide__chain_propose(r->sketch, gap, now.hold, &r->chain, &possible));
    return accept(r);
}

static tide_status consider_all(tide__repair *r) {
    r->heap.count = 0;
    for (tide_id t = 0; t < r->sketch->model->n_tensors; t++) TIDE_TRY(consider_tensor(r, t));
    return TIDE_OK;
}

/* Chains of one batch know nothing of each other: what one drops another must not read, or it would stay. */
static bool fits_batch(const tide__repair *r, tide_id tensor) {
    const tide__model *m = r->sketch->model;
    if (r->needed[tensor] == r->batch) return false;
    for (size_t k = 0; k < r->chain.ops.count; k++)
        for (uint32_t i = m->read_at[r->chain.ops.data[k]]; i < m->read_at[r->chain.ops.data[k] + 1]; i++)
            if (r->dropped[m->reads[i]] == r->batch) return false;
    return true;
}

static void join_batch(tide__repair *r, tide_id tensor) {
    const tide__model *m = r->sketch->model;
    r->dropped[tensor] = r->batch;
    for (size_t k = 0; k < r->chain.ops.count; k++)
        for (uint32_t i = m->read_at[r->chain.ops.data[k]]; i < m->read_at[r->chain.ops.data[k] + 1]; i++)
            r->needed[m->reads[i]] = r->batch;
}

/* For large programs: many candidates at their word between two builds, until they should halve the excess, or end it
 * where few events are left above the target. Scores are those of the last build, so that a chain's own slot may come
 * out above the target; the next batch sees that. */
static tide_status take_batch(tide__repair *r) {
    tide__sketch *s = r->sketch;
    bool few = s->over[s->n_events] < s->n_events / FEW_PART;
    double wanted = few ? s->excess : s->excess / 2;
    r->changed.count = 0;
    r->batch++;
    while (wanted > 0 && r->heap.count) {
        tide__candidate top = pop(r);
        tide__span gap;
        bool possible;
        if (!find_gap(s, &top, &gap)) continue;
        TIDE_TRY(tide__chain_propose(s, gap, top.hold, &r->chain, &possible));
        if (!possible || r->chain.relief <= 0 || !fits_batch(r, top.tensor)) continue;
        join_batch(r, top.tensor);
        wanted -= r->chain.relief;
        TIDE_TRY(add_chain(r));
    }
    return rebuild(r);
}

tide_status tide__repair_run(tide__repair *r) {
    r->added.count = 0;
    TIDE_TRY(rebuild(r));
    while (!tide__sketch_fits(r->sketch) && r->work < r->limit) {
        double before = r->sketch->excess;
        TIDE_TRY(consider_all(r));
        if (tide__repair_is_batched(r))
            TIDE_TRY(take_batch(r));
        else
            while (!tide__sketch_fits(r->sketch) && r->heap.count && r->work < r->limit) TIDE_TRY(take_top(r));
        if (r->sketch->excess >= before) break;
    }
    return TIDE_OK;
}

/* ---- pruning ---- */

typedef struct priced {
    double cost_ns;
    uint64_t key;
} priced;

static int costliest_first(const void *a, const void *b) {
    const priced *x = a, *y = b;
    if (x->cost_ns != y->cost_ns) return x->cost_ns > y->cost_ns ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* The stay of a tensor that an event begins; TIDE_NONE: none. */
static uint32_t stay_begun(const tide__sketch *s, tide_id tensor, uint32_t event) {
    uint32_t i = s->latest[tensor];
    while (i != TIDE_NONE && s->stays.data[i].begin > event) i = s->stays.data[i].before;
    return i != TIDE_NONE && s->stays.data[i].begin == event ? i : TIDE_NONE;
}

/* Without the re-run at this event its output would stay from its last use on: does that fit? */
static bool can_stay(tide__repair *r, tide_id tensor, uint32_t event) {
    const tide__sketch *s = r->sketch;
    uint32_t stay = stay_begun(s, tensor, event);
    if (stay == TIDE_NONE || s->stays.data[stay].end == event || s->stays.data[stay].before == TIDE_NONE) return true;
    uint64_t size = s->model->size[tensor];
    for (uint32_t e = s->stays.data[s->stays.data[stay].before].end + 1; e < event; e++, r->work++)
        if (s->load[e] + size > s->target_bytes) return false;
    return true;
}

/* Is an input there only for this event? Then more goes with it than its outputs tell. */
static bool holds_inputs(const tide__sketch *s, tide_id op, uint32_t event) {
    for (uint32_t i = s->model->read_at[op]; i < s->model->read_at[op + 1]; i++)
        for (uint32_t k = s->latest[s->model->reads[i]]; k != TIDE_NONE; k = s->stays.data[k].before)
            if (s->stays.data[k].end == event) return true;
    return false;
}

/* Whether the built sketch could do without a re-run: false is certain, true is worth a build. */
static bool may_go(tide__repair *r, uint64_t key) {
    const tide__sketch *s = r->sketch;
    tide_id op = tide__event_id(key);
    uint32_t event = tide__sketch_after(s, key) - 1;
    if (holds_inputs(s, op, event)) return true;
    for (uint32_t i = s->model->write_at[op]; i < s->model->write_at[op + 1]; i++)
        if (!can_stay(r, s->model->writes[i], event)) return false;
    return true;
}

/* Leaves the sketch built, with the re-run or without it. */
static tide_status try_without(tide__repair *r, uint64_t key) {
    if (!may_go(r, key)) return TIDE_OK;
    tide__sketch_remove(r->sketch, key);
    TIDE_TRY(rebuild(r));
    if (tide__sketch_fits(r->sketch)) return TIDE_OK;
    TIDE_TRY(tide__sketch_add(r->sketch, key));
    return rebuild(r);
}

tide_status tide__repair_prune(tide__repair *r, const tide__keys *candidates) {
    tide__sketch *s = r->sketch;
    size_t n = 0;
    priced *list = malloc((candidates->count + 1) * sizeof *list);
    if (!list) return tide__fail_memory();
    for (size_t i = 0; i < candidates->count; i++) {
        uint64_t key = candidates->data[i];
        if (tide__event_kind_of(key) != TIDE__EVENT_RUN || !tide__sketch_has(s, key)) continue;
        double cost_ns = (double)s->model->cost_ns[tide__event_id(key)] * draw(r);
        list[n++] = (priced){.cost_ns = cost_ns, .key = key};
    }
    qsort(list, n, sizeof *list, costliest_first);
    if (s->n_events > LARGE && n > LARGE_PRUNED) n = LARGE_PRUNED; /* each may cost a build */
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < n && status == TIDE_OK && r->work < r->limit; i++)
        if (tide__sketch_has(s, list[i].key)) status = try_without(r, list[i].key);
    free(list);
    return status;
}
