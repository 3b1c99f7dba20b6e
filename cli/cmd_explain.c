/* tidemark explain: why a step needs the memory it needs, and why a plan does what it does. */
#include <stdlib.h>
#include <string.h>

#include "explain.h"

enum { MAX_NAMESAKES = 100 };

typedef struct explain_options {
    model_args model;
    planning_args planning;
    const char *tensor;
    uint32_t top;
    bool json;
} explain_options;

/* ---- tensors by name or number ---- */

static bool is_named(const tide_program *p, tide_id tensor, const char *name) {
    if (strcmp(tide_program_tensor(p, tensor)->name, name) == 0) return true;
    char number[16];
    snprintf(number, sizeof number, "#%u", tensor);
    return strcmp(number, name) == 0;
}

/* Names need not be unique; but a program full of values without one is not to be told value by value. */
static tide_status check_tensor(const tide_program *p, const char *name) {
    uint32_t n = 0;
    for (tide_id t = 0; name && t < tide_program_tensor_count(p); t++) n += is_named(p, t, name);
    if (name && n == 0) return complain(TIDE_E_ARGUMENT, "--tensor: the program has no \"%s\"", show_name(name));
    if (n > MAX_NAMESAKES)
        return complain(TIDE_E_ARGUMENT, "--tensor: %u are named \"%s\"; choose one by its number, such as #7", n,
                        show_name(name));
    return TIDE_OK;
}

/* ---- output ---- */

/* Who holds up a channel is not seen gap by gap: the sum is told where it matters. */
static void print_waits(const tide_prediction *p) {
    if (p->exposed_ns < p->step_ns / 50) return;
    printf(
        "compute waits %s of it for transfers; below, a wait is put down to the transfer that ends it, which others\n"
        "may have held up\n",
        show_ns(p->exposed_ns));
}

static void print_all(const explained *r, const story_list *gaps, const explain_options *o) {
    printf("%s on machine %s (%s), policy %s: arena %s, step %s\n", show_name(tide_program_name(r->program)),
           show_name(r->machine->name), show_name(r->machine->source), show_name(tide_plan_policy(r->plan)),
           show_bytes(tide_plan_arena_bytes(r->plan)), show_ns(tide_plan_prediction(r->plan)->step_ns));
    print_waits(tide_plan_prediction(r->plan));
    if (!o->tensor) {
        print_peak(r, o->top);
        print_gaps(r, gaps, o->top);
        return;
    }
    for (tide_id t = 0; t < tide_program_tensor_count(r->program); t++)
        if (is_named(r->program, t, o->tensor)) print_tensor(r, gaps, t);
}

static void print_all_json(const explained *r, const story_list *gaps, const explain_options *o) {
    json_out j;
    json_begin(&j, stdout);
    json_text(&j, "program", tide_program_name(r->program));
    json_text(&j, "machine", r->machine->name);
    json_text(&j, "policy", tide_plan_policy(r->plan));
    json_u64(&j, "arena_bytes", tide_plan_arena_bytes(r->plan));
    json_u64(&j, "step_ns", tide_plan_prediction(r->plan)->step_ns);
    json_u64(&j, "exposed_ns", tide_plan_prediction(r->plan)->exposed_ns);
    if (!o->tensor) {
        peak_json(&j, r, UINT32_MAX);
        gaps_json(&j, r, gaps, TIDE_NONE);
    } else {
        json_open(&j, "tensors", '[');
        for (tide_id t = 0; t < tide_program_tensor_count(r->program); t++)
            if (is_named(r->program, t, o->tensor)) tensor_json(&j, r, gaps, t);
        json_close(&j, '[');
    }
    json_end(&j);
}

static tide_status explain(const explained *r, const tide_budgets *budgets, const explain_options *o) {
    story_list gaps;
    tide_status status = tell_gaps(r, budgets, &gaps);
    if (status != TIDE_OK) return status;
    o->json ? print_all_json(r, &gaps, o) : print_all(r, &gaps, o);
    free(gaps.items);
    return TIDE_OK;
}

/* ---- the plan ---- */

static tide_status explain_plan(const tide_program *p, const tide_machine *m, const tide_plan *plan,
                                const tide_budgets *budgets, const explain_options *o) {
    tide_report_options options;
    tide_report *report;
    tide_report_options_init(&options);
    tide_status status = tide_report_create(p, m, plan, &options, &report);
    if (status != TIDE_OK) return status;
    explained e = {.program = p,
                   .machine = m,
                   .plan = plan,
                   .report = report,
                   .timeline = tide_report_timeline(report),
                   .liveness = tide_report_liveness(report),
                   .stays = tide_report_stays(report),
                   .peak_action = tide_report_peak_action(report)};
    e.choices = tide_report_choices(report, &e.n_choices);
    status = explain(&e, budgets, o);
    tide_report_destroy(report);
    return status;
}

static tide_status make_plan(const tide_program *p, const tide_machine *m, const explain_options *o,
                             tide_fit_report *fit, tide_budgets *budgets, tide_plan **out) {
    tide_plan_options options;
    tide_status status = check_tensor(p, o->tensor);
    if (status == TIDE_OK) status = fill_plan_options(&o->planning, p, m, &options);
    if (status != TIDE_OK) return status;
    *budgets = options.budgets;
    return tide_plan_create(p, m, &options, fit, out);
}

static int run(const char *name, const explain_options *o) {
    tide_machine machine;
    loaded l = {0};
    tide_plan *plan = NULL;
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_budgets budgets;
    tide_status status = check_planning(&o->planning);
    if (status == TIDE_OK) status = load_machine(&o->planning, &machine);
    if (status == TIDE_OK) status = load_program(name, &o->model, &machine, &l);
    if (status == TIDE_OK) status = make_plan(l.program, &machine, o, &fit, &budgets, &plan);
    if (status == TIDE_OK) status = explain_plan(l.program, &machine, plan, &budgets, o);
    int exit_code = 0;
    if (status != TIDE_OK) exit_code = report_misfit(status, &fit, l.program, &machine, o->json);
    tide_plan_destroy(plan);
    unload(&l);
    return exit_code;
}

int cmd_explain(int argc, char **argv) {
    explain_options o = {.top = 10};
    const char *name = NULL;
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        DTYPE_OPTION(o.model),
        PLANNING_OPTIONS(o.planning),
        {"--tensor", ARG_TEXT, &o.tensor, "NAME", "this one only; #7 is the tensor of number 7"},
        {"--top", ARG_COUNT, &o.top, "N", "how many values and gaps to list [10]"},
        {"--json", ARG_FLAG, &o.json, NULL, "for programs, with everything"},
    };
    const arg_command command = {
        .usage = "explain PROGRAM|MODEL [options]",
        .summary = "Why the peak is where it is, and what a plan does with each value between its uses, and why.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = &name,
        .min_positional = 1,
        .max_positional = 1};
    int exit_code;
    return args_parse(&command, argc, argv, &exit_code) ? run(name, &o) : exit_code;
}
