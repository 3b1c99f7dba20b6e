/* Orders of ops: what is found is allowed and has a lower peak, what is planned in it is proved, right on symbolic values and
 * never slower than the program's own order; what must not be reordered is not. */
#include <inttypes.h>
#include <string.h>

#include <tidemark/plan.h>

#include "plan/order/curve.h"
#include "plan/order/lists.h"
#include "plan/order/order.h"
#include "plan/plan_data.h"
#include "support/interpreter.h"
#include "support/random_graph.h"
#include "support/random_program.h"
#include "support/test.h"

static uint64_t peak_of(const tide_program *program) {
    tide_liveness *l;
    assert_ok(tide_liveness_create(program, &l));
    uint64_t peak = l->peak_bytes;
    tide_liveness_destroy(l);
    return peak;
}

/* Each op once, and after all that it depends on. */
static void check_order(const tide__order_graph *g, const tide_id *order) {
    uint32_t *position = malloc((g->n_ops + (size_t)1) * sizeof *position);
    assert_non_null(position);
    memset(position, 0xff, g->n_ops * sizeof *position);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        assert_true(order[i] < g->n_ops && position[order[i]] == TIDE_NONE);
        position[order[i]] = i;
    }
    for (tide_id o = 0; o < g->n_ops; o++)
        for (uint32_t k = g->before.at[o]; k < g->before.at[o + 1]; k++)
            assert_true(position[g->before.ids[k]] < position[o]);
    free(position);
}

static void check_lists(const tide_program *program) {
    tide__order_graph g;
    assert_ok(tide__order_graph_init(program, &g));
    tide_id *order = malloc((g.n_ops + (size_t)1) * sizeof *order);
    assert_non_null(order);
    assert_ok(tide__order_eager(&g, order));
    check_order(&g, order);
    assert_ok(tide__order_gathered(&g, order));
    check_order(&g, order);
    assert_ok(tide__order_on_demand(&g, order));
    check_order(&g, order);
    free(order);
    tide__order_graph_deinit(&g);
}

/* The curve of the program's own order is that of tide_liveness. */
static void check_curve(const tide_program *program) {
    tide__order_graph g;
    tide__order_walk w;
    tide_liveness *l;
    assert_ok(tide__order_graph_init(program, &g));
    assert_ok(tide__order_walk_init(&g, &w));
    assert_ok(tide_liveness_create(program, &l));
    tide__order_walk_begin(&w);
    uint64_t unused = 0; /* that is there at the start and nobody reads: alive at the first op only */
    for (tide_id t = 0; t < g.n_tensors; t++)
        if (g.n_uses[t] == 0 && tide_program_tensor(program, t)->start == TIDE_START_PRESENT) unused += g.bytes[t];
    for (tide_id o = 0; o < g.n_ops; o++)
        assert_int_equal(tide__order_walk_run(&w, o) + (o == 0 ? unused : 0), l->load_bytes[o]);
    tide_liveness_destroy(l);
    tide__order_walk_deinit(&w);
    tide__order_graph_deinit(&g);
}

static void test_orders_are_allowed_and_lower(void **state) {
    (void)state;
    uint32_t n_found = 0, n_second = 0;
    double share = 0;
    for (uint64_t seed = 0; seed < rounds(200); seed++) {
        tide_program *program;
        tide__order *orders;
        random_graph_options o = random_graph_varied(seed, 8 + (uint32_t)(seed % 60));
        assert_ok(random_graph(&o, &program));
        check_lists(program);
        check_curve(program);
        assert_ok(tide__order_find(program, &orders));
        n_second += orders && orders->next;
        for (const tide__order *order = orders; order; order = order->next) {
            tide__order_graph g;
            uint64_t before = peak_of(program), after = peak_of(order->program);
            assert_ok(tide__order_graph_init(program, &g));
            check_order(&g, order->ops);
            tide__order_graph_deinit(&g);
            assert_true(before - after > before / 100);
            assert_true(after >= peak_of(orders->program)); /* the lowest comes first */
            if (order != orders) continue;
            share += (double)after / (double)before;
            n_found++;
        }
        tide__order_destroy(orders);
        tide_program_destroy(program);
    }
    assert_true(n_second > 0);
    print_message("%u of %u graphs have a better order, with %.1f %% of the peak on average\n", n_found, rounds(200),
                  100 * share / n_found);
    assert_true(n_found > rounds(200) / 10);
}

/* ---- plans ---- */

static tide_plan *plan_in(const tide_program *program, const tide_machine *machine, tide_order order, uint64_t budget) {
    tide_plan_options o;
    tide_plan *plan = NULL;
    tide_plan_options_init(&o);
    o.policy = "hybrid";
    o.effort = TIDE_EFFORT_LOW;
    o.order = order;
    o.budgets.arena_bytes = budget;
    tide_status status = tide_plan_create(program, machine, &o, NULL, &plan);
    if (status != TIDE_OK && status != TIDE_E_UNSUPPORTED && !tide_status_is_misfit(status))
        fail_msg("%s", tide_last_error());
    return plan;
}

/* Right by the slow reference. */
static void check_values(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                         uint64_t seed) {
    for (uint64_t timing = 0; timing < 4; timing++) {
        interpretation found = interpret(plan, program, machine, NULL, seed + timing);
        if (!found.ok) fail_msg("seed %" PRIu64 ": %s", seed, found.why);
    }
}

/* Never slower than in the program's order, and nothing that fits there is refused; whether it is reordered. */
static bool check_budget(const tide_program *program, const tide_machine *machine, uint64_t budget, uint64_t seed) {
    tide_plan *own = plan_in(program, machine, TIDE_ORDER_PROGRAM, budget);
    tide_plan *free_plan = plan_in(program, machine, TIDE_ORDER_FREE, budget);
    bool reordered = free_plan && tide_plan_is_reordered(free_plan);
    assert_true(!own || free_plan);
    if (own) {
        assert_false(tide_plan_is_reordered(own));
        assert_true(tide_plan_prediction(free_plan)->step_ns <= tide_plan_prediction(own)->step_ns);
    }
    if (reordered) check_values(free_plan, program, machine, seed);
    tide_plan_destroy(own);
    tide_plan_destroy(free_plan);
    return reordered;
}

/* Small programs with all that programs may have. */
static void test_free_orders_are_right_and_never_slower(void **state) {
    (void)state;
    uint32_t n_reordered = 0;
    tide_machine machine;
    tide_machine_init_default(&machine);
    machine.align_bytes = 1;
    for (uint32_t t = 0; t < machine.n_tiers; t++) machine.tier[t].block_bytes = 1;
    for (uint64_t seed = 0; seed < rounds(40); seed++) {
        random_program_options o = random_program_varied(seed);
        o.n_ops = 8 + (uint32_t)(seed % 12);
        o.min_bytes = 4;
        o.max_bytes = o.max_workspace_bytes = 64;
        tide_program *program = random_program(&o);
        uint64_t peak = peak_of(program);
        n_reordered += check_budget(program, &machine, peak * 7 / 8, seed);
        n_reordered += check_budget(program, &machine, peak * 5 / 8, seed);
        tide_program_destroy(program);
    }
    print_message("%u plans have an order of their own\n", n_reordered);
    assert_true(n_reordered > 5);
}

/* ---- files ---- */

static void test_a_plan_file_says_its_order(void **state) {
    (void)state;
    tide_program *program;
    tide_machine machine;
    tide_plan *plan = NULL, *again;
    for (uint64_t seed = 0; !plan; seed++) {
        random_graph_options o = random_graph_varied(seed, 30);
        assert_ok(random_graph(&o, &program));
        random_graph_machine(&o, &machine);
        plan = plan_in(program, &machine, TIDE_ORDER_FREE, peak_of(program) / 10 * 8);
        if (plan && tide_plan_is_reordered(plan)) break;
        tide_plan_destroy(plan);
        tide_program_destroy(program);
        plan = NULL;
        assert_true(seed < 200);
    }
    const char *path = "order.plan.jsonl";
    assert_ok(tide_plan_write(plan, path));
    assert_ok(tide_plan_read(path, &again));
    assert_true(tide_plan_is_reordered(again));
    assert_int_equal(tide_plan_fingerprint(plan), tide_plan_fingerprint(again));
    assert_ok(tide_plan_verify(again, program, &machine, NULL, NULL));
    again->reordered = false; /* what it does not say it must not do */
    assert_true(tide_plan_fingerprint(plan) != tide_plan_fingerprint(again));
    tide_verdict verdict;
    assert_status(tide_plan_verify(again, program, &machine, NULL, &verdict), TIDE_E_PLAN);
    assert_string_equal(verdict.rule, "order");
    remove(path);
    tide_plan_destroy(plan);
    tide_plan_destroy(again);
    tide_program_destroy(program);
}

/* ---- what orders are for, and what they leave alone ---- */

/* Weights outweigh activations: updates go directly behind their gradients. */
static void test_updates_go_behind_gradients(void **state) {
    (void)state;
    tide_program_builder *b;
    tide_program *program;
    enum { N = 6 };
    tide_id w[N], g[N], v[N], dy = 0, next;
    static const tide_variant variant = {.cost_ns = 10};
    assert_ok(tide_program_builder_create("updates last", true, &b));
    for (int i = 0; i < N; i++) {
        tide_tensor weight = {.size_bytes = 1000, .start = TIDE_START_PRESENT}, other = {.size_bytes = 1000};
        assert_ok(tide_program_builder_tensor(b, &weight, &w[i]));
        assert_ok(tide_program_builder_tensor(b, &other, &g[i]));
        other.keep = true;
        assert_ok(tide_program_builder_tensor(b, &other, &v[i]));
    }
    for (int i = 0; i < N; i++) {
        tide_tensor small = {.size_bytes = 1};
        assert_ok(tide_program_builder_tensor(b, &small, &next));
        const tide_id reads[] = {w[i], dy}, writes[] = {g[i], next};
        tide_op op = {.name = "bwd", .rerunnable = true, .n_reads = i ? 2 : 1, .n_writes = 2, .n_variants = 1};
        op.reads = reads;
        op.writes = writes;
        op.variants = &variant;
        assert_ok(tide_program_builder_op(b, &op, NULL));
        dy = next;
    }
    for (int i = 0; i < N; i++) {
        const tide_id reads[] = {w[i], g[i]};
        const tide_inplace pair = {.read = 0, .write = 0, .must = true};
        tide_op op = {.name = "update", .n_reads = 2, .n_writes = 1, .n_inplace = 1, .n_variants = 1};
        op.reads = reads;
        op.writes = &v[i];
        op.inplace = &pair;
        op.variants = &variant;
        assert_ok(tide_program_builder_op(b, &op, NULL));
        assert_ok(tide_program_builder_carry(b, (tide_carry){v[i], w[i]}));
    }
    assert_ok(tide_program_builder_finish(b, &program));
    tide__order *order;
    assert_ok(tide__order_find(program, &order));
    assert_non_null(order);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(order->ops[2 * i + 1], N + i);
    assert_int_equal(peak_of(program), N * 2000 + 2);
    assert_int_equal(peak_of(order->program), N * 1000 + 1002);
    tide__order_destroy(order);
    tide_program_destroy(program);
}

static tide_id add_value(tide_program_builder *b, uint64_t bytes, bool keep) {
    tide_id id;
    assert_ok(tide_program_builder_tensor(b, &(tide_tensor){.size_bytes = bytes, .keep = keep}, &id));
    return id;
}

static void add_op(tide_program_builder *b, uint32_t n_reads, const tide_id *reads, tide_id write) {
    static const tide_variant variant = {.cost_ns = 10};
    tide_op op = {.name = "op", .rerunnable = true, .n_reads = n_reads, .n_writes = 1, .n_variants = 1};
    op.reads = reads;
    op.writes = &write;
    op.variants = &variant;
    assert_ok(tide_program_builder_op(b, &op, NULL));
}

/* Four micro-batches of one byte each have gradients of three weights, 1000 bytes each, which are added up. By micro-batch
 * three sums wait; gathered, one at a time is on the way. */
static void test_sums_over_micro_batches_are_gathered(void **state) {
    (void)state;
    enum { WEIGHTS = 3, MICROS = 4 };
    tide_program_builder *b;
    tide_program *program;
    tide__order *order;
    tide_id sum[WEIGHTS] = {0};
    assert_ok(tide_program_builder_create("micro-batches", false, &b));
    for (int m = 0; m < MICROS; m++) {
        tide_id sample = add_value(b, 1, false);
        add_op(b, 0, NULL, sample);
        for (int i = 0; i < WEIGHTS; i++) {
            tide_id gradient = add_value(b, 1000, false);
            add_op(b, 1, &sample, gradient);
            const tide_id reads[] = {sum[m ? i : 0], gradient};
            if (m > 0) add_op(b, 2, reads, sum[i] = add_value(b, 1000, false));
            if (m == 0) sum[i] = gradient;
        }
    }
    for (int i = 0; i < WEIGHTS; i++) add_op(b, 1, &sum[i], add_value(b, 1, true));
    assert_ok(tide_program_builder_finish(b, &program));
    assert_ok(tide__order_find(program, &order));
    assert_non_null(order);
    assert_in_range(peak_of(program), WEIGHTS * 1000 + 2000, UINT64_MAX);
    assert_in_range(peak_of(order->program), 3000, 3000 + MICROS + WEIGHTS);
    tide__order_destroy(order);
    tide_program_destroy(program);
}

/* n ops, each of which makes a value that one of n others reads, all of the former first. */
static tide_program *make_pairs(uint32_t n, bool rerunnable) {
    tide_program_builder *b;
    tide_program *program;
    static const tide_variant variant = {.cost_ns = 10};
    assert_ok(tide_program_builder_create("pairs", false, &b));
    for (tide_id i = 0; i < n; i++) {
        tide_tensor t = {.size_bytes = 1000};
        tide_op op = {.name = "make", .rerunnable = rerunnable, .n_writes = 1, .n_variants = 1, .variants = &variant};
        op.writes = &i;
        assert_ok(tide_program_builder_tensor(b, &t, NULL));
        assert_ok(tide_program_builder_op(b, &op, NULL));
    }
    for (tide_id i = 0; i < n; i++) {
        tide_op op = {.name = "use", .n_reads = 1, .n_variants = 1, .reads = &i, .variants = &variant};
        assert_ok(tide_program_builder_op(b, &op, NULL));
    }
    assert_ok(tide_program_builder_finish(b, &program));
    return program;
}

static void test_effects_and_logs_keep_their_order(void **state) {
    (void)state;
    tide__order *order;
    tide_program *free_program = make_pairs(8, true), *log = make_pairs(8, false);
    assert_ok(tide__order_find(free_program, &order));
    assert_non_null(order);
    assert_int_equal(peak_of(order->program), 1000); /* the uses stay in their order, each behind its make */
    for (uint32_t i = 0, last = 0; i < 16; i++)
        if (order->ops[i] >= 8) {
            assert_true(order->ops[i] >= last);
            last = order->ops[i];
        }
    tide__order_destroy(order);
    assert_ok(tide__order_find(log, &order));
    assert_null(order);
    tide_program_destroy(free_program);
    tide_program_destroy(log);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_are_allowed_and_lower),
        cmocka_unit_test(test_free_orders_are_right_and_never_slower),
        cmocka_unit_test(test_a_plan_file_says_its_order),
        cmocka_unit_test(test_updates_go_behind_gradients),
        cmocka_unit_test(test_sums_over_micro_batches_are_gathered),
        cmocka_unit_test(test_effects_and_logs_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
