/* tidemark fit: does a model fit a machine, and how large could it be: batch and depth, for free, for a tenth of the time, at
 * any cost. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"
#include "plan_cluster.h"

typedef struct fit_options {
    model_args model;
    const char *machine, *policy, *effort;
    budget_args budgets;
    cluster_args cluster;
    uint32_t max_batch, max_depth;
    bool no_depth, json;
} fit_options;

/* What was found. */
typedef struct answers {
    const char *spec;
    char pattern[256];
    uint32_t batch, blocks; /* blocks: the number in the pattern */
    uint64_t budget_bytes;
    fit_probe asked; /* the model as it was given */
    tide_smallest smallest;
    bool has_smallest, has_depth;
    fit_probe batches[N_FIT_LIMITS], depths[N_FIT_LIMITS]; /* value 0: nothing fits */
    bool batch_capped[N_FIT_LIMITS], depth_capped[N_FIT_LIMITS];
} answers;

static const char *const limit_names[N_FIT_LIMITS] = {"by liveness alone", "at no cost", "at 10 % more time",
                                                      "at any cost"};
static const char *const limit_keys[N_FIT_LIMITS] = {"liveness", "free", "tenth", "any"};

/* ---- output ---- */

static void print_head(const fit_search *s, const answers *a) {
    const fit_probe *p = &a->asked;
    printf("%s at batch %u on machine %s (%s)\n", show_name(a->spec), a->batch, show_name(s->machine->name),
           show_name(s->machine->source));
    printf("  %-22s %s\n", "unconstrained", show_bytes(p->whole_bytes));
    printf("  %-22s %s\n", "room", show_bytes(a->budget_bytes));
    const char *policy = show_name(s->options.policy);
    if (p->plain_fits && p->fits)
        printf("  %-22s yes\n", "fits");
    else if (p->fits)
        printf("  %-22s with policy %s, time %.3f\n", "fits", policy, p->ratio);
    else
        printf("  %-22s no, not under policy %s%s\n", "fits", policy,
               p->plain_fits ? "; liveness alone would do" : " either");
}

/* Bytes where MiB would not tell the two apart. */
static void print_smallest(const tide_program *program, const tide_smallest *s) {
    char works[64], failed[64];
    snprintf(works, sizeof works, "%s", show_bytes(s->works_bytes));
    snprintf(failed, sizeof failed, "%s", show_bytes(s->failed_bytes));
    if (strcmp(works, failed) == 0) {
        snprintf(works, sizeof works, "%" PRIu64 " bytes", s->works_bytes);
        snprintf(failed, sizeof failed, "%" PRIu64, s->failed_bytes);
    }
    printf("  %-22s %s works, %s does not; it is %s that decides\n", "smallest budget", works, failed,
           show_op(program, s->op));
}

static void print_limit(const fit_search *s, int limit, const fit_probe *p, bool capped) {
    printf("  %-22s ", limit_names[limit]);
    if (!p->value) {
        printf("none\n");
        return;
    }
    const char *star = strchr(s->spec, '*');
    if (s->depth)
        printf("%.*s%u%s, %u layers", (int)(star - s->spec), s->spec, p->value, star + 1, p->layers);
    else
        printf("%u, %.1f per second", p->value, p->step_ns ? (double)p->value * 1e9 / (double)p->step_ns : 0);
    printf(", time %.3f%s\n", p->ratio, capped ? "; no larger one was tried" : "");
}

/* ---- finding ---- */

/* Rows are printed as they are found, for some take long. */
static tide_status find_all(fit_search *s, bool json, fit_probe *found, bool *capped) {
    if (!json) puts(s->depth ? "deepest network at this batch" : "largest batch, samples");
    for (int limit = 0; limit < N_FIT_LIMITS; limit++) {
        const fit_probe *p;
        fflush(stdout);
        tide_status status = fit_find(s, (fit_limit)limit, &p);
        if (status != TIDE_OK) return status;
        if (p) found[limit] = *p;
        capped[limit] = p && p->value == s->max;
        fit_hide_progress();
        if (!json) print_limit(s, limit, &found[limit], capped[limit]);
    }
    return TIDE_OK;
}

/* A policy that there is none of is told before anything is printed; where all fits nobody would ask it. */
static tide_status check_policy(const fit_search *s, const char *spec) {
    loaded l;
    tide_plan *plan = NULL;
    tide_plan_options options = s->options;
    options.budgets.arena_bytes = UINT64_MAX;
    tide_status status = load_program(spec, s->model, s->machine, &l);
    if (status != TIDE_OK) return status;
    status = tide_plan_create(l.program, s->machine, &options, NULL, &plan);
    tide_plan_destroy(plan);
    unload(&l);
    return tide_status_is_misfit(status) ? TIDE_OK : status;
}

static tide_status bracket_budget(const fit_search *s, bool json, answers *a) {
    loaded l;
    tide_plan_options options = s->options;
    options.budgets.arena_bytes = UINT64_MAX;
    fflush(stdout);
    tide_status status = load_program(a->spec, s->model, s->machine, &l);
    if (status != TIDE_OK) return status;
    status = find_smallest(l.program, s->machine, &options, &a->smallest);
    a->has_smallest = status == TIDE_OK;
    if (a->has_smallest && !json) print_smallest(l.program, &a->smallest);
    unload(&l);
    return tide_status_is_misfit(status) ? TIDE_OK : status;
}

static tide_status find_batches(const fit_options *o, fit_search s, answers *a) {
    const fit_probe *p;
    s.spec = a->spec;
    s.start = a->batch;
    s.max = o->max_batch;
    tide_status status = check_policy(&s, a->spec);
    if (status == TIDE_OK) status = fit_try(&s, a->batch, &p);
    fit_hide_progress();
    if (status == TIDE_OK) a->asked = *p;
    if (status == TIDE_OK && !o->json) print_head(&s, a);
    if (status == TIDE_OK) status = bracket_budget(&s, o->json, a);
    if (status == TIDE_OK) status = find_all(&s, o->json, a->batches, a->batch_capped);
    fit_free(&s);
    return status;
}

static tide_status find_depths(const fit_options *o, fit_search s, answers *a) {
    if (!a->has_depth) return TIDE_OK;
    s.spec = a->pattern;
    s.start = a->blocks;
    s.depth = true;
    s.max = o->max_depth;
    tide_status status = find_all(&s, o->json, a->depths, a->depth_capped);
    fit_free(&s);
    return status;
}

static void limits_json(json_out *j, const char *key, const fit_probe *found, const bool *capped) {
    json_open(j, key, '{');
    for (int i = 0; i < N_FIT_LIMITS; i++) {
        json_open(j, limit_keys[i], '{');
        json_u64(j, "value", found[i].value);
        if (found[i].value) {
            json_u64(j, "layers", found[i].layers);
            json_number(j, "time_ratio", found[i].ratio);
            json_u64(j, "step_ns", found[i].step_ns);
            json_bool(j, "capped", capped[i]);
        }
        json_close(j, '{');
    }
    json_close(j, '{');
}

static void answers_json(const fit_search *s, const answers *a) {
    json_out j;
    json_begin(&j, stdout);
    json_text(&j, "model", a->spec);
    json_text(&j, "machine", s->machine->name);
    json_text(&j, "policy", s->options.policy);
    json_u64(&j, "batch", a->batch);
    json_u64(&j, "budget_bytes", a->budget_bytes);
    json_u64(&j, "unconstrained_bytes", a->asked.whole_bytes);
    json_bool(&j, "fits", a->asked.fits);
    if (a->asked.fits) json_number(&j, "time_ratio", a->asked.ratio);
    if (a->has_smallest) {
        json_u64(&j, "bound_bytes", a->smallest.bound_bytes);
        json_u64(&j, "smallest_failed_bytes", a->smallest.failed_bytes);
        json_u64(&j, "smallest_works_bytes", a->smallest.works_bytes);
        if (a->smallest.op != TIDE_NONE) json_u64(&j, "smallest_op", a->smallest.op);
    }
    limits_json(&j, "largest_batch", a->batches, a->batch_capped);
    if (a->has_depth) {
        json_text(&j, "depth_pattern", a->pattern);
        limits_json(&j, "deepest", a->depths, a->depth_capped);
    }
    json_end(&j);
}

/* ---- the command ---- */

static bool is_share(const size_arg *size) { return size->budget.kind == TIDE_BUDGET_SHARE; }

static tide_status fill_search(const fit_options *o, const tide_machine *machine, fit_search *s) {
    *s = (fit_search){.model = &o->model, .machine = machine};
    if (is_share(&o->budgets.arena) || is_share(&o->budgets.host) || is_share(&o->budgets.disk))
        return complain(TIDE_E_ARGUMENT, "budgets are bytes here: a percentage would grow with the model");
    tide_plan_options_init(&s->options);
    s->options.policy = o->policy;
    if (!parse_effort(o->effort, &s->options.effort)) return TIDE_E_ARGUMENT;
    if (strcmp(o->policy, "manual") == 0) return complain(TIDE_E_ARGUMENT, "policy manual fits one program only");
    fill_budgets(&o->budgets, &s->options);
    if (!o->budgets.arena.given) s->options.budgets.arena_bytes = machine->memory_bytes - machine->reserve_bytes;
    return tide_plan_settle_budgets(NULL, machine, &s->options); /* in bytes, whatever the program */
}

static tide_status answer(const fit_options *o, const fit_search *s, answers *a) {
    a->budget_bytes = s->options.budgets.arena_bytes;
    a->has_depth = !o->no_depth && fit_pattern(a->spec, a->pattern, sizeof a->pattern, &a->blocks);
    if (o->max_batch < a->batch)
        return complain(TIDE_E_ARGUMENT, "--max-batch %u is below the batch of %u", o->max_batch, a->batch);
    if (a->has_depth && o->max_depth < a->blocks)
        return complain(TIDE_E_ARGUMENT, "--max-depth %u is below the %u of %s", o->max_depth, a->blocks,
                        show_name(a->spec));
    tide_status status = find_batches(o, *s, a);
    if (status == TIDE_OK) status = find_depths(o, *s, a);
    if (status == TIDE_OK && o->json) answers_json(s, a);
    return status;
}

static void set_defaults(fit_options *o) {
    if (!o->policy) o->policy = "hybrid";
    if (!o->effort) o->effort = "low";
    if (!o->max_batch) o->max_batch = 1u << 16;
    if (!o->max_depth) o->max_depth = 4000;
}

static int run(const char *spec, fit_options *o) {
    tide_machine machine;
    fit_search s;
    answers a = {.spec = spec, .batch = o->model.batch ? o->model.batch : 32};
    const planning_args planning = {
        .machine = o->machine, .policy = o->policy, .effort = o->effort, .budgets = o->budgets};
    tide_status status = check_cluster_args(&o->cluster);
    if (status == TIDE_OK) status = refuse_beside_cluster(&o->cluster, "--max-batch", o->max_batch);
    if (status == TIDE_OK) status = refuse_beside_cluster(&o->cluster, "--max-depth", o->max_depth);
    if (status == TIDE_OK && o->cluster.file)
        return plan_cluster(CLUSTER_FIT, spec, &o->model, &planning, &o->cluster, o->json);
    set_defaults(o);
    if (status == TIDE_OK && is_path(spec))
        status = complain(TIDE_E_ARGUMENT, "%s is a program file; only a model can grow", spec);
    if (status == TIDE_OK && o->model.micro)
        status = complain(TIDE_E_ARGUMENT, "fit looks for the largest batch, which is the largest micro-batch; leave"
                                           " --micro out");
    if (status == TIDE_OK) status = load_machine(&planning, &machine);
    if (status == TIDE_OK) status = fill_search(o, &machine, &s);
    if (status == TIDE_OK) status = answer(o, &s, &a);
    if (status == TIDE_OK && !a.asked.fits)
        status = complain(TIDE_E_FIT, "%s at batch %u does not fit %s", show_name(spec), a.batch,
                          show_bytes(a.budget_bytes));
    return status == TIDE_OK ? 0 : report_failure(status);
}

int cmd_fit(int argc, char **argv) {
    fit_options o = {0};
    const char *spec = NULL;
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        DTYPE_OPTION(o.model),
        MACHINE_OPTION(o.machine),
        {"--policy", ARG_TEXT, &o.policy, "NAME", "as for `tidemark plan` [hybrid]"},
        {"--budget", ARG_SIZE, &o.budgets.arena, "SIZE", "bytes of the arena [what the machine's libraries leave]"},
        {"--host-budget", ARG_SIZE, &o.budgets.host, "SIZE", "bytes of RAM tiers [no limit]"},
        {"--disk-budget", ARG_SIZE, &o.budgets.disk, "SIZE", "bytes of disk tiers [no limit]"},
        CLUSTER_OPTIONS(o.cluster),
        EFFORT_OPTION(o.effort, "low"),
        {"--max-batch", ARG_COUNT, &o.max_batch, "N", "try no larger batch [65536]"},
        {"--max-depth", ARG_COUNT, &o.max_depth, "N", "try no larger number of blocks [4000]"},
        {"--no-depth", ARG_FLAG, &o.no_depth, NULL, "do not look for the deepest network"},
        {"--json", ARG_FLAG, &o.json, NULL, "for programs"},
    };
    const arg_command command = {
        .usage = "fit MODEL [options]",
        .summary = "Whether a model fits a machine, and how large its batch and its depth could be.",
        .details = "Depth is searched for resnet:A,B,N,D (N grows), resnet-cifar:N, gpt2:N,... and lstm:N,...",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = &spec,
        .min_positional = 1,
        .max_positional = 1};
    int exit_code;
    return args_parse(&command, argc, argv, &exit_code) ? run(spec, &o) : exit_code;
}
