/* Programs in parts: which values are cut and in which order ops go, on a small step; and that random ones compute the same.
 *
 * For the latter, programs run on numbers. A value is a number per unit; an op makes each unit of what it writes of the same unit of
 * its cut reads and of all of the others; sums are sums. A program in parts then has to give the numbers of the whole one. */
#include "support/test.h"

#include "base/hash.h"
#include "support/program_text.h"
#include "support/random_below.h"

enum { UNITS = 12, MAX_VALUES = 600, MAX_OPS = 40 };

static tide_program *read_program(const char *text) {
    tide_program *p;
    assert_ok(tide_program_read_memory(text, strlen(text), "test", &p));
    return p;
}

/* ---- a small step ---- */

#define STEP                                                                                                           \
    "{\"tidemark\":\"program\",\"version\":1,\"kind\":\"repeating\"}\n"                                                \
    "{\"tensor\":0,\"name\":\"x\",\"bytes\":48,\"start\":\"client\"}\n"                                                \
    "{\"tensor\":1,\"name\":\"w\",\"bytes\":10,\"start\":\"present\"}\n"                                               \
    "{\"tensor\":2,\"name\":\"y\",\"bytes\":96}\n"                                                                     \
    "{\"tensor\":3,\"name\":\"l\",\"bytes\":4,\"keep\":true}\n"                                                        \
    "{\"tensor\":4,\"name\":\"g\",\"bytes\":10}\n"                                                                     \
    "{\"tensor\":5,\"name\":\"w'\",\"bytes\":10,\"keep\":true}\n"                                                      \
    "{\"op\":0,\"name\":\"f\",\"phase\":\"forward\",\"reads\":[0,1],\"writes\":[2],\"variants\":[{\"workspace\":9,"    \
    "\"cost\":10}],\"split\":{\"units\":12,\"reads\":[\"cut\",\"whole\"],\"writes\":[\"cut\"],\"workspace\":\"cut\"}}" \
    "\n"                                                                                                               \
    "{\"op\":1,\"name\":\"loss\",\"phase\":\"forward\",\"reads\":[2],\"writes\":[3],\"cost\":1,"                       \
    "\"split\":{\"units\":1,\"reads\":[\"parts\"],\"writes\":[\"whole\"]}}\n"                                          \
    "{\"op\":2,\"name\":\"b\",\"phase\":\"backward\",\"reads\":[0,2],\"writes\":[4],\"cost\":7,"                       \
    "\"split\":{\"units\":12,\"reads\":[\"cut\",\"cut\"],\"writes\":[\"sum\"]%s,\"sum_cost\":2}}\n"                    \
    "{\"op\":3,\"name\":\"u\",\"phase\":\"update\",\"reads\":[1,4],\"writes\":[5],\"inplace\":[[0,0,\"must\"]],"       \
    "\"cost\":1,\"rerun\":false}\n"                                                                                    \
    "{\"carry\":[5,1]}\n"                                                                                              \
    "{\"end\":{\"tensors\":6,\"ops\":4,\"carries\":1}}\n"

static void test_step(void **state) {
    (void)state;
    char text[2048];
    tide_program *in_parts;
    snprintf(text, sizeof text, STEP, "");
    tide_program *p = read_program(text);
    assert_int_equal(tide_program_units(p), 12);
    assert_ok(tide_program_split(p, 3, false, &in_parts));
    char *got = program_text(in_parts);
    assert_non_null(strstr(got, "f@0: x@0 w -> y@0\n"
                                "f@1: x@1 w -> y@1\n"
                                "f@2: x@2 w -> y@2\n"
                                "loss: y@0 y@1 y@2 -> l\n"
                                "b@0: x@0 y@0 -> g@0\n"
                                "b@1: x@1 y@1 -> g@1\n"
                                "g.sum: g@0 g@1 -> g+ (0>0)\n"
                                "b@2: x@2 y@2 -> g@2\n"
                                "g.sum: g+ g@2 -> g (0>0)\n"
                                "u: w g -> w' (0=0) once\n"));
    assert_int_equal(tide_program_tensor(in_parts, 0)->size_bytes, 16);
    assert_int_equal(tide_program_cost_ns(in_parts), 10 + 1 + 7 + 2 * 2 + 1);
    assert_int_equal(tide_program_op(in_parts, 0)->variants[0].workspace_bytes, 3);
    free(got);
    tide_program_destroy(in_parts);
    assert_status(tide_program_split(p, 5, false, &in_parts), TIDE_E_ARGUMENT); /* twelve units are not five parts */
    assert_status(tide_program_split(p, 0, false, &in_parts), TIDE_E_ARGUMENT);
    assert_status(tide_program_split(p, 5000, false, &in_parts), TIDE_E_ARGUMENT);
    assert_ok(tide_program_split(p, 1, false, &in_parts));
    assert_int_equal(tide_program_op_count(in_parts), 4);
    tide_program_destroy(in_parts);
    tide_program_destroy(p);
}

/* A sum with other bits leaves the op whole: its reads are then needed whole, and nothing is left to cut. */
static void test_bits(void **state) {
    (void)state;
    char text[2048];
    tide_program *in_parts;
    snprintf(text, sizeof text, STEP, ",\"bits\":1");
    tide_program *p = read_program(text);
    assert_status(tide_program_split(p, 2, false, &in_parts), TIDE_E_ARGUMENT);
    assert_error_has("2 parts");
    assert_ok(tide_program_split(p, 2, true, &in_parts));
    tide_program_destroy(in_parts);
    tide_program_destroy(p);
}

static void refuse(const char *from, const char *to, const char *because) {
    char text[2048], other[2048];
    tide_program *p;
    snprintf(text, sizeof text, STEP, "");
    const char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_status(tide_program_read_memory(other, strlen(other), "test", &p), TIDE_E_FORMAT);
    assert_error_has(because);
}

static void test_refused(void **state) {
    (void)state;
    refuse("\"units\":12", "\"units\":0", "units");
    refuse("\"units\":12", "\"units\":7", "no multiple");
    refuse("[\"cut\",\"whole\"]", "[\"cut\"]", "word per operand");
    refuse("[\"cut\",\"whole\"]", "[\"cut\",\"half\"]", "one of");
    refuse("[\"cut\",\"whole\"]", "[\"cut\",\"sum\"]", "no sum");
    refuse("\"writes\":[\"cut\"]", "\"writes\":[\"parts\"]", "by each part");
    refuse("\"writes\":[\"cut\"]", "\"writes\":[\"whole\"]", "not in place");
    refuse("\"writes\":[\"whole\"]", "\"writes\":[\"sum\"]", "cannot be a sum");
    refuse("\"name\":\"f\",", "\"name\":\"f\",\"random\":5,", "a random op is not cut");
    refuse("\"workspace\":\"cut\"", "\"workspace\":\"all\"", "workspace");
    refuse("\"workspace\":\"cut\"", "\"work\":\"cut\"", "unknown key");
}

/* ---- random programs, on numbers ---- */

typedef struct value {
    uint64_t unit[UNITS]; /* a part has the first of them */
} value;

typedef struct machine {
    const tide_program *p;
    value *values; /* per tensor */
} machine;

static uint64_t fold(const uint64_t *words, uint32_t n, uint64_t hash) {
    for (uint32_t i = 0; i < n; i++) hash = tide__hash_word(hash, words[i]);
    return hash;
}

/* An operand of the original op, as the program at hand has it: in one piece, or in parts of so many units from *at on. */
typedef struct operand {
    tide_along along;
    const value *pieces[UNITS];
    uint32_t n, units; /* pieces, units of each */
} operand;

static uint64_t read_unit(const operand *o, uint32_t u, uint32_t first) {
    uint64_t hash = 0;
    if (o->along == TIDE_ALONG_CUT) return o->pieces[0]->unit[o->units == UNITS ? u : u - first];
    for (uint32_t i = 0; i < o->n; i++) hash = fold(o->pieces[i]->unit, o->units, hash);
    return hash;
}

static tide_along along_of(const tide_op *op, uint32_t i) {
    if (!op->split) return TIDE_ALONG_WHOLE;
    return i < op->n_reads ? op->split->reads[i] : op->split->writes[i - op->n_reads];
}

static bool is_in_turn(const tide_op *op, uint32_t read) {
    for (uint32_t i = 0; i < op->n_inplace; i++)
        if (op->inplace[i].must && op->inplace[i].read == read) return along_of(op, read) == TIDE_ALONG_WHOLE;
    return false;
}

static bool has_units(const tide_op *op) {
    bool any = false;
    for (uint32_t i = 0; i < op->n_reads + op->n_writes; i++) any |= along_of(op, i) == TIDE_ALONG_CUT;
    return any;
}

static tide_id find(const tide_program *p, const char *name) {
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++)
        if (strcmp(tide_program_tensor(p, t)->name, name) == 0) return t;
    return TIDE_NONE;
}

static bool is_cut(const tide_program *p, tide_id original, const tide_program *whole) {
    char name[64];
    snprintf(name, sizeof name, "%s@0", tide_program_tensor(whole, original)->name);
    tide_id t = find(p, name);
    return t != TIDE_NONE && find(p, tide_program_tensor(whole, original)->name) == TIDE_NONE;
}

/* Op `op` of m->p does what `original` does, to the units of part `part`, or to all (parts 1). */
static void run_op(machine *m, const tide_program *whole, const tide_op *original, uint64_t key, const tide_op *op,
                   uint32_t part, uint32_t parts, uint32_t all_parts) {
    operand reads[4];
    const uint32_t own = UNITS / parts, first = part * own;
    uint32_t at = 0;
    for (uint32_t i = 0; i < original->n_reads; i++) {
        const bool cut = is_cut(m->p, original->reads[i], whole);
        reads[i] = (operand){.along = along_of(original, i), .n = 1, .units = cut ? UNITS / all_parts : UNITS};
        if (cut && reads[i].along != TIDE_ALONG_CUT) reads[i].n = all_parts;
        for (uint32_t k = 0; k < reads[i].n; k++) reads[i].pieces[k] = &m->values[op->reads[at++]];
        if (!has_units(original)) reads[i].along = TIDE_ALONG_WHOLE;
    }
    assert_int_equal(at, op->n_reads);
    at = 0;
    for (uint32_t i = 0; i < original->n_writes; i++) {
        const bool cut = is_cut(m->p, original->writes[i], whole);
        const tide_along along = along_of(original, original->n_reads + i);
        value in_turn = {{0}};
        for (uint32_t j = 0; j < original->n_inplace; j++)
            if (original->inplace[j].write == i) in_turn = *reads[original->inplace[j].read].pieces[0];
        value sum = {{0}}, result = in_turn;
        for (uint32_t u = first; u < first + own; u++) {
            uint64_t hash = tide__hash_word(key, i);
            if (has_units(original)) hash = tide__hash_word(hash, u);
            for (uint32_t r = 0; r < original->n_reads; r++)
                if (!is_in_turn(original, r)) hash = tide__hash_word(hash, read_unit(&reads[r], u, first));
            for (uint32_t j = 0; j < UNITS; j++) {
                const uint64_t word = tide__hash_word(hash, j);
                sum.unit[j] += word;
                if (along == TIDE_ALONG_WHOLE && has_units(original))
                    result.unit[j] = tide__hash_word(result.unit[j], hash);
                if (!has_units(original)) result.unit[j] = word;
            }
            if (along == TIDE_ALONG_CUT) result.unit[cut ? u - first : u] = hash;
        }
        if (along == TIDE_ALONG_SUM) result = sum;
        if (!cut || (along == TIDE_ALONG_CUT && parts > 1)) {
            m->values[op->writes[at++]] = result;
            continue;
        }
        for (uint32_t k = 0; k < all_parts; k++) /* it writes them one by one */
            memcpy(m->values[op->writes[at++]].unit, result.unit + k * (UNITS / all_parts),
                   UNITS / all_parts * sizeof(uint64_t));
    }
    assert_int_equal(at, op->n_writes);
}

static void begin(machine *m, const tide_program *p, const tide_program *whole, uint32_t parts) {
    m->p = p;
    m->values = calloc(tide_program_tensor_count(p) + 1, sizeof *m->values);
    for (tide_id t = 0; t < tide_program_tensor_count(whole); t++) {
        const tide_tensor *original = tide_program_tensor(whole, t);
        if (original->start == TIDE_START_ABSENT) continue;
        const bool cut = parts > 1 && is_cut(p, t, whole);
        char name[64];
        for (uint32_t u = 0; u < UNITS; u++) {
            snprintf(name, sizeof name, cut ? "%s@%u" : "%s", original->name, u / (UNITS / parts));
            m->values[find(p, name)].unit[cut ? u % (UNITS / parts) : u] = tide__hash_word(t, u);
        }
    }
}

static void run_whole(machine *m, const tide_program *p) {
    begin(m, p, p, 1);
    for (tide_id i = 0; i < tide_program_op_count(p); i++)
        run_op(m, p, tide_program_op(p, i), i, tide_program_op(p, i), 0, 1, 1);
}

static void run_parts(machine *m, const tide_program *p, const tide_program *whole, uint32_t parts) {
    begin(m, p, whole, parts);
    for (tide_id i = 0; i < tide_program_op_count(p); i++) {
        const tide_op *op = tide_program_op(p, i);
        unsigned number, part = 0;
        if (strstr(op->name, ".sum")) {
            for (uint32_t u = 0; u < UNITS; u++)
                m->values[op->writes[0]].unit[u] = m->values[op->reads[0]].unit[u] + m->values[op->reads[1]].unit[u];
            continue;
        }
        const int found = sscanf(op->name, "o%u@%u", &number, &part);
        assert_true(found >= 1);
        run_op(m, whole, tide_program_op(whole, number), number, op, part, found == 2 ? parts : 1, parts);
    }
}

typedef struct drawing {
    uint64_t seed;
    tide_program_builder *b;
    tide_id there[MAX_VALUES]; /* that are not destroyed */
    uint32_t n_there, n_tensors;
} drawing;

static uint32_t below(drawing *d, uint32_t n) { return (uint32_t)random_below(&d->seed, n); }

static tide_id draw_tensor(drawing *d, tide_start start) {
    char name[16];
    tide_id id;
    snprintf(name, sizeof name, "t%u", d->n_tensors++);
    assert_ok(tide_program_builder_tensor(
        d->b, &(tide_tensor){.name = name, .size_bytes = UINT64_C(8) * UNITS, .start = start}, &id));
    return id;
}

/* Roles as they come, as long as the builder takes them. */
static void draw_op(drawing *d, uint32_t number) {
    static const tide_variant variant = {.cost_ns = 100};
    tide_id reads[3], writes[2];
    tide_along read_along[3], write_along[2];
    tide_inplace pair = {0, 0, below(d, 3) == 0};
    tide_split split = {.units = UNITS, .reads = read_along, .writes = write_along};
    char name[16];
    snprintf(name, sizeof name, "o%u", number);
    tide_op op = {.name = name, .rerunnable = true, .reads = reads, .writes = writes, .variants = &variant};
    op.n_variants = 1;
    op.n_reads = 1 + below(d, 3 < d->n_there ? 3 : d->n_there);
    op.n_writes = 1 + below(d, 2);
    for (uint32_t i = 0; i < op.n_reads; i++) { /* the newest ones, mostly */
        const uint32_t span = below(d, 3) ? (d->n_there < 5 ? d->n_there : 5) : d->n_there;
        const uint32_t pick = d->n_there - 1 - below(d, span);
        reads[i] = d->there[pick];
        for (uint32_t k = 0; k < i; k++)
            if (reads[k] == reads[i]) reads[i] = TIDE_NONE;
        if (reads[i] == TIDE_NONE) op.n_reads = i;
    }
    for (uint32_t i = 0; i < op.n_writes; i++) writes[i] = draw_tensor(d, TIDE_START_ABSENT);
    if (below(d, 2)) op.inplace = &pair, op.n_inplace = 1;
    if (below(d, 8)) op.split = &split;
    do {
        for (uint32_t i = 0; i < op.n_reads; i++)
            read_along[i] = below(d, 3) ? TIDE_ALONG_CUT : below(d, 2) ? TIDE_ALONG_WHOLE : TIDE_ALONG_PARTS;
        for (uint32_t i = 0; i < op.n_writes; i++)
            write_along[i] = below(d, 2) ? TIDE_ALONG_CUT : (tide_along)below(d, 4);
    } while (tide_program_builder_op(d->b, &op, NULL) != TIDE_OK);
    if (op.n_inplace && pair.must)
        for (uint32_t i = 0; i < d->n_there; i++)
            if (d->there[i] == reads[0]) d->there[i--] = d->there[--d->n_there];
    for (uint32_t i = 0; i < op.n_writes; i++) d->there[d->n_there++] = writes[i];
}

static tide_program *draw_program(uint64_t seed) {
    drawing d = {.seed = seed};
    tide_program *p;
    assert_ok(tide_program_builder_create("drawn", false, &d.b));
    for (uint32_t i = 0; i < 4; i++)
        d.there[d.n_there++] = draw_tensor(&d, i < 2 ? TIDE_START_CLIENT : TIDE_START_PRESENT);
    const uint32_t n = 2 + below(&d, MAX_OPS - 2);
    for (uint32_t i = 0; i < n; i++) draw_op(&d, i);
    for (uint32_t i = 0; i < d.n_there; i++) assert_ok(tide_program_builder_keep(d.b, d.there[i]));
    assert_ok(tide_program_builder_finish(d.b, &p));
    return p;
}

static void compare(const machine *whole, const machine *in_parts, uint32_t parts) {
    const uint32_t own = UNITS / parts;
    for (tide_id t = 0; t < tide_program_tensor_count(whole->p); t++) {
        const tide_tensor *tensor = tide_program_tensor(whole->p, t);
        if (!tensor->keep) continue;
        const bool cut = is_cut(in_parts->p, t, whole->p);
        char name[64];
        for (uint32_t u = 0; u < UNITS; u++) {
            snprintf(name, sizeof name, cut ? "%s@%u" : "%s", tensor->name, u / own);
            const tide_id id = find(in_parts->p, name);
            assert_true(id != TIDE_NONE && tide_program_tensor(in_parts->p, id)->keep);
            assert_true(in_parts->values[id].unit[cut ? u % own : u] == whole->values[t].unit[u]);
        }
    }
}

static void test_random(void **state) {
    (void)state;
    static const uint32_t numbers[] = {2, 3, 4, 6, 12};
    uint32_t n_cut = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        tide_program *p = draw_program(seed), *in_parts;
        const uint32_t parts = numbers[seed % 5];
        tide_status status = tide_program_split(p, parts, false, &in_parts);
        if (status == TIDE_OK) {
            machine whole, other;
            run_whole(&whole, p);
            run_parts(&other, in_parts, p, parts);
            compare(&whole, &other, parts);
            assert_int_equal(tide_program_cost_ns(in_parts), tide_program_cost_ns(p));
            free(whole.values);
            free(other.values);
            tide_program_destroy(in_parts);
            n_cut++;
        } else {
            assert_status(status, TIDE_E_ARGUMENT);
        }
        tide_program_destroy(p);
    }
    assert_true(n_cut > 200);
}

/* ---- long ones ---- */

/* A chain of n ops, each of which can be cut, but for the last of several. */
static tide_program *draw_chain(uint32_t n, const char *name) {
    static const tide_along cut = TIDE_ALONG_CUT;
    static const tide_variant variant = {.cost_ns = 100};
    const tide_split split = {.units = UNITS, .reads = &cut, .writes = &cut};
    tide_program_builder *b;
    tide_program *p;
    tide_id x, y;
    tide_tensor t = {.name = name, .size_bytes = UINT64_C(8) * UNITS, .start = TIDE_START_CLIENT};
    assert_ok(tide_program_builder_create("chain", false, &b));
    assert_ok(tide_program_builder_tensor(b, &t, &x));
    t.start = TIDE_START_ABSENT;
    for (uint32_t i = 0; i < n; i++, x = y) {
        t.keep = i + 1 == n;
        assert_ok(tide_program_builder_tensor(b, &t, &y));
        const bool whole = n > 1 && i == n - 1;
        tide_op op = {.name = name, .n_reads = 1, .n_writes = 1, .n_variants = 1, .reads = &x, .writes = &y};
        op.variants = &variant;
        op.split = whole ? NULL : &split;
        assert_ok(tide_program_builder_op(b, &op, NULL));
    }
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

/* What is whole spreads backwards over 200,000 ops: in time, if a pass does it. */
static void test_chain(void **state) {
    (void)state;
    tide_program *p = draw_chain(200000, "x"), *in_parts;
    assert_status(tide_program_split(p, 2, false, &in_parts), TIDE_E_ARGUMENT);
    assert_error_has("no op of the program");
    tide_program_destroy(p);
}

static void test_long_name(void **state) {
    (void)state;
    char name[400];
    tide_program *in_parts;
    for (size_t i = 0; i + 2 < sizeof name; i += 2) memcpy(name + i, "\xC3\xA4", 3);
    tide_program *p = draw_chain(1, name);
    assert_ok(tide_program_split(p, 12, false, &in_parts));
    const char *got = tide_program_tensor(in_parts, 11)->name;
    assert_int_equal(strlen(got), 252 + 3);
    assert_string_equal(got + 250, "\xC3\xA4@11");
    assert_string_equal(tide_program_op(in_parts, 11)->name, got);
    tide_program_destroy(in_parts);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),   cmocka_unit_test(test_bits),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_random), cmocka_unit_test(test_chain), cmocka_unit_test(test_long_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
