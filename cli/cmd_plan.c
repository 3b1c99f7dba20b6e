/* tidemark plan: one step inside a byte budget. */
#include <string.h>

#include "plan_output.h"
#include "plan_watch.h"

typedef struct plan_options {
    model_args model;
    planning_args planning;
    const char *output, *bits;
    double plan_time;
    bool json, bits_any;
} plan_options;

static int make_plan(const tide_program *p, const tide_machine *m, const plan_options *o) {
    tide_plan_options options;
    unconstrained whole = {0};
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_plan *plan = NULL;
    tide_status status = plan_unconstrained(p, m, &whole);
    if (status == TIDE_OK) status = fill_plan_options(&o->planning, p, m, &options);
    options.bits_any = o->bits_any;
    plan_watch watch = {.seconds = o->plan_time, .whole_ns = whole.step_ns};
    if (status == TIDE_OK) {
        plan_watch_begin(&watch, &options);
        status = tide_plan_create(p, m, &options, &fit, &plan);
        plan_watch_end(&watch, &options);
    }
    if (status == TIDE_OK && o->output) status = tide_plan_write(plan, o->output);
    if (status != TIDE_OK) {
        tide_plan_destroy(plan);
        return report_misfit(status, &fit, p, m, o->json);
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

static tide_status check(plan_options *o) {
    if (!parse_bits(o->bits, &o->bits_any)) return TIDE_E_ARGUMENT;
    if (!(o->plan_time >= 0)) return complain(TIDE_E_ARGUMENT, "--plan-time: not a number of seconds");
    tide_status status = check_planning(&o->planning);
    return status == TIDE_OK ? check_output(o->output, o->json) : status;
}

int cmd_plan(int argc, char **argv) {
    plan_options o = {0};
    const char *name = NULL;
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        DTYPE_OPTION(o.model),
        PLANNING_OPTIONS(o.planning),
        BITS_OPTION(o.bits, "variants with other roundings are allowed"),
        {"--plan-time", ARG_NUMBER, &o.plan_time, "S", "take the best plan after so many seconds [no limit]"},
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
    if (check(&o) != TIDE_OK) return report_failure(TIDE_E_ARGUMENT);
    tide_machine machine;
    loaded l = {0};
    tide_status status = load_machine(&o.planning, &machine);
    if (status == TIDE_OK) status = load_program(name, &o.model, &machine, &l);
    exit_code = status == TIDE_OK ? make_plan(l.program, &machine, &o) : report_failure(status);
    unload(&l);
    return exit_code;
}
