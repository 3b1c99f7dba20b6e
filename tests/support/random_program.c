/* See random_program.h. Invariant: a value that a `must` pair destroyed is never chosen again, so that the builder has
 * nothing to refuse. */
#include "support/random_program.h"

#include "support/test.h"

#include "base/hash.h"
#include "base/vec.h"

random_program_options random_program_defaults(uint64_t seed) {
    return (random_program_options){.seed = seed,
                                    .n_ops = 40,
                                    .min_bytes = 64,
                                    .max_bytes = 4096,
                                    .max_workspace_bytes = 2048,
                                    .max_cost_ns = 1000,
                                    .n_weights = 4,
                                    .n_inputs = 1,
                                    .repeating = true,
                                    .may_percent = 30,
                                    .must_percent = 5,
                                    .skip_percent = 20,
                                    .variants_percent = 30,
                                    .fixed_percent = 5,
                                    .random_percent = 10,
                                    .keep_percent = 3,
                                    .update_percent = 80};
}

random_program_options random_program_varied(uint64_t seed) {
    uint64_t s = tide__mix(seed ^ 0x76617279);
    random_program_options o = {.seed = seed, .max_bytes = UINT64_C(4) << random_below(&s, 15)};
    o.n_ops = 1 + (uint32_t)random_below(&s, 80);
    o.min_bytes = random_below(&s, o.max_bytes + 1);
    o.max_workspace_bytes = random_below(&s, 8192);
    o.max_cost_ns = 1 + random_below(&s, 100000);
    o.n_weights = (uint32_t)random_below(&s, 12);
    o.n_inputs = 1 + (uint32_t)random_below(&s, 3);
    o.repeating = random_below(&s, 2);
    o.prefetch = random_below(&s, 2);
    o.may_percent = (uint32_t)random_below(&s, 80);
    o.must_percent = (uint32_t)random_below(&s, 30);
    o.skip_percent = (uint32_t)random_below(&s, 60);
    o.variants_percent = (uint32_t)random_below(&s, 60);
    o.fixed_percent = (uint32_t)random_below(&s, 30);
    o.random_percent = (uint32_t)random_below(&s, 30);
    o.keep_percent = (uint32_t)random_below(&s, 20);
    o.update_percent = (uint32_t)random_below(&s, 101);
    o.zero_percent = (uint32_t)random_below(&s, 5);
    return o;
}

/* A tensor as the generator sees it. */
typedef struct value {
    tide_id id;
    uint64_t size;
    bool kept, destroyed;
    uint32_t gradient; /* index of the value that is its newest gradient, TIDE_NONE without one */
} value;

typedef struct weight {
    uint32_t value, state; /* indices of values; state: TIDE_NONE without optimizer state */
    uint32_t first_user;   /* the first forward op that reads it: the last to read it in backward */
    bool updated;
} weight;

/* What backward must know of a forward op. */
typedef struct forward {
    uint32_t input, output; /* values */
    uint32_t weight;        /* TIDE_NONE: none */
} forward;

typedef struct generator {
    random_program_options o;
    uint64_t random;
    tide_program_builder *builder;
    TIDE_VEC(value) values;
    TIDE_VEC(weight) weights;
    TIDE_VEC(forward) forwards;
    uint32_t n_flow; /* values from 0 to here are inputs and activations: what forward ops may read */
} generator;

enum { MAX_READS = 6, MAX_WRITES = 3, MAX_VARIANTS = 3 };

/* An op while it is put together. */
typedef struct draft {
    tide_op op;
    tide_id reads[MAX_READS], writes[MAX_WRITES];
    uint32_t read_values[MAX_READS];
    tide_inplace pairs[MAX_WRITES];
    tide_variant variants[MAX_VARIANTS];
} draft;

static uint32_t below(generator *g, uint64_t n) { return (uint32_t)random_below(&g->random, n); }

static bool chance(generator *g, uint32_t percent) { return below(g, 100) < percent; }

static uint64_t random_size(generator *g) {
    uint64_t low = g->o.min_bytes / 4, high = g->o.max_bytes / 4;
    if (chance(g, g->o.zero_percent)) return 0;
    return 4 * (low + random_below(&g->random, high > low ? high - low + 1 : 1));
}

static uint32_t add_value(generator *g, const char *name, uint64_t size, tide_class cls, tide_start start, bool keep) {
    value v = {.size = size, .kept = keep, .gradient = TIDE_NONE};
    char text[48];
    snprintf(text, sizeof text, "%s%zu", name, g->values.count);
    tide_tensor t = {text, size, TIDE_F32, cls, start, keep};
    assert_ok(tide_program_builder_tensor(g->builder, &t, &v.id));
    assert_ok(tide__vec_push(&g->values, v));
    return (uint32_t)g->values.count - 1;
}

/* false if the value is gone, listed already, or the list is full. */
static bool add_read(generator *g, draft *d, uint32_t index) {
    if (index == TIDE_NONE || g->values.data[index].destroyed || d->op.n_reads == MAX_READS) return false;
    for (uint32_t i = 0; i < d->op.n_reads; i++)
        if (d->read_values[i] == index) return false;
    d->read_values[d->op.n_reads] = index;
    d->reads[d->op.n_reads++] = g->values.data[index].id;
    return true;
}

static void add_write(generator *g, draft *d, uint32_t index) {
    d->writes[d->op.n_writes++] = g->values.data[index].id;
}

/* Pairs the newest write with a read. */
static void add_pair(generator *g, draft *d, uint32_t read, bool must) {
    d->pairs[d->op.n_inplace++] = (tide_inplace){read, d->op.n_writes - 1, must};
    if (must) g->values.data[d->read_values[read]].destroyed = true;
}

static void add_variants(generator *g, draft *d) {
    uint32_t n = chance(g, g->o.variants_percent) ? 1 + below(g, MAX_VARIANTS) : 1;
    for (uint32_t i = 0; i < n; i++) {
        d->variants[i].cost_ns = 1 + random_below(&g->random, g->o.max_cost_ns);
        d->variants[i].bits_class = below(g, 2);
        bool workspace = n > 1 || chance(g, 10);
        d->variants[i].workspace_bytes = workspace ? random_below(&g->random, g->o.max_workspace_bytes + 1) : 0;
    }
    d->op.n_variants = n;
}

/* Says how the op may be cut, in some way that the builder takes; else the op stays whole. */
static bool emit_split(generator *g, draft *d) {
    enum { TRIES = 8, UNITS = 4 }; /* sizes are multiples of UNITS */
    tide_along along[MAX_READS + MAX_WRITES];
    tide_split split = {.units = UNITS, .reads = along, .writes = along + MAX_READS, .sum_cost_ns = below(g, 50)};
    split.cut_workspace = chance(g, 50);
    d->op.split = &split;
    for (int k = 0; k < TRIES; k++) {
        for (uint32_t i = 0; i < d->op.n_reads; i++)
            along[i] = chance(g, 60) ? TIDE_ALONG_CUT : chance(g, 50) ? TIDE_ALONG_WHOLE : TIDE_ALONG_PARTS;
        for (uint32_t i = 0; i < d->op.n_writes; i++)
            along[MAX_READS + i] = chance(g, 60) ? TIDE_ALONG_CUT : (tide_along)below(g, 4);
        if (tide_program_builder_op(g->builder, &d->op, NULL) == TIDE_OK) return true;
    }
    d->op.split = NULL;
    return false;
}

static void emit(generator *g, draft *d, const char *name, tide_phase phase) {
    char text[32];
    add_variants(g, d);
    snprintf(text, sizeof text, "%s%u", name, below(g, 1000));
    d->op.name = text;
    d->op.phase = phase;
    d->op.rerunnable = !chance(g, g->o.fixed_percent);
    d->op.random = chance(g, g->o.random_percent);
    d->op.counter = below(g, 1000000);
    d->op.reads = d->reads;
    d->op.writes = d->writes;
    d->op.inplace = d->pairs;
    d->op.variants = d->variants;
    if (g->o.split_percent > 0 && chance(g, g->o.split_percent) && emit_split(g, d)) return;
    assert_ok(tide_program_builder_op(g->builder, &d->op, NULL));
}

/* ---- what is there at the start ---- */

static void carry(generator *g, uint32_t from, uint32_t to) {
    if (!g->o.repeating) return;
    tide_carry c = {g->values.data[from].id, g->values.data[to].id};
    assert_ok(tide_program_builder_carry(g->builder, c));
}

static void add_inputs(generator *g) {
    for (uint32_t i = 0; i < g->o.n_inputs; i++)
        add_value(g, "input", random_size(g), TIDE_CLASS_INPUT, TIDE_START_CLIENT, false);
    g->n_flow = g->o.n_inputs;
    if (!g->o.prefetch || !g->o.repeating) return;
    uint64_t size = random_size(g);
    uint32_t now = add_value(g, "batch", size, TIDE_CLASS_INPUT, TIDE_START_PRESENT, false);
    g->n_flow++;
    carry(g, add_value(g, "next", size, TIDE_CLASS_INPUT, TIDE_START_CLIENT, true), now);
}

static void add_weights(generator *g) {
    uint32_t n = g->o.n_weights < g->o.n_ops / 4 ? g->o.n_weights : g->o.n_ops / 4;
    for (uint32_t i = 0; i < n; i++) {
        weight w = {.state = TIDE_NONE, .first_user = TIDE_NONE, .updated = chance(g, g->o.update_percent)};
        uint64_t size = random_size(g);
        w.value = add_value(g, "w", size, TIDE_CLASS_WEIGHT, TIDE_START_PRESENT, !w.updated);
        if (!w.updated) carry(g, w.value, w.value);
        if (w.updated && chance(g, 50))
            w.state = add_value(g, "m", size, TIDE_CLASS_OPTIMIZER, TIDE_START_PRESENT, false);
        assert_ok(tide__vec_push(&g->weights, w));
    }
}

/* ---- the three phases ---- */

/* An output of the op, sharing the bytes of read 0 by chance. */
static uint32_t add_output(generator *g, draft *d, const char *name, tide_class cls, bool shares) {
    const value *read = d->op.n_reads > 0 ? &g->values.data[d->read_values[0]] : NULL;
    bool must = shares && read && !read->kept && chance(g, g->o.must_percent);
    bool may = shares && read && !must && chance(g, g->o.may_percent);
    uint64_t size = must || may ? read->size : random_size(g);
    uint32_t output = add_value(g, name, size, cls, TIDE_START_ABSENT, chance(g, g->o.keep_percent));
    add_write(g, d, output);
    if (must || may) add_pair(g, d, 0, must);
    return output;
}

/* A value that forward ops may read: mostly the newest, by chance a very old one. n_flow grows with them, and weights
 * lie between inputs and activations, so those are skipped. */
static uint32_t choose_input(generator *g) {
    uint32_t newest = g->forwards.count > 0 ? g->forwards.data[g->forwards.count - 1].output : 0;
    if (g->forwards.count == 0 || !chance(g, g->o.skip_percent)) return newest;
    uint32_t back = below(g, g->forwards.count + g->n_flow);
    return back < g->n_flow ? back : g->forwards.data[back - g->n_flow].output;
}

static void forward_op(generator *g) {
    draft d = {0};
    forward f = {.weight = TIDE_NONE, .input = choose_input(g)};
    if (!add_read(g, &d, f.input)) f.input = TIDE_NONE;
    while (chance(g, g->o.skip_percent)) add_read(g, &d, choose_input(g));
    if (g->weights.count > 0 && chance(g, 60)) {
        f.weight = below(g, g->weights.count);
        weight *w = &g->weights.data[f.weight];
        add_read(g, &d, w->value);
        if (w->first_user == TIDE_NONE) w->first_user = (uint32_t)g->forwards.count;
    }
    f.output = add_output(g, &d, "y", TIDE_CLASS_ACTIVATION, f.input != TIDE_NONE);
    if (chance(g, 15)) add_output(g, &d, "mask", TIDE_CLASS_WORKSPACE, false);
    emit(g, &d, "forward", TIDE_FORWARD);
    assert_ok(tide__vec_push(&g->forwards, f));
}

/* The gradient of a weight; a second one is added to the first, in place. */
static void weight_gradient(generator *g, draft *d, uint32_t index) {
    uint32_t old = g->values.data[index].gradient;
    bool more = add_read(g, d, old);
    uint32_t read = d->op.n_reads - 1;
    uint32_t made = add_value(g, "dw", g->values.data[index].size, TIDE_CLASS_GRADIENT, TIDE_START_ABSENT, false);
    add_write(g, d, made);
    if (more) add_pair(g, d, read, true);
    g->values.data[index].gradient = made;
}

static void backward_op(generator *g, const forward *f) {
    draft d = {0};
    bool flows = add_read(g, &d, g->values.data[f->output].gradient);
    if (f->input != TIDE_NONE && chance(g, 80)) add_read(g, &d, f->input);
    if (chance(g, 50)) add_read(g, &d, f->output);
    if (f->weight != TIDE_NONE) add_read(g, &d, g->weights.data[f->weight].value);
    uint32_t made = add_output(g, &d, "dx", TIDE_CLASS_ACTIVATION_GRADIENT, flows);
    if (f->input != TIDE_NONE) g->values.data[f->input].gradient = made;
    if (f->weight != TIDE_NONE && g->weights.data[f->weight].updated)
        weight_gradient(g, &d, g->weights.data[f->weight].value);
    emit(g, &d, "backward", TIDE_BACKWARD);
}

/* value -> its successor in the next step, updated in place; the pair's read must be in the draft already. */
static void renew(generator *g, draft *d, uint32_t index, uint32_t read) {
    value old = g->values.data[index];
    tide_class cls = read == 0 ? TIDE_CLASS_WEIGHT : TIDE_CLASS_OPTIMIZER;
    uint32_t made = add_value(g, "new", old.size, cls, TIDE_START_ABSENT, true);
    add_write(g, d, made);
    add_pair(g, d, read, true);
    carry(g, made, index);
}

static void update_op(generator *g, weight *w) {
    draft d = {0};
    add_read(g, &d, w->value);
    add_read(g, &d, g->values.data[w->value].gradient);
    uint32_t state_read = d.op.n_reads;
    if (w->state != TIDE_NONE) add_read(g, &d, w->state);
    renew(g, &d, w->value, 0);
    if (w->state != TIDE_NONE) renew(g, &d, w->state, state_read);
    emit(g, &d, "update", TIDE_UPDATE);
    w->updated = false;
}

static uint32_t count_updates(const generator *g) {
    uint32_t n = 0;
    for (size_t i = 0; i < g->weights.count; i++) n += g->weights.data[i].updated;
    return n;
}

static void make_step(generator *g) {
    uint32_t rest = g->o.n_ops - count_updates(g), n_backward = rest / 2;
    for (uint32_t i = 0; i < rest - n_backward; i++) forward_op(g);
    for (uint32_t i = n_backward; i-- > 0;) {
        backward_op(g, &g->forwards.data[i]);
        for (size_t k = 0; k < g->weights.count; k++) {
            weight *w = &g->weights.data[k];
            if (w->updated && w->first_user == i && chance(g, 40)) update_op(g, w);
        }
    }
    for (size_t k = 0; k < g->weights.count; k++)
        if (g->weights.data[k].updated) update_op(g, &g->weights.data[k]);
}

tide_program *random_program(const random_program_options *options) {
    generator g = {.o = *options, .random = tide__mix(options->seed)};
    tide_program *program = NULL;
    char name[48];
    if (g.o.n_inputs == 0) g.o.n_inputs = 1;
    snprintf(name, sizeof name, "random-%llu", (unsigned long long)g.o.seed);
    assert_ok(tide_program_builder_create(name, g.o.repeating, &g.builder));
    add_inputs(&g);
    add_weights(&g);
    make_step(&g);
    assert_ok(tide_program_builder_finish(g.builder, &program));
    tide__vec_free(&g.values);
    tide__vec_free(&g.weights);
    tide__vec_free(&g.forwards);
    return program;
}
