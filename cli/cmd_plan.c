/* tidemark plan, simulate, verify: making plans and judging them. */
#include <inttypes.h>
#include <string.h>

#include "cli.h"
#include "plan_output.h"

typedef struct plan_options {
    model_args model;
    const char *machine, *policy, *decisions, *output, *bits;
    size_arg budget, host_budget, disk_budget;
    bool json;
} plan_options;

/* Percentages refer to the unconstrained arena: policy liveness without a budget. */
static tide_status unconstrained(const tide_program *p, const tide_machine *m, uint64_t *arena_bytes,
                                 uint64_t *step_ns) {
    tide_plan_options o;
    tide_plan *plan;
    tide_plan_options_init(&o);
    tide_status status = tide_plan_create(p, m, &o, NULL, &plan);
    if (status != TIDE_OK) return status;
    *arena_bytes = tide_plan_arena_bytes(plan);
    *step_ns = tide_plan_prediction(plan)->step_ns;
    tide_plan_destroy(plan);
    return TIDE_OK;
}

static tide_status set_budgets(const plan_options *o, const tide_machine *m, uint64_t whole, tide_budgets *b) {
    b->arena_bytes = size_arg_bytes(&o->budget, whole);
    for (uint32_t t = 0; t < m->n_tiers; t++) {
        if (m->tier[t].kind == TIDE_TIER_RAM) b->tier_bytes[t] = size_arg_bytes(&o->host_budget, whole);
        if (m->tier[t].kind == TIDE_TIER_DISK) b->tier_bytes[t] = size_arg_bytes(&o->disk_budget, whole);
    }
    return TIDE_OK;
}

/* "Does not fit" names the smallest budget that works and the op that decides it. */
static int report_plan_failure(tide_status status, const tide_program *p, const plan_options *o,
                               const tide_fit_report *fit) {
    if (status != TIDE_E_FIT) return report_failure(status);
    const char *op = fit->op == TIDE_NONE ? "-" : tide_program_op(p, fit->op)->name;
    if (o->json) {
        json_out j;
        json_begin(&j, stdout);
        json_bool(&j, "fits", false);
        json_u64(&j, "needed_bytes", fit->needed_bytes);
        json_text(&j, "peak_op", op);
        json_end(&j);
    }
    fprintf(stderr, "tidemark: does not fit: policy %s needs at least %s (%" PRIu64 " bytes); the peak is at op %s\n",
            o->policy, show_bytes(fit->needed_bytes), fit->needed_bytes, op);
    return tide_status_exit_code(status);
}

static int make_plan(const tide_program *p, const tide_machine *m, const plan_options *o) {
    tide_plan_options options;
    tide_plan_options_init(&options);
    options.policy = o->policy;
    options.decisions = o->decisions;
    options.bits_any = strcmp(o->bits, "any") == 0;
    uint64_t whole = 0, whole_ns = 0;
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_plan *plan = NULL;
    tide_status status = unconstrained(p, m, &whole, &whole_ns);
    if (status == TIDE_OK) status = set_budgets(o, m, whole, &options.budgets);
    if (status == TIDE_OK) status = tide_plan_create(p, m, &options, &fit, &plan);
    if (status == TIDE_OK && o->output) status = tide_plan_write(plan, o->output);
    if (status != TIDE_OK) {
        tide_plan_destroy(plan);
        return report_plan_failure(status, p, o, &fit);
    }
    plan_figures figures = {.plan = plan,
                            .program = p,
                            .machine = m,
                            .prediction = *tide_plan_prediction(plan),
                            .unconstrained_bytes = whole,
                            .unconstrained_ns = whole_ns};
    print_plan(&figures, o->json);
    tide_plan_destroy(plan);
    return 0;
}

int cmd_plan(int argc, char **argv) {
    plan_options o = {.machine = "default", .policy = "liveness", .bits = "same"};
    const char *name;
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        {"--machine", ARG_TEXT, &o.machine, "NAME", "profile: a name or a file [default]"},
        {"--policy", ARG_TEXT, &o.policy, "NAME", "none, liveness or manual [liveness]"},
        {"--decisions", ARG_TEXT, &o.decisions, "FILE", "swaps, re-runs and variants for policy manual"},
        {"--budget", ARG_SIZE, &o.budget, "SIZE", "bytes of the arena; 60% is of the unconstrained one [no limit]"},
        {"--host-budget", ARG_SIZE, &o.host_budget, "SIZE", "bytes of RAM tiers [no limit]"},
        {"--disk-budget", ARG_SIZE, &o.disk_budget, "SIZE", "bytes of disk tiers [no limit]"},
        {"--bits", ARG_TEXT, &o.bits, "same|any", "any: variants with other roundings are allowed [same]"},
        {"-o", ARG_TEXT, &o.output, "FILE", "write the plan (JSON Lines)"},
        {"--json", ARG_FLAG, &o.json, NULL, "for programs"},
    };
    const arg_command command = {
        .usage = "plan PROGRAM|MODEL [options]",
        .summary = "Plans one step inside a byte budget; the plan is proved by the verifier and predicted.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = &name,
        .min_positional = 1,
        .max_positional = 1};
    int exit_code;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    if (strcmp(o.bits, "same") != 0 && strcmp(o.bits, "any") != 0) {
        fprintf(stderr, "tidemark: --bits: \"%s\" is neither same nor any\n", o.bits);
        return EXIT_USAGE;
    }
    tide_machine machine;
    loaded l = {0};
    tide_status status = tide_machine_load(o.machine, &machine);
    if (status == TIDE_OK) status = load_program(name, &o.model, &machine, &l);
    exit_code = status == TIDE_OK ? make_plan(l.program, &machine, &o) : report_failure(status);
    unload(&l);
    return exit_code;
}
