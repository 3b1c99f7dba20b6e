/* tidemark report: what a plan does to memory, to look at: a page, the terminal, or a file for another viewer. */
#include <tidemark/report.h>

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

typedef struct report_options {
    model_args model;
    planning_args planning;
    const char *program, *format, *measured, *compare, *output;
    bool terminal;
} report_options;

/* What the report is about. */
typedef struct subject {
    tide_machine machine;
    loaded program;
    tide_plan *made;       /* NULL: the record's, or none yet */
    const tide_plan *plan; /* that one, or the record's */
    tide_record *run;      /* NULL unless it is one; has program and plan then */
    unconstrained whole;
    tide_budgets budgets;
} subject;

/* ---- from the command line to a plan ---- */

/* The first option that says how to make a plan; NULL if none was given. */
static const char *planning_option(const planning_args *p) {
    if (p->order) return "--order";
    return p->policy ? "--policy" : p->decisions ? "--decisions" : p->effort ? "--effort" : NULL;
}

/* Whether the first line of a file says that it is a plan. */
static bool is_plan(const tide_file *file) {
    const char *text = tide_file_text(file), *end = memchr(text, '\n', tide_file_size(file));
    size_t length = end ? (size_t)(end - text) : tide_file_size(file);
    return memmem(text, length, "\"tidemark\":\"plan\"", 17) != NULL;
}

static tide_status read_plan(const char *path, const tide_file *file, const report_options *o, subject *s) {
    if (!o->program)
        return complain(TIDE_E_ARGUMENT, "%s is a plan: name its program with --program PROGRAM|MODEL", path);
    const char *option = planning_option(&o->planning);
    if (option) return complain(TIDE_E_ARGUMENT, "%s is for programs; %s is a plan", option, path);
    tide_status status = tide_plan_read_memory(tide_file_text(file), tide_file_size(file), path, &s->made);
    s->plan = s->made;
    return status == TIDE_OK ? load_program(o->program, &o->model, &s->machine, &s->program) : status;
}

static tide_status read_program(const char *path, const tide_file *file, const report_options *o, subject *s) {
    tide_status status = refuse_model_options(&o->model, path);
    if (status == TIDE_OK)
        status = tide_program_read_memory(tide_file_text(file), tide_file_size(file), path, &s->program.file);
    s->program.program = s->program.file;
    return status;
}

/* A record brings everything along. */
static tide_status read_run(const char *path, const tide_file *file, const report_options *o, subject *s) {
    if (o->program || planning_option(&o->planning) || o->planning.machine)
        return complain(TIDE_E_ARGUMENT, "%s is the record of a run, which has its own program, plan and machine",
                        path);
    tide_status status = refuse_model_options(&o->model, path);
    if (status == TIDE_OK) status = tide_record_read_memory(tide_file_text(file), tide_file_size(file), path, &s->run);
    if (status != TIDE_OK) return status;
    s->machine = *tide_record_machine(s->run);
    s->program.program = tide_record_program(s->run);
    s->plan = tide_record_plan(s->run);
    return TIDE_OK;
}

/* A file is read once, so that standard input will do. */
static tide_status open_file(const char *path, const report_options *o, subject *s) {
    tide_file *file;
    tide_status status = tide_file_open(path, &file);
    if (status != TIDE_OK) return status;
    if (tide_record_is(tide_file_text(file), tide_file_size(file)))
        status = read_run(path, file, o, s);
    else if (is_plan(file))
        status = read_plan(path, file, o, s);
    else if (o->program)
        status = complain(TIDE_E_ARGUMENT, "--program is for plans; %s is not one", path);
    else
        status = read_program(path, file, o, s);
    tide_file_close(file);
    return status;
}

static tide_status open_model(const char *name, const report_options *o, subject *s) {
    if (o->program) return complain(TIDE_E_ARGUMENT, "--program is for plans; %s is a model", name);
    return load_program(name, &o->model, &s->machine, &s->program);
}

static tide_status make_plan(const report_options *o, subject *s, tide_fit_report *fit) {
    tide_plan_options options;
    const tide_program *program = s->program.program;
    tide_status status = fill_plan_options(&o->planning, program, &s->machine, &options);
    if (status != TIDE_OK) return status;
    s->budgets = options.budgets;
    status = tide_plan_create(program, &s->machine, &options, fit, &s->made);
    s->plan = s->made;
    return status;
}

static tide_status judge_plan(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                              const tide_budgets *budgets) {
    tide_verdict verdict;
    tide_status status = tide_plan_verify(plan, program, machine, budgets, &verdict);
    if (status == TIDE_E_PLAN)
        complain(status, "the plan is not valid (rule %s): %s", verdict.rule, show_name(verdict.message));
    return status;
}

/* Of the other ranks of a record. */
static tide_status prove_ranks(const tide_record *run) {
    tide_status status = TIDE_OK;
    for (uint32_t i = 1; run && i < tide_record_rank_count(run) && status == TIDE_OK; i++) {
        const tide_record *rank = tide_record_of_rank(run, i);
        status = judge_plan(tide_record_plan(rank), tide_record_program(rank), tide_record_machine(rank), NULL);
    }
    return status;
}

/* A plan from a file; one that ran was made for the budget of its run. */
static tide_status prove_plan(const report_options *o, subject *s) {
    tide_plan_options options;
    const tide_program *program = s->program.program;
    if (o->planning.budgets.arena.budget.kind == TIDE_BUDGET_SMALLEST)
        return complain(TIDE_E_ARGUMENT, "--budget min is for programs; this is a plan");
    tide_status status = fill_plan_options(&o->planning, program, &s->machine, &options);
    if (status != TIDE_OK) return status;
    s->budgets = options.budgets;
    if (s->run && !o->planning.budgets.arena.given) s->budgets.arena_bytes = tide_record_budget_bytes(s->run);
    status = judge_plan(s->plan, program, &s->machine, &s->budgets);
    return status == TIDE_OK ? prove_ranks(s->run) : status;
}

static tide_status open_subject(const char *name, const report_options *o, subject *s, tide_fit_report *fit) {
    tide_status status = load_machine(&o->planning, &s->machine);
    if (status == TIDE_OK) status = is_path(name) ? open_file(name, o, s) : open_model(name, o, s);
    if (status == TIDE_OK) status = plan_unconstrained(s->program.program, &s->machine, &s->whole);
    if (status != TIDE_OK) return status;
    return s->plan ? prove_plan(o, s) : make_plan(o, s, fit);
}

static void close_subject(subject *s) {
    tide_plan_destroy(s->made);
    unload(&s->program);
    tide_record_destroy(s->run);
}

/* ---- writing ---- */

/* A number from the environment, as shells and terminals set it. */
static uint32_t environment_size(const char *name) {
    const char *text = getenv(name);
    char *end;
    unsigned long value = text && *text >= '1' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    return value && !*end && value <= 10000 ? (uint32_t)value : 0;
}

/* COLUMNS counts first, then the terminal itself; 80 x 24 where there is none. */
static tide_report_terminal ask_terminal(void) {
    struct winsize size = {0};
    bool is_terminal = isatty(STDOUT_FILENO);
    if (!is_terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = (struct winsize){0};
    uint32_t columns = environment_size("COLUMNS"), rows = environment_size("LINES");
    if (!columns) columns = size.ws_col ? size.ws_col : 80;
    if (!rows) rows = size.ws_row ? size.ws_row : 24;
    const char *no_colour = getenv("NO_COLOR");
    return (tide_report_terminal){.size = sizeof(tide_report_terminal),
                                  .columns = columns,
                                  .rows = rows,
                                  .colour = is_terminal && !(no_colour && *no_colour)};
}

static tide_status write_report(const tide_report *r, const report_options *o) {
    if (o->terminal) {
        tide_report_terminal terminal = ask_terminal();
        return tide_report_write_terminal(r, &terminal, "-");
    }
    if (strcmp(o->format, "perfetto") == 0) return tide_report_write_perfetto(r, o->output);
    if (strcmp(o->format, "memory-viz") == 0) return tide_report_write_memory_viz(r, o->output);
    return tide_report_write_html(r, o->output);
}

static void say_how(const report_options *o) {
    if (o->terminal || wants_stdout(o->output)) return;
    const char *how = "open it in a browser";
    if (strcmp(o->format, "perfetto") == 0) how = "open it in ui.perfetto.dev or chrome://tracing";
    if (strcmp(o->format, "memory-viz") == 0) how = "drop it on pytorch.org/memory_viz";
    printf("%s: %s\n", show_name(o->output), how);
}

static tide_status make_report(subject *s, const report_options *o) {
    tide_shape *shapes = NULL;
    tide_report_options options;
    tide_report *report = NULL;
    tide_status status = s->program.step ? find_shapes(s->program.step, &shapes) : TIDE_OK;
    tide_report_options_init(&options);
    options.shapes = shapes;
    options.budget_bytes = s->budgets.arena_bytes;
    options.whole_bytes = s->whole.arena_bytes;
    options.whole_ns = s->whole.step_ns;
    options.record = s->run;
    if (status == TIDE_OK) status = tide_report_create(s->program.program, &s->machine, s->plan, &options, &report);
    if (status == TIDE_OK && o->measured) status = tide_report_add_measured(report, o->measured);
    if (status == TIDE_OK && o->compare) status = tide_report_add_compared(report, o->compare);
    if (status == TIDE_OK) status = write_report(report, o);
    tide_report_destroy(report);
    free(shapes);
    return status;
}

static tide_status check(const char *name, const report_options *o) {
    if (strcmp(o->format, "html") != 0 && strcmp(o->format, "perfetto") != 0 && strcmp(o->format, "memory-viz") != 0)
        return complain(TIDE_E_ARGUMENT, "--format: \"%s\" is not html, perfetto or memory-viz", o->format);
    if (o->terminal && o->output)
        return complain(TIDE_E_ARGUMENT, "--terminal draws here, -o FILE writes a file: choose one");
    if (!o->terminal && !o->output) return complain(TIDE_E_ARGUMENT, "-o FILE says where the report goes");
    bool page = strcmp(o->format, "html") == 0 && !o->terminal;
    if (o->terminal && strcmp(o->format, "html") != 0)
        return complain(TIDE_E_ARGUMENT, "--terminal and --format: choose one");
    if ((o->measured || o->compare) && !page)
        return complain(TIDE_E_ARGUMENT, "%s is for --format html", o->measured ? "--measured" : "--compare");
    if (o->program && strcmp(name, "-") == 0 && strcmp(o->program, "-") == 0)
        return complain(TIDE_E_ARGUMENT, "standard input is either the plan or the program");
    return check_planning(&o->planning);
}

static int run(const char *name, const report_options *o) {
    subject s = {0};
    tide_fit_report fit = {.op = TIDE_NONE};
    tide_status status = check(name, o);
    if (status == TIDE_OK) status = open_subject(name, o, &s, &fit);
    if (status == TIDE_OK) status = make_report(&s, o);
    int exit_code = 0;
    if (status != TIDE_OK)
        exit_code = report_misfit(status, &fit, s.program.program, NULL, false);
    else
        say_how(o);
    close_subject(&s);
    return exit_code;
}

static bool is_log(const char *name) { return is_path(name) && tide_log_is(name); }

/* Several names are logs, all of them. */
static int run_logs(const char *const *names, uint32_t n, const report_options *o) {
    tide_status status = TIDE_OK;
    for (uint32_t i = 0; i < n && status == TIDE_OK; i++)
        if (!is_log(names[i]))
            status = complain(TIDE_E_ARGUMENT,
                              "%s is no log of `tidemark train --log` in JSON Lines; of several files each must be one",
                              names[i]);
    if (status == TIDE_OK && o->terminal) status = complain(TIDE_E_ARGUMENT, "--terminal is not for logs");
    if (status == TIDE_OK) status = check(names[0], o);
    if (status == TIDE_OK) status = tide_log_report(names, n, o->output);
    if (status != TIDE_OK) return report_failure(status);
    say_how(o);
    return 0;
}

int cmd_report(int argc, char **argv) {
    report_options o = {.format = "html"};
    const char *names[TIDE_MAX_LOGS] = {NULL};
    const arg_option options[] = {
        {"--program", ARG_TEXT, &o.program, "NAME", "the program or model that PLAN is for"},
        MODEL_OPTIONS(o.model),
        DTYPE_OPTION(o.model),
        PLANNING_OPTIONS(o.planning),
        {"--measured", ARG_TEXT, &o.measured, "FILE", "show what `tidemark train --json` measured"},
        {"--compare", ARG_TEXT, &o.compare, "FILE", "show what `tidemark compare --json` compared"},
        {"--format", ARG_TEXT, &o.format, "NAME", "html, perfetto or memory-viz [html]"},
        {"--terminal", ARG_FLAG, &o.terminal, NULL, "draw here, in block characters"},
        {"-o", ARG_TEXT, &o.output, "FILE", "where the report goes"},
    };
    const arg_command command = {
        .usage = "report RUN|PLAN PROGRAM|PROGRAM|MODEL|LOG... [options] -o FILE",
        .summary = "Shows what a plan does to memory: addresses over time, load, waits, decisions.",
        .details =
            "RUN is what `tidemark train --record` wrote: the plan with what was measured. PLAN is a plan file; "
            "the\nprogram or model behind it, or --program, says what it is for. A PROGRAM or MODEL is planned "
            "first, as\nby `tidemark plan`, whose --help lists the policies. LOGs are what `tidemark train --log` "
            "wrote: their\nlosses, in one picture.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = names,
        .min_positional = 1,
        .max_positional = TIDE_MAX_LOGS};
    int exit_code;
    uint32_t n = 1;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    while (n < TIDE_MAX_LOGS && names[n]) n++;
    bool names_program =
        n == 2 && !o.program && !is_log(names[0]) && !is_log(names[1]); /* PLAN PROGRAM, as for verify */
    if (names_program) o.program = names[1];
    return !names_program && (n > 1 || is_log(names[0])) ? run_logs(names, n, &o) : run(names[0], &o);
}
