/* tidemark compare: policies times budgets on one program, in one simulator, against one verifier. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "compare.h"
#include "plan_cluster.h"

enum { MAX_POLICIES = 32, MAX_BUDGETS = 32, LIST_BYTES = 1024 };

typedef struct compare_options {
    model_args model;
    const char *machine, *policies, *budgets, *effort, *svg;
    budget_args tiers; /* its arena is not used */
    cluster_args cluster;
    bool json;
} compare_options;

/* ---- lists ---- */

/* A list from the command line; items point into `text`. */
typedef struct list {
    char text[LIST_BYTES];
    const char *items[MAX_POLICIES > MAX_BUDGETS ? MAX_POLICIES : MAX_BUDGETS];
    size_t n;
} list;

static tide_status split(const char *option, const char *text, const char *separator, size_t max, list *out) {
    if (strlen(text) >= sizeof out->text) return complain(TIDE_E_ARGUMENT, "%s: the list is too long", option);
    snprintf(out->text, sizeof out->text, "%s", text);
    out->n = 0;
    for (char *at = out->text; at;) {
        char *item = strsep(&at, separator);
        if (!*item) return complain(TIDE_E_ARGUMENT, "%s: an item of \"%s\" is empty", option, text);
        for (size_t i = 0; i < out->n; i++)
            if (strcmp(out->items[i], item) == 0)
                return complain(TIDE_E_ARGUMENT, "%s: \"%s\" is listed twice", option, item);
        if (out->n == max) return complain(TIDE_E_ARGUMENT, "%s takes at most %zu items", option, max);
        out->items[out->n++] = item;
    }
    return TIDE_OK;
}

/* All but `manual`, which decides nothing by itself. */
static void all_policies(list *out) {
    const char *name;
    for (uint32_t i = 0; (name = tide_policy_name(i, NULL)) != NULL && out->n < MAX_POLICIES; i++)
        if (strcmp(name, "manual") != 0) out->items[out->n++] = name;
}

/* An argument of a policy may have commas: then semicolons separate the policies. */
static tide_status read_policies(const char *text, list *out) {
    if (!text) return all_policies(out), TIDE_OK;
    tide_status status = split("--policies", text, strchr(text, ';') ? ";" : ",", MAX_POLICIES, out);
    for (size_t i = 0; status == TIDE_OK && i < out->n; i++)
        if (strcmp(out->items[i], "manual") == 0)
            status = complain(TIDE_E_ARGUMENT, "--policies: manual needs a decisions file; use `tidemark plan`");
    return status;
}

static tide_status read_budgets(const char *text, list *out) {
    size_arg size;
    tide_status status = split("--budgets", text, ",", MAX_BUDGETS, out);
    for (size_t i = 0; status == TIDE_OK && i < out->n; i++) {
        if (!budget_arg_parse(out->items[i], &size))
            status = complain(TIDE_E_ARGUMENT, "--budgets: \"%s\" is not a size such as 512MiB or 60%%, or min",
                              out->items[i]);
        else if (size.budget.kind != TIDE_BUDGET_SMALLEST && size.budget.bytes == 0 && size.budget.share == 0)
            status = complain(TIDE_E_ARGUMENT, "--budgets: nothing fits into %s", out->items[i]);
    }
    return status;
}

/* ---- planning ---- */

static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* 0 where no budget works. */
static tide_status resolve_budget(const comparison *c, const tide_plan_options *options, compare_row *row) {
    size_arg size;
    tide_smallest smallest;
    budget_arg_parse(row->budget, &size);
    row->budget_bytes = tide_budget_bytes(&size.budget, c->whole.arena_bytes);
    if (size.budget.kind != TIDE_BUDGET_SMALLEST) return TIDE_OK;
    row->budget_bytes = 0;
    tide_status status = find_smallest(c->program, c->machine, options, &smallest);
    row->tier_full = status == TIDE_E_TIER_FULL;
    if (status == TIDE_OK) row->budget_bytes = smallest.works_bytes;
    return tide_status_is_misfit(status) ? TIDE_OK : status;
}

static void fill_row(compare_row *row, const tide_plan *plan) {
    row->fits = plan != NULL;
    row->tier_full = !plan && row->fit.tier != TIDE_NONE;
    if (!plan) return;
    row->arena_bytes = tide_plan_arena_bytes(plan);
    row->prediction = *tide_plan_prediction(plan);
}

/* The n rows of one policy, planned together: what its searches find for one budget serves the others. Planning takes
 * its time for all of them; each is given its part. */
static tide_status plan_rows(const comparison *c, const tide_plan_options *options, compare_row *rows, size_t n) {
    uint64_t budgets[MAX_BUDGETS], since = cpu_ns();
    tide_fit_report fits[MAX_BUDGETS];
    tide_plan *plans[MAX_BUDGETS];
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        tide_status status = resolve_budget(c, options, &rows[i]);
        if (status != TIDE_OK) return status;
        if (rows[i].budget_bytes) budgets[used++] = rows[i].budget_bytes;
    }
    tide_status status = tide_plan_frontier(c->program, c->machine, options, budgets, used, fits, plans);
    if (status != TIDE_OK) return status;
    uint64_t each_ns = (cpu_ns() - since) / (n ? n : 1);
    for (size_t i = 0, k = 0; i < n; i++) {
        rows[i].planning_ns = each_ns;
        if (!rows[i].budget_bytes) continue; /* no budget works */
        rows[i].fit = fits[k];
        fill_row(&rows[i], plans[k]);
        tide_plan_destroy(plans[k++]);
    }
    return TIDE_OK;
}

/* Plans can take seconds; a terminal sees for whom they are being made. */
static void show_progress(const char *policy, size_t done, size_t n) {
    if (!isatty(STDERR_FILENO)) return;
    if (policy)
        fprintf(stderr, "\r%zu/%zu %s\x1b[K", done + 1, n, show_name(policy));
    else
        fprintf(stderr, "\r\x1b[K");
    fflush(stderr);
}

static tide_status fill_rows(comparison *c, const list *policies, const list *budgets, tide_plan_options *options) {
    tide_status status = TIDE_OK;
    c->n_rows = policies->n * budgets->n;
    c->rows = calloc(c->n_rows + 1, sizeof *c->rows);
    if (!c->rows) return complain(TIDE_E_MEMORY, "out of host memory");
    for (size_t i = 0; status == TIDE_OK && i < policies->n; i++) {
        compare_row *rows = &c->rows[i * budgets->n];
        for (size_t k = 0; k < budgets->n; k++)
            rows[k] =
                (compare_row){.policy = policies->items[i], .budget = budgets->items[k], .fit = {.op = TIDE_NONE}};
        options->policy = policies->items[i];
        show_progress(options->policy, i, policies->n);
        status = plan_rows(c, options, rows, budgets->n);
    }
    show_progress(NULL, 0, 0);
    return status;
}

static tide_status compare(comparison *c, const compare_options *o, const list *policies, const list *budgets) {
    tide_plan_options options;
    tide_plan_options_init(&options);
    if (!parse_effort(o->effort ? o->effort : "normal", &options.effort)) return TIDE_E_ARGUMENT;
    tide_status status = plan_unconstrained(c->program, c->machine, &c->whole);
    fill_budgets(&o->tiers, &options);
    if (status == TIDE_OK) status = tide_plan_settle_budgets(c->program, c->machine, &options);
    if (status == TIDE_OK) status = fill_rows(c, policies, budgets, &options);
    if (status == TIDE_OK && o->svg) status = write_frontier_svg(c, o->svg);
    if (status == TIDE_OK && !wants_stdout(o->svg)) o->json ? print_comparison_json(c) : print_comparison(c);
    free(c->rows);
    return status;
}

static int run(const char *name, const compare_options *o) {
    list policies = {0}, budgets = {0};
    tide_machine machine;
    loaded l = {0};
    const planning_args planning = {.machine = o->machine, .effort = o->effort, .budgets = o->tiers};
    tide_status status = check_output(o->svg, o->json);
    if (status == TIDE_OK) status = check_cluster_args(&o->cluster);
    if (status == TIDE_OK) status = refuse_beside_cluster(&o->cluster, "--policies", o->policies);
    if (status == TIDE_OK) status = refuse_beside_cluster(&o->cluster, "--budgets", o->budgets);
    if (status == TIDE_OK) status = refuse_beside_cluster(&o->cluster, "--svg", o->svg);
    if (status == TIDE_OK && o->cluster.file)
        return plan_cluster(CLUSTER_COMPARE, name, &o->model, &planning, &o->cluster, o->json);
    if (status == TIDE_OK) status = read_policies(o->policies, &policies);
    if (status == TIDE_OK) status = read_budgets(o->budgets ? o->budgets : "100%,90%,70%,50%,30%,min", &budgets);
    if (status == TIDE_OK) status = load_machine(&planning, &machine);
    if (status == TIDE_OK) status = load_program(name, &o->model, &machine, &l);
    comparison c = {.program = l.program, .machine = &machine};
    if (status == TIDE_OK) status = compare(&c, o, &policies, &budgets);
    unload(&l);
    return status == TIDE_OK ? 0 : report_failure(status);
}

int cmd_compare(int argc, char **argv) {
    compare_options o = {0};
    const char *name = NULL;
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        DTYPE_OPTION(o.model),
        MACHINE_OPTION(o.machine),
        {"--policies", ARG_TEXT, &o.policies, "LIST", "with commas, or semicolons if arguments have commas [all]"},
        {"--budgets", ARG_TEXT, &o.budgets, "LIST", "of sizes, and min [100%,90%,70%,50%,30%,min]"},
        {"--host-budget", ARG_SIZE, &o.tiers.host, "SIZE", "bytes of RAM tiers [no limit]"},
        {"--disk-budget", ARG_SIZE, &o.tiers.disk, "SIZE", "bytes of disk tiers [no limit]"},
        CLUSTER_OPTIONS(o.cluster),
        EFFORT_OPTION(o.effort, "normal"),
        {"--svg", ARG_TEXT, &o.svg, "FILE", "draw the frontier of time against memory"},
        {"--json", ARG_FLAG, &o.json, NULL, "for programs; `tidemark report --compare` reads it"},
    };
    const arg_command command = {
        .usage = "compare PROGRAM|MODEL [options]",
        .summary = "Plans a step under several policies and budgets, and sets the plans against each other.",
        .details = policies_text(),
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = &name,
        .min_positional = 1,
        .max_positional = 1};
    int exit_code;
    return args_parse(&command, argc, argv, &exit_code) ? run(name, &o) : exit_code;
}
