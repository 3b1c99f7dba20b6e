/* See plan_output.h. */
#include "plan_output.h"

#include <inttypes.h>

typedef struct counts {
    uint32_t runs, reruns, saves, loads, waits;
} counts;

static counts count(const plan_figures *f) {
    counts c = {0};
    for (uint32_t i = 0; i < tide_plan_action_count(f->plan); i++) {
        tide_action a = tide_plan_action(f->plan, i);
        c.runs += a.kind == TIDE_RUN;
        c.saves += a.kind == TIDE_SAVE;
        c.loads += a.kind == TIDE_LOAD;
        c.waits += a.n_waits;
    }
    c.reruns = c.runs - tide_program_op_count(f->program);
    return c;
}

static void print_percent(uint64_t part, uint64_t whole) {
    if (whole) printf("  (%.1f %%)", 100.0 * (double)part / (double)whole);
    putchar('\n');
}

static void print_human(const plan_figures *f) {
    counts c = count(f);
    const tide_prediction *p = &f->prediction;
    printf("plan for %s, policy %s, machine %s\n", tide_program_name(f->program), tide_plan_policy(f->plan),
           f->machine->name);
    printf("  arena              %s", show_bytes(tide_plan_arena_bytes(f->plan)));
    print_percent(tide_plan_arena_bytes(f->plan), f->unconstrained_bytes);
    printf("  peak load          %s\n", show_bytes(p->peak_bytes));
    for (uint32_t t = 0; t < f->machine->n_tiers; t++)
        if (tide_plan_tier_bytes(f->plan, t))
            printf("  tier %-13s %s\n", f->machine->tier[t].name, show_bytes(tide_plan_tier_bytes(f->plan, t)));
    printf("  step time          %s", show_ns(p->step_ns));
    print_percent(p->step_ns, f->unconstrained_ns);
    printf("  recomputed         %s in %u re-runs\n", show_ns(p->recomputed_ns), c.reruns);
    printf("  moved              %s in %u saves, %u loads (client included)\n", show_bytes(p->moved_bytes), c.saves,
           c.loads);
    printf("  transfers, exposed %s, %s\n", show_ns(p->transfer_ns), show_ns(p->exposed_ns));
    printf("  actions, waits     %u, %u\n", tide_plan_action_count(f->plan), c.waits);
    printf("  fingerprint        %016" PRIx64 "\n", tide_plan_fingerprint(f->plan));
}

static void print_json(const plan_figures *f) {
    counts c = count(f);
    const tide_prediction *p = &f->prediction;
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, tide_plan_fingerprint(f->plan));
    json_out j;
    json_begin(&j, stdout);
    json_text(&j, "program", tide_program_name(f->program));
    json_text(&j, "policy", tide_plan_policy(f->plan));
    json_text(&j, "machine", f->machine->name);
    json_bool(&j, "fits", true);
    json_u64(&j, "arena_bytes", tide_plan_arena_bytes(f->plan));
    if (f->unconstrained_bytes) json_u64(&j, "unconstrained_bytes", f->unconstrained_bytes);
    json_open(&j, "tiers", '{');
    for (uint32_t t = 0; t < f->machine->n_tiers; t++)
        json_u64(&j, f->machine->tier[t].name, tide_plan_tier_bytes(f->plan, t));
    json_close(&j, '{');
    json_u64(&j, "peak_bytes", p->peak_bytes);
    json_u64(&j, "step_ns", p->step_ns);
    if (f->unconstrained_ns) json_u64(&j, "unconstrained_ns", f->unconstrained_ns);
    json_u64(&j, "compute_ns", p->compute_ns);
    json_u64(&j, "recomputed_ns", p->recomputed_ns);
    json_u64(&j, "exposed_ns", p->exposed_ns);
    json_u64(&j, "transfer_ns", p->transfer_ns);
    json_u64(&j, "moved_bytes", p->moved_bytes);
    json_u64(&j, "runs", c.runs);
    json_u64(&j, "reruns", c.reruns);
    json_u64(&j, "saves", c.saves);
    json_u64(&j, "loads", c.loads);
    json_u64(&j, "waits", c.waits);
    json_text(&j, "fingerprint", fingerprint);
    json_end(&j);
}

void print_plan(const plan_figures *f, bool json) { json ? print_json(f) : print_human(f); }
