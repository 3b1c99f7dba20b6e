/* Policy `dtr`: Dynamic Tensor Rematerialization (Kirisame et al., ICLR 2021). Recompute only: the storage with the
 * smallest score is dropped, and made again when it is wanted.
 *
 *   eq     (default) (own cost + cost of the neighbouring evicted classes) / (bytes x staleness): h_eq. The classes
 *          are a union-find over evicted storages that are neighbours; splitting one is approximated by taking the cost
 *          of what came back off its class.
 *   full   the same with the exact evicted ancestors and descendants: h_DTR
 *   local  own cost only
 *   msps   (own cost + evicted ancestors) / bytes: memory saved per second
 *   lru    the least recently used
 *   delta  DELTA's filter: the largest bytes x staleness, of those with at least 1 % of the mean size
 *
 * Above MANY candidates a sample of them is scored, as DTR's own run-time does. */
#include "plan/decide/policies/policies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "plan/decide/online/online_sim.h"

enum { MANY = 2000, SAMPLE = 400 };

typedef enum score_kind { EQ, FULL, LOCAL, MSPS, LRU, DELTA } score_kind;
static const char *const names[] = {"eq", "full", "local", "msps", "lru", "delta"};

typedef struct class {
    uint32_t parent;
    double cost_ns; /* at the root */
    uint32_t stamp;
} class;

typedef struct dtr {
    score_kind kind;
    TIDE_VEC(class) classes;
    uint32_t *class_of; /* per storage: its node while it is evicted; TIDE_NONE */
    uint32_t *seen;     /* per storage, of searches */
    tide_id *queue;     /* of searches; room for all storages */
    uint32_t stamp;
    uint64_t draws;
} dtr;

/* ---- classes of evicted neighbours ---- */

static uint32_t root_of(dtr *d, uint32_t node) {
    class *c = d->classes.data;
    while (c[node].parent != node) node = c[node].parent = c[c[node].parent].parent;
    return node;
}

static void merge(dtr *d, uint32_t a, uint32_t b) {
    a = root_of(d, a);
    b = root_of(d, b);
    if (a == b) return;
    d->classes.data[a].parent = b;
    d->classes.data[b].cost_ns += d->classes.data[a].cost_ns;
}

static double own_cost(const tide__online *o, tide_id id) {
    tide_id producer = o->storages[id].producer;
    return producer == TIDE_NONE ? 0 : (double)o->ops[producer].cost_ns;
}

/* Calls for each neighbour of a storage: what its producer read, and what ops that read it made. */
typedef void (*visit_fn)(dtr *d, const tide__online *o, tide_id neighbour, void *context);

static void visit_parents(dtr *d, const tide__online *o, tide_id id, visit_fn visit, void *context) {
    tide_id producer = o->storages[id].producer;
    if (producer == TIDE_NONE) return;
    const tide_op *op = tide_program_op(o->program, producer);
    for (uint32_t i = 0; i < op->n_reads; i++) visit(d, o, op->reads[i], context);
}

static void visit_children(dtr *d, const tide__online *o, tide_id id, visit_fn visit, void *context) {
    for (uint32_t k = o->storages[id].first_consumer; k != TIDE_NONE; k = o->consumers.data[k].next) {
        tide_id consumer = o->consumers.data[k].op;
        if (!o->ops[consumer].ran) continue;
        const tide_op *op = tide_program_op(o->program, consumer);
        for (uint32_t i = 0; i < op->n_writes; i++) visit(d, o, op->writes[i], context);
    }
}

static void merge_neighbour(dtr *d, const tide__online *o, tide_id neighbour, void *context) {
    (void)o;
    if (d->class_of[neighbour] != TIDE_NONE) merge(d, d->class_of[neighbour], *(uint32_t *)context);
}

static tide_status left(void *self, const tide__online *o, tide_id id, tide__way way) {
    (void)way;
    dtr *d = self;
    if (d->kind != EQ) return TIDE_OK;
    uint32_t node = (uint32_t)d->classes.count;
    TIDE_TRY(tide__vec_push(&d->classes, ((class){.parent = node, .cost_ns = own_cost(o, id)})));
    d->class_of[id] = node;
    visit_parents(d, o, id, merge_neighbour, &node);
    visit_children(d, o, id, merge_neighbour, &node);
    return TIDE_OK;
}

static tide_status arrived(void *self, const tide__online *o, tide_id id) {
    dtr *d = self;
    if (d->class_of[id] == TIDE_NONE) return TIDE_OK;
    d->classes.data[root_of(d, d->class_of[id])].cost_ns -= own_cost(o, id);
    d->class_of[id] = TIDE_NONE;
    return TIDE_OK;
}

/* ---- scores ---- */

static void add_class(dtr *d, const tide__online *o, tide_id neighbour, void *context) {
    (void)o;
    if (d->class_of[neighbour] == TIDE_NONE) return;
    class *c = &d->classes.data[root_of(d, d->class_of[neighbour])];
    if (c->stamp == d->stamp) return;
    c->stamp = d->stamp;
    *(double *)context += c->cost_ns;
}

static double class_cost(dtr *d, const tide__online *o, tide_id id) {
    double cost = own_cost(o, id);
    d->stamp++;
    visit_parents(d, o, id, add_class, &cost);
    visit_children(d, o, id, add_class, &cost);
    return cost;
}

static void push_evicted(dtr *d, const tide__online *o, tide_id neighbour, void *context) {
    const tide__storage *s = &o->storages[neighbour];
    uint32_t *count = context;
    if (s->resident || s->producer == TIDE_NONE || !o->ops[s->producer].ran || d->seen[neighbour] == d->stamp) return;
    d->seen[neighbour] = d->stamp;
    d->queue[(*count)++] = neighbour;
}

/* The cost of the evicted storages that are reached over evicted ones, up or down. */
static double reach_cost(dtr *d, const tide__online *o, tide_id id, bool down) {
    uint32_t count = 0;
    double cost = 0;
    d->stamp++;
    d->seen[id] = d->stamp;
    (down ? visit_children : visit_parents)(d, o, id, push_evicted, &count);
    for (uint32_t i = 0; i < count; i++) {
        cost += own_cost(o, d->queue[i]);
        (down ? visit_children : visit_parents)(d, o, d->queue[i], push_evicted, &count);
    }
    return cost;
}

/* The smallest leaves. */
static double score(dtr *d, const tide__online *o, tide_id id) {
    const tide__storage *s = &o->storages[id];
    double bytes = (double)s->bytes, staleness = (double)(tide__online_now(o) - s->last_used_ns),
           cost = own_cost(o, id);
    switch (d->kind) {
    case EQ: cost = class_cost(d, o, id); break;
    case FULL: cost += reach_cost(d, o, id, false) + reach_cost(d, o, id, true); break;
    case MSPS: return (cost + reach_cost(d, o, id, false)) / bytes;
    case LRU: return (double)s->last_used_ns;
    case DELTA: return -bytes * staleness;
    case LOCAL: break;
    }
    return staleness > 0 ? cost / (bytes * staleness) : (double)INFINITY;
}

static bool is_candidate(const tide__online *o, tide_id id, uint64_t min_bytes) {
    const tide__storage *s = &o->storages[id];
    return s->locks == 0 && s->bytes > 0 && s->bytes >= min_bytes && tide__online_can_drop(o, id);
}

static uint64_t mean_bytes(const tide__online *o) {
    uint64_t sum = 0;
    for (size_t i = 0; i < o->residents.count; i++) sum += o->storages[o->residents.data[i]].bytes;
    return o->residents.count ? sum / o->residents.count : 0;
}

/* Ties go to the smaller id, so that the order of the list does not matter. */
static tide_id best_of(dtr *d, const tide__online *o, uint64_t min_bytes, bool sample) {
    tide_id best = TIDE_NONE;
    double best_score = 0;
    size_t n = o->residents.count, looks = sample && n > MANY ? SAMPLE : n;
    for (size_t i = 0; i < looks; i++) {
        tide_id id = o->residents.data[looks == n ? i : (size_t)(tide__random_u64(0, 0, d->draws++) % n)];
        if (!is_candidate(o, id, min_bytes)) continue;
        double s = score(d, o, id);
        if (best != TIDE_NONE && (s > best_score || (s == best_score && id > best))) continue;
        best = id;
        best_score = s;
    }
    return best;
}

static tide__victim choose(void *self, const tide__online *o) {
    dtr *d = self;
    uint64_t min_bytes = d->kind == DELTA ? mean_bytes(o) / 100 : 0;
    tide_id id = best_of(d, o, min_bytes, true);
    if (id == TIDE_NONE) id = best_of(d, o, 0, false);
    return (tide__victim){id, TIDE__DROP};
}

/* ---- the whole ---- */

static void destroy(void *self) {
    dtr *d = self;
    tide__vec_free(&d->classes);
    free(d->class_of);
    free(d->seen);
    free(d->queue);
    free(d);
}

static tide_status parse(const char *argument, score_kind *out) {
    if (!*argument) return TIDE_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(argument, names[i]) == 0) {
            *out = (score_kind)i;
            return TIDE_OK;
        }
    return tide__fail(TIDE_E_ARGUMENT, "dtr has no score \"%s\" (known: eq, full, local, msps, lru, delta)", argument);
}

static tide_status create(const tide__online *o, const char *argument, void **self) {
    (void)o;
    score_kind kind = EQ;
    TIDE_TRY(parse(argument, &kind));
    dtr *d = calloc(1, sizeof *d);
    if (!d) return tide__fail_memory();
    d->kind = kind;
    *self = d;
    return TIDE_OK;
}

static tide_status grow(void *self, const tide__online *o, uint32_t n_before) {
    dtr *d = self;
    TIDE_TRY(tide__online_widen(&d->class_of, n_before, o->n_storages, 0xff));
    TIDE_TRY(tide__online_widen(&d->seen, n_before, o->n_storages, 0));
    return tide__online_widen(&d->queue, n_before, o->n_storages, 0);
}

const tide__online_policy tide__online_dtr = {.name = "dtr",
                                              .takes_argument = true,
                                              .create = create,
                                              .destroy = destroy,
                                              .grow = grow,
                                              .choose = choose,
                                              .arrived = arrived,
                                              .left = left};

tide_status tide__decide_dtr(const tide__policy_input *in, tide__decisions *out) {
    return tide__decide_online(in, &tide__online_dtr, out);
}
