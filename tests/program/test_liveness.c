/* Liveness and gaps: a step worked out by hand, then many random ones against a slow reference written from the
 * header's words alone. */
#include "support/test.h"

#include "support/random_program.h"

/* ---- by hand ---- */

static const tide_variant plain = {.cost_ns = 1};

#define IDS(...) \
    (tide_id[]) { __VA_ARGS__ }
#define N(...) (uint32_t)(sizeof(IDS(__VA_ARGS__)) / sizeof(tide_id))

static tide_id tensor(tide_program_builder *b, uint64_t size, tide_start start, bool keep) {
    tide_id id;
    tide_tensor t = {.size_bytes = size, .start = start, .keep = keep};
    assert_ok(tide_program_builder_tensor(b, &t, &id));
    return id;
}

/*   op            0        1        2        3        4
 *   w  100  P     r────────────────────────────────────must ─▶ v 100 kept
 *   x   10  C     r
 *   a   20        w────────r────────────────r
 *   c   20                 w────────may ─▶ e 20
 *   e   20                          w────────r
 *   g  100                                   w────────r
 *   k    7  P kept, unused;  u 5 P unused;  n 3 C kept, unused;  z 9 C unused                              */
static void test_by_hand(void **state) {
    (void)state;
    tide_program_builder *b = NULL;
    tide_program *p = NULL;
    tide_liveness *l = NULL;
    assert_ok(tide_program_builder_create("hand", false, &b));
    tide_id w = tensor(b, 100, TIDE_START_PRESENT, false), x = tensor(b, 10, TIDE_START_CLIENT, false);
    tide_id a = tensor(b, 20, TIDE_START_ABSENT, false), c = tensor(b, 20, TIDE_START_ABSENT, false);
    tide_id e = tensor(b, 20, TIDE_START_ABSENT, false), g = tensor(b, 100, TIDE_START_ABSENT, false);
    tide_id v = tensor(b, 100, TIDE_START_ABSENT, true), k = tensor(b, 7, TIDE_START_PRESENT, true);
    tide_id u = tensor(b, 5, TIDE_START_PRESENT, false), n = tensor(b, 3, TIDE_START_CLIENT, true);
    tide_id z = tensor(b, 9, TIDE_START_CLIENT, false);
    tide_variant two[] = {{1000, 1, 0}, {40, 2, 0}};
    tide_op ops[] = {
        {.n_reads = 2, .reads = IDS(w, x), .n_writes = 1, .writes = IDS(a), .n_variants = 1, .variants = &plain},
        {.n_reads = 1, .reads = IDS(a), .n_writes = 1, .writes = IDS(c), .n_variants = 2, .variants = two},
        {.n_reads = 1, .reads = IDS(c), .n_writes = 1, .writes = IDS(e), .n_variants = 1, .variants = &plain},
        {.n_reads = 2, .reads = IDS(a, e), .n_writes = 1, .writes = IDS(g), .n_variants = 1, .variants = &plain},
        {.n_reads = 2, .reads = IDS(g, w), .n_writes = 1, .writes = IDS(v), .n_variants = 1, .variants = &plain}};
    ops[2].n_inplace = ops[4].n_inplace = 1;
    ops[2].inplace = &(tide_inplace){0, 0, false};
    ops[4].inplace = &(tide_inplace){1, 0, true};
    for (size_t i = 0; i < 5; i++) assert_ok(tide_program_builder_op(b, &ops[i], NULL));
    assert_ok(tide_program_builder_finish(b, &p));
    assert_ok(tide_liveness_create(p, &l));

    const uint32_t first[] = {0, 0, 0, 1, 2, 3, 4, 0, 0, 4, TIDE_NONE};
    const uint32_t last[] = {4, 0, 3, 2, 3, 4, 4, 4, 0, 4, TIDE_NONE};
    for (tide_id t = w; t <= z; t++) {
        assert_int_equal(l->first[t], first[t]);
        assert_int_equal(l->last[t], last[t]);
    }
    assert_true(k < u && u < n);
    const uint64_t load[] = {100 + 7 + 5 + 10 + 20, 100 + 7 + 20 + 20 + 1000, 100 + 7 + 20 + 20,
                             100 + 7 + 20 + 20 + 100, 100 + 7 + 100 + 3};
    for (size_t i = 0; i < 5; i++) assert_int_equal(l->load_bytes[i], load[i]);
    assert_int_equal(l->peak_bytes, 1147);
    assert_int_equal(l->peak_op, 1);
    assert_int_equal(l->largest_op_bytes, 200);
    assert_int_equal(l->largest_op, 4);
    assert_int_equal(l->resident_bytes, 107);
    assert_int_equal(l->floor_bytes, 107 + 140);
    assert_int_equal(l->floor_op, 3);
    assert_int_equal(l->total_bytes, 100 + 10 + 20 + 20 + 20 + 100 + 100 + 7 + 5 + 3 + 9);

    tide_gap *gaps = NULL;
    size_t n_gaps = 0;
    assert_ok(tide_liveness_gaps(p, &gaps, &n_gaps));
    assert_int_equal(n_gaps, 2);
    assert_true(gaps[0].tensor == w && gaps[0].after_op == 0 && gaps[0].before_op == 4);
    assert_true(gaps[1].tensor == a && gaps[1].after_op == 1 && gaps[1].before_op == 3);
    free(gaps);
    tide_liveness_destroy(l);
    tide_program_destroy(p);
}

static void test_empty(void **state) {
    (void)state;
    tide_program_builder *b = NULL;
    tide_program *p = NULL;
    tide_liveness *l = NULL;
    tide_gap *gaps = NULL;
    size_t n = 1;
    assert_ok(tide_program_builder_create("", false, &b));
    tensor(b, 8, TIDE_START_PRESENT, true);
    assert_ok(tide_program_builder_finish(b, &p));
    assert_ok(tide_liveness_create(p, &l));
    assert_int_equal(l->first[0], TIDE_NONE);
    assert_int_equal(l->last[0], TIDE_NONE);
    assert_true(l->peak_bytes == 0 && l->floor_bytes == 0 && l->resident_bytes == 0 && l->total_bytes == 8);
    assert_true(l->peak_op == TIDE_NONE && l->largest_op == TIDE_NONE && l->floor_op == TIDE_NONE);
    assert_ok(tide_liveness_gaps(p, &gaps, &n));
    assert_int_equal(n, 0);
    free(gaps);
    tide_liveness_destroy(l);
    tide_liveness_destroy(NULL);
    tide_program_destroy(p);
}

/* ---- the reference ---- */

static bool lists(const tide_id *ids, uint32_t n, tide_id tensor) {
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == tensor) return true;
    return false;
}

/* A use at this instant, counting start and end if `ends`. */
static bool used(const tide_program *p, tide_id t, uint32_t i, bool ends) {
    const tide_op *op = tide_program_op(p, i);
    const tide_tensor *tensor = tide_program_tensor(p, t);
    if (lists(op->reads, op->n_reads, t) || lists(op->writes, op->n_writes, t)) return true;
    if (!ends) return false;
    return (i == 0 && tensor->start == TIDE_START_PRESENT) || (i + 1 == tide_program_op_count(p) && tensor->keep);
}

static bool used_between(const tide_program *p, tide_id t, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++)
        if (used(p, t, i, true)) return true;
    return false;
}

static bool alive(const tide_program *p, tide_id t, uint32_t i) {
    return used_between(p, t, 0, i + 1) && used_between(p, t, i, tide_program_op_count(p));
}

static bool dies(const tide_program *p, tide_id t, uint32_t i) {
    return !tide_program_tensor(p, t)->keep && !used_between(p, t, i + 1, tide_program_op_count(p));
}

/* The write that takes over the bytes of read k of op i, or TIDE_NONE. */
static tide_id successor(const tide_program *p, uint32_t i, uint32_t k) {
    const tide_op *op = tide_program_op(p, i);
    if (!dies(p, op->reads[k], i)) return TIDE_NONE;
    for (uint32_t n = 0; n < op->n_inplace; n++)
        if (op->inplace[n].read == k) return op->writes[op->inplace[n].write];
    return TIDE_NONE;
}

static uint64_t size_of(const tide_program *p, tide_id t) { return tide_program_tensor(p, t)->size_bytes; }

static uint64_t reference_load(const tide_program *p, uint32_t i) {
    const tide_op *op = tide_program_op(p, i);
    uint64_t load = op->variants[0].workspace_bytes;
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++)
        if (alive(p, t, i)) load += size_of(p, t);
    for (uint32_t k = 0; k < op->n_reads; k++)
        if (successor(p, i, k) != TIDE_NONE) load -= size_of(p, op->reads[k]);
    return load;
}

static tide_id successor_anywhere(const tide_program *p, tide_id t) {
    for (uint32_t i = 0; i < tide_program_op_count(p); i++) {
        const tide_op *op = tide_program_op(p, i);
        for (uint32_t k = 0; k < op->n_reads; k++)
            if (op->reads[k] == t && successor(p, i, k) != TIDE_NONE) return successor(p, i, k);
    }
    return TIDE_NONE;
}

static bool ends_kept(const tide_program *p, tide_id t) {
    while (t != TIDE_NONE && !tide_program_tensor(p, t)->keep) t = successor_anywhere(p, t);
    return t != TIDE_NONE;
}

/* Fills resident[] and returns the bytes of all chains. */
static uint64_t reference_resident(const tide_program *p, bool *resident) {
    uint64_t sum = 0;
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++) {
        if (tide_program_tensor(p, t)->start != TIDE_START_PRESENT || !ends_kept(p, t)) continue;
        sum += size_of(p, t);
        for (tide_id s = t; s != TIDE_NONE; s = successor_anywhere(p, s)) resident[s] = true;
    }
    return sum;
}

static bool has_open_pair(const tide_op *op, uint32_t k, const bool *resident) {
    for (uint32_t n = 0; n < op->n_inplace; n++)
        if (op->inplace[n].read == k && !resident[op->writes[op->inplace[n].write]]) return true;
    return false;
}

/* Operands that are not resident, pairs once, and the smallest workspace. */
static uint64_t reference_need(const tide_program *p, uint32_t i, const bool *resident) {
    const tide_op *op = tide_program_op(p, i);
    uint64_t sum = UINT64_MAX;
    for (uint32_t k = 0; k < op->n_variants; k++)
        if (op->variants[k].workspace_bytes < sum) sum = op->variants[k].workspace_bytes;
    for (uint32_t k = 0; k < op->n_writes; k++)
        if (!resident[op->writes[k]]) sum += size_of(p, op->writes[k]);
    for (uint32_t k = 0; k < op->n_reads; k++)
        if (!resident[op->reads[k]] && !has_open_pair(op, k, resident)) sum += size_of(p, op->reads[k]);
    return sum;
}

/* ---- against the reference ---- */

static void check_lifetimes(const tide_program *p, const tide_liveness *l) {
    for (tide_id t = 0; t < l->n_tensors; t++) {
        uint32_t first = TIDE_NONE, last = TIDE_NONE;
        for (uint32_t i = 0; i < l->n_ops; i++) {
            if (!alive(p, t, i)) continue;
            if (first == TIDE_NONE) first = i;
            last = i;
        }
        assert_int_equal(l->first[t], first);
        assert_int_equal(l->last[t], last);
    }
}

static void check_loads(const tide_program *p, const tide_liveness *l) {
    uint32_t peak = 0;
    for (uint32_t i = 0; i < l->n_ops; i++) {
        assert_true(l->load_bytes[i] == reference_load(p, i));
        if (l->load_bytes[i] > l->load_bytes[peak]) peak = i;
    }
    assert_int_equal(l->peak_op, peak);
    assert_true(l->peak_bytes == l->load_bytes[peak]);
}

static void check_bounds(const tide_program *p, const tide_liveness *l) {
    bool *none = calloc(l->n_tensors + 1, 1), *resident = calloc(l->n_tensors + 1, 1);
    assert_true(l->resident_bytes == reference_resident(p, resident));
    uint64_t largest = 0, floor = 0;
    for (uint32_t i = 0; i < l->n_ops; i++) {
        uint64_t all = reference_need(p, i, none), rest = l->resident_bytes + reference_need(p, i, resident);
        if (all > largest) largest = all;
        if (rest > floor) floor = rest;
    }
    assert_true(l->largest_op_bytes == largest && l->floor_bytes == floor);
    assert_true(reference_need(p, l->largest_op, none) == largest);
    assert_true(reference_need(p, l->floor_op, resident) + l->resident_bytes == floor);
    assert_true(l->largest_op_bytes <= l->floor_bytes && l->floor_bytes <= l->peak_bytes);
    free(none);
    free(resident);
}

static void check_gaps(const tide_program *p) {
    tide_gap *gaps = NULL;
    size_t n = 0, seen = 0;
    assert_ok(tide_liveness_gaps(p, &gaps, &n));
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++) {
        uint32_t before = TIDE_NONE;
        for (uint32_t i = 0; i < tide_program_op_count(p); i++) {
            if (!used(p, t, i, false)) continue;
            if (before != TIDE_NONE && i > before + 1) {
                assert_true(seen < n);
                assert_true(gaps[seen].tensor == t && gaps[seen].after_op == before && gaps[seen].before_op == i);
                seen++;
            }
            before = i;
        }
    }
    assert_int_equal(seen, n);
    free(gaps);
}

static void check_program(const tide_program *p) {
    tide_liveness *l = NULL;
    assert_ok(tide_liveness_create(p, &l));
    check_lifetimes(p, l);
    check_loads(p, l);
    check_bounds(p, l);
    tide_liveness_destroy(l);
    check_gaps(p);
}

static void test_against_reference(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        random_program_options o = random_program_varied(seed);
        o.n_ops = 1 + o.n_ops / 2;
        tide_program *p = random_program(&o);
        check_program(p);
        tide_program_destroy(p);
    }
}

/* One read in many `may` pairs, and pairs whose read lives on. */
static void test_shared_read(void **state) {
    (void)state;
    tide_program_builder *b = NULL;
    tide_program *p = NULL;
    assert_ok(tide_program_builder_create("", false, &b));
    tide_id x = tensor(b, 8, TIDE_START_CLIENT, false), y = tensor(b, 8, TIDE_START_CLIENT, true);
    tide_id out[4];
    for (int i = 0; i < 4; i++) out[i] = tensor(b, 8, TIDE_START_ABSENT, i == 3);
    tide_inplace pairs[] = {{0, 1, false}, {0, 0, false}, {1, 2, false}};
    tide_op op = {.n_reads = 2, .reads = IDS(x, y), .n_writes = 3, .writes = out, .n_inplace = 3, .inplace = pairs};
    op.n_variants = 1;
    op.variants = &plain;
    assert_ok(tide_program_builder_op(b, &op, NULL));
    op = (tide_op){.n_reads = 3, .reads = out, .n_writes = 1, .writes = out + 3, .n_variants = 1, .variants = &plain};
    assert_ok(tide_program_builder_op(b, &op, NULL));
    assert_ok(tide_program_builder_finish(b, &p));
    check_program(p);
    tide_liveness *l = NULL;
    assert_ok(tide_liveness_create(p, &l));
    assert_int_equal(l->load_bytes[0], 32);
    assert_int_equal(l->largest_op_bytes, 32);
    tide_liveness_destroy(l);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand), cmocka_unit_test(test_empty),
                                       cmocka_unit_test(test_shared_read), cmocka_unit_test(test_against_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
