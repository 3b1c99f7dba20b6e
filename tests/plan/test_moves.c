/* Moves of policy hybrid where they do not hide: what may start or end in a tier does, compute waits for few transfers, and no
 * policy that only moves is faster. */
#include <tidemark/tidemark.h>

#include "plan/decide/hybrid/transfers.h"
#include "plan/decide/swaps/swap_cover.h"
#include "support/hand_made.h"
#include "support/random_graph.h"
#include "support/random_program.h"
#include "support/test.h"
#include "support/try_policies.h"

enum { MIB = 1 << 20, N_OPS = 6, OP_NS = 200 * 1000 };

/* ---- where values start and end ---- */

static tide_id add_value(tide_program_builder *b, uint64_t bytes, tide_start start, bool keep) {
    tide_id id;
    assert_ok(
        tide_program_builder_tensor(b, &(tide_tensor){"v", bytes, TIDE_F32, TIDE_CLASS_ACTIVATION, start, keep}, &id));
    return id;
}

static void add_op(tide_program_builder *b, const tide_id *reads, uint32_t n_reads, tide_id write) {
    tide_variant v = {.cost_ns = OP_NS};
    tide_op op = {.name = "op",
                  .phase = TIDE_FORWARD,
                  .n_reads = n_reads,
                  .n_writes = 1,
                  .n_variants = 1,
                  .reads = reads,
                  .writes = &write,
                  .variants = &v};
    assert_ok(tide_program_builder_op(b, &op, NULL));
}

/* A chain of small values. The op at each end has a large value beside it: a weight that it reads, or an output that it writes for
 * good. A third of the bytes are needed at a time. */
static tide_program *chain(bool weights) {
    tide_program_builder *b;
    tide_program *p;
    tide_id before = TIDE_NONE, large[N_OPS];
    assert_ok(tide_program_builder_create("chain", false, &b));
    for (uint32_t i = 0; i < N_OPS; i++)
        large[i] = weights && i % 2 ? add_value(b, MIB, TIDE_START_PRESENT, false) : TIDE_NONE;
    for (uint32_t i = 0; i < N_OPS; i++) {
        tide_id reads[2], write;
        uint32_t n = 0;
        if (before != TIDE_NONE) reads[n++] = before;
        if (large[i] != TIDE_NONE) reads[n++] = large[i];
        bool keeps = !weights && i % 2 == 0;
        write = add_value(b, keeps ? MIB : 4096, TIDE_START_ABSENT, keeps || i + 1 == N_OPS);
        add_op(b, reads, n, write);
        before = write;
    }
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

static uint32_t count(const tide_plan *plan, tide_action_kind kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < tide_plan_action_count(plan); i++) n += tide_plan_action(plan, i).kind == kind;
    return n;
}

/* All absences that hide, as the engine under the policies has them. */
static tide_plan *plan_absences(const tide_program *p) {
    tide_machine m;
    tide_plan_options options;
    tide__swaps_options all = {0};
    tide__decisions d = {0};
    tide__swaps s;
    tide_plan *plan;
    tide_verdict verdict;
    tide_machine_init_default(&m);
    tide_plan_options_init(&options);
    tide__policy_input in = {.program = p, .machine = &m, .options = &options, .argument = ""};
    assert_ok(tide__swaps_init(&s, &in, &all));
    bool *chosen = test_calloc(s.gaps.count + 1, sizeof *chosen);
    for (size_t i = 0; i < s.gaps.count; i++) chosen[i] = true;
    uint64_t peak = tide__swaps_settle(&s, chosen, 0).peak_bytes;
    assert_true(peak < 3 * MIB / 2);
    assert_ok(tide__swaps_decide(&s, chosen, &d));
    assert_ok(plan_from_decisions(p, &m, &d, &plan));
    assert_ok(tide_plan_verify(plan, p, &m, &options.budgets, &verdict));
    assert_int_equal(tide_plan_arena_bytes(plan), peak);
    check_by_running(plan, p, &m, 1);
    tide__decisions_free(&d);
    test_free(chosen);
    tide__swaps_deinit(&s);
    return plan;
}

static void weights_start_in_a_tier(void **state) {
    (void)state;
    tide_program *p = chain(true);
    tide_plan *plan = plan_absences(p);
    assert_int_equal(count(plan, TIDE_SAVE), 0);
    assert_int_equal(count(plan, TIDE_LOAD), N_OPS / 2 - 1); /* the first has no time to be away */
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

static void outputs_end_in_a_tier(void **state) {
    (void)state;
    tide_program *p = chain(false);
    tide_plan *plan = plan_absences(p);
    assert_true(count(plan, TIDE_SAVE) >= N_OPS / 2 - 1);
    assert_int_equal(count(plan, TIDE_LOAD), 0);
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

/* The sketch of policy hybrid has them leave for good, too, and never come. */
static void outputs_end_in_sketches(void **state) {
    (void)state;
    tide_program *p = chain(false);
    tide_machine m;
    tide_plan_options options;
    tide__model *model;
    tide__sketch *s;
    tide__transfers t;
    uint32_t n[2] = {0}; /* LOADs, SAVEs */
    tide_machine_init_default(&m);
    tide_plan_options_init(&options);
    tide__policy_input in = {.program = p, .machine = &m, .options = &options, .argument = "", .target_bytes = MIB};
    assert_ok(tide__model_create(&in, &model));
    assert_ok(tide__sketch_create(model, in.target_bytes, &s));
    assert_ok(tide__transfers_init(&in, model, &t));
    for (size_t i = 0; i < t.swaps.gaps.count; i++) t.chosen[i] = true;
    assert_ok(tide__transfers_sync(&t, s));
    for (size_t i = 0; i < s->extra.count; i++) n[tide__event_kind_of(s->extra.data[i]) == TIDE__EVENT_SAVE]++;
    assert_int_equal(n[0], 0);
    assert_true(n[1] >= N_OPS / 2 - 1);
    tide__transfers_deinit(&t);
    tide__sketch_destroy(s);
    tide__model_destroy(model);
    tide_program_destroy(p);
}

/* The next step's input takes the place of this step's: its LOAD waits until that is done with, instead of leaving no plan. */
static void next_inputs_wait(void **state) {
    (void)state;
    static const char *const policies[] = {"autoswap:swdoa", "capuchin", "superneurons"};
    tide_machine m = machine_with_disk();
    uint32_t made = 0;
    for (uint64_t seed = 0; seed < rounds(300); seed++) {
        random_program_options o = random_program_varied(seed);
        o.repeating = o.prefetch = true;
        tide_program *p = random_program(&o);
        tide_plan *live = NULL, *plan = NULL;
        tide_status status = try_policy(p, &m, "liveness", TIDE_EFFORT_LOW, UINT64_MAX, &live);
        if (status != TIDE_E_UNSUPPORTED) { /* a kept value may take the place for good */
            assert_ok(status);
            uint64_t budget = tide_plan_arena_bytes(live) * 4 / 5;
            status = try_policy(p, &m, policies[seed % 3], TIDE_EFFORT_LOW, budget, &plan);
            if (!tide_status_is_misfit(status)) assert_ok(status);
            made += status == TIDE_OK;
        }
        tide_plan_destroy(plan);
        tide_plan_destroy(live);
        tide_program_destroy(p);
    }
    assert_true(made > rounds(20));
}

/* ---- covers ---- */

static bool is_absent(const tide__swap_gap *g, uint32_t slot) {
    if (g->head == TIDE_NONE) return g->from <= slot && slot < g->to;
    return slot >= g->from || slot < (g->to == TIDE_NONE ? g->from : g->to);
}

/* Bytes in a slot when all chosen gaps are absences from end to end. */
static int64_t load_in(const tide__swaps *s, const bool *chosen, uint32_t slot) {
    int64_t load = (int64_t)s->base_loads[slot];
    for (uint32_t i = 0; i < s->gaps.count; i++)
        if (chosen[i] && is_absent(&s->gaps.data[i], slot)) load -= (int64_t)s->gaps.data[i].size_bytes;
    return load;
}

/* Does it keep a slot within the target? */
static bool is_needed(const tide__swaps *s, const bool *chosen, uint32_t gap, int64_t target) {
    for (uint32_t k = 0; k <= s->n_ops; k++) {
        const tide__swap_gap *g = &s->gaps.data[gap];
        if (is_absent(g, k) && load_in(s, chosen, k) + (int64_t)g->size_bytes > target) return true;
    }
    return false;
}

static bool could_leave(const tide__swaps *s, const bool *chosen, uint32_t slot) {
    for (uint32_t i = 0; i < s->gaps.count; i++)
        if (!chosen[i] && s->gaps.data[i].size_bytes && is_absent(&s->gaps.data[i], slot)) return true;
    return false;
}

static size_t check_cover(const tide__swaps *s, uint64_t target) {
    uint32_t *gaps = test_calloc(s->gaps.count + 1, sizeof *gaps);
    bool *chosen = test_calloc(s->gaps.count + 1, sizeof *chosen);
    size_t n;
    assert_ok(tide__swaps_cover(s, target, gaps, &n));
    for (uint32_t i = 0; i < s->gaps.count; i++) chosen[i] = s->gaps.data[i].forced;
    for (size_t i = 0; i < n; i++) {
        assert_false(chosen[gaps[i]]);
        chosen[gaps[i]] = true;
    }
    for (uint32_t k = 0; k <= s->n_ops; k++)
        assert_true(load_in(s, chosen, k) <= (int64_t)target || !could_leave(s, chosen, k));
    for (size_t i = 0; i < n; i++) assert_true(is_needed(s, chosen, gaps[i], (int64_t)target));
    test_free(gaps);
    test_free(chosen);
    return n;
}

static void covers_have_nothing_needless(void **state) {
    (void)state;
    tide_machine m;
    tide_plan_options options;
    size_t taken = 0;
    tide_machine_init_default(&m);
    tide_plan_options_init(&options);
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        tide__policy_input in = {.program = p, .machine = &m, .options = &options, .argument = ""};
        tide__swaps_options all = {0};
        tide__swaps s;
        assert_ok(tide__swaps_init(&s, &in, &all));
        uint64_t most = 0;
        for (uint32_t k = 0; k <= s.n_ops; k++) most = s.base_loads[k] > most ? s.base_loads[k] : most;
        for (uint64_t tenths = 1; tenths < 10; tenths += 2) taken += check_cover(&s, most / 10 * tenths);
        tide__swaps_deinit(&s);
        tide_program_destroy(p);
    }
    assert_true(taken > 1000);
}

/* ---- against policies that only move ---- */

/* UINT64_MAX: it does not fit. */
static uint64_t time_of(const tide_program *p, const tide_machine *m, const char *policy, uint64_t budget) {
    tide_plan *plan;
    tide_status status = try_policy(p, m, policy, TIDE_EFFORT_LOW, budget, &plan);
    if (tide_status_is_misfit(status)) return UINT64_MAX;
    assert_ok(status);
    uint64_t ns = tide_plan_prediction(plan)->step_ns;
    tide_plan_destroy(plan);
    return ns;
}

static void none_is_faster(void **state) {
    (void)state;
    static const char *const others[] = {"cache", "autoswap"};
    uint32_t compared = 0;
    for (uint64_t seed = 9; seed <= 12; seed++) {
        random_graph_options o = random_graph_varied(seed, 40);
        tide_program *p;
        tide_machine m;
        tide_plan *whole;
        o.bytes_per_s /= 8;
        assert_ok(random_graph(&o, &p));
        random_graph_machine(&o, &m);
        assert_ok(try_policy(p, &m, "liveness", TIDE_EFFORT_LOW, UINT64_MAX, &whole));
        for (uint64_t tenths = 8; tenths >= 6; tenths -= 2) {
            uint64_t budget = tide_plan_arena_bytes(whole) * tenths / 10;
            uint64_t ours = time_of(p, &m, "hybrid:norerun", budget);
            for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
                uint64_t other = time_of(p, &m, others[k], budget);
                compared += other != UINT64_MAX;
                if (ours > other)
                    fail_msg("graph %llu, %llu tenths: %llu ns, %s %llu ns", (unsigned long long)seed,
                             (unsigned long long)tenths, (unsigned long long)ours, others[k],
                             (unsigned long long)other);
            }
        }
        tide_plan_destroy(whole);
        tide_program_destroy(p);
    }
    assert_true(compared > 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_start_in_a_tier),      cmocka_unit_test(outputs_end_in_a_tier),
        cmocka_unit_test(outputs_end_in_sketches),      cmocka_unit_test(next_inputs_wait),
        cmocka_unit_test(covers_have_nothing_needless), cmocka_unit_test(none_is_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
