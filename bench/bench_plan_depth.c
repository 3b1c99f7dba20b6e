/* How deep a network each policy trains on one device: resnet:6,32,n3,6 at batch 16, 224 x 224, on a 12 GB K40c; the
 * experiment of SuperNeurons (PPoPP 2018), which reaches depth 1920 there, 2500 according to its abstract.
 *
 *   bench_plan_depth                 the policies that plan ahead
 *   bench_plan_depth POLICY ...      these; `all` also takes in the online ones, which are slow at such depths
 *
 * Depth is the paper's: 3 (6 + 32 + n3 + 6) + 2. The update of each weight stands right behind its gradient, so that
 * gradients die at once; the optimizer is momentum. Nothing deeper than MAX_BLOCKS is tried, and the search stops when the answer is
 * known to 1/PRECISION. RAM is what the host needs beside the device. Time is relative to the unconstrained plan of the
 * same network; every plan was proved by the verifier. Times of planning are CPU seconds of the last plan that fits.
 * Exit code 1 if hybrid does not reach the bar. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tidemark/tidemark.h>

#include "common.h"

enum { BATCH = 16, BAR_DEPTH = 10000, MAX_BLOCKS = 3300, FIRST_BLOCKS = 52, GROWTH = 4, PRECISION = 32 };

typedef struct figures {
    uint32_t blocks; /* n3; 0: not even the smallest fits */
    double arena_mib, ram_mib, step_s, ratio, plan_s;
} figures;

static uint32_t depth_of(uint32_t blocks) { return 3 * (6 + 32 + blocks + 6) + 2; }

/* The unconstrained time, and the policy's plan in the room that the machine's libraries leave. */
static bool plan_step(const tide_program *program, const tide_machine *m, const char *policy, figures *f) {
    tide_plan_options o;
    tide_plan *plan;
    tide_plan_options_init(&o);
    require(tide_plan_create(program, m, &o, NULL, &plan));
    double whole_s = (double)tide_plan_prediction(plan)->step_ns * 1e-9;
    tide_plan_destroy(plan);
    o.policy = policy;
    o.effort = TIDE_EFFORT_LOW;
    o.budgets.arena_bytes = m->memory_bytes - m->reserve_bytes;
    double since = cpu_seconds();
    tide_status status = tide_plan_create(program, m, &o, NULL, &plan);
    f->plan_s = cpu_seconds() - since;
    if (tide_status_is_misfit(status)) return false;
    require(status);
    f->step_s = (double)tide_plan_prediction(plan)->step_ns * 1e-9;
    f->ratio = f->step_s / whole_s;
    f->arena_mib = (double)tide_plan_arena_bytes(plan) / 0x1p20;
    f->ram_mib = (double)tide_plan_tier_bytes(plan, tide_machine_find_tier(m, TIDE_TIER_RAM)) / 0x1p20;
    tide_plan_destroy(plan);
    return true;
}

/* Fills *f if that many blocks fit. */
static bool try_blocks(const tide_machine *m, const char *policy, uint32_t blocks, figures *f) {
    char spec[64];
    figures tried = {.blocks = blocks};
    tide_model_options model_options;
    tide_step_options step_options;
    tide_model *model;
    tide_step *step;
    snprintf(spec, sizeof spec, "resnet:6,32,%u,6", blocks);
    tide_model_options_init(&model_options);
    model_options.batch = BATCH;
    tide_step_options_init(&step_options);
    step_options.machine = m;
    step_options.optimizer = TIDE_MOMENTUM;
    step_options.fused_update = true;
    require(tide_model_create(spec, &model_options, &model));
    require(tide_step_create(model, &step_options, &step));
    bool fits = plan_step(tide_step_program(step), m, policy, &tried);
    tide_step_destroy(step);
    tide_model_destroy(model);
    if (fits) *f = tried;
    return fits;
}

/* Online policies may fail at one depth and work at a larger one: only two failures in a row count. Invariant then:
 * `low` blocks fit (or it is 0), `high` do not (or are past the largest number tried). */
static figures find_deepest(const tide_machine *m, const char *policy) {
    figures f = {0};
    uint32_t low = 0, high = FIRST_BLOCKS, failures = 0;
    for (uint32_t next = FIRST_BLOCKS; low < MAX_BLOCKS && failures < 2;) {
        bool fits = try_blocks(m, policy, next, &f);
        failures = fits ? 0 : failures + 1;
        if (fits) low = next;
        if (failures == 1) high = next;
        if (next == MAX_BLOCKS) break;
        next = next * GROWTH < MAX_BLOCKS ? next * GROWTH : MAX_BLOCKS;
    }
    if (low >= high) high = low == MAX_BLOCKS ? low : MAX_BLOCKS;
    while (high - low > 1 + low / PRECISION) {
        uint32_t middle = low + (high - low) / 2;
        *(try_blocks(m, policy, middle, &f) ? &low : &high) = middle;
    }
    return f;
}

static void print_row(const char *policy, const figures *f) {
    if (f->blocks)
        printf("%-14s %6u %3s%6u %9.0f %9.0f %8.2f %9.2f %7.3f %9.2f\n", policy, f->blocks,
               f->blocks == MAX_BLOCKS ? ">=" : "", depth_of(f->blocks), f->arena_mib, f->ram_mib, f->step_s,
               BATCH / f->step_s, f->ratio, f->plan_s);
    else
        printf("%-14s      - below %u\n", policy, depth_of(1));
    fflush(stdout);
}

static bool is_online(const char *policy) {
    return strcmp(policy, "cache") == 0 || strcmp(policy, "delta") == 0 || strcmp(policy, "dtr") == 0;
}

static bool is_wanted(const char *policy, int argc, char **argv) {
    if (strcmp(policy, "manual") == 0) return false;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], policy) == 0 || strcmp(argv[i], "all") == 0) return true;
    return argc == 1 && !is_online(policy);
}

int main(int argc, char **argv) {
    tide_machine m;
    const char *policy;
    uint32_t deepest = 0; /* of hybrid; 0: not asked for */
    require(tide_machine_load("k40c", &m));
    printf(
        "the deepest resnet:6,32,n3,6 on %s, batch %d, 224 x 224, arena of %.0f MiB; published: Caffe 148, Torch 152, "
        "MXNet 480, TensorFlow 592, SuperNeurons 1920\n%-14s %6s %9s %9s %9s %8s %9s %7s %9s\n",
        m.name, BATCH, (double)(m.memory_bytes - m.reserve_bytes) / 0x1p20, "policy", "n3", "depth", "arena MiB",
        "RAM MiB", "step s", "images/s", "time", "plan s");
    for (uint32_t i = 0; (policy = tide_policy_name(i, NULL)) != NULL; i++) {
        if (!is_wanted(policy, argc, argv)) continue;
        figures f = find_deepest(&m, policy);
        print_row(policy, &f);
        if (strcmp(policy, "hybrid") == 0) deepest = depth_of(f.blocks);
    }
    if (deepest) printf("  %s hybrid reaches depth %d\n", deepest >= BAR_DEPTH ? "PASS" : "MISS", BAR_DEPTH);
    return deepest && deepest < BAR_DEPTH;
}
