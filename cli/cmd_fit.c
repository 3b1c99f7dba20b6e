/* tidemark fit: does a model fit a machine, and how large could it be: batch and depth, for free, for a tenth of the time, at
 * any cost. */
#include <stdlib.h>
#include <string.h>

#include "fit.h"

typedef struct fit_options {
    model_args model;
    const char *machine, *policy, *effort;
    budget_args budgets;
    uint32_t max_batch, max_depth;
    bool no_depth, json;
} fit_options;

/* What was found. */
typedef struct answers {
    const char *spec;
    char pattern[256];
    uint32_t batch;
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

/* ---- finding ---- */

static tide_status find_all(fit_search *s, fit_probe *found, bool *capped) {
    for (int limit = 0; limit < N_FIT_LIMITS; limit++) {
        const fit_probe *p;
        tide_status status = fit_find(s, (fit_limit)limit, &p);
        if (status != TIDE_OK) return status;
        if (p) found[limit] = *p;
        capped[limit] = p && p->value == s->max;
    }
    return TIDE_OK;
}

static tide_status find_batches(const fit_options *o, fit_search s, answers *a) {
    const fit_probe *p;
    s.spec = a->spec;
    s.start = a->batch;
    s.max = o->max_batch > a->batch ? o->max_batch : a->batch;
    tide_status status = fit_try(&s, a->batch, &p);
    if (status == TIDE_OK) a->asked = *p;
    if (status == TIDE_OK) status = find_all(&s, a->batches, a->batch_capped);
    fit_free(&s);
    return status;
}

static tide_status find_depths(const fit_options *o, fit_search s, answers *a) {
    if (o->no_depth || !fit_pattern(a->spec, a->pattern, sizeof a->pattern, &s.start)) return TIDE_OK;
    a->has_depth = true;
    s.spec = a->pattern;
    s.depth = true;
    s.max = o->max_depth > s.start ? o->max_depth : s.start;
    tide_status status = find_all(&s, a->depths, a->depth_capped);
    fit_free(&s);
    return status;
}

static tide_status find_smallest(const fit_search *s, answers *a) {
    loaded l;
    tide_plan_options options = s->options;
    options.budgets.arena_bytes = UINT64_MAX;
    tide_status status = load_program(a->spec, s->model, s->machine, &l);
    if (status != TIDE_OK) return status;
    status = tide_plan_smallest(l.program, s->machine, &options, 0.01, &a->smallest);
    a->has_smallest = status == TIDE_OK;
    unload(&l);
    return status == TIDE_E_FIT || status == TIDE_E_TIER_FULL ? TIDE_OK : status;
}

/* ---- output ---- */

static void print_limits(const char *what, const char *spec, const fit_probe *found, const bool *capped, bool depth) {
    printf("%s\n", what);
    for (int i = 0; i < N_FIT_LIMITS; i++) {
        const fit_probe *p = &found[i];
        printf("  %-22s ", limit_names[i]);
        if (!p->value) {
            printf("none\n");
            continue;
        }
        const char *star = strchr(spec, '*');
        if (depth)
            printf("%.*s%u%s, %u layers", (int)(star - spec), spec, p->value, star + 1, p->layers);
        else
            printf("%u, %.1f per second", p->value, p->step_ns ? (double)p->value * 1e9 / (double)p->step_ns : 0);
        printf(", time %.3f%s\n", p->ratio, capped[i] ? "; no larger one was tried" : "");
    }
}

static void print_asked(const answers *a, const char *policy) {
    const fit_probe *p = &a->asked;
    printf("  %-22s %s\n", "unconstrained", show_bytes(p->whole_bytes));
    printf("  %-22s %s\n", "room", show_bytes(a->budget_bytes));
    if (p->plain_fits)
        printf("  %-22s yes\n", "fits");
    else if (p->fits)
        printf("  %-22s with policy %s, time %.3f\n", "fits", show_name(policy), p->ratio);
    else
        printf("  %-22s no, not under policy %s either\n", "fits", show_name(policy));
}

static tide_status print_smallest(const fit_search *s, const answers *a) {
    loaded l;
    if (!a->has_smallest) return TIDE_OK;
    tide_status status = load_program(a->spec, s->model, s->machine, &l);
    if (status != TIDE_OK) return status;
    printf("  %-22s %s works, %s does not; it is %s that decides\n", "smallest budget",
           show_bytes(a->smallest.works_bytes), show_bytes(a->smallest.failed_bytes),
           show_op(l.program, a->smallest.op));
    unload(&l);
    return TIDE_OK;
}

static tide_status print_answers(const fit_search *s, const answers *a) {
    printf("%s at batch %u on machine %s (%s)\n", show_name(a->spec), a->batch, show_name(s->machine->name),
           show_name(s->machine->source));
    print_asked(a, s->options.policy);
    tide_status status = print_smallest(s, a);
    if (status != TIDE_OK) return status;
    print_limits("largest batch, samples", a->spec, a->batches, a->batch_capped, false);
    if (a->has_depth) print_limits("deepest network at this batch", a->pattern, a->depths, a->depth_capped, true);
    return TIDE_OK;
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

static tide_status fill_search(const fit_options *o, const tide_machine *machine, fit_search *s) {
    *s = (fit_search){.model = &o->model, .machine = machine};
    if (budgets_relative(&o->budgets))
        return complain(TIDE_E_ARGUMENT, "budgets are bytes here: a percentage would grow with the model");
    tide_plan_options_init(&s->options);
    s->options.policy = o->policy;
    if (!parse_effort(o->effort, &s->options.effort)) return TIDE_E_ARGUMENT;
    if (strcmp(o->policy, "manual") == 0) return complain(TIDE_E_ARGUMENT, "policy manual fits one program only");
    fill_budgets(&o->budgets, machine, 0, &s->options.budgets);
    if (!o->budgets.arena.given) s->options.budgets.arena_bytes = machine->memory_bytes - machine->reserve_bytes;
    return TIDE_OK;
}

static tide_status answer(const fit_options *o, const fit_search *s, answers *a) {
    a->budget_bytes = s->options.budgets.arena_bytes;
    tide_status status = find_batches(o, *s, a);
    if (status == TIDE_OK) status = find_depths(o, *s, a);
    if (status == TIDE_OK) status = find_smallest(s, a);
    return status;
}

static int run(const char *spec, const fit_options *o) {
    tide_machine machine;
    fit_search s;
    answers a = {.spec = spec, .batch = o->model.batch ? o->model.batch : 32};
    tide_status status = TIDE_OK;
    if (is_path(spec)) status = complain(TIDE_E_ARGUMENT, "%s is a program file; only a model can grow", spec);
    if (status == TIDE_OK) status = tide_machine_load(o->machine, &machine);
    if (status == TIDE_OK) status = fill_search(o, &machine, &s);
    if (status == TIDE_OK) status = answer(o, &s, &a);
    if (status == TIDE_OK && o->json) answers_json(&s, &a);
    if (status == TIDE_OK && !o->json) status = print_answers(&s, &a);
    if (status == TIDE_OK && !a.asked.fits)
        status = complain(TIDE_E_FIT, "%s at batch %u does not fit %s", show_name(spec), a.batch,
                          show_bytes(a.budget_bytes));
    return status == TIDE_OK ? 0 : report_failure(status);
}

int cmd_fit(int argc, char **argv) {
    fit_options o = {
        .machine = "default", .policy = "hybrid", .effort = "low", .max_batch = 1u << 16, .max_depth = 2000};
    const char *spec = NULL;
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        {"--machine", ARG_TEXT, &o.machine, "NAME",
         "default, cpu, k40c, v100-16gb-pcie, rtx3090, a100 or a file [default]"},
        {"--policy", ARG_TEXT, &o.policy, "NAME", "as for `tidemark plan` [hybrid]"},
        {"--budget", ARG_SIZE, &o.budgets.arena, "SIZE", "bytes of the arena [what the machine's libraries leave]"},
        {"--host-budget", ARG_SIZE, &o.budgets.host, "SIZE", "bytes of RAM tiers [no limit]"},
        {"--disk-budget", ARG_SIZE, &o.budgets.disk, "SIZE", "bytes of disk tiers [no limit]"},
        {"--effort", ARG_TEXT, &o.effort, "low|normal|high", "how long the policy may search per plan [low]"},
        {"--max-batch", ARG_COUNT, &o.max_batch, "N", "try no larger batch [65536]"},
        {"--max-depth", ARG_COUNT, &o.max_depth, "N", "try no larger number of blocks [2000]"},
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
