/* tidemark train: trains a model from a plan, once or under several policies in turn, and compares the bits. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "progress.h"

enum { MAX_RUNS = 8 };

typedef struct train_options {
    model_args model;
    const char *machine, *device, *policy, *compare, *decisions, *disk_path, *data;
    size_arg budget, host_budget, disk_budget;
    uint64_t steps, samples, test_samples, seed;
    uint32_t threads;
    double learning_rate;
    bool verify_bits, json, quiet;
} train_options;

/* What one training left behind. */
typedef struct outcome {
    char policy[32];
    uint64_t arena_bytes, tier_bytes, step_ns, saved_bytes, loaded_bytes;
    uint32_t n_reruns;
    float *losses; /* per step */
    uint64_t hash;
    double accuracy;
    bool same_bits; /* as the first */
} outcome;

typedef struct session {
    const train_options *options;
    tide_machine machine;
    tide_device *device;
    tide_model *model;
    tide_digits train_digits, test_digits;
    tide_data train, test;
} session;

/* ---- setting up ---- */

static tide_status open_data(session *s) {
    const train_options *o = s->options;
    tide_shape in = tide_model_input(s->model);
    s->train_digits = (tide_digits){o->seed, (uint32_t)in.c, (uint32_t)in.h, (uint32_t)in.w};
    s->test_digits = s->train_digits;
    s->test_digits.seed = o->seed ^ UINT64_C(0x74657374); /* other digits than those it learned from */
    tide_status status = tide_data_digits(&s->train_digits, o->samples, &s->train);
    return status == TIDE_OK ? tide_data_digits(&s->test_digits, o->test_samples, &s->test) : status;
}

static tide_status open_session(session *s, const char *spec) {
    const train_options *o = s->options;
    model_args args = o->model;
    tide_device_options d;
    tide_device_options_init(&d);
    d.threads = o->threads;
    if (!args.input) args.input = "1x28x28";
    if (!args.classes) args.classes = 10;
    tide_status status = tide_machine_load(o->machine, &s->machine);
    if (status == TIDE_OK) status = tide_device_open(o->device, &d, &s->device);
    if (status == TIDE_OK) status = load_model(spec, &args, &s->model);
    return status == TIDE_OK ? open_data(s) : status;
}

static void close_session(session *s) {
    tide_model_destroy(s->model);
    tide_device_close(s->device);
}

static tide_status trainer_options(const session *s, const char *policy, tide_trainer_options *t) {
    const train_options *o = s->options;
    tide_trainer_options_init(t);
    tide_status status = fill_step_options(&o->model, &t->step);
    t->model = s->model;
    t->device = s->device;
    t->machine = &s->machine;
    t->data = &s->train;
    t->seed = o->seed;
    t->learning_rate = (float)o->learning_rate;
    t->disk_path = o->disk_path;
    t->plan.policy = policy;
    t->plan.decisions = strcmp(policy, "manual") == 0 ? o->decisions : NULL;
    return status;
}

/* A percentage is of the unconstrained arena, which a planner of policy liveness knows. */
static tide_status set_budgets(const session *s, tide_trainer_options *t) {
    const train_options *o = s->options;
    uint64_t whole = 0;
    if (o->budget.is_percent || o->host_budget.is_percent || o->disk_budget.is_percent) {
        tide_trainer_options free_of_limits;
        tide_trainer *trainer;
        tide_status status = trainer_options(s, "liveness", &free_of_limits);
        if (status == TIDE_OK) status = tide_trainer_create(&free_of_limits, NULL, &trainer);
        if (status != TIDE_OK) return status;
        whole = tide_plan_arena_bytes(tide_trainer_plan(trainer));
        tide_trainer_destroy(trainer);
    }
    t->plan.budgets.arena_bytes = size_arg_bytes(&o->budget, whole);
    for (uint32_t i = 0; i < s->machine.n_tiers; i++) {
        if (s->machine.tier[i].kind == TIDE_TIER_RAM)
            t->plan.budgets.tier_bytes[i] = size_arg_bytes(&o->host_budget, whole);
        if (s->machine.tier[i].kind == TIDE_TIER_DISK)
            t->plan.budgets.tier_bytes[i] = size_arg_bytes(&o->disk_budget, whole);
    }
    return TIDE_OK;
}

/* ---- one training ---- */

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static tide_status run_steps(const session *s, tide_trainer *trainer, outcome *out) {
    const train_options *o = s->options;
    uint64_t *times = calloc(o->steps, sizeof *times);
    out->losses = calloc(o->steps, sizeof *out->losses);
    tide_status status = times && out->losses ? TIDE_OK : TIDE_E_MEMORY;
    progress bar;
    progress_start(&bar, out->policy, o->steps, (uint64_t)tide_model_input(s->model).n, o->quiet);
    for (uint64_t i = 0; i < o->steps && status == TIDE_OK; i++) {
        tide_step_report report;
        status = tide_trainer_step(trainer, &out->losses[i], &report);
        if (status != TIDE_OK) break;
        times[i] = report.step_ns;
        out->saved_bytes = report.saved_bytes;
        out->loaded_bytes = report.loaded_bytes;
        out->n_reruns = report.n_reruns;
        progress_step(&bar, i + 1, out->losses[i], tide_plan_arena_bytes(tide_trainer_plan(trainer)));
    }
    progress_end(&bar);
    if (status == TIDE_OK) {
        qsort(times, o->steps, sizeof *times, by_value);
        out->step_ns = times[o->steps / 2];
    }
    free(times);
    return status;
}

static void describe_plan(const session *s, const tide_plan *plan, outcome *out) {
    out->arena_bytes = tide_plan_arena_bytes(plan);
    for (uint32_t t = 0; t < s->machine.n_tiers; t++) out->tier_bytes += tide_plan_tier_bytes(plan, t);
}

static tide_status train_once(const session *s, const char *policy, bool budgeted, tide_fit_report *fit, outcome *out) {
    tide_trainer_options options;
    tide_trainer *trainer;
    snprintf(out->policy, sizeof out->policy, "%s", policy);
    tide_status status = trainer_options(s, policy, &options);
    if (status == TIDE_OK && budgeted) status = set_budgets(s, &options);
    if (status == TIDE_OK) status = tide_trainer_create(&options, fit, &trainer);
    if (status != TIDE_OK) return status;
    describe_plan(s, tide_trainer_plan(trainer), out);
    status = run_steps(s, trainer, out);
    if (status == TIDE_OK) status = tide_trainer_hash(trainer, &out->hash);
    if (status == TIDE_OK) status = tide_trainer_evaluate(trainer, &s->test, s->test.n_samples, &out->accuracy);
    tide_trainer_destroy(trainer);
    return status;
}

/* ---- several, and the table ---- */

static bool same_bits(const outcome *a, const outcome *b, uint64_t steps) {
    return a->hash == b->hash && memcmp(a->losses, b->losses, steps * sizeof *a->losses) == 0;
}

static void print_table(const outcome *runs, int n, uint64_t steps) {
    printf("%-10s %12s %12s %10s %8s %9s %9s  %s\n", "policy", "arena", "tiers", "step", "re-runs", "loss", "accuracy",
           n > 1 ? "same bits" : "");
    for (int i = 0; i < n; i++)
        printf("%-10s %12s %12s %10s %8u %9.4f %8.2f%%  %s\n", runs[i].policy, show_bytes(runs[i].arena_bytes),
               show_bytes(runs[i].tier_bytes), show_ns(runs[i].step_ns), runs[i].n_reruns,
               (double)runs[i].losses[steps - 1], 100 * runs[i].accuracy,
               n == 1              ? ""
               : i == 0            ? "(reference)"
               : runs[i].same_bits ? "yes"
                                   : "NO");
}

static void print_json(const session *s, const outcome *runs, int n, uint64_t steps) {
    json_out j;
    json_begin(&j, stdout);
    json_text(&j, "model", tide_model_name(s->model));
    json_u64(&j, "steps", steps);
    json_open(&j, "runs", '[');
    for (int i = 0; i < n; i++) {
        char hash[17];
        snprintf(hash, sizeof hash, "%016" PRIx64, runs[i].hash);
        json_open(&j, NULL, '{');
        json_text(&j, "policy", runs[i].policy);
        json_u64(&j, "arena_bytes", runs[i].arena_bytes);
        json_u64(&j, "tier_bytes", runs[i].tier_bytes);
        json_u64(&j, "step_ns", runs[i].step_ns);
        json_u64(&j, "saved_bytes", runs[i].saved_bytes);
        json_u64(&j, "loaded_bytes", runs[i].loaded_bytes);
        json_u64(&j, "reruns", runs[i].n_reruns);
        json_number(&j, "first_loss", (double)runs[i].losses[0]);
        json_number(&j, "last_loss", (double)runs[i].losses[steps - 1]);
        json_number(&j, "accuracy", runs[i].accuracy);
        json_text(&j, "bits", hash);
        if (n > 1) json_bool(&j, "same_bits", runs[i].same_bits);
        json_close(&j, '{');
    }
    json_close(&j, '[');
    json_end(&j);
}

/* The policies to run: --compare's list; else --policy, after an unconstrained reference when bits are verified. */
static int list_policies(const train_options *o, char *storage, size_t room, const char **policies) {
    int n = 0;
    if (o->compare) {
        snprintf(storage, room, "%s", o->compare);
        for (char *at = strtok(storage, ","); at && n < MAX_RUNS; at = strtok(NULL, ",")) policies[n++] = at;
        return n;
    }
    if (o->verify_bits) policies[n++] = "liveness";
    policies[n++] = o->policy;
    return n;
}

static int finish(const session *s, outcome *runs, int n) {
    uint64_t steps = s->options->steps;
    bool all_same = true;
    for (int i = 0; i < n; i++) {
        runs[i].same_bits = same_bits(&runs[0], &runs[i], steps);
        all_same = all_same && runs[i].same_bits;
    }
    if (s->options->json)
        print_json(s, runs, n, steps);
    else
        print_table(runs, n, steps);
    if (all_same) return 0;
    fprintf(stderr, "tidemark: the bits differ\n");
    return tide_status_exit_code(TIDE_E_INTERNAL);
}

static int run_all(const session *s) {
    const train_options *o = s->options;
    char storage[256];
    const char *policies[MAX_RUNS];
    outcome runs[MAX_RUNS] = {0};
    tide_fit_report fit = {.op = TIDE_NONE};
    int n = list_policies(o, storage, sizeof storage, policies), exit_code = 0;
    for (int i = 0; i < n && exit_code == 0; i++) {
        bool reference = o->verify_bits && i == 0;
        tide_status status = train_once(s, policies[i], !reference, &fit, &runs[i]);
        if (status == TIDE_OK) continue;
        exit_code = report_failure(status);
        if (status == TIDE_E_FIT)
            fprintf(stderr, "tidemark: the smallest budget for policy %s is %" PRIu64 " bytes (%s)\n", policies[i],
                    fit.needed_bytes, show_bytes(fit.needed_bytes));
    }
    if (exit_code == 0) exit_code = finish(s, runs, n);
    for (int i = 0; i < n; i++) free(runs[i].losses);
    return exit_code;
}

static bool check(const train_options *o) {
    if (o->steps == 0 || o->samples == 0 || o->test_samples == 0)
        fprintf(stderr, "tidemark: --steps, --samples and --test-samples are at least 1\n");
    else if (strcmp(o->data, "digits") != 0)
        fprintf(stderr, "tidemark: --data: \"%s\" is not digits\n", o->data);
    else if (o->compare && o->verify_bits)
        fprintf(stderr, "tidemark: --compare verifies the bits already; leave --verify-bits out\n");
    else
        return true;
    return false;
}

int cmd_train(int argc, char **argv) {
    train_options o = {.machine = "cpu",
                       .device = "cpu",
                       .policy = "liveness",
                       .data = "digits",
                       .steps = 100,
                       .samples = 8192,
                       .test_samples = 1000,
                       .seed = 1,
                       .learning_rate = 0.05};
    const char *spec;
    const arg_option options[] = {
        MODEL_OPTIONS(o.model),
        {"--data", ARG_TEXT, &o.data, "NAME", "digits: drawn digits, 1x28x28, nothing to download [digits]"},
        {"--samples", ARG_U64, &o.samples, "N", "samples of an epoch [8192]"},
        {"--test-samples", ARG_U64, &o.test_samples, "N", "samples of the evaluation at the end [1000]"},
        {"--steps", ARG_U64, &o.steps, "N", "training steps [100]"},
        {"--learning-rate", ARG_NUMBER, &o.learning_rate, "X", "[0.05]"},
        {"--seed", ARG_U64, &o.seed, "N", "of weights, order and dropout [1]"},
        {"--policy", ARG_TEXT, &o.policy, "NAME", "none, liveness or manual [liveness]"},
        {"--decisions", ARG_TEXT, &o.decisions, "FILE", "for policy manual"},
        {"--compare", ARG_TEXT, &o.compare, "LIST", "train under each of these policies, compare the bits"},
        {"--budget", ARG_SIZE, &o.budget, "SIZE", "bytes of the arena [no limit]"},
        {"--host-budget", ARG_SIZE, &o.host_budget, "SIZE", "bytes of the RAM tier [no limit]"},
        {"--disk-budget", ARG_SIZE, &o.disk_budget, "SIZE", "bytes of the disk tier [no limit]"},
        {"--disk-path", ARG_TEXT, &o.disk_path, "FOLDER", "where spilled bytes go [$TMPDIR, else /tmp]"},
        {"--machine", ARG_TEXT, &o.machine, "NAME", "profile of tiers and channels [cpu]"},
        {"--device", ARG_TEXT, &o.device, "NAME", "[cpu]"},
        {"--threads", ARG_COUNT, &o.threads, "N", "compute threads [all cores]"},
        {"--verify-bits", ARG_FLAG, &o.verify_bits, NULL, "train unconstrained as well and compare bit for bit"},
        {"--quiet", ARG_FLAG, &o.quiet, NULL, "no progress"},
        {"--json", ARG_FLAG, &o.json, NULL, "for programs"},
    };
    const arg_command command = {.usage = "train MODEL [options]",
                                 .summary =
                                     "Trains a model from a verified plan, inside a byte budget, to the same bits.",
                                 .options = options,
                                 .n_options = sizeof options / sizeof *options,
                                 .positional = &spec,
                                 .min_positional = 1,
                                 .max_positional = 1};
    int exit_code;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    if (!check(&o)) return EXIT_USAGE;
    session s = {.options = &o};
    tide_status status = open_session(&s, spec);
    exit_code = status == TIDE_OK ? run_all(&s) : report_failure(status);
    close_session(&s);
    return exit_code;
}
