/* Messages between ranks in plans: what the verifier makes of every way to spoil them, and what the simulator says they take. */
#include "plan/verify/verify_rules.h"
#include "support/hand_made.h"
#include "support/test.h"

static tide_program *make_talk(void) {
    static const tide_variant variant = {.cost_ns = 10};
    const tide_message sent = {.receives = false, .peer = 1, .number = 3}, received = {true, 1, 7};
    const tide_tensor value = {.name = "v", .size_bytes = 64}, result = {.name = "r", .size_bytes = 64, .keep = true};
    const tide_id a = 0, b = 1, c = 2, both[2] = {0, 1};
    const tide_op ops[] = {
        {.name = "make", .n_writes = 1, .writes = &a, .n_variants = 1, .variants = &variant},
        {.name = "send", .n_reads = 1, .reads = &a, .n_variants = 1, .variants = &variant, .message = &sent},
        {.name = "receive", .n_writes = 1, .writes = &b, .n_variants = 1, .variants = &variant, .message = &received},
        {.name = "add",
         .n_reads = 2,
         .reads = both,
         .n_writes = 1,
         .writes = &c,
         .n_variants = 1,
         .variants = &variant},
    };
    tide_program_builder *builder;
    tide_program *program;
    assert_ok(tide_program_builder_create("talk", false, &builder));
    assert_ok(tide_program_builder_tensor(builder, &value, NULL));
    assert_ok(tide_program_builder_tensor(builder, &value, NULL));
    assert_ok(tide_program_builder_tensor(builder, &result, NULL));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) assert_ok(tide_program_builder_op(builder, &ops[i], NULL));
    assert_ok(tide_program_builder_finish(builder, &program));
    return program;
}

enum { TALK_MAKE, TALK_SEND, TALK_RECEIVE, TALK_ADD };

static void send_to_nobody(tide_plan *p) { p->actions.data[TALK_SEND].queue = 0; }
static void send_as_received(tide_plan *p) { p->actions.data[TALK_SEND].queue = p->actions.data[TALK_RECEIVE].queue; }
static void send_early(tide_plan *p) { p->actions.data[TALK_SEND].n_waits = 0; }
static void read_early(tide_plan *p) { p->actions.data[TALK_ADD].n_waits = 0; }
static void lose(tide_plan *p) {
    p->actions.data[TALK_SEND] = p->actions.data[TALK_RECEIVE];
    p->actions.data[TALK_RECEIVE] = p->actions.data[TALK_ADD];
    p->actions.data[TALK_RECEIVE].n_waits = 0;
    p->actions.count--;
    for (size_t i = 0; i < p->residencies.count; i++) {
        tide_residency *r = &p->residencies.data[i];
        r->begin -= r->begin > TALK_SEND;
        r->end -= r->end > TALK_SEND;
    }
}
static void send_twice(tide_plan *p) {
    p->actions.data[TALK_RECEIVE] = p->actions.data[TALK_SEND];
    p->actions.data[TALK_RECEIVE].n_waits = 0;
    p->residencies.data[0].end = (uint32_t)p->actions.count;
}
static void receive_first(tide_plan *p) {
    tide__action sent = p->actions.data[TALK_SEND];
    p->actions.data[TALK_SEND] = p->actions.data[TALK_RECEIVE];
    p->actions.data[TALK_RECEIVE] = sent;
    p->residencies.data[1].begin = TALK_SEND;
}

static void test_messages(void **state) {
    (void)state;
    static const struct {
        const char *name, *rule;
        void (*change)(tide_plan *plan);
    } breaks[] = {
        {"to nobody", "queue", send_to_nobody},
        {"the wrong way", "queue", send_as_received},
        {"sent early", "ready", send_early},
        {"read early", "ready", read_early},
        {"lost", "order", lose},
        {"doubled", "message", send_twice},
        {"out of order", "order", receive_first},
    };
    tide_program *program = make_talk();
    tide_machine machine;
    tide__decisions none = {0};
    tide_plan *plan;
    tide_machine_init_default(&machine);
    assert_status(plan_from_decisions(program, &machine, &none, &plan), TIDE_E_ARGUMENT);
    assert_error_has("no channels to peers");
    assert_ok(tide_machine_add_peers(&machine, 1000000000, 500));
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        tide_verdict verdict;
        assert_ok(plan_from_decisions(program, &machine, &none, &plan));
        assert_ok(tide_plan_verify(plan, program, &machine, NULL, NULL));
        breaks[i].change(plan);
        assert_status(tide_plan_verify(plan, program, &machine, NULL, &verdict), TIDE_E_PLAN);
        if (strcmp(verdict.rule, breaks[i].rule) != 0)
            fail_msg("%s: rule %s: %s", breaks[i].name, verdict.rule, verdict.message);
        tide_plan_destroy(plan);
    }
    /* 64 bytes at 1 GB/s after 500 ns, both ways at once; the sum waits for them. */
    tide_timeline *timeline;
    assert_ok(plan_from_decisions(program, &machine, &none, &plan));
    assert_ok(tide_plan_simulate(plan, program, &machine, &timeline));
    assert_int_equal(timeline->start_ns[TALK_RECEIVE], 0);
    assert_int_equal(timeline->end_ns[TALK_RECEIVE], 564);
    assert_int_equal(timeline->end_ns[TALK_SEND], 10 + 564);
    assert_int_equal(timeline->start_ns[TALK_ADD], 564);
    assert_int_equal(timeline->prediction.compute_ns, 20);
    assert_int_equal(timeline->prediction.moved_bytes, 128);
    tide_timeline_destroy(timeline);
    tide_plan_destroy(plan);
    tide_program_destroy(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
