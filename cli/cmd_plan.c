/* tidemark plan: one step inside a byte budget. */
#include <stdlib.h>
#include <string.h>

#include "plan_cluster.h"
#include "plan_output.h"
#include "plan_watch.h"

typedef struct plan_options {
    model_args model;
    planning_args planning;
    cluster_args cluster;
    const char *output, *bits, *parts;
    uint32_t n_parts; /* 0: the planner chooses; only with --parts */
    double plan_time;
    bool json, bits_any;
} plan_options;

/* The smallest arena of a program in parts is for the planner to find, as is that which it then has. */
static tide_status fill_options(const tide_program *p, const tide_machine *m, const plan_options *o,
                                tide_plan_options *options) {
    planning_args args = o->planning;
    const bool later = o->parts && args.budgets.arena.budget.kind == TIDE_BUDGET_SMALLEST;
    args.policy = default_policy(args.policy, &args.budgets);
    if (later) args.budgets.arena = (size_arg){0};
    tide_status status = fill_plan_options(&args, p, m, options);
    if (later) options->arena_budget = o->planning.budgets.arena.budget;
    options->bits_any = o->bits_any;
    return status;
}

static tide_status create(const tide_program *p, const tide_machine *m, const plan_options *o,
                          tide_plan_options *options, tide_fit_report *fit, tide_program **in_parts, tide_plan **out) {
    if (!o->parts) return tide_plan_create(p, m, options, fit, out);
    tide_status status = tide_plan_create_in_parts(p, m, options, o->n_parts, fit, in_parts, out);
    if (status == TIDE_OK && options->arena_budget.kind == TIDE_BUDGET_SMALLEST)
        options->arena_budget = (tide_budget){.kind = TIDE_BUDGET_BYTES, .bytes = tide_plan_arena_bytes(*out)};
    return status;
}

static int make_plan(const tide_program *p, const tide_machine *m, const plan_options *o) {
    tide_plan_options options;
    unconstrained whole = {0};
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_plan *plan = NULL;
    tide_program *in_parts = NULL;
    tide_status status = plan_unconstrained(p, m, &whole);
    if (status == TIDE_OK) status = fill_options(p, m, o, &options);
    plan_watch watch = {.seconds = o->plan_time, .whole_ns = whole.step_ns};
    if (status == TIDE_OK) {
        plan_watch_begin(&watch, &options);
        status = create(p, m, o, &options, &fit, &in_parts, &plan);
        plan_watch_end(&watch, &options);
    }
    if (status == TIDE_OK && o->output) status = tide_plan_write(plan, o->output);
    if (status != TIDE_OK) {
        tide_plan_destroy(plan);
        tide_program_destroy(in_parts);
        return report_misfit(status, &fit, p, m, o->json);
    }
    if (in_parts) p = in_parts;
    plan_figures figures = {
        .plan = plan, .program = p, .machine = m, .prediction = *tide_plan_prediction(plan), .whole = whole};
    if (!wants_stdout(o->output)) {
        status = tide_plan_bound(p, m, &options, &figures.bound_ns);
        if (status == TIDE_OK) print_plan(&figures, o->json);
    }
    tide_plan_destroy(plan);
    tide_program_destroy(in_parts);
    return status == TIDE_OK ? 0 : report_failure(status);
}

static bool parse_parts(const char *text, uint32_t *out) {
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    *out = (uint32_t)n;
    return text[0] >= '1' && text[0] <= '9' && *end == '\0' && n <= UINT32_MAX;
}

static tide_status check(plan_options *o) {
    if (!parse_bits(o->bits, &o->bits_any)) return TIDE_E_ARGUMENT;
    if (!(o->plan_time >= 0)) return complain(TIDE_E_ARGUMENT, "--plan-time: not a number of seconds");
    if (o->parts && strcmp(o->parts, "auto") != 0 && !parse_parts(o->parts, &o->n_parts))
        return complain(TIDE_E_ARGUMENT, "--parts: \"%s\" is neither auto nor a number from 1", o->parts);
    tide_status status = check_planning(&o->planning);
    if (status == TIDE_OK) status = check_cluster_args(&o->cluster);
    if (status == TIDE_OK) status = refuse_beside_cluster(&o->cluster, "-o", o->output);
    if (status == TIDE_OK) status = refuse_beside_cluster(&o->cluster, "--parts", o->parts);
    if (status == TIDE_OK) status = refuse_beside_cluster(&o->cluster, "--bits any", o->bits_any);
    if (status == TIDE_OK) status = refuse_beside_cluster(&o->cluster, "--plan-time", o->plan_time > 0);
    if (status == TIDE_OK) status = refuse_beside_cluster(&o->cluster, "--decisions", o->planning.decisions);
    return status == TIDE_OK ? check_output(o->output, o->json) : status;
}

int cmd_plan(int argc, char **argv) {
    plan_options o = {0};
    const char *name = NULL;
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        DTYPE_OPTION(o.model),
        PLANNING_OPTIONS(o.planning),
        CLUSTER_OPTIONS(o.cluster),
        BITS_OPTION(o.bits, "variants with other roundings are allowed"),
        {"--parts", ARG_TEXT, &o.parts, "N|auto",
         "cut values into N parts where ops say how; auto: as is best [whole]"},
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
    if (o.cluster.file) return plan_cluster(CLUSTER_PLAN, name, &o.model, &o.planning, &o.cluster, o.json);
    tide_machine machine;
    loaded l = {0};
    tide_status status = load_machine(&o.planning, &machine);
    if (status == TIDE_OK) status = load_program(name, &o.model, &machine, &l);
    if (status == TIDE_OK && o.parts && l.model)
        status = complain(TIDE_E_ARGUMENT, "--parts is for program files; models are cut by --micro");
    exit_code = status == TIDE_OK ? make_plan(l.program, &machine, &o) : report_failure(status);
    unload(&l);
    return exit_code;
}
