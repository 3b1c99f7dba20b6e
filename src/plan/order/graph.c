/* See graph.h. */
#include "plan/order/graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct edge {
    tide_id from, to;
} edge;

typedef struct edges {
    TIDE_VEC(edge) all;
} edges;

/* ---- lists ---- */

/* Of the edges, those of each `from` (or of each `to`), as lists of the other ends. */
static tide_status make_lists(const edges *e, uint32_t n, bool by_to, tide__id_lists *out) {
    out->at = calloc(n + (size_t)2, sizeof *out->at);
    out->ids = malloc((e->all.count + 1) * sizeof *out->ids);
    if (!out->at || !out->ids) return tide__fail_memory();
    for (size_t i = 0; i < e->all.count; i++) out->at[(by_to ? e->all.data[i].to : e->all.data[i].from) + 2]++;
    for (uint32_t i = 2; i < n + 2; i++) out->at[i] += out->at[i - 1];
    for (size_t i = 0; i < e->all.count; i++) {
        const edge *x = &e->all.data[i];
        out->ids[out->at[(by_to ? x->to : x->from) + 1]++] = by_to ? x->from : x->to;
    }
    return TIDE_OK;
}

static void free_lists(tide__id_lists *l) {
    free(l->at);
    free(l->ids);
}

static tide_status list_readers(tide__order_graph *g, edges *e) {
    e->all.count = 0;
    for (tide_id o = 0; o < g->n_ops; o++) {
        const tide_op *op = tide_program_op(g->program, o);
        for (uint32_t i = 0; i < op->n_reads; i++) TIDE_TRY(tide__vec_push(&e->all, ((edge){op->reads[i], o})));
    }
    return make_lists(e, g->n_tensors, false, &g->readers);
}

/* ---- dependencies ---- */

/* The readers of a value, and who writes it, stand before or behind another op as they do in the program. */
static tide_status tie_users(const tide__order_graph *g, tide_id tensor, tide_id other, edges *e) {
    tide_id producer = tide_program_producer(g->program, tensor);
    if (producer != TIDE_NONE && producer != other)
        TIDE_TRY(tide__vec_push(&e->all, producer < other ? ((edge){producer, other}) : ((edge){other, producer})));
    for (uint32_t i = g->readers.at[tensor]; i < g->readers.at[tensor + 1]; i++) {
        tide_id reader = g->readers.ids[i];
        if (reader != other)
            TIDE_TRY(tide__vec_push(&e->all, reader < other ? ((edge){reader, other}) : ((edge){other, reader})));
    }
    return TIDE_OK;
}

static tide_status tie_values(const tide__order_graph *g, tide_id o, edges *e) {
    const tide_op *op = tide_program_op(g->program, o);
    for (uint32_t i = 0; i < op->n_reads; i++) {
        tide_id producer = tide_program_producer(g->program, op->reads[i]);
        if (producer != TIDE_NONE) TIDE_TRY(tide__vec_push(&e->all, ((edge){producer, o})));
    }
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) TIDE_TRY(tie_users(g, op->reads[op->inplace[i].read], o, e));
    return TIDE_OK;
}

static bool destroys(const tide_op *op) {
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must) return true;
    return false;
}

static tide_status tie_effects(const tide__order_graph *g, edges *e) {
    bool all = true;
    tide_id last = TIDE_NONE;
    for (tide_id o = 0; o < g->n_ops && all; o++) all = !tide_program_op(g->program, o)->rerunnable;
    for (tide_id o = 0; o < g->n_ops; o++) {
        const tide_op *op = tide_program_op(g->program, o);
        if (!all && !op->message && (op->rerunnable || destroys(op))) continue;
        if (last != TIDE_NONE) TIDE_TRY(tide__vec_push(&e->all, ((edge){last, o})));
        last = o;
    }
    return TIDE_OK;
}

/* ---- carries ---- */

/* Per tensor, along `must` pairs: whose bytes it takes over, and who takes over its own. */
typedef struct heirs {
    tide_id *from, *to;
} heirs;

static void find_heirs(const tide__order_graph *g, heirs *h) {
    memset(h->from, 0xff, g->n_tensors * sizeof *h->from);
    memset(h->to, 0xff, g->n_tensors * sizeof *h->to);
    for (tide_id o = 0; o < g->n_ops; o++) {
        const tide_op *op = tide_program_op(g->program, o);
        for (uint32_t i = 0; i < op->n_inplace; i++) {
            if (!op->inplace[i].must) continue;
            tide_id read = op->reads[op->inplace[i].read], write = op->writes[op->inplace[i].write];
            h->from[write] = read;
            h->to[read] = write;
        }
    }
}

/* A carried value begins where its successor in the next step lies, so that one's bytes are free when it is born. */
static tide_status tie_carry(const tide__order_graph *g, const heirs *h, tide_carry carry, edges *e) {
    tide_id first = carry.from;
    while (h->from[first] != TIDE_NONE) first = h->from[first];
    tide_id producer = tide_program_producer(g->program, first);
    if (producer == TIDE_NONE) return TIDE_OK;
    for (tide_id t = carry.to; t != TIDE_NONE && t != first; t = h->to[t]) TIDE_TRY(tie_users(g, t, producer, e));
    return TIDE_OK;
}

static tide_status tie_carries(const tide__order_graph *g, edges *e) {
    size_t n = g->n_tensors + (size_t)1;
    heirs h = {malloc(n * sizeof *h.from), malloc(n * sizeof *h.to)};
    tide_status status = h.from && h.to ? TIDE_OK : tide__fail_memory();
    if (status == TIDE_OK) find_heirs(g, &h);
    for (uint32_t i = 0; i < tide_program_carry_count(g->program) && status == TIDE_OK; i++)
        status = tie_carry(g, &h, *tide_program_carry(g->program, i), e);
    free(h.from);
    free(h.to);
    return status;
}

/* ---- the whole ---- */

static tide_status tie_all(tide__order_graph *g, edges *e) {
    TIDE_TRY(list_readers(g, e));
    e->all.count = 0;
    for (tide_id o = 0; o < g->n_ops; o++) TIDE_TRY(tie_values(g, o, e));
    TIDE_TRY(tie_effects(g, e));
    TIDE_TRY(tie_carries(g, e));
    if (e->all.count >= TIDE_NONE) return tide__fail(TIDE_E_OVERFLOW, "2^32 dependencies of ops");
    TIDE_TRY(make_lists(e, g->n_ops, true, &g->before));
    return make_lists(e, g->n_ops, false, &g->after);
}

tide_status tide__order_graph_init(const tide_program *program, tide__order_graph *g) {
    *g = (tide__order_graph){
        .program = program, .n_ops = tide_program_op_count(program), .n_tensors = tide_program_tensor_count(program)};
    edges e = {{0}};
    g->bytes = malloc((g->n_tensors + (size_t)1) * sizeof *g->bytes);
    g->n_uses = malloc((g->n_tensors + (size_t)1) * sizeof *g->n_uses);
    tide_status status = g->bytes && g->n_uses ? tie_all(g, &e) : tide__fail_memory();
    for (tide_id t = 0; t < g->n_tensors && status == TIDE_OK; t++) {
        const tide_tensor *tensor = tide_program_tensor(program, t);
        g->bytes[t] = tensor->size_bytes;
        g->n_uses[t] = g->readers.at[t + 1] - g->readers.at[t] + tensor->keep;
    }
    tide__vec_free(&e.all);
    if (status != TIDE_OK) tide__order_graph_deinit(g);
    return status;
}

void tide__order_graph_deinit(tide__order_graph *g) {
    free(g->bytes);
    free(g->n_uses);
    free_lists(&g->readers);
    free_lists(&g->before);
    free_lists(&g->after);
    *g = (tide__order_graph){0};
}
