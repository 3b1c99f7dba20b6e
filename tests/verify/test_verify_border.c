/* The border between two steps under mutation: random valid plans of repeating programs, each with the waits across its border. These
 * are accepted, and right under all timings. Then waits are taken away or moved, and plans are broken with the old waits or with waits
 * found anew. What the verifier accepts of two steps must be right in three without a barrier; what it refuses of waits alone must go
 * wrong under some timing, mostly. */
#include <inttypes.h>

#include "plan/border.h"
#include "support/interpreter.h"
#include "support/mutations.h"
#include "support/random_below.h"
#include "support/test.h"

enum { PER_KIND = 150, MAX_OPS = 14, TIMINGS = 16, TIMINGS_REJECTED = 24 };

/* TIDE_VERIFY_SCALE=50 makes the test that much longer. */
static uint32_t scaled(uint32_t n) {
    const char *scale = getenv("TIDE_VERIFY_SCALE");
    return scale ? n * (uint32_t)atoi(scale) : rounds(n);
}

typedef struct bordered {
    random_case c;
    tide__crossings crossings;
} bordered;

/* ---- kinds: each changes the plan or its crossings, or returns false ---- */

static bool drop_crossing(bordered *b, uint64_t *random) {
    tide__crossings *x = &b->crossings;
    if (x->count == 0) return false;
    const size_t at = random_below(random, x->count);
    memmove(x->data + at, x->data + at + 1, (--x->count - at) * sizeof *x->data);
    return true;
}

/* One of its queue that comes before. */
static bool cross_earlier(bordered *b, uint64_t *random) {
    if (b->crossings.count == 0) return false;
    tide__crossing *x = &b->crossings.data[random_below(random, b->crossings.count)];
    const tide__action *all = b->c.plan->actions.data;
    uint32_t from = x->from;
    while (from-- > 0)
        if (all[from].queue == all[x->from].queue) {
            x->from = from;
            return true;
        }
    return false;
}

static int compare_crossings(const void *a, const void *b) {
    const tide__crossing *x = a, *y = b;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static void sort_crossings(tide__crossings *x) {
    size_t n = 0;
    qsort(x->data, x->count, sizeof *x->data, compare_crossings);
    for (size_t i = 0; i < x->count; i++)
        if (n == 0 || compare_crossings(&x->data[n - 1], &x->data[i]) != 0) x->data[n++] = x->data[i];
    x->count = n;
}

/* The next one of its queue waits instead, and all behind it. */
static bool cross_later(bordered *b, uint64_t *random) {
    if (b->crossings.count == 0) return false;
    tide__crossing *x = &b->crossings.data[random_below(random, b->crossings.count)];
    const tide_plan *plan = b->c.plan;
    for (uint32_t to = x->to + 1; to < plan->actions.count; to++)
        if (plan->actions.data[to].queue == plan->actions.data[x->to].queue &&
            plan->actions.data[to].queue != plan->actions.data[x->from].queue) {
            x->to = to;
            sort_crossings(&b->crossings);
            return true;
        }
    return false;
}

static bool break_field(bordered *b, uint64_t *random) {
    size_t n;
    const mutation *table = mutation_field_table(&n);
    return table[random_below(random, n)].apply(&b->c, random);
}

static bool break_order(bordered *b, uint64_t *random) {
    size_t n;
    const mutation *table = mutation_order_table(&n);
    return table[random_below(random, n)].apply(&b->c, random);
}

typedef struct kind {
    const char *name;
    bool (*apply)(bordered *b, uint64_t *random);
    bool anew;                      /* crossings are found for what the plan is now */
    uint32_t min_confirmed_percent; /* of the rejected */
} kind;

static const kind kinds[] = {
    {"drop crossing", drop_crossing, false, 60},  {"cross earlier", cross_earlier, false, 60},
    {"cross later", cross_later, false, 60},      {"broken, old waits", break_field, false, 35},
    {"broken, new waits", break_field, true, 35}, {"other actions, new waits", break_order, true, 50},
};

/* ---- judging ---- */

typedef struct tally {
    uint32_t mutants, rejected, confirmed, accepted;
} tally;

static interpretation interpret_often(const bordered *b, uint64_t seed, uint32_t timings) {
    const random_case *c = &b->c;
    interpretation result = {.ok = true};
    for (uint32_t k = 0; k < timings && result.ok; k++)
        result = interpret_across(c->plan, c->program, &c->machine, &c->budgets, &b->crossings, seed + k);
    return result;
}

static bool is_accepted(bordered *b, bool anew) {
    const random_case *c = &b->c;
    tide_status status = tide_plan_verify(c->plan, c->program, &c->machine, &c->budgets, NULL);
    if (status == TIDE_OK && anew)
        status = tide__plan_cross(c->plan, c->program, &c->machine, &c->budgets, &b->crossings);
    else if (status == TIDE_OK)
        status = tide__plan_check_crossings(c->plan, c->program, &c->machine, &c->budgets, &b->crossings);
    if (status != TIDE_OK) assert_status(status, TIDE_E_PLAN);
    return status == TIDE_OK;
}

static void judge(bordered *b, const kind *k, uint64_t seed, tally *t) {
    const bool accepted = is_accepted(b, k->anew);
    const interpretation result = interpret_often(b, seed << 8, accepted ? TIMINGS : TIMINGS_REJECTED);
    if (accepted && !result.ok)
        fail_msg("%s, seed %" PRIu64 ": accepted, but in step %u action %d %s", k->name, seed, result.step,
                 (int)result.action, result.why);
    t->mutants++;
    t->accepted += accepted;
    t->rejected += !accepted;
    t->confirmed += !accepted && !result.ok;
}

/* false: the program has no such border. */
static bool draw(uint64_t seed, bordered *b) {
    *b = (bordered){.c = random_case_make(seed, MAX_OPS)};
    const random_case *c = &b->c;
    tide_status status = tide__plan_cross(c->plan, c->program, &c->machine, &c->budgets, &b->crossings);
    if (status == TIDE_E_UNSUPPORTED) {
        assert_true(!tide_program_is_repeating(c->program) || tide_program_message_count(c->program) > 0);
        random_case_free(&b->c);
        return false;
    }
    if (status != TIDE_OK) fail_msg("seed %" PRIu64 ": %s", seed, tide_last_error());
    return true;
}

static void close_bordered(bordered *b) {
    random_case_free(&b->c);
    tide__vec_free(&b->crossings);
}

static void test_borders_are_accepted(void **state) {
    (void)state;
    const uint32_t n = scaled(400);
    uint32_t n_borders = 0;
    size_t n_crossings = 0;
    for (uint64_t seed = 0; n_borders < n; seed++) {
        bordered b;
        if (!draw(seed, &b)) continue;
        const interpretation result = interpret_often(&b, seed << 8, TIMINGS);
        if (!result.ok)
            fail_msg("seed %" PRIu64 ", step %u, action %d: %s", seed, result.step, (int)result.action, result.why);
        n_borders++;
        n_crossings += b.crossings.count;
        close_bordered(&b);
    }
    print_message("%u borders, %zu waits across them\n", n_borders, n_crossings);
    assert_true(n_crossings > n_borders);
}

static void try_kind(const kind *k, uint64_t kind_seed) {
    const uint32_t n = scaled(PER_KIND);
    tally t = {0};
    for (uint64_t i = 0; t.mutants < n; i++) {
        const uint64_t seed = (kind_seed << 32) + i;
        uint64_t random = seed;
        bordered original;
        if (!draw(seed, &original)) continue;
        bordered mutant = {.c = mutation_copy(&original.c), .crossings = original.crossings};
        original.crossings = (tide__crossings){0};
        if (k->apply(&mutant, &random)) judge(&mutant, k, seed, &t);
        tide__vec_free(&mutant.crossings);
        tide_plan_destroy(mutant.c.plan);
        close_bordered(&original);
    }
    print_message("%-26s %7u %9u %9u %9u\n", k->name, t.mutants, t.rejected, t.confirmed, t.accepted);
    if (t.rejected < t.mutants / 5) fail_msg("%s: too many accepted", k->name);
    if (t.confirmed * 100 < t.rejected * k->min_confirmed_percent) fail_msg("%s: too few confirmed", k->name);
}

static void test_mutants(void **state) {
    (void)state;
    print_message("%-26s %7s %9s %9s %9s\n", "", "mutants", "rejected", "confirmed", "accepted");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) try_kind(&kinds[i], 1 + i);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_borders_are_accepted), cmocka_unit_test(test_mutants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
