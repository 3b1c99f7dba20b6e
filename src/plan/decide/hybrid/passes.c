/* See passes.h. */
#include "plan/decide/hybrid/passes.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

enum { MAX_PASSES = 8 };

typedef struct planner {
    const tide__model *m;
    uint64_t target_bytes, spare_bytes;
    uint64_t constant_bytes; /* PRESENT values */
    bool *runs[MAX_PASSES];  /* per pass, per op; pass 0 is the step itself */
    uint32_t n_passes;
    uint32_t *kept_in;   /* per tensor: the pass that makes it for good */
    uint64_t done_bytes; /* kept by the passes so far */
} planner;

/* ---- which ops run in which pass ---- */

static uint64_t operand_bytes(const planner *p, tide_id op) {
    const tide__model *m = p->m;
    uint64_t bytes = p->constant_bytes + m->workspace_bytes[op];
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++)
        if (!m->present[m->reads[i]]) bytes += m->size[m->reads[i]];
    for (uint32_t i = m->write_at[op]; i < m->write_at[op + 1]; i++)
        if (!m->keep[m->writes[i]]) bytes += m->size[m->writes[i]];
    return bytes;
}

static bool is_kept_output(const planner *p, tide_id tensor) {
    return p->m->keep[tensor] && p->m->producer[tensor] != TIDE_NONE;
}

/* From the last op of the pass back: what it makes for good, as long as that fits beside all ops that follow. The rest
 * is left to later passes. Returns whether there is a rest. */
static bool keep_last(planner *p, uint32_t pass) {
    const tide__model *m = p->m;
    uint64_t kept = p->done_bytes, most = UINT64_MAX; /* most: room for what is kept in the ops that follow */
    bool rest = false;
    for (tide_id o = m->n_ops; o-- > 0;) {
        if (!p->runs[pass][o]) continue;
        for (uint32_t i = m->write_at[o]; i < m->write_at[o + 1]; i++) {
            tide_id tensor = m->writes[i];
            if (!is_kept_output(p, tensor)) continue;
            p->kept_in[tensor] = rest || kept + m->size[tensor] > most ? TIDE_NONE : pass;
            if (p->kept_in[tensor] == pass)
                kept += m->size[tensor];
            else
                rest = true;
        }
        uint64_t needed = operand_bytes(p, o) + p->spare_bytes;
        most = tide__min_u64(most, p->target_bytes - tide__min_u64(p->target_bytes, needed));
    }
    p->done_bytes = kept;
    return rest;
}

/* All that leads to what is left; false where some of it cannot run again. */
static bool lead_to_rest(planner *p, uint32_t pass) {
    const tide__model *m = p->m;
    bool *runs = p->runs[pass];
    for (tide_id t = 0; t < m->n_tensors; t++)
        if (is_kept_output(p, t) && p->kept_in[t] == TIDE_NONE) runs[m->producer[t]] = true;
    for (tide_id o = m->n_ops; o-- > 0;) {
        if (!runs[o]) continue;
        if (!m->rerunnable[o]) return false;
        for (uint32_t i = m->read_at[o]; i < m->read_at[o + 1]; i++) {
            if (m->destroyer[m->reads[i]] != TIDE_NONE) return false;
            if (m->producer[m->reads[i]] != TIDE_NONE) runs[m->producer[m->reads[i]]] = true;
        }
    }
    return true;
}

/* What the op of an earlier pass made for good is made anew by this one. */
static void forget_remade(planner *p, uint32_t pass) {
    for (tide_id t = 0; t < p->m->n_tensors; t++)
        if (is_kept_output(p, t) && p->runs[pass][p->m->producer[t]] && p->kept_in[t] != TIDE_NONE) {
            p->done_bytes -= p->m->size[t];
            p->kept_in[t] = TIDE_NONE;
        }
}

/* *useful: there are passes, and they end with everything kept. */
static tide_status plan_passes(planner *p, bool *useful) {
    const tide__model *m = p->m;
    *useful = false;
    for (uint32_t pass = 0; pass < MAX_PASSES; pass++) {
        p->runs[pass] = calloc(m->n_ops + (size_t)1, sizeof *p->runs[pass]);
        if (!p->runs[pass]) return tide__fail_memory();
        p->n_passes = pass + 1;
        if (pass == 0)
            memset(p->runs[0], true, m->n_ops * sizeof *p->runs[0]);
        else if (!lead_to_rest(p, pass))
            return TIDE_OK;
        if (pass > 0) forget_remade(p, pass);
        uint64_t before = p->done_bytes;
        if (!keep_last(p, pass)) {
            *useful = pass > 0;
            return TIDE_OK;
        }
        if (p->done_bytes == before) return TIDE_OK;
    }
    return TIDE_OK;
}

/* ---- the long program ---- */

typedef struct writer {
    const planner *p;
    tide__model *out;
    tide_id *origin;
    tide_id *now; /* per tensor of the step: its latest id in the long program */
    uint32_t n_ops, n_tensors, n_reads, n_writes, n_pairs;
} writer;

static tide_status allocate(writer *w, uint32_t n_ops, uint32_t n_tensors) {
    const tide__model *m = w->p->m;
    size_t passes = w->p->n_passes;
    w->out = calloc(1, sizeof *w->out);
    w->origin = calloc(n_ops + (size_t)1, sizeof *w->origin);
    w->now = calloc(m->n_tensors + (size_t)1, sizeof *w->now);
    if (!w->out || !w->origin || !w->now) return tide__fail_memory();
    w->out->n_ops = n_ops;
    w->out->n_tensors = n_tensors;
    return tide__model_allocate(w->out, passes * m->read_at[m->n_ops], passes * m->write_at[m->n_ops],
                                passes * m->pair_at[m->n_ops]);
}

static void add_tensor(writer *w, tide_id tensor, tide_id producer, bool keep) {
    const tide__model *m = w->p->m;
    tide_id id = w->now[tensor] = w->n_tensors++;
    w->out->size[id] = m->size[tensor];
    w->out->producer[id] = producer;
    w->out->destroyer[id] = TIDE_NONE;
    w->out->present[id] = m->present[tensor];
    w->out->client[id] = m->client[tensor];
    w->out->keep[id] = keep;
}

static void add_op(writer *w, tide_id op, uint32_t pass) {
    const tide__model *m = w->p->m;
    tide__model *o = w->out;
    tide_id id = w->n_ops++;
    w->origin[id] = op;
    o->cost_ns[id] = m->cost_ns[op];
    o->workspace_bytes[id] = m->workspace_bytes[op];
    o->rerunnable[id] = m->rerunnable[op];
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++) {
        o->reads[w->n_reads++] = w->now[m->reads[i]];
        if (m->destroyer[m->reads[i]] == op) o->destroyer[w->now[m->reads[i]]] = id;
    }
    for (uint32_t i = m->pair_at[op]; i < m->pair_at[op + 1]; i++)
        o->pairs[w->n_pairs + i - m->pair_at[op]].read = w->now[m->pairs[i].read];
    for (uint32_t i = m->write_at[op]; i < m->write_at[op + 1]; i++) {
        tide_id tensor = m->writes[i];
        add_tensor(w, tensor, id, m->keep[tensor] && w->p->kept_in[tensor] == pass);
        o->writes[w->n_writes++] = w->now[tensor];
    }
    for (uint32_t i = m->pair_at[op]; i < m->pair_at[op + 1]; i++)
        o->pairs[w->n_pairs++].write = w->now[m->pairs[i].write];
    o->read_at[id + 1] = w->n_reads;
    o->write_at[id + 1] = w->n_writes;
    o->pair_at[id + 1] = w->n_pairs;
}

static tide_status write_long(const planner *p, tide__passes *out) {
    const tide__model *m = p->m;
    uint32_t n_ops = 0, n_tensors = 0;
    writer w = {.p = p};
    for (uint32_t pass = 0; pass < p->n_passes; pass++)
        for (tide_id o = 0; o < m->n_ops; o++)
            if (p->runs[pass][o]) n_ops++, n_tensors += m->write_at[o + 1] - m->write_at[o];
    for (tide_id t = 0; t < m->n_tensors; t++) n_tensors += m->producer[t] == TIDE_NONE;
    tide_status status = allocate(&w, n_ops, n_tensors);
    if (status == TIDE_OK) {
        for (tide_id t = 0; t < m->n_tensors; t++)
            if (m->producer[t] == TIDE_NONE) add_tensor(&w, t, TIDE_NONE, m->keep[t]);
        for (uint32_t pass = 0; pass < p->n_passes; pass++)
            for (tide_id o = 0; o < m->n_ops; o++)
                if (p->runs[pass][o]) add_op(&w, o, pass);
        tide__model_list_uses(w.out);
        out->model = w.out;
        out->origin = w.origin;
    } else {
        tide__model_destroy(w.out);
        free(w.origin);
    }
    free(w.now);
    return status;
}

tide_status tide__passes_init(const tide__model *step, uint64_t target_bytes, uint64_t spare_bytes, tide__passes *out) {
    planner p = {.m = step, .target_bytes = target_bytes, .spare_bytes = spare_bytes};
    bool useful = false;
    *out = (tide__passes){.step = step};
    p.kept_in = malloc((step->n_tensors + (size_t)1) * sizeof *p.kept_in);
    tide_status status = p.kept_in ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) memset(p.kept_in, 0xff, step->n_tensors * sizeof *p.kept_in);
    for (tide_id t = 0; t < step->n_tensors; t++)
        if (step->present[t]) p.constant_bytes += step->size[t];
    if (status == TIDE_OK) status = plan_passes(&p, &useful);
    if (status == TIDE_OK && useful) status = write_long(&p, out);
    for (uint32_t i = 0; i < p.n_passes; i++) free(p.runs[i]);
    free(p.kept_in);
    return status;
}

void tide__passes_deinit(tide__passes *p) {
    tide__model_destroy(p->model);
    free(p->origin);
    *p = (tide__passes){0};
}

/* ---- the plan ---- */

static tide_status add_rerun(const tide__passes *p, uint32_t slot, tide_id op, tide__decisions *out) {
    tide__rerun rerun = {.slot = slot < p->step->n_ops ? slot : p->step->n_ops, .op = p->origin[op]};
    tide__step step = {.slot = rerun.slot, .kind = TIDE__STEP_RERUN, .index = (uint32_t)out->reruns.count};
    TIDE_TRY(tide__vec_push(&out->reruns, rerun));
    return tide__vec_push(&out->sequence, step);
}

tide_status tide__passes_decide(const tide__passes *p, const tide__sketch *s, tide__decisions *out) {
    for (uint32_t e = 0; e < s->n_events; e++) {
        uint32_t slot = tide__event_slot(s->keys[e]);
        tide_id op = tide__event_id(s->keys[e]);
        bool is_own = slot == op && slot < p->step->n_ops; /* of the step itself */
        if (!is_own) TIDE_TRY(add_rerun(p, slot, op, out));
    }
    return TIDE_OK;
}
