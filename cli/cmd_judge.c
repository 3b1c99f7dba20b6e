/* tidemark verify and simulate: what a plan file is worth. */
#include <string.h>

#include "plan_output.h"

typedef struct judge_options {
    model_args model;
    const char *machine;
    budget_args budgets; /* verify only */
    bool json;
} judge_options;

typedef struct case_at_hand {
    tide_machine machine;
    loaded program;
    tide_plan *plan;
} case_at_hand;

/* A plan in parts is one for the program in parts. */
static tide_status cut_program(case_at_hand *c) {
    const uint32_t parts = tide_plan_parts(c->plan);
    tide_program *in_parts;
    if (parts == 1) return TIDE_OK;
    tide_status status = tide_program_split(c->program.program, parts, tide_plan_bits_any(c->plan), &in_parts);
    if (status != TIDE_OK) return status;
    unload(&c->program);
    c->program.program = c->program.file = in_parts;
    return TIDE_OK;
}

static tide_status open_case(const char *const *names, const judge_options *o, case_at_hand *c) {
    tide_status status = tide_machine_load(o->machine, &c->machine);
    if (status == TIDE_OK) status = tide_plan_read(names[0], &c->plan);
    if (status == TIDE_OK) status = load_program(names[1], &o->model, &c->machine, &c->program);
    return status == TIDE_OK ? cut_program(c) : status;
}

static void close_case(case_at_hand *c) {
    tide_plan_destroy(c->plan);
    unload(&c->program);
}

static void verdict_json(const case_at_hand *c, bool valid, const tide_verdict *verdict) {
    json_out j;
    json_begin(&j, stdout);
    json_bool(&j, "valid", valid);
    json_u64(&j, "actions", tide_plan_action_count(c->plan));
    json_u64(&j, "arena_bytes", tide_plan_arena_bytes(c->plan));
    if (!valid) {
        json_text(&j, "rule", verdict->rule);
        if (verdict->action != TIDE_NONE) json_u64(&j, "action", verdict->action);
        json_text(&j, "message", verdict->message);
    }
    json_end(&j);
}

static void print_verdict(const case_at_hand *c, bool valid, const tide_verdict *verdict) {
    if (valid) {
        printf("valid: %u actions, arena %s\n", tide_plan_action_count(c->plan),
               show_bytes(tide_plan_arena_bytes(c->plan)));
        return;
    }
    printf("not valid: rule %s", verdict->rule);
    if (verdict->action != TIDE_NONE) printf(" at action %u", verdict->action);
    printf(": %s\n", show_name(verdict->message));
}

static int judge(const case_at_hand *c, const judge_options *o) {
    tide_plan_options options;
    tide_verdict verdict = {.action = TIDE_NONE};
    tide_plan_options_init(&options);
    fill_budgets(&o->budgets, &options);
    tide_status status = tide_plan_settle_budgets(c->program.program, &c->machine, &options);
    if (status == TIDE_OK)
        status = tide_plan_verify(c->plan, c->program.program, &c->machine, &options.budgets, &verdict);
    if (status != TIDE_OK && status != TIDE_E_PLAN) return report_failure(status);
    if (o->json)
        verdict_json(c, status == TIDE_OK, &verdict);
    else
        print_verdict(c, status == TIDE_OK, &verdict);
    return tide_status_exit_code(status);
}

static int predict(const case_at_hand *c, const judge_options *o) {
    tide_timeline *timeline;
    tide_verdict verdict;
    tide_status status = tide_plan_verify(c->plan, c->program.program, &c->machine, NULL, &verdict);
    if (status == TIDE_E_PLAN) {
        complain(status, "the plan is not valid (rule %s): %s", verdict.rule, show_name(verdict.message));
        return report_failure(status);
    }
    if (status == TIDE_OK) status = tide_plan_simulate(c->plan, c->program.program, &c->machine, &timeline);
    if (status != TIDE_OK) return report_failure(status);
    plan_figures figures = {
        .plan = c->plan, .program = c->program.program, .machine = &c->machine, .prediction = timeline->prediction};
    print_plan(&figures, o->json);
    tide_timeline_destroy(timeline);
    return 0;
}

static int judge_command(int argc, char **argv, const char *usage, const char *summary,
                         int (*act)(const case_at_hand *, const judge_options *)) {
    judge_options o = {.machine = "default"};
    const char *names[2] = {NULL, NULL};
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        DTYPE_OPTION(o.model),
        MACHINE_OPTION(o.machine),
        {"--json", ARG_FLAG, &o.json, NULL, "for programs"},
        {"--budget", ARG_SIZE, &o.budgets.arena, "SIZE", "bytes the arena may have [what the plan says]"},
        {"--host-budget", ARG_SIZE, &o.budgets.host, "SIZE", "bytes RAM tiers may have [what the machine has]"},
        {"--disk-budget", ARG_SIZE, &o.budgets.disk, "SIZE", "bytes disk tiers may have [what the machine has]"},
    };
    enum { BUDGET_OPTIONS = 3 }; /* at the end; a prediction has none */
    const uint32_t n_options = sizeof options / sizeof *options;
    const arg_command command = {.usage = usage,
                                 .summary = summary,
                                 .options = options,
                                 .n_options = act == judge ? n_options : n_options - BUDGET_OPTIONS,
                                 .positional = names,
                                 .min_positional = 2,
                                 .max_positional = 2};
    int exit_code;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    case_at_hand c = {0};
    tide_status status = TIDE_OK;
    if (strcmp(names[0], "-") == 0 && strcmp(names[1], "-") == 0)
        status = complain(TIDE_E_ARGUMENT, "standard input is either the plan or the program");
    if (status == TIDE_OK) status = open_case(names, &o, &c);
    exit_code = status == TIDE_OK ? act(&c, &o) : report_failure(status);
    close_case(&c);
    return exit_code;
}

int cmd_verify(int argc, char **argv) {
    return judge_command(argc, argv, "verify PLAN PROGRAM|MODEL [options]",
                         "Proves a plan safe for a program on a machine, or names the rule it breaks (exit code 5).",
                         judge);
}

int cmd_simulate(int argc, char **argv) {
    return judge_command(argc, argv, "simulate PLAN PROGRAM|MODEL [options]",
                         "Predicts a plan on a machine: step time, exposed waits, peak load.", predict);
}
