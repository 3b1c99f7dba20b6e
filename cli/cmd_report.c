/* tidemark report: what a plan does to memory, to look at: a page, the terminal, or a file for another viewer. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "report_logs.h"
#include "report/report.h"
#include "report/run_file.h"

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
    tide_plan *plan;
    tide__run_file run; /* empty unless it is one; has program and plan then */
    unconstrained whole;
    tide_budgets budgets;
} subject;

/* ---- from the command line to a plan ---- */

/* The first option that says how to make a plan; NULL if none was given. */
static const char *planning_option(const planning_args *p) {
    return p->policy ? "--policy" : p->decisions ? "--decisions" : p->effort ? "--effort" : NULL;
}

/* Whether the first line of a file says that it is a plan. */
static bool is_plan(const tide__file *file) {
    const char *end = memchr(file->text, '\n', file->size);
    size_t length = end ? (size_t)(end - file->text) : file->size;
    return memmem(file->text, length, "\"tidemark\":\"plan\"", 17) != NULL;
}

static tide_status read_plan(const char *path, const tide__file *file, const report_options *o, subject *s) {
    if (!o->program)
        return complain(TIDE_E_ARGUMENT, "%s is a plan: name its program with --program PROGRAM|MODEL", path);
    const char *option = planning_option(&o->planning);
    if (option) return complain(TIDE_E_ARGUMENT, "%s is for programs; %s is a plan", option, path);
    tide_status status = tide_plan_read_memory(file->text, file->size, path, &s->plan);
    return status == TIDE_OK ? load_program(o->program, &o->model, &s->machine, &s->program) : status;
}

static tide_status read_program(const char *path, const tide__file *file, const report_options *o, subject *s) {
    tide_status status = refuse_model_options(&o->model, path);
    if (status == TIDE_OK) status = tide_program_read_memory(file->text, file->size, path, &s->program.file);
    s->program.program = s->program.file;
    return status;
}

/* A record brings everything along. */
static tide_status read_run(const char *path, const tide__file *file, const report_options *o, subject *s) {
    if (o->program || planning_option(&o->planning) || o->planning.machine)
        return complain(TIDE_E_ARGUMENT, "%s is the record of a run, which has its own program, plan and machine",
                        path);
    tide_status status = refuse_model_options(&o->model, path);
    if (status == TIDE_OK) status = tide__run_file_read_memory(file->text, file->size, path, &s->run);
    if (status != TIDE_OK) return status;
    s->machine = s->run.machine;
    s->program.program = s->run.program;
    s->plan = s->run.plan;
    return TIDE_OK;
}

/* A file is read once, so that standard input will do. */
static tide_status open_file(const char *path, const report_options *o, subject *s) {
    tide__file file;
    tide_status status = tide__file_open(path, &file);
    if (status != TIDE_OK) return status;
    if (tide__run_file_is(file.text, file.size))
        status = read_run(path, &file, o, s);
    else if (is_plan(&file))
        status = read_plan(path, &file, o, s);
    else if (o->program)
        status = complain(TIDE_E_ARGUMENT, "--program is for plans; %s is not one", path);
    else
        status = read_program(path, &file, o, s);
    tide__file_close(&file);
    return status;
}

static tide_status open_model(const char *name, const report_options *o, subject *s) {
    if (o->program) return complain(TIDE_E_ARGUMENT, "--program is for plans; %s is a model", name);
    return load_program(name, &o->model, &s->machine, &s->program);
}

static tide_status make_plan(const report_options *o, subject *s, tide_fit_report *fit) {
    tide_plan_options options;
    const tide_program *program = s->program.program;
    tide_status status = fill_plan_options(&o->planning, program, &s->machine, s->whole.arena_bytes, &options);
    if (status != TIDE_OK) return status;
    s->budgets = options.budgets;
    return tide_plan_create(program, &s->machine, &options, fit, &s->plan);
}

static tide_status prove_plan(subject *s) {
    tide_verdict verdict;
    tide_status status = tide_plan_verify(s->plan, s->program.program, &s->machine, &s->budgets, &verdict);
    if (status == TIDE_E_PLAN)
        complain(status, "the plan is not valid (rule %s): %s", verdict.rule, show_name(verdict.message));
    return status;
}

static tide_status open_subject(const char *name, const report_options *o, subject *s, tide_fit_report *fit) {
    tide_status status = load_machine(&o->planning, &s->machine);
    if (status == TIDE_OK) status = is_path(name) ? open_file(name, o, s) : open_model(name, o, s);
    if (status == TIDE_OK) status = plan_unconstrained(s->program.program, &s->machine, &s->whole);
    if (status != TIDE_OK) return status;
    fill_budgets(&o->planning.budgets, &s->machine, s->whole.arena_bytes, &s->budgets);
    if (s->plan && o->planning.budgets.arena.is_smallest)
        return complain(TIDE_E_ARGUMENT, "--budget min is for programs; this is a plan");
    if (s->run.plan && !o->planning.budgets.arena.given) s->budgets.arena_bytes = s->run.budget_bytes;
    return s->plan ? prove_plan(s) : make_plan(o, s, fit);
}

static void close_subject(subject *s) {
    if (!s->run.plan) tide_plan_destroy(s->plan);
    unload(&s->program);
    tide__run_file_free(&s->run);
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
static tide__terminal ask_terminal(void) {
    struct winsize size = {0};
    bool is_terminal = isatty(STDOUT_FILENO);
    if (!is_terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = (struct winsize){0};
    uint32_t columns = environment_size("COLUMNS"), rows = environment_size("LINES");
    if (!columns) columns = size.ws_col ? size.ws_col : 80;
    if (!rows) rows = size.ws_row ? size.ws_row : 24;
    const char *no_colour = getenv("NO_COLOR");
    return (tide__terminal){.columns = columns, .rows = rows, .colour = is_terminal && !(no_colour && *no_colour)};
}

/* Other viewers have one set of times: the measured ones, where there are any. */
static tide_status write_report(const tide__report *r, const report_options *o) {
    const tide__report *timed = r->ran ? r->ran : r;
    if (o->terminal) {
        tide__terminal terminal = ask_terminal();
        return tide__report_write_terminal(r, &terminal, "-");
    }
    if (strcmp(o->format, "perfetto") == 0) return tide__report_write_perfetto(timed, o->output);
    if (strcmp(o->format, "memory-viz") == 0) return tide__report_write_memory_viz(timed, o->output);
    return tide__report_write_html(r, o->output);
}

static void say_how(const report_options *o) {
    if (o->terminal || wants_stdout(o->output)) return;
    const char *how = "open it in a browser";
    if (strcmp(o->format, "perfetto") == 0) how = "open it in ui.perfetto.dev or chrome://tracing";
    if (strcmp(o->format, "memory-viz") == 0) how = "drop it on pytorch.org/memory_viz";
    printf("%s: %s\n", show_name(o->output), how);
}

/* --measured counts before what a record says itself, which moves to the report. */
static tide_status read_measured(subject *s, const report_options *o, tide__report *report) {
    if (o->measured) return tide__measured_read(o->measured, &report->measured);
    report->measured = s->run.measured;
    s->run.measured = (tide__measured){0};
    return TIDE_OK;
}

static tide_status make_report(subject *s, const report_options *o) {
    tide_shape *shapes = NULL;
    tide_status status = s->program.step ? find_shapes(s->program.step, &shapes) : TIDE_OK;
    if (status != TIDE_OK) return status;
    tide__report_options options = {.shapes = s->run.plan ? s->run.shapes.data : shapes,
                                    .budget_bytes = s->budgets.arena_bytes,
                                    .whole_bytes = s->whole.arena_bytes,
                                    .whole_ns = s->whole.step_ns,
                                    .start_ns = s->run.start_ns.data,
                                    .end_ns = s->run.end_ns.data};
    tide__report report;
    status = tide__report_init(s->program.program, &s->machine, s->plan, &options, &report);
    if (status == TIDE_OK) {
        status = read_measured(s, o, &report);
        if (status == TIDE_OK && o->compare) status = tide__compared_read(o->compare, &report.compared);
        if (status == TIDE_OK) status = write_report(&report, o);
        tide__report_deinit(&report);
    }
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

/* Several names are logs, all of them. */
static int run_logs(const char *const *names, uint32_t n, const report_options *o) {
    tide_status status = TIDE_OK;
    for (uint32_t i = 0; i < n && status == TIDE_OK; i++)
        if (!is_log(names[i]))
            status = complain(TIDE_E_ARGUMENT,
                              "%s is no log of `tidemark train --log` in JSON Lines; several files are", names[i]);
    if (status == TIDE_OK && o->terminal) status = complain(TIDE_E_ARGUMENT, "--terminal is not for logs");
    if (status == TIDE_OK) status = check(names[0], o);
    if (status == TIDE_OK) status = report_logs(names, n, o->output);
    if (status != TIDE_OK) return report_failure(status);
    say_how(o);
    return 0;
}

int cmd_report(int argc, char **argv) {
    report_options o = {.format = "html"};
    const char *names[MAX_LOGS] = {NULL};
    const arg_option options[] = {
        {"--program", ARG_TEXT, &o.program, "NAME", "the program or model that PLAN is for"},
        MODEL_OPTIONS(o.model),
        PLANNING_OPTIONS(o.planning),
        {"--measured", ARG_TEXT, &o.measured, "FILE", "show what `tidemark train --json` measured"},
        {"--compare", ARG_TEXT, &o.compare, "FILE", "show what `tidemark compare --json` compared"},
        {"--format", ARG_TEXT, &o.format, "NAME", "html, perfetto or memory-viz [html]"},
        {"--terminal", ARG_FLAG, &o.terminal, NULL, "draw here, in block characters"},
        {"-o", ARG_TEXT, &o.output, "FILE", "where the report goes"},
    };
    const arg_command command = {
        .usage = "report RUN|PLAN|PROGRAM|MODEL|LOG... [options] -o FILE",
        .summary = "Shows what a plan does to memory: addresses over time, load, waits, decisions.",
        .details = "RUN is what `tidemark train --record` wrote: the plan with what was measured. PLAN is a plan file; "
                   "its\nprogram is named with --program. A PROGRAM or MODEL is planned first, as by `tidemark plan`, "
                   "whose\n--help lists the policies. LOGs are what `tidemark train --log` wrote: their losses, in one "
                   "picture.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = names,
        .min_positional = 1,
        .max_positional = MAX_LOGS};
    int exit_code;
    uint32_t n = 1;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    while (n < MAX_LOGS && names[n]) n++;
    return n > 1 || is_log(names[0]) ? run_logs(names, n, &o) : run(names[0], &o);
}
