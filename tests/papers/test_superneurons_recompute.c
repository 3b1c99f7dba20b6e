/* SuperNeurons' recomputation: peaks and counts of re-run layers, from plans of the policy. AlexNet, batch 200:
 * speed-centric 993.018 MB with 14 layers, memory-centric 886.23 with 23, cost-aware 886.23 with 17 (MB = 2^20).
 * ResNet-50: 84, 118 and 85 layers; ResNet-101: 169, 237 and 170. */
#include "papers/superneurons.h"
#include "papers/superneurons_resnet.h"

#include <tidemark/plan.h>

#define MIB 1048576.0

typedef struct figures {
    double peak_mib, arena_mib;
    uint32_t reruns;
} figures;

static uint32_t count_reruns(const tide_plan *plan, const tide_program *p) {
    uint32_t runs = 0;
    for (uint32_t i = 0; i < tide_plan_action_count(plan); i++) runs += tide_plan_action(plan, i).kind == TIDE_RUN;
    return runs - tide_program_op_count(p);
}

static figures plan_with(const tide_program *p, const char *policy) {
    tide_machine m;
    tide_plan_options o;
    tide_plan *plan;
    tide_machine_init_default(&m);
    tide_plan_options_init(&o);
    o.policy = policy;
    assert_ok(tide_plan_create(p, &m, &o, NULL, &plan));
    figures f = {.peak_mib = (double)tide_plan_prediction(plan)->peak_bytes / MIB,
                 .arena_mib = (double)tide_plan_arena_bytes(plan) / MIB,
                 .reruns = count_reruns(plan, p)};
    tide_plan_destroy(plan);
    print_message("%s: peak %.3f MiB, arena %.3f MiB, %u layers re-run\n", policy, f.peak_mib, f.arena_mib, f.reruns);
    return f;
}

static void assert_near(double value, double expected) {
    double error = value < expected ? expected - value : value - expected;
    if (error > 1e-5 * expected) fail_msg("%.6f instead of %.6f", value, expected);
}

/* The paper's own accounting: gradients of ReLU and LRN in place. */
static void alexnet(void **state) {
    (void)state;
    paper_options o = {.batch = 200};
    o.inplace[PAPER_RELU] = o.inplace[PAPER_LRN] = true;
    tide_program *p = paper_program(paper_alexnet, PAPER_ALEXNET_LAYERS, &o);
    figures speed = plan_with(p, "superneurons:speed"), memory = plan_with(p, "superneurons:memory"),
            cost = plan_with(p, "superneurons");
    assert_int_equal(speed.reruns, 14);
    assert_int_equal(memory.reruns, 23);
    assert_int_equal(cost.reruns, 17);
    assert_near(speed.peak_mib, 993.018);
    assert_near(memory.peak_mib, 886.230);
    assert_near(cost.peak_mib, 886.230);
    assert_near(speed.arena_mib, 993.018); /* no byte is lost to placement */
    assert_near(memory.arena_mib, 886.230);
    assert_near(cost.arena_mib, 886.230);
    tide_program_destroy(p);
}

/* Cost-aware is speed-centric but for the stem, as in the paper. */
static void check_resnet(const uint32_t blocks[4], uint32_t speed, uint32_t memory, uint32_t cost) {
    tide_program *p = resnet_program(blocks, 16);
    assert_int_equal(plan_with(p, "superneurons:speed").reruns, speed);
    assert_int_equal(plan_with(p, "superneurons:memory").reruns, memory);
    assert_int_equal(plan_with(p, "superneurons:cost").reruns, cost);
    assert_int_equal(plan_with(p, "superneurons:norecompute").reruns, 0);
    tide_program_destroy(p);
}

static void resnets(void **state) {
    (void)state;
    check_resnet((uint32_t[]){3, 4, 6, 3}, 84, 118, 85);
    check_resnet((uint32_t[]){3, 4, 23, 3}, 169, 237, 170);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(alexnet), cmocka_unit_test(resnets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
