/* See plan_output.h. */
#include "plan_output.h"

#include <inttypes.h>
#include <string.h>

/* Inputs come from the client tier; everything else that moves was swapped. */
typedef struct counts {
    uint32_t runs, reruns, saves, loads, inputs, relocations, waits;
    uint64_t saved_bytes, loaded_bytes, input_bytes;
} counts;

static void count_move(const plan_figures *f, const tide_action *a, counts *c) {
    const tide_copy *copy = tide_plan_copy(f->plan, a->copy);
    if (a->kind == TIDE_SAVE) {
        c->saves++;
        c->saved_bytes += copy->size_bytes;
    } else if (f->machine->tier[copy->tier].kind == TIDE_TIER_CLIENT) {
        c->inputs++;
        c->input_bytes += copy->size_bytes;
    } else {
        c->loads++;
        c->loaded_bytes += copy->size_bytes;
    }
}

static counts count(const plan_figures *f) {
    counts c = {0};
    for (uint32_t i = 0; i < tide_plan_action_count(f->plan); i++) {
        tide_action a = tide_plan_action(f->plan, i);
        c.waits += a.n_waits;
        if (a.kind == TIDE_RUN)
            c.runs++;
        else if (a.kind == TIDE_RELOCATE)
            c.relocations++;
        else
            count_move(f, &a, &c);
    }
    c.reruns = c.runs - tide_program_op_count(f->program);
    return c;
}

/* ---- for people ---- */

static void print_row(const char *name, const char *figure, uint64_t part, uint64_t whole, const char *of) {
    printf("  %-18s %s", name, figure);
    if (whole) printf("   %.1f %% of %s", 100.0 * (double)part / (double)whole, of);
    putchar('\n');
}

/* A plan is made for a budget, which need not be what the device has. */
static bool exceeds_device(const plan_figures *f) {
    return tide_plan_arena_bytes(f->plan) > f->machine->memory_bytes - f->machine->reserve_bytes;
}

static void print_memory(const plan_figures *f) {
    uint64_t arena = tide_plan_arena_bytes(f->plan);
    print_row("arena", show_bytes(arena), arena, f->whole.arena_bytes, "the unconstrained arena");
    printf("  %-18s %s\n", "peak load", show_bytes(f->prediction.peak_bytes));
    printf("  %-18s %s", "device memory", show_bytes(f->machine->memory_bytes));
    if (f->machine->reserve_bytes) printf(", %s of it for libraries", show_bytes(f->machine->reserve_bytes));
    puts(exceeds_device(f) ? ": the arena is too large for it" : "");
    for (uint32_t t = 0; t < f->machine->n_tiers; t++)
        if (tide_plan_tier_bytes(f->plan, t))
            printf("  tier %-13s %s\n", show_name(f->machine->tier[t].name),
                   show_bytes(tide_plan_tier_bytes(f->plan, t)));
}

/* By how much a better plan could be faster, in percent of the bound. */
static double gap_percent(const plan_figures *f) {
    return 100 * ((double)f->prediction.step_ns / (double)f->bound_ns - 1);
}

/* The bound is of every plan, but where the policy is one that does without moves or re-runs. */
static void print_bound(const plan_figures *f) {
    const char *argument = strchr(tide_plan_policy(f->plan), ':');
    const char *kind = "";
    if (argument && strncmp(tide_plan_policy(f->plan), "hybrid:", 7) == 0)
        kind = strcmp(argument, ":nomove") == 0 ? " without moves" : " without re-runs";
    printf("  %-18s %s   no plan%s for this budget is faster; this one is %.1f %% above\n", "lower bound",
           show_ns(f->bound_ns), kind, gap_percent(f));
}

static void print_time(const plan_figures *f) {
    const tide_prediction *p = &f->prediction;
    print_row("step time", show_ns(p->step_ns), p->step_ns, f->whole.step_ns, "the unconstrained time");
    if (f->bound_ns) print_bound(f);
    printf("  %-18s %s\n", "compute", show_ns(p->compute_ns));
    printf("  %-18s %s   compute waits for transfers\n", "exposed", show_ns(p->exposed_ns));
    printf("  %-18s %s   busy time of all channels\n", "transfers", show_ns(p->transfer_ns));
}

static void print_human(const plan_figures *f) {
    counts c = count(f);
    char parts[24] = "";
    if (tide_plan_parts(f->plan) > 1) snprintf(parts, sizeof parts, ", in %u parts", tide_plan_parts(f->plan));
    printf("plan for %s, policy %s, machine %s (%s)%s%s%s\n", show_name(tide_program_name(f->program)),
           show_name(tide_plan_policy(f->plan)), show_name(f->machine->name), show_name(f->machine->source), parts,
           tide_plan_is_reordered(f->plan) ? ", ops reordered" : "",
           tide_plan_bits_any(f->plan) ? ", bits may differ" : "");
    print_memory(f);
    print_time(f);
    printf("  %-18s %s in %u re-runs\n", "recomputed", show_ns(f->prediction.recomputed_ns), c.reruns);
    printf("  %-18s %s in %u saves\n", "swapped out", show_bytes(c.saved_bytes), c.saves);
    printf("  %-18s %s in %u loads\n", "swapped in", show_bytes(c.loaded_bytes), c.loads);
    printf("  %-18s %s in %u loads\n", "inputs", show_bytes(c.input_bytes), c.inputs);
    if (c.relocations)
        printf("  %-18s %s in %u copies inside the arena, %s\n", "relocated", show_bytes(f->prediction.relocated_bytes),
               c.relocations, show_ns(f->prediction.relocated_ns));
    printf("  %-18s %u, with %u waits\n", "actions", tide_plan_action_count(f->plan), c.waits);
    printf("  %-18s %016" PRIx64 "\n", "fingerprint", tide_plan_fingerprint(f->plan));
}

/* ---- for programs ---- */

static void memory_json(json_out *j, const plan_figures *f) {
    json_u64(j, "arena_bytes", tide_plan_arena_bytes(f->plan));
    if (f->whole.arena_bytes) json_u64(j, "unconstrained_bytes", f->whole.arena_bytes);
    json_u64(j, "peak_bytes", f->prediction.peak_bytes);
    json_u64(j, "device_bytes", f->machine->memory_bytes);
    json_u64(j, "device_reserve_bytes", f->machine->reserve_bytes);
    json_bool(j, "exceeds_device", exceeds_device(f));
    json_open(j, "tiers", '{');
    for (uint32_t t = 0; t < f->machine->n_tiers; t++)
        json_u64(j, f->machine->tier[t].name, tide_plan_tier_bytes(f->plan, t));
    json_close(j, '{');
}

static void time_json(json_out *j, const plan_figures *f) {
    const tide_prediction *p = &f->prediction;
    json_u64(j, "step_ns", p->step_ns);
    if (f->whole.step_ns) json_u64(j, "unconstrained_ns", f->whole.step_ns);
    if (f->bound_ns) json_u64(j, "bound_ns", f->bound_ns);
    json_u64(j, "compute_ns", p->compute_ns);
    json_u64(j, "recomputed_ns", p->recomputed_ns);
    json_u64(j, "exposed_ns", p->exposed_ns);
    json_u64(j, "transfer_ns", p->transfer_ns);
    json_u64(j, "relocated_ns", p->relocated_ns);
}

static void actions_json(json_out *j, const plan_figures *f) {
    counts c = count(f);
    json_u64(j, "runs", c.runs);
    json_u64(j, "reruns", c.reruns);
    json_u64(j, "saves", c.saves);
    json_u64(j, "saved_bytes", c.saved_bytes);
    json_u64(j, "loads", c.loads);
    json_u64(j, "loaded_bytes", c.loaded_bytes);
    json_u64(j, "inputs", c.inputs);
    json_u64(j, "input_bytes", c.input_bytes);
    json_u64(j, "relocations", c.relocations);
    json_u64(j, "relocated_bytes", f->prediction.relocated_bytes);
    json_u64(j, "waits", c.waits);
}

static void print_json(const plan_figures *f) {
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, tide_plan_fingerprint(f->plan));
    json_out j;
    json_begin(&j, stdout);
    json_text(&j, "program", tide_program_name(f->program));
    json_text(&j, "policy", tide_plan_policy(f->plan));
    json_text(&j, "bits", tide_plan_bits_any(f->plan) ? "any" : "same");
    json_text(&j, "order", tide_plan_is_reordered(f->plan) ? "own" : "program");
    json_u64(&j, "parts", tide_plan_parts(f->plan));
    json_text(&j, "machine", f->machine->name);
    json_text(&j, "machine_source", f->machine->source);
    json_bool(&j, "fits", true);
    memory_json(&j, f);
    time_json(&j, f);
    actions_json(&j, f);
    json_text(&j, "fingerprint", fingerprint);
    json_end(&j);
}

void print_plan(const plan_figures *f, bool json) { json ? print_json(f) : print_human(f); }
