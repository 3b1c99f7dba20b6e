/* See belady.h. The walk knows nothing of the sketch's stays: it keeps a set of values that are there, and the sketch
 * built from its re-runs never holds more than that, because liveness drops a value right after its last use. */
#include "plan/decide/hybrid/belady.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"

typedef struct walker {
    tide__sketch *s;
    const tide__model *m;
    tide__belady_way way;
    uint32_t *next;   /* per tensor: in m->uses, the first read not yet passed */
    bool *there;      /* per tensor */
    uint32_t *until;  /* per tensor: the first slot in which it cannot be made again; 0: it never can */
    tide_id *set;     /* the tensors that are there and could be made again when they came */
    uint32_t *set_at; /* per tensor: its place in the set; TIDE_NONE */
    size_t n_set;
    uint32_t *locks; /* per tensor: reads by the ops that this slot has still to run */
    uint64_t load;
    uint32_t slot;
    TIDE_VEC(tide_id) chain; /* ops to re-run in this slot */
    uint32_t *in_chain;      /* per op: slot + 1 in which it last was */
    TIDE_VEC(uint64_t) found;
    tide__arrays arrays; /* owns the arrays above */
} walker;

/* ---- life ---- */

static void end_walk(walker *w) {
    tide__arrays_free(&w->arrays);
    tide__vec_free(&w->chain);
    tide__vec_free(&w->found);
}

/* Its producer can run again until an input of it is destroyed. */
static uint32_t makeable_until(const tide__model *m, tide_id tensor) {
    tide_id producer = m->producer[tensor];
    uint32_t until = TIDE_NONE;
    if (producer == TIDE_NONE || !m->rerunnable[producer]) return 0;
    for (uint32_t i = m->read_at[producer]; i < m->read_at[producer + 1]; i++)
        if (m->destroyer[m->reads[i]] < until) until = m->destroyer[m->reads[i]];
    return until;
}

static tide_status begin_walk(walker *w) {
    size_t n = w->m->n_tensors + (size_t)1, ops = w->m->n_ops + (size_t)1;
    tide__array(&w->arrays, w->next, n);
    tide__array(&w->arrays, w->there, n);
    tide__array(&w->arrays, w->until, n);
    tide__array(&w->arrays, w->set, n);
    tide__array_ones(&w->arrays, w->set_at, n);
    tide__array(&w->arrays, w->locks, n);
    tide__array(&w->arrays, w->in_chain, ops);
    TIDE_TRY(tide__arrays_check(&w->arrays));
    memcpy(w->next, w->m->use_at, w->m->n_tensors * sizeof *w->next);
    for (tide_id t = 0; t < w->m->n_tensors; t++) w->until[t] = makeable_until(w->m, t);
    return TIDE_OK;
}

/* ---- what is there ---- */

static bool can_make(const walker *w, tide_id tensor) { return w->slot < w->until[tensor]; }

static void leave_set(walker *w, tide_id tensor) {
    if (w->set_at[tensor] == TIDE_NONE) return;
    tide_id last = w->set[--w->n_set];
    w->set[w->set_at[tensor]] = last;
    w->set_at[last] = w->set_at[tensor];
    w->set_at[tensor] = TIDE_NONE;
}

static void bring(walker *w, tide_id tensor) {
    if (w->there[tensor]) return;
    w->there[tensor] = true;
    w->load += w->m->size[tensor];
    if (!can_make(w, tensor)) return;
    w->set_at[tensor] = (uint32_t)w->n_set;
    w->set[w->n_set++] = tensor;
}

static void drop(walker *w, tide_id tensor) {
    if (!w->there[tensor]) return;
    w->there[tensor] = false;
    w->load -= w->m->size[tensor];
    leave_set(w, tensor);
}

/* The next original read after the present slot; n_ops: kept to the end; TIDE_NONE: none. */
static uint32_t next_use(walker *w, tide_id tensor) {
    while (w->next[tensor] < w->m->use_at[tensor + 1] && w->m->uses[w->next[tensor]] <= w->slot) w->next[tensor]++;
    if (w->next[tensor] < w->m->use_at[tensor + 1]) return w->m->uses[w->next[tensor]];
    return w->m->keep[tensor] ? w->m->n_ops : TIDE_NONE;
}

/* Constants stay: what re-runs begin from. */
static bool is_dead(walker *w, tide_id tensor) {
    return w->locks[tensor] == 0 && w->m->producer[tensor] != TIDE_NONE && next_use(w, tensor) == TIDE_NONE;
}

/* ---- what leaves ---- */

/* Time to make a value again from what is there, a few ops deep. */
static double price(const walker *w, tide_id tensor, int depth) {
    const tide__model *m = w->m;
    tide_id producer = m->producer[tensor];
    if (producer == TIDE_NONE) return 0;
    double sum = (double)m->cost_ns[producer] + 1;
    for (uint32_t i = m->read_at[producer]; depth > 0 && i < m->read_at[producer + 1]; i++)
        if (!w->there[m->reads[i]]) sum += price(w, m->reads[i], depth - 1);
    return sum;
}

enum { PRICE_DEPTH = 3 };

static double value_of_leaving(walker *w, tide_id tensor) {
    uint32_t use = next_use(w, tensor);
    double bytes = (double)w->m->size[tensor], slots = use == TIDE_NONE ? 1e9 : (double)(use - w->slot) + 1;
    if (w->way == TIDE__BELADY_BYTES_TIME) return bytes * slots;
    double cost = price(w, tensor, PRICE_DEPTH);
    return w->way == TIDE__BELADY_BYTES_COST ? bytes / cost : bytes * slots / cost;
}

/* Of what is kept for the end, or of the rest. */
static tide_id pick_among(walker *w, bool kept) {
    tide_id best = TIDE_NONE;
    double most = -1;
    for (size_t i = 0; i < w->n_set; i++) {
        tide_id tensor = w->set[i];
        if (w->m->keep[tensor] != kept || w->locks[tensor] || !can_make(w, tensor)) continue;
        double value = value_of_leaving(w, tensor);
        if (value > most || (value == most && tensor < best)) most = value, best = tensor;
    }
    return best;
}

/* What is kept goes last: it would be made again at the end, from as far back as anything can be. */
static tide_id pick_leaver(walker *w) {
    tide_id other = pick_among(w, false);
    return other != TIDE_NONE ? other : pick_among(w, true);
}

static void make_room(walker *w, uint64_t bytes) {
    while (w->load + bytes > w->s->target_bytes) {
        tide_id leaver = pick_leaver(w);
        if (leaver == TIDE_NONE) return;
        drop(w, leaver);
    }
}

/* ---- the slots ---- */

static tide_status need_inputs(walker *w, tide_id op) {
    const tide__model *m = w->m;
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++) {
        tide_id tensor = m->reads[i], producer = m->producer[tensor];
        w->locks[tensor]++;
        if (w->there[tensor] || producer == TIDE_NONE || !can_make(w, tensor)) continue;
        if (w->in_chain[producer] == w->slot + 1) continue;
        w->in_chain[producer] = w->slot + 1;
        TIDE_TRY(tide__vec_push(&w->chain, producer));
    }
    return TIDE_OK;
}

static int by_id(const void *a, const void *b) {
    tide_id x = *(const tide_id *)a, y = *(const tide_id *)b;
    return x < y ? -1 : x > y;
}

/* Reads that die here hand their place to the write that shares it. */
static uint64_t shared_bytes(walker *w, tide_id op) {
    uint64_t bytes = 0;
    for (uint32_t i = w->m->pair_at[op]; i < w->m->pair_at[op + 1]; i++)
        if (is_dead(w, w->m->pairs[i].read)) bytes += w->m->size[w->m->pairs[i].read];
    return bytes;
}

static void run(walker *w, tide_id op) {
    const tide__model *m = w->m;
    uint64_t bytes = m->workspace_bytes[op];
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++) bring(w, m->reads[i]); /* inputs of the client */
    for (uint32_t i = m->write_at[op]; i < m->write_at[op + 1]; i++)
        if (!w->there[m->writes[i]]) bytes += m->size[m->writes[i]];
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++) w->locks[m->reads[i]]--;
    uint64_t shared = shared_bytes(w, op);
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++) w->locks[m->reads[i]]++;
    make_room(w, bytes - tide__min_u64(bytes, shared));
    for (uint32_t i = m->write_at[op]; i < m->write_at[op + 1]; i++) bring(w, m->writes[i]);
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++)
        if (--w->locks[m->reads[i]] == 0 && is_dead(w, m->reads[i])) drop(w, m->reads[i]);
    for (uint32_t i = m->write_at[op]; i < m->write_at[op + 1]; i++)
        if (is_dead(w, m->writes[i])) drop(w, m->writes[i]);
}

/* What is kept must be there at the end. */
static tide_status need_kept(walker *w) {
    const tide__model *m = w->m;
    for (tide_id t = 0; t < m->n_tensors; t++) {
        if (!m->keep[t] || w->there[t] || !can_make(w, t) || w->in_chain[m->producer[t]] == w->slot + 1) continue;
        w->in_chain[m->producer[t]] = w->slot + 1;
        TIDE_TRY(tide__vec_push(&w->chain, m->producer[t]));
    }
    return TIDE_OK;
}

static tide_status pass_slot(walker *w) {
    w->chain.count = 0;
    TIDE_TRY(w->slot < w->m->n_ops ? need_inputs(w, w->slot) : need_kept(w));
    for (size_t k = 0; k < w->chain.count; k++) TIDE_TRY(need_inputs(w, w->chain.data[k]));
    if (w->chain.count) qsort(w->chain.data, w->chain.count, sizeof *w->chain.data, by_id);
    for (size_t k = 0; k < w->chain.count; k++) {
        TIDE_TRY(tide__vec_push(&w->found, tide__event_key(w->slot, TIDE__EVENT_RUN, w->chain.data[k])));
        run(w, w->chain.data[k]);
    }
    if (w->slot < w->m->n_ops) run(w, w->slot);
    return TIDE_OK;
}

tide_status tide__belady(tide__sketch *s, tide__belady_way way, size_t most) {
    walker w = {.s = s, .m = s->model, .way = way};
    tide_status status = begin_walk(&w);
    for (tide_id t = 0; status == TIDE_OK && t < w.m->n_tensors; t++)
        if (w.m->present[t]) bring(&w, t);
    for (; status == TIDE_OK && w.slot <= w.m->n_ops && w.found.count < most; w.slot++) status = pass_slot(&w);
    for (size_t i = 0; status == TIDE_OK && i < w.found.count; i++) status = tide__sketch_add(s, w.found.data[i]);
    end_walk(&w);
    return status;
}
