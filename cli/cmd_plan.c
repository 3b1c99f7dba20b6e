/* tidemark plan: one step inside a byte budget. */
#include <string.h>

#include "plan_output.h"

typedef struct plan_options {
    model_args model;
    const char *machine, *policy, *decisions, *output, *bits, *effort;
    budget_args budgets;
    bool json;
} plan_options;

static int make_plan(const tide_program *p, const tide_machine *m, const plan_options *o) {
    tide_plan_options options;
    tide_plan_options_init(&options);
    options.policy = o->policy;
    options.decisions = o->decisions;
    options.bits_any = strcmp(o->bits, "any") == 0;
    if (!parse_effort(o->effort, &options.effort)) return report_failure(TIDE_E_ARGUMENT);
    unconstrained whole = {0};
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_plan *plan = NULL;
    tide_status status = plan_unconstrained(p, m, &whole);
    fill_budgets(&o->budgets, m, whole.arena_bytes, &options.budgets);
    if (status == TIDE_OK) status = settle_budget(&o->budgets, p, m, &options);
    if (status == TIDE_OK) status = tide_plan_create(p, m, &options, &fit, &plan);
    if (status == TIDE_OK && o->output) status = tide_plan_write(plan, o->output);
    if (status != TIDE_OK) {
        tide_plan_destroy(plan);
        return report_misfit(status, &fit, p, o->json);
    }
    plan_figures figures = {
        .plan = plan, .program = p, .machine = m, .prediction = *tide_plan_prediction(plan), .whole = whole};
    if (!wants_stdout(o->output)) {
        status = tide_plan_bound(p, m, &options, &figures.bound_ns);
        if (status == TIDE_OK) print_plan(&figures, o->json);
    }
    tide_plan_destroy(plan);
    return status == TIDE_OK ? 0 : report_failure(status);
}

static tide_status check(const plan_options *o) {
    if (strcmp(o->bits, "same") != 0 && strcmp(o->bits, "any") != 0)
        return complain(TIDE_E_ARGUMENT, "--bits: \"%s\" is neither same nor any", o->bits);
    if (o->decisions && strcmp(o->policy, "manual") != 0)
        return complain(TIDE_E_ARGUMENT, "--decisions is for --policy manual");
    return check_output(o->output, o->json);
}

int cmd_plan(int argc, char **argv) {
    plan_options o = {.machine = "default", .bits = "same", .effort = "normal"};
    const char *name = NULL;
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        {"--machine", ARG_TEXT, &o.machine, "NAME",
         "default, cpu, k40c, v100-16gb-pcie, rtx3090, a100 or a file [default]"},
        {"--policy", ARG_TEXT, &o.policy, "NAME", "see above [hybrid with a --budget, else liveness]"},
        {"--decisions", ARG_TEXT, &o.decisions, "FILE", "swaps, re-runs and variants for policy manual"},
        BUDGET_OPTIONS(o.budgets),
        {"--bits", ARG_TEXT, &o.bits, "same|any", "any: variants with other roundings are allowed [same]"},
        {"--effort", ARG_TEXT, &o.effort, "low|normal|high", "how long the policy may search [normal]"},
        {"-o", ARG_TEXT, &o.output, "FILE", "write the plan (JSON Lines)"},
        {"--json", ARG_FLAG, &o.json, NULL, "for programs"},
    };
    const arg_command command = {
        .usage = "plan PROGRAM|MODEL [options]",
        .summary = "Plans one step inside a byte budget; the plan is proved by the verifier and predicted.",
        .details = policies_text(),
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = &name,
        .min_positional = 1,
        .max_positional = 1};
    int exit_code;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    o.policy = default_policy(o.policy, &o.budgets);
    if (check(&o) != TIDE_OK) return report_failure(TIDE_E_ARGUMENT);
    tide_machine machine;
    loaded l = {0};
    tide_status status = tide_machine_load(o.machine, &machine);
    if (status == TIDE_OK) status = load_program(name, &o.model, &machine, &l);
    exit_code = status == TIDE_OK ? make_plan(l.program, &machine, &o) : report_failure(status);
    unload(&l);
    return exit_code;
}
