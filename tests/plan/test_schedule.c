/* The scheduler under decisions made by hand: where values live across steps, what moves and what does not. Every plan
 * is proved by the verifier, run by the interpreter under random timings, and executed for three steps. */
#include "support/test.h"

#include <unistd.h>

#include "support/execute.h"
#include "support/hand_made.h"
#include "support/interpreter.h"

/* One training step in small:
 *
 *     op         0 forward1     1 forward2   2 loss       3 backward2   4 backward1   5 update
 *     reads      x w            a f          b            gb f          ga x          w gw
 *     writes     a              b            loss gb      ga            gw            new_w (in place of w)
 *
 * w is carried from new_w, the frozen f and the unused u to themselves. */
enum { W, F, U, X, A, B, LOSS, GB, GA, GW, NEW_W, N_TENSORS };
enum { FORWARD1, FORWARD2, COMPUTE_LOSS, BACKWARD2, BACKWARD1, UPDATE, N_OPS };
#define NO TIDE_NONE

static void add_op(tide_program_builder *b, const char *name, tide_op op) {
    static const tide_variant variant = {.cost_ns = 100};
    op.name = name;
    op.rerunnable = true;
    op.n_variants = 1;
    op.variants = &variant;
    assert_ok(tide_program_builder_op(b, &op, NULL));
}

#define IDS(...) \
    (const tide_id[]) { __VA_ARGS__ }
#define OP(n_in, in, n_out, out) \
    (tide_op) { .n_reads = (n_in), .reads = (in), .n_writes = (n_out), .writes = (out) }

/* id[t]: the number that tensor t is to have; here its own inverse. */
static void add_tensors(tide_program_builder *b, uint64_t bytes, const tide_id *id) {
    static const tide_tensor tensors[N_TENSORS] = {
        [W] = {.name = "w", .start = TIDE_START_PRESENT},
        [F] = {.name = "f", .start = TIDE_START_PRESENT, .keep = true},
        [U] = {.name = "u", .start = TIDE_START_PRESENT, .keep = true},
        [X] = {.name = "x", .start = TIDE_START_CLIENT},
        [A] = {.name = "a"},
        [B] = {.name = "b"},
        [LOSS] = {.name = "loss", .keep = true},
        [GB] = {.name = "gb"},
        [GA] = {.name = "ga"},
        [GW] = {.name = "gw"},
        [NEW_W] = {.name = "new_w", .keep = true},
    };
    for (tide_id i = 0; i < N_TENSORS; i++) {
        tide_tensor tensor = tensors[id[i]];
        tensor.size_bytes = bytes;
        assert_ok(tide_program_builder_tensor(b, &tensor, NULL));
    }
}

/* reversed: the same step, its tensors declared in the opposite order. */
static tide_program *make_step(uint64_t bytes, bool reversed) {
    tide_program_builder *b;
    tide_program *p;
    tide_id id[N_TENSORS];
    for (tide_id t = 0; t < N_TENSORS; t++) id[t] = reversed ? N_TENSORS - 1 - t : t;
    assert_ok(tide_program_builder_create("step", true, &b));
    add_tensors(b, bytes, id);
    add_op(b, "forward1", OP(2, IDS(id[X], id[W]), 1, IDS(id[A])));
    add_op(b, "forward2", OP(2, IDS(id[A], id[F]), 1, IDS(id[B])));
    add_op(b, "loss", OP(1, IDS(id[B]), 2, IDS(id[LOSS], id[GB])));
    add_op(b, "backward2", OP(2, IDS(id[GB], id[F]), 1, IDS(id[GA])));
    add_op(b, "backward1", OP(2, IDS(id[GA], id[X]), 1, IDS(id[GW])));
    tide_op update = OP(2, IDS(id[W], id[GW]), 1, IDS(id[NEW_W]));
    update.n_inplace = 1;
    update.inplace = &(tide_inplace){.read = 0, .write = 0, .must = true};
    add_op(b, "update", update);
    assert_ok(tide_program_builder_carry(b, (tide_carry){id[NEW_W], id[W]}));
    assert_ok(tide_program_builder_carry(b, (tide_carry){id[F], id[F]}));
    assert_ok(tide_program_builder_carry(b, (tide_carry){id[U], id[U]}));
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

static tide_program *training_step(uint64_t bytes) { return make_step(bytes, false); }

/* ---- from decisions to plans that are proved and executed ---- */

static void execute(const tide_machine *m, const tide_program *p, const tide_plan *plan) {
    tide_device *device;
    tide_device_options o;
    tide_device_options_init(&o);
    o.machine = m;
    assert_ok(tide_device_open("sim", &o, &device));
    execute_plan(device, m, p, plan);
    tide_device_close(device);
}

static void check_plan(const tide_machine *m, const tide_program *p, const tide_plan *plan) {
    assert_ok(tide_plan_verify(plan, p, m, NULL, NULL));
    for (uint64_t timing = 0; timing < 8; timing++) {
        interpretation result = interpret(plan, p, m, NULL, timing);
        if (!result.ok) fail_msg("step %u, action %u: %s", result.step, result.action, result.why);
    }
    execute(m, p, plan);
}

static tide__decisions decisions(const tide__swap *swaps, size_t n_swaps, const tide__rerun *reruns, size_t n_reruns) {
    tide__decisions d = {0};
    for (size_t i = 0; i < n_swaps; i++) assert_ok(tide__vec_push(&d.swaps, swaps[i]));
    for (size_t i = 0; i < n_reruns; i++) assert_ok(tide__vec_push(&d.reruns, reruns[i]));
    return d;
}

static tide_plan *plan_swaps(const tide_machine *m, const tide_program *p, const tide__swap *swaps, size_t n) {
    tide__decisions d = decisions(swaps, n, NULL, 0);
    tide_plan *plan = NULL;
    assert_ok(plan_from_decisions(p, m, &d, &plan));
    tide__decisions_free(&d);
    check_plan(m, p, plan);
    return plan;
}

#define SWAPS(...) (const tide__swap[]){__VA_ARGS__}, sizeof(const tide__swap[]){__VA_ARGS__} / sizeof(tide__swap)

static uint32_t count_moves(const tide_plan *plan, tide_action_kind kind, tide_id tensor) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < tide_plan_action_count(plan); i++) {
        tide_action a = tide_plan_action(plan, i);
        n += a.kind == kind && kind != TIDE_RUN && tide_plan_copy(plan, a.copy)->tensor == tensor;
    }
    return n;
}

static bool in_arena(const tide_plan *plan, tide_id tensor, bool at_end) {
    for (tide_id i = 0; i < tide_plan_residency_count(plan); i++) {
        const tide_residency *r = tide_plan_residency(plan, i);
        if (r->tensor == tensor && (at_end ? r->at_end : r->at_start)) return true;
    }
    return false;
}

static bool in_tier(const tide_plan *plan, tide_id tensor, uint32_t tier, bool at_end) {
    for (tide_id i = 0; i < tide_plan_copy_count(plan); i++) {
        const tide_copy *c = tide_plan_copy(plan, i);
        if (c->tensor == tensor && c->tier == tier && (at_end ? c->at_end : c->at_start)) return true;
    }
    return false;
}

/* ---- where values live across steps ---- */

/* The weight is in a tier between steps; in the arena for its two uses only. Saved once: as what it has become. */
static void test_weight_in_tier(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(200);
    for (uint32_t tier = RAM; tier <= DISK; tier++) {
        tide_plan *plan = plan_swaps(&m, p, SWAPS({W, tier, NO, 0}, {W, tier, NO, UPDATE}, {NEW_W, tier, N_OPS, NO}));
        assert_false(in_arena(plan, W, false));
        assert_false(in_arena(plan, NEW_W, true));
        assert_true(in_tier(plan, W, tier, false) && in_tier(plan, NEW_W, tier, true));
        assert_int_equal(count_moves(plan, TIDE_LOAD, W), 2);
        assert_int_equal(count_moves(plan, TIDE_SAVE, W) + count_moves(plan, TIDE_SAVE, NEW_W), 1);
        tide_plan_destroy(plan);
    }
    tide_program_destroy(p);
}

/* A weight that is needed at once but dropped later starts in both places, so it ends in both. */
static void test_weight_in_both(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(200);
    tide_plan *plan = plan_swaps(&m, p, SWAPS({W, RAM, NO, UPDATE}, {NEW_W, RAM, N_OPS, NO}));
    assert_true(in_arena(plan, W, false) && in_tier(plan, W, RAM, false));
    assert_true(in_arena(plan, NEW_W, true) && in_tier(plan, NEW_W, RAM, true));
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

/* A frozen weight's copy stays clean: it comes in as often as needed and is never saved. */
static void test_frozen_in_tier(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(200);
    tide_plan *plan = plan_swaps(&m, p, SWAPS({F, DISK, NO, FORWARD2}, {F, DISK, NO, BACKWARD2}));
    assert_false(in_arena(plan, F, false) || in_arena(plan, F, true));
    assert_int_equal(count_moves(plan, TIDE_LOAD, F), 2);
    assert_int_equal(count_moves(plan, TIDE_SAVE, F), 0);
    assert_int_equal(tide_plan_tier_bytes(plan, DISK), 256); /* 200 in blocks of 64 */
    tide_plan_destroy(plan);
    plan = plan_swaps(&m, p, SWAPS({F, RAM, FORWARD2 + 1, BACKWARD2})); /* out and back within the step */
    assert_true(in_arena(plan, F, false) && in_arena(plan, F, true));
    assert_false(in_tier(plan, F, RAM, true));
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

/* What no op of the step uses need not be in the arena at all. */
static void test_unused_in_tier(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(200);
    tide_plan *with = plan_swaps(&m, p, SWAPS({U, DISK, NO, NO})), *without = plan_swaps(&m, p, NULL, 0);
    assert_false(in_arena(with, U, false) || in_arena(with, U, true));
    assert_true(in_tier(with, U, DISK, false) && in_tier(with, U, DISK, true));
    assert_int_equal(count_moves(with, TIDE_LOAD, U) + count_moves(with, TIDE_SAVE, U), 0);
    assert_true(tide_plan_arena_bytes(with) + 200 <= tide_plan_arena_bytes(without));
    tide_plan_destroy(with);
    tide_plan_destroy(without);
    tide_program_destroy(p);
}

/* Kept values may end in a tier, or in two. */
static void test_kept_in_tier(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(200);
    tide_plan *plan =
        plan_swaps(&m, p, SWAPS({LOSS, RAM, BACKWARD2, NO}, {LOSS, DISK, N_OPS, NO}, {NEW_W, DISK, N_OPS, NO}));
    assert_true(in_tier(plan, LOSS, RAM, true) && in_tier(plan, LOSS, DISK, true));
    assert_false(in_arena(plan, LOSS, true));
    assert_true(in_arena(plan, NEW_W, true)); /* the next step starts with it there */
    tide_plan_destroy(plan);
    plan = plan_swaps(&m, p, SWAPS({W, RAM, NO, 0}, {NEW_W, RAM, N_OPS, NO}, {NEW_W, DISK, N_OPS, NO}));
    assert_true(in_tier(plan, NEW_W, RAM, true) && in_tier(plan, NEW_W, DISK, true));
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

/* ---- within a step ---- */

/* Inputs come in where a decision says, and again after they were dropped; from another tier if they went there. */
static void test_inputs(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(200);
    tide_plan *plan = plan_swaps(&m, p, SWAPS({X, CLIENT, NO, BACKWARD2}));
    assert_int_equal(count_moves(plan, TIDE_LOAD, X), 2);
    tide_plan_destroy(plan);
    plan = plan_swaps(&m, p, SWAPS({X, DISK, FORWARD2, BACKWARD1}));
    assert_int_equal(count_moves(plan, TIDE_SAVE, X), 1);
    assert_int_equal(count_moves(plan, TIDE_LOAD, X), 2);
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

/* The same tensor leaves three times, through two tiers, and is loaded while it is still there. */
static void test_several_absences(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(200);
    tide_plan *plan = plan_swaps(&m, p,
                                 SWAPS({F, RAM, 0, FORWARD2}, {F, DISK, COMPUTE_LOSS, COMPUTE_LOSS},
                                       {F, DISK, NO, BACKWARD2}, {F, RAM, NO, N_OPS}));
    assert_int_equal(count_moves(plan, TIDE_SAVE, F), 2);
    assert_int_equal(count_moves(plan, TIDE_LOAD, F), 4);
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

/* A re-run brings back all outputs of its op, the kept one too. */
static void test_reruns(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(200);
    const tide__swap swaps[] = {{W, RAM, 0, BACKWARD2}, {LOSS, RAM, UPDATE, NO}};
    const tide__rerun reruns[] = {{BACKWARD1, COMPUTE_LOSS}, {BACKWARD2, FORWARD2}, {BACKWARD2, COMPUTE_LOSS},
                                  {BACKWARD2, FORWARD1},     {N_OPS, BACKWARD2},    {UPDATE, FORWARD1}};
    tide__decisions d = decisions(swaps, 2, reruns, 6);
    tide_plan *plan;
    assert_ok(plan_from_decisions(p, &m, &d, &plan));
    check_plan(&m, p, plan);
    tide_plan_destroy(plan);
    tide__decisions_free(&d);
    tide_program_destroy(p);
}

/* ---- odd programs and machines ---- */

/* Nothing to move, but it is asked to: tiers of no bytes. */
static void test_empty_tensors(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(0);
    tide_plan *plan = plan_swaps(
        &m, p, SWAPS({W, RAM, NO, 0}, {NEW_W, RAM, N_OPS, NO}, {F, DISK, FORWARD2 + 1, BACKWARD2}, {U, DISK, NO, NO}));
    assert_int_equal(tide_plan_arena_bytes(plan), 0);
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

/* Values that nobody uses still have a place each at the start, and so they do in a step without ops. */
static tide_program *idle_step(bool repeating, bool with_op) {
    tide_program_builder *b;
    tide_program *p;
    assert_ok(tide_program_builder_create("idle", repeating, &b));
    for (tide_id t = 0; t < 3; t++) {
        tide_tensor tensor = {.size_bytes = 100, .start = TIDE_START_PRESENT, .keep = repeating || t == 0};
        assert_ok(tide_program_builder_tensor(b, &tensor, NULL));
        if (repeating) assert_ok(tide_program_builder_carry(b, (tide_carry){t, t}));
    }
    if (with_op) {
        assert_ok(tide_program_builder_tensor(b, &(tide_tensor){.size_bytes = 100, .keep = true}, NULL));
        add_op(b, "make", OP(0, NULL, 1, IDS(3)));
    }
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

static void test_idle_steps(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    for (int kind = 0; kind < 4; kind++) {
        tide_program *p = idle_step(kind & 1, kind & 2);
        tide__decisions d = {0};
        for (int keep = 0; keep < 2; keep++) {
            tide_plan *plan;
            d.keep_everything = keep;
            assert_ok(plan_from_decisions(p, &m, &d, &plan));
            check_plan(&m, p, plan);
            tide_plan_destroy(plan);
        }
        tide_plan *plan = plan_swaps(&m, p, SWAPS({0, RAM, NO, NO}, {1, RAM, NO, NO}, {2, DISK, NO, NO}));
        tide_plan_destroy(plan);
        tide_program_destroy(p);
    }
}

static void test_no_tiers(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    m.n_tiers = m.n_channels = 0;
    tide_program *p = idle_step(true, true), *with_input = training_step(200);
    tide_plan_options o;
    tide_plan_options_init(&o);
    tide_plan *plan;
    assert_ok(tide_plan_create(p, &m, &o, NULL, &plan));
    check_plan(&m, p, plan);
    tide_plan_destroy(plan);
    assert_status(tide_plan_create(with_input, &m, &o, NULL, &plan), TIDE_E_ARGUMENT);
    assert_error_has("has no client tier");
    tide_program_destroy(with_input);
    tide_program_destroy(p);
}

/* ---- what cannot be carried out ---- */

static void refuse(tide__decisions d, const char *why) {
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(200);
    tide_plan *plan = NULL;
    assert_status(plan_from_decisions(p, &m, &d, &plan), TIDE_E_ARGUMENT);
    assert_error_has(why);
    assert_null(plan);
    tide__decisions_free(&d);
    tide_program_destroy(p);
}

#define REFUSE_SWAPS(why, ...) refuse(decisions(SWAPS(__VA_ARGS__), NULL, 0), why)

static void test_refusals(void **state) {
    (void)state;
    REFUSE_SWAPS("which is none", {N_TENSORS, RAM, 0, 1});
    REFUSE_SWAPS("which is none", {W, 3, 0, 1});
    REFUSE_SWAPS("outside the step", {W, RAM, 0, N_OPS + 1});
    REFUSE_SWAPS("before it is saved", {W, RAM, 2, 1});
    REFUSE_SWAPS("no such channel", {W, CLIENT, 1, NO});
    REFUSE_SWAPS("only inputs come from tier", {W, CLIENT, NO, 1});
    REFUSE_SWAPS("not in the arena", {A, RAM, 0, 1});
    REFUSE_SWAPS("does not have it", {A, RAM, NO, FORWARD2});
    REFUSE_SWAPS("does not have it", {LOSS, RAM, NO, NO});
    REFUSE_SWAPS("\"w\" starts in tier \"ram\", but \"new_w\" does not end there", {W, RAM, NO, UPDATE});
    refuse(decisions(NULL, 0, &(tide__rerun){N_OPS, UPDATE}, 1), "needs tensor \"w\", which is not in the arena");
    refuse(decisions(NULL, 0, &(tide__rerun){UPDATE, UPDATE}, 1), "is not possible");
}

/* What does not fit names the op at the peak of this plan: with x away in between, that is where it comes back. */
static void test_peak_op(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(208);
    char path[] = "/tmp/tidemark-decisions-XXXXXX";
    FILE *f = fdopen(mkstemp(path), "w");
    assert_non_null(f);
    fputs("{\"tidemark\":\"decisions\",\"version\":1}\n{\"swap\":\"x\",\"tier\":\"client\",\"before\":\"backward1\"}\n",
          f);
    fclose(f);
    tide_plan_options o;
    tide_plan_options_init(&o);
    o.budgets.arena_bytes = 1;
    tide_fit_report fit;
    tide_plan *plan;
    assert_status(tide_plan_create(p, &m, &o, &fit, &plan), TIDE_E_FIT);
    assert_int_equal(fit.op, COMPUTE_LOSS); /* w f u x b loss gb */
    o.policy = "manual";
    o.decisions = path;
    assert_status(tide_plan_create(p, &m, &o, &fit, &plan), TIDE_E_FIT);
    assert_int_equal(fit.op, BACKWARD1); /* w f u loss ga x gw */
    assert_int_equal(fit.needed_bytes, 7 * 208);
    assert_error_has("the peak is at op \"backward1\"");
    unlink(path);
    tide_program_destroy(p);
}

/* Plans are data from outside: one that was never verified must not lead the simulator astray. */
static void test_simulate_unverified(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *p = training_step(200);
    tide_plan *plan = plan_swaps(&m, p, SWAPS({F, RAM, FORWARD2 + 1, BACKWARD2}));
    for (uint32_t i = 0; i < plan->actions.count; i++) {
        tide__action *a = &plan->actions.data[i], good = *a;
        tide_timeline *t;
        for (int bad = 0; bad < 3; bad++) {
            if (bad == 0) a->op = a->copy = N_TENSORS * 2;
            if (bad == 1) a->queue = good.kind == TIDE_RUN ? 1 : 0;
            if (bad == 2) a->kind = good.kind == TIDE_RUN ? TIDE_LOAD : TIDE_RUN;
            assert_status(tide_plan_simulate(plan, p, &m, &t), TIDE_E_PLAN);
            *a = good;
        }
        assert_ok(tide_plan_simulate(plan, p, &m, &t));
        tide_timeline_destroy(t);
    }
    tide_plan_destroy(plan);
    tide_program_destroy(p);
}

/* Signatures do not see in which order tensors were declared, plans do. A plan for the same step under other numbers
 * breaks some rule: at the latest `binding`, where an op finds another tensor than its own. */
static void test_other_numbering(void **state) {
    (void)state;
    tide_machine m = machine_with_disk();
    tide_program *one = training_step(200), *other = make_step(200, true);
    tide_signature a = tide_program_signature(one), b = tide_program_signature(other);
    assert_true(a.word[0] == b.word[0] && a.word[1] == b.word[1]);
    tide_plan *plan = plan_swaps(&m, one, SWAPS({W, RAM, NO, 0}, {NEW_W, RAM, N_OPS, NO}));
    assert_status(tide_plan_verify(plan, other, &m, NULL, NULL), TIDE_E_PLAN);
    tide_plan_destroy(plan);
    tide_program_destroy(one);
    tide_program_destroy(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weight_in_tier),   cmocka_unit_test(test_weight_in_both),
        cmocka_unit_test(test_frozen_in_tier),   cmocka_unit_test(test_unused_in_tier),
        cmocka_unit_test(test_kept_in_tier),     cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_several_absences), cmocka_unit_test(test_reruns),
        cmocka_unit_test(test_empty_tensors),    cmocka_unit_test(test_idle_steps),
        cmocka_unit_test(test_no_tiers),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_peak_op),          cmocka_unit_test(test_simulate_unverified),
        cmocka_unit_test(test_other_numbering),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
