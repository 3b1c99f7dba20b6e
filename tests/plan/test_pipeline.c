/* The pipeline on random programs: every plan it makes is proved by the verifier, whatever was decided, and keeps
 * what the simulator and the files say of it. */
#include "support/test.h"

#include <unistd.h>

#include "support/hand_made.h"
#include "support/random_plan.h"
#include "support/random_program.h"
#include "support/try_policies.h"

static tide_plan *make(const tide_program *p, const tide_machine *m, const char *policy, uint64_t arena_bytes) {
    tide_plan *plan = NULL;
    assert_ok(try_policy(p, m, policy, TIDE_EFFORT_NORMAL, arena_bytes, &plan));
    return plan;
}

static void test_policies(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    uint32_t unsupported = 0;
    for (uint64_t seed = 0; seed < rounds(300); seed++) {
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        tide_plan *probe = NULL;
        tide_status status = try_policy(p, &m, "liveness", TIDE_EFFORT_NORMAL, UINT64_MAX, &probe);
        tide_plan_destroy(probe);
        if (status == TIDE_E_UNSUPPORTED && o.prefetch) { /* the next batch's place is taken by a kept value */
            unsupported++;
            tide_program_destroy(p);
            continue;
        }
        tide_plan *none = make(p, &m, "none", UINT64_MAX), *live = make(p, &m, "liveness", UINT64_MAX);
        tide_liveness *l;
        assert_ok(tide_liveness_create(p, &l));
        assert_true(tide_plan_arena_bytes(live) <= tide_plan_arena_bytes(none));
        const tide_prediction *q = tide_plan_prediction(live);
        assert_true(q->peak_bytes <= tide_plan_arena_bytes(live));
        assert_true(q->step_ns >= tide_program_cost_ns(p));
        assert_int_equal(q->compute_ns, tide_program_cost_ns(p));
        assert_int_equal(q->recomputed_ns, 0);
        tide_plan *again = make(p, &m, "liveness", tide_plan_arena_bytes(live)); /* exactly enough is enough */
        tide_plan_destroy(again);
        if (l->peak_bytes > 0 && !o.prefetch) { /* less than the peak is not; the next batch may come after it */
            tide_plan_options short_of;
            tide_fit_report fit = {0};
            tide_plan_options_init(&short_of);
            short_of.budgets.arena_bytes = l->peak_bytes - 1;
            assert_status(tide_plan_create(p, &m, &short_of, &fit, &again), TIDE_E_FIT);
            assert_true(fit.needed_bytes >= l->peak_bytes);
            assert_true(fit.op < tide_program_op_count(p));
        }
        tide_liveness_destroy(l);
        tide_plan_destroy(none);
        tide_plan_destroy(live);
        tide_program_destroy(p);
    }
    assert_true(unsupported < 10);
}

/* Some of what is there at the start waits in a tier, all the time or until it is loaded; what it is carried from goes
 * there in the end. */
static void start_in_tiers_at_random(const tide_program *p, uint64_t *rng, tide__decisions *d) {
    uint32_t n_ops = tide_program_op_count(p), n = tide_program_carry_count(p);
    for (uint64_t i = random_below(rng, 4); i-- > 0 && n;) {
        const tide_carry *c = tide_program_carry(p, (uint32_t)random_below(rng, n));
        uint32_t tier = (uint32_t)random_below(rng, 2), load = (uint32_t)random_below(rng, n_ops + 2);
        tide__swap in = {c->to, tier, TIDE_NONE, load > n_ops ? TIDE_NONE : load};
        tide__swap out = {c->from, tier, n_ops - (uint32_t)random_below(rng, n_ops / 2 + 1), TIDE_NONE};
        assert_ok(tide__vec_push(&d->swaps, in));
        if (c->from != c->to || random_below(rng, 4) == 0) assert_ok(tide__vec_push(&d->swaps, out));
    }
}

/* A handful of random absences and re-runs, sensible or not. */
static void decide_at_random(const tide_program *p, uint64_t *rng, tide__decisions *d) {
    tide_gap *gaps;
    size_t n_gaps;
    assert_ok(tide_liveness_gaps(p, &gaps, &n_gaps));
    uint64_t n = random_below(rng, 6);
    for (uint64_t i = 0; i < n && n_gaps; i++) {
        const tide_gap *g = &gaps[random_below(rng, n_gaps)];
        uint32_t width = g->before_op - g->after_op - 1;
        tide__swap s = {.tensor = g->tensor, .tier = (uint32_t)random_below(rng, 2), .save_slot = g->after_op + 1};
        s.load_slot = s.save_slot + (uint32_t)random_below(rng, width + 1);
        assert_ok(tide__vec_push(&d->swaps, s));
    }
    uint32_t n_ops = tide_program_op_count(p);
    n = random_below(rng, 6);
    for (uint64_t i = 0; i < n && n_ops > 1; i++) {
        tide__rerun r = {.op = (tide_id)random_below(rng, n_ops - 1)};
        r.slot = r.op + 1 + (uint32_t)random_below(rng, n_ops - r.op - 1);
        assert_ok(tide__vec_push(&d->reruns, r));
    }
    if (random_below(rng, 2)) start_in_tiers_at_random(p, rng, d);
    free(gaps);
}

static void test_random_decisions(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    uint32_t accepted = 0, with_moves = 0, with_reruns = 0;
    for (uint64_t seed = 0; seed < rounds(2000); seed++) {
        uint64_t rng = seed * 977 + 5;
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        tide__decisions d = {0};
        tide_plan *plan = NULL;
        decide_at_random(p, &rng, &d);
        tide_status status = plan_from_decisions(p, &m, &d, &plan);
        if (status == TIDE_OK) {
            tide_verdict verdict;
            if (tide_plan_verify(plan, p, &m, NULL, &verdict) != TIDE_OK)
                fail_msg("seed %llu: %s at %u: %s", (unsigned long long)seed, verdict.rule, verdict.action,
                         verdict.message);
            check_by_running(plan, p, &m, seed);
            tide_timeline *t;
            assert_ok(tide_plan_simulate(plan, p, &m, &t));
            assert_true(t->prediction.peak_bytes <= plan->arena_bytes);
            accepted++;
            with_moves += t->prediction.moved_bytes > 0;
            with_reruns += t->prediction.recomputed_ns > 0;
            tide_timeline_destroy(t);
        } else {
            assert_true(status == TIDE_E_ARGUMENT || status == TIDE_E_UNSUPPORTED);
        }
        tide_plan_destroy(plan);
        tide__decisions_free(&d);
        tide_program_destroy(p);
    }
    assert_true(accepted > rounds(500) && with_moves > rounds(200) && with_reruns > rounds(200));
}

/* Ops that cost nothing take no time, but they take memory. */
static void test_free_ops_count(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program_builder *b;
    tide_program *p;
    tide_id big, small, id;
    static const tide_variant nothing = {.cost_ns = 0}, something = {.cost_ns = 100};
    assert_ok(tide_program_builder_create("p", false, &b));
    assert_ok(tide_program_builder_tensor(b, &(tide_tensor){.name = "big", .size_bytes = 1 << 20}, &big));
    assert_ok(
        tide_program_builder_tensor(b, &(tide_tensor){.name = "small", .size_bytes = 1024, .keep = true}, &small));
    tide_op write = {.name = "write", .writes = &big, .n_writes = 1, .variants = &nothing, .n_variants = 1};
    tide_op read = {.name = "read", .reads = &big, .n_reads = 1, .variants = &nothing, .n_variants = 1};
    tide_op last = {.name = "last", .writes = &small, .n_writes = 1, .variants = &something, .n_variants = 1};
    assert_ok(tide_program_builder_op(b, &write, &id));
    assert_ok(tide_program_builder_op(b, &read, &id));
    assert_ok(tide_program_builder_op(b, &last, &id));
    assert_ok(tide_program_builder_finish(b, &p));
    tide_plan *plan = make(p, &m, "liveness", UINT64_MAX);
    assert_int_equal(tide_plan_prediction(plan)->peak_bytes, 1 << 20);
    assert_int_equal(tide_plan_prediction(plan)->step_ns, 100);
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

/* ---- plan files ---- */

static void test_file_round_trip(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    char path[] = "/tmp/tidemark-plan-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (uint64_t seed = 0; seed < 50; seed++) {
        random_program_options o = random_program_varied(seed);
        o.prefetch = false;
        tide_program *p = random_program(&o);
        tide_plan *plan = make(p, &m, "liveness", UINT64_MAX), *read = NULL;
        tide_verdict verdict;
        assert_ok(tide_plan_write(plan, path));
        assert_ok(tide_plan_read(path, &read));
        assert_true(tide_plan_fingerprint(plan) == tide_plan_fingerprint(read));
        assert_string_equal(tide_plan_policy(read), "liveness");
        assert_int_equal(tide_plan_prediction(read)->step_ns, tide_plan_prediction(plan)->step_ns);
        assert_ok(tide_plan_verify(read, p, &m, NULL, &verdict));
        tide_plan_destroy(plan);
        tide_plan_destroy(read);
        tide_program_destroy(p);
    }
    unlink(path);
}

/* Moves, re-runs and relocations as in the verifier's tests: read back they are the same plan, and as fast. */
static void test_file_of_anything(void **state) {
    (void)state;
    size_t relocations = 0;
    char path[] = "/tmp/tidemark-plan-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (uint64_t seed = 0; seed < 100; seed++) {
        random_case c = random_case_make(seed, 20);
        tide_plan *read = NULL;
        tide_timeline *before, *after;
        assert_ok(tide_plan_write(c.plan, path));
        assert_ok(tide_plan_read(path, &read));
        assert_true(tide_plan_fingerprint(c.plan) == tide_plan_fingerprint(read));
        assert_ok(tide_plan_simulate(c.plan, c.program, &c.machine, &before));
        assert_ok(tide_plan_simulate(read, c.program, &c.machine, &after));
        const tide_prediction *p = &after->prediction;
        assert_memory_equal(p, &before->prediction, sizeof *p);
        assert_true(p->step_ns >= p->compute_ns + p->relocated_ns && p->peak_bytes <= tide_plan_arena_bytes(read));
        relocations += p->relocated_bytes > 0;
        assert_true(p->relocated_bytes > 0 || p->relocated_ns == 0);
        tide_timeline_destroy(before);
        tide_timeline_destroy(after);
        tide_plan_destroy(read);
        random_case_free(&c);
    }
    assert_true(relocations > 10);
    unlink(path);
}

#define HEADER                                                                                                     \
    "{\"tidemark\":\"plan\",\"version\":2,\"program\":\"00000000000000000000000000000000\",\"machine\":\"m\","     \
    "\"machine_fingerprint\":\"0000000000000000\",\"policy\":\"none\",\"bits\":\"same\",\"queues\":1,\"arena\":0," \
    "\"tiers\":[],\"predicted\":{\"step_ns\":0,\"compute_ns\":0,\"recomputed_ns\":0,\"exposed_ns\":0,"             \
    "\"moved_bytes\":0,\"transfer_ns\":0,\"peak_bytes\":0,\"relocated_bytes\":0,\"relocated_ns\":0}}\n"

static void refuse(const char *text, const char *why) {
    tide_plan *plan = NULL;
    assert_status(tide_plan_read_memory(text, strlen(text), "plan", &plan), TIDE_E_FORMAT);
    assert_error_has(why);
    assert_null(plan);
}

static void test_bad_files(void **state) {
    (void)state;
    refuse("", "not a plan file");
    refuse("{\"tidemark\":\"program\"}", "plan:1: not a plan file");
    refuse("{\"tidemark\":\"plan\",\"version\":5}", "plan:1: version 5 is not known here");
    refuse("{\"tidemark\":\"plan\",\"version\":3}", "plan:1: order must be \"own\"");
    refuse("{\"tidemark\":\"plan\",\"version\":3,\"order\":\"any\"}", "plan:1: order must be \"own\"");
    refuse("{\"tidemark\":\"plan\",\"version\":2,\"order\":\"own\"}", "plan:1: order: only version 3 has it");
    refuse(HEADER, "cut short");
    refuse(HEADER "{\"end\":{\"residencies\":0,\"copies\":0,\"actions\":0,\"fingerprint\":\"0000000000000000\"}}\n",
           "plan:2: the fingerprint does not match");
    refuse(HEADER "{\"end\":{\"residencies\":1,\"copies\":0,\"actions\":0,\"fingerprint\":\"0000000000000000\"}}\n",
           "plan:2: residencies: 1 announced, 0 read");
    refuse(HEADER "{\"residency\":1,\"offset\":0,\"bytes\":1,\"begin\":0,\"end\":1}\n", "plan:2: expected residency 0");
    refuse(HEADER "{\"residency\":0,\"offset\":-1,\"bytes\":1,\"begin\":0,\"end\":1}\n", "plan:2: offset must be");
    refuse(HEADER "{\"run\":0,\"uses\":[0]}\n", "plan:2: uses: 0 is out of range");
    refuse(HEADER "{\"run\":0,\"uses\":[],\"waits\":[0]}\n", "plan:2: waits: 0 is out of range");
    refuse(HEADER "{\"save\":0,\"uses\":[]}\n", "plan:2: there is no copy 0");
    refuse(HEADER "{\"run\":0,\"load\":0,\"uses\":[]}\n", "plan:2: an action is either");
    refuse(HEADER "{\"relocate\":[0,1]}\n", "plan:2: uses: 0 is out of range");
    refuse(HEADER "{\"relocate\":7}\n", "plan:2: uses must be a list");
    refuse(HEADER "{\"relocate\":[],\"uses\":[]}\n", "plan:2: a relocate has its uses");
    refuse(HEADER "{\"run\":0,\"uses\":[],\"color\":1}\n", "plan:2: unknown key \"color\"");
    refuse(HEADER "{\"what\":1}\n", "plan:2: unknown kind of line");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policies),         cmocka_unit_test(test_random_decisions),
        cmocka_unit_test(test_free_ops_count),   cmocka_unit_test(test_file_round_trip),
        cmocka_unit_test(test_file_of_anything), cmocka_unit_test(test_bad_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
