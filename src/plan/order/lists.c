/* See lists.h. All write ops one after the other; after each, those that it has made ready and that free bytes follow at
 * once. */
#include "plan/order/lists.h"

#include <stdlib.h>
#include <string.h>

#include "plan/order/gather.h"

typedef struct writer {
    const tide__order_graph *g;
    tide__order_walk walk;
    tide_id *order;
    uint32_t n;                 /* written so far */
    uint32_t *waiting;          /* per op: entries of `before` that have not run */
    bool *done;                 /* per op */
    tide_id position;           /* ops of the program up to it have run, or wait for a group */
    tide__gathered gathered;    /* whose members wait for each other; zeroed: none */
    TIDE_VEC(tide_id) complete; /* roots of groups that can run */
    TIDE_VEC(tide_id) late;     /* ops that had to wait for a group */
    TIDE_VEC(tide_id) hot;      /* ready ops that may free bytes */
} writer;

static tide_status init(const tide__order_graph *g, tide_id *order, writer *w) {
    *w = (writer){.g = g, .order = order};
    TIDE_TRY(tide__order_walk_init(g, &w->walk));
    w->waiting = malloc((g->n_ops + (size_t)1) * sizeof *w->waiting);
    w->done = calloc(g->n_ops + (size_t)1, sizeof *w->done);
    if (!w->waiting || !w->done) return tide__fail_memory();
    for (tide_id o = 0; o < g->n_ops; o++) w->waiting[o] = g->before.at[o + 1] - g->before.at[o];
    tide__order_walk_begin(&w->walk);
    return TIDE_OK;
}

static void deinit(writer *w) {
    tide__order_walk_deinit(&w->walk);
    free(w->waiting);
    free(w->done);
    tide__gathered_deinit(&w->gathered);
    tide__vec_free(&w->hot);
    tide__vec_free(&w->complete);
    tide__vec_free(&w->late);
}

/* The root of the op's group; TIDE_NONE: it runs by itself. */
static tide_id group_of(const writer *w, tide_id op) { return w->gathered.root ? w->gathered.root[op] : TIDE_NONE; }

static tide_status heat(writer *w, tide_id op) {
    bool waits = w->done[op] || w->waiting[op] || group_of(w, op) != TIDE_NONE;
    return waits ? TIDE_OK : tide__vec_push(&w->hot, op);
}

/* The one op that still reads the value would free it. */
static tide_status heat_last_reader(writer *w, tide_id tensor) {
    if (w->walk.left[tensor] != 1) return TIDE_OK;
    for (uint32_t k = w->g->readers.at[tensor]; k < w->g->readers.at[tensor + 1]; k++)
        TIDE_TRY(heat(w, w->g->readers.ids[k]));
    return TIDE_OK;
}

static tide_status note_ready(writer *w, tide_id op) {
    if (group_of(w, op) == TIDE_NONE && op < w->position) TIDE_TRY(tide__vec_push(&w->late, op));
    return heat(w, op);
}

static tide_status write_op(writer *w, tide_id o) {
    const tide_op *op = tide_program_op(w->g->program, o);
    w->done[o] = true;
    w->order[w->n++] = o;
    tide__order_walk_run(&w->walk, o);
    for (uint32_t k = w->g->after.at[o]; k < w->g->after.at[o + 1]; k++)
        if (--w->waiting[w->g->after.ids[k]] == 0) TIDE_TRY(note_ready(w, w->g->after.ids[k]));
    for (uint32_t i = 0; i < op->n_reads; i++) TIDE_TRY(heat_last_reader(w, op->reads[i]));
    for (uint32_t k = w->g->after.at[o]; k < w->g->after.at[o + 1]; k++) {
        tide_id root = group_of(w, w->g->after.ids[k]);
        if (root == TIDE_NONE || root == group_of(w, o)) continue;
        if (--w->gathered.n_awaited[root] == 0) TIDE_TRY(tide__vec_push(&w->complete, root));
    }
    return TIDE_OK;
}

static tide_status write_group(writer *w, tide_id root) {
    const tide__id_lists *members = &w->gathered.members;
    for (uint32_t m = members->at[root]; m < members->at[root + 1]; m++) TIDE_TRY(write_op(w, members->ids[m]));
    return TIDE_OK;
}

/* In the end: groups for which everything is there, and ops that waited for them. */
static tide_status write_overdue(writer *w) {
    while (w->complete.count || w->late.count) {
        while (w->complete.count) TIDE_TRY(write_group(w, w->complete.data[--w->complete.count]));
        if (w->late.count == 0) break;
        tide_id op = w->late.data[--w->late.count];
        if (!w->done[op]) TIDE_TRY(write_op(w, op));
    }
    return TIDE_OK;
}

/* An op is hot again when it becomes ready or when another reader of one of its values has run, so each is looked at once per
 * read at most. */
static tide_status write_with_followers(writer *w, tide_id o) {
    TIDE_TRY(write_op(w, o));
    while (w->hot.count) {
        tide_id next = w->hot.data[--w->hot.count];
        if (w->done[next] || tide__order_walk_growth(&w->walk, next) >= 0) continue;
        TIDE_TRY(write_op(w, next));
    }
    return TIDE_OK;
}

/* Without groups the first op that has not run is always ready. */
static tide_status write_eager(writer *w) {
    for (tide_id o = 0; o < w->g->n_ops; o++) {
        w->position = o;
        if (!w->done[o] && w->waiting[o] == 0 && group_of(w, o) == TIDE_NONE) TIDE_TRY(write_with_followers(w, o));
    }
    w->position = w->g->n_ops;
    return TIDE_OK;
}

tide_status tide__order_eager(const tide__order_graph *g, tide_id *order) {
    writer w;
    tide_status status = init(g, order, &w);
    if (status == TIDE_OK) status = write_eager(&w);
    deinit(&w);
    return status;
}

static tide_status write_gathered(writer *w) {
    TIDE_TRY(tide__gathered_init(w->g, &w->gathered));
    for (tide_id o = 0; o < w->g->n_ops; o++)
        if (group_of(w, o) == o && w->gathered.n_awaited[o] == 0) TIDE_TRY(tide__vec_push(&w->complete, o));
    TIDE_TRY(write_eager(w));
    return write_overdue(w);
}

tide_status tide__order_gathered(const tide__order_graph *g, tide_id *order) {
    writer w;
    tide_status status = init(g, order, &w);
    if (status == TIDE_OK) status = write_gathered(&w);
    bool complete = w.n == g->n_ops; /* else a group waits for itself */
    deinit(&w);
    return status == TIDE_OK && !complete ? tide__order_eager(g, order) : status;
}

/* ---- on demand ---- */

/* An op that is being prepared: what it needs, the neediest first, goes before it. */
typedef struct demand {
    tide_id op;
    size_t at, end; /* of its needs in `needs`, which are still to be looked at */
} demand;

typedef struct needy {
    uint64_t bytes;
    tide_id op;
} needy;

typedef struct demands {
    writer w;
    uint64_t *need; /* per op: bytes that making its values takes, as if nothing were shared */
    TIDE_VEC(demand) stack;
    TIDE_VEC(needy) needs;
} demands;

static uint64_t made_bytes(const tide__order_graph *g, const tide_op *op) {
    uint64_t bytes = op->variants[0].workspace_bytes;
    for (uint32_t i = 0; i < op->n_writes; i++) bytes += g->bytes[op->writes[i]];
    return bytes;
}

/* The largest need of those before it, and its own operands. */
static void find_needs(const tide__order_graph *g, uint64_t *need) {
    for (tide_id o = 0; o < g->n_ops; o++) {
        const tide_op *op = tide_program_op(g->program, o);
        uint64_t own = made_bytes(g, op);
        for (uint32_t i = 0; i < op->n_reads; i++) own += g->bytes[op->reads[i]];
        need[o] = own;
        for (uint32_t k = g->before.at[o]; k < g->before.at[o + 1]; k++)
            if (need[g->before.ids[k]] > need[o]) need[o] = need[g->before.ids[k]];
    }
}

static int by_need(const void *a, const void *b) {
    const needy *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

static tide_status push_demand(demands *d, tide_id op) {
    const tide__id_lists *before = &d->w.g->before;
    demand x = {.op = op, .at = d->needs.count};
    for (uint32_t k = before->at[op]; k < before->at[op + 1]; k++)
        if (!d->w.done[before->ids[k]])
            TIDE_TRY(tide__vec_push(&d->needs, ((needy){d->need[before->ids[k]], before->ids[k]})));
    x.end = d->needs.count;
    if (x.end > x.at) qsort(&d->needs.data[x.at], x.end - x.at, sizeof *d->needs.data, by_need);
    return tide__vec_push(&d->stack, x);
}

static tide_status satisfy(demands *d) {
    while (d->stack.count) {
        demand *x = &d->stack.data[d->stack.count - 1];
        if (x->at < x->end) {
            tide_id next = d->needs.data[x->at++].op;
            if (!d->w.done[next]) TIDE_TRY(push_demand(d, next));
            continue;
        }
        tide_id op = x->op;
        d->stack.count--;
        d->needs.count = d->stack.count ? d->stack.data[d->stack.count - 1].end : 0;
        if (!d->w.done[op]) TIDE_TRY(write_with_followers(&d->w, op));
    }
    return TIDE_OK;
}

static tide_status write_on_demand(demands *d) {
    const tide__order_graph *g = d->w.g;
    find_needs(g, d->need);
    for (tide_id o = 0; o < g->n_ops; o++) {
        if (d->w.done[o] || g->after.at[o + 1] > g->after.at[o]) continue; /* somebody else will need it */
        TIDE_TRY(push_demand(d, o));
        TIDE_TRY(satisfy(d));
    }
    return TIDE_OK;
}

tide_status tide__order_on_demand(const tide__order_graph *g, tide_id *order) {
    demands d = {.need = malloc((g->n_ops + (size_t)1) * sizeof *d.need)};
    tide_status status = init(g, order, &d.w);
    if (!d.need && status == TIDE_OK) status = tide__fail_memory();
    if (status == TIDE_OK) status = write_on_demand(&d);
    deinit(&d.w);
    free(d.need);
    tide__vec_free(&d.stack);
    tide__vec_free(&d.needs);
    return status;
}
