/* tidemark train: trains a model from a plan, once or under several policies in turn, and compares the bits. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "busy.h"
#include "progress.h"
#include "train_log.h"
#include "train_options.h"
#include "train_ranks.h"
#include "train_record.h"
#include "train_supervise.h"
#include "train_total.h"

typedef struct session {
    train_options *options;
    tide_machine machine;
    tide_device *device;
    tide_model *model;
    model_parts parts;
    train_data data;
    train_log log;
    train_ranks ranks;
    int argc;
    char **argv;
    uint32_t n_micros;
    uint64_t steps; /* of the whole training */
} session;

/* ---- setting up ---- */

static uint64_t batch_of(const session *s) { return s->n_micros * (uint64_t)tide_model_input(s->model).n; }

/* Epochs end with the step that shows their last sample. A training that goes on ends where it was to end. */
static tide_status count_steps(session *s) {
    const train_options *o = s->options;
    uint64_t batch = batch_of(s), total = 0;
    tide_status status = TIDE_OK;
    if (o->resume && !o->steps && !o->epochs) status = tide_checkpoint_total_steps(o->resume, &total);
    s->steps = o->steps ? o->steps : total ? total : 100;
    if (o->epochs) s->steps = (o->epochs * s->data.train.n_samples + batch - 1) / batch;
    return status;
}

static tide_status open_session(session *s, const char *spec) {
    const train_options *o = s->options;
    model_args args = o->model;
    tide_device_options d;
    tide_device_options_init(&d);
    d.threads = o->threads;
    remark_threads(o->threads);
    if (!o->quiet) remark_busy("steps may take longer");
    tide_status status = count_micros(&args, &s->n_micros);
    if (status == TIDE_OK) status = prepare_data(&o->data, spec, &args, &s->data);
    if (status == TIDE_OK) status = tide_device_open(o->device, &d, &s->device);
    if (status == TIDE_OK) status = ranks_compare(&s->ranks, s->device, o->bits_any);
    if (status == TIDE_OK) status = drop_ram(&o->budgets, s->device, &s->machine);
    if (status == TIDE_OK) status = load_model(spec, &args, &s->model);
    if (status == TIDE_OK) status = make_parts(&o->vary, spec, &args, s->model, o->data.seed, &s->parts);
    if (status == TIDE_OK) status = open_data(&o->data, s->model, &s->data);
    if (status == TIDE_OK) status = count_steps(s);
    if (status == TIDE_OK) status = log_open(&s->log, o->log, spec, batch_of(s), o->resume != NULL);
    return status;
}

static void close_session(session *s) {
    log_close(&s->log);
    close_data(&s->data);
    free_parts(&s->parts);
    tide_model_destroy(s->model);
    tide_device_close(s->device);
}

static tide_train_mode mode_of(const train_options *o) {
    return is_mode(o, "online") ? TIDE_MODE_ONLINE : is_mode(o, "auto") ? TIDE_MODE_AUTO : TIDE_MODE_PLANNED;
}

static tide_status trainer_options(session *s, const char *policy, tide_trainer_options *t) {
    const train_options *o = s->options;
    tide_trainer_options_init(t);
    tide_status status = fill_step_options(&o->model, s->model, &t->step);
    t->model = s->model;
    t->parts = s->parts.parts;
    t->n_parts = s->parts.n_parts;
    t->device = s->device;
    t->machine = &s->machine;
    t->data = &s->data.train;
    t->seed = o->data.seed;
    t->learning_rate = rate_of(&o->schedule, tide_model_recipe(s->model), t->step.optimizer, batch_of(s));
    fill_schedule(&o->schedule, tide_model_recipe(s->model), s->steps, &t->schedule);
    t->own_schedule = schedule_given(&o->schedule); /* else a checkpoint knows */
    t->disk_path = o->disk_path;
    t->disk_checksums = !o->no_disk_checksums;
    t->disk_packing = !o->no_disk_packing;
    t->plan_folder = o->plan_cache;
    t->peers = ranks_peers(&s->ranks);
    t->loan = s->ranks.loan.net ? &s->ranks.loan : NULL;
    t->plan.policy = policy;
    t->plan.bits_any = o->bits_any;
    if (status == TIDE_OK && !parse_effort(o->effort, &t->plan.effort)) status = TIDE_E_ARGUMENT;
    if (status == TIDE_OK && !parse_order(o->order, &t->plan.order)) status = TIDE_E_ARGUMENT;
    t->plan.decisions = strcmp(policy, "manual") == 0 ? o->decisions : NULL;
    return status;
}

static tide_status set_budgets(const session *s, tide_trainer_options *options) {
    const size_arg *total = &s->options->total;
    fill_budgets(&s->options->budgets, &options->plan);
    if (!total->given) return TIDE_OK;
    uint32_t decoders = s->data.pictures ? s->data.train.threads : 0;
    return share_total(total->budget.bytes, options, batch_of(s), decoders);
}

/* ---- one training ---- */

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* A file that may not grow further, or a pipe that nobody reads any more, is an error that says so, not the end of the process. */
static void ignore_failed_writes(void) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &ignore, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

/* A curve that ends before the training does leaves steps that learn nothing. */
static void warn_of_schedule(const session *s, const tide_trainer *trainer) {
    const tide_schedule *schedule = tide_trainer_schedule(trainer);
    bool ends = schedule->curve == TIDE_CURVE_COSINE || schedule->curve == TIDE_CURVE_LINEAR;
    if (ends && schedule->total_steps < s->steps)
        fprintf(stderr,
                "tidemark: the schedule in %s ends at step %" PRIu64 "; give --schedule and its kin for another\n",
                s->options->resume, schedule->total_steps);
}

/* Where to go on; out->first_step says how many steps are behind. */
static tide_status resume(const session *s, tide_trainer *trainer, outcome *out) {
    const train_options *o = s->options;
    tide_status status = o->resume ? tide_trainer_load(trainer, o->resume) : TIDE_OK;
    if (status != TIDE_OK) return status;
    out->first_step = tide_trainer_steps_done(trainer);
    if (o->resume) warn_of_schedule(s, trainer);
    if (out->first_step < s->steps) return TIDE_OK;
    return complain(TIDE_E_ARGUMENT, "%s is at step %" PRIu64 "; a training of %" PRIu64 " leaves nothing to do",
                    o->resume, out->first_step, s->steps);
}

static tide_status load_weights(const session *s, tide_trainer *trainer) {
    weights_args *weights = &s->options->weights;
    tide_weights_options options;
    if (!weights->file) return TIDE_OK;
    fill_weights_options(weights, &options);
    return tide_trainer_load_weights(trainer, weights->file, &options);
}

/* The last step of a run that is recorded is timed action by action, if it follows a plan. */
static tide_status take_step(tide_trainer *trainer, outcome *out, bool last, float *loss, tide_step_report *report) {
    if (!last || !out->record) return tide_trainer_step(trainer, loss, report);
    tide_status status = tide_trainer_step_traced(trainer, loss, report, &out->record->timeline);
    if (status == TIDE_OK) out->record->begin_ns = now_ns() - report->step_ns;
    if (status != TIDE_E_UNSUPPORTED) return status;
    out->record = NULL;
    out->unrecorded = true;
    return tide_trainer_step(trainer, loss, report);
}

/* Room for one more step; grows with the training. False without memory. */
static bool reserve_step(uint64_t i, uint64_t *room, uint64_t **times, outcome *out) {
    if (*times && out->losses && i < *room) return true;
    uint64_t more = 2 * *room + 64;
    uint64_t *t = realloc(*times, more * sizeof *t);
    if (t) *times = t;
    float *l = realloc(out->losses, more * sizeof *l);
    if (l) out->losses = l;
    if (t && l) *room = more;
    return t && l;
}

/* What a step shows so many of. */
static const char *unit_of(const session *s, uint64_t *per_step) {
    bool tokens = tide_model_takes_tokens(s->model), count_samples = !tokens || s->options->vary.min_length;
    *per_step = batch_of(s) * (count_samples ? 1 : tide_model_labels(s->model));
    return !tokens ? "img" : count_samples ? "samples" : "tokens";
}

/* What the last step says of all. */
static void note_report(const session *s, const tide_step_report *report, outcome *out) {
    out->saved_bytes = report->saved_bytes;
    out->loaded_bytes = report->loaded_bytes;
    out->disk_written_bytes = report->disk_written_bytes;
    out->disk_read_bytes = report->disk_read_bytes;
    out->relocated_bytes = report->relocated_bytes;
    out->n_reruns = report->n_reruns;
    out->arena_bytes = report->arena_bytes;
    out->tier_bytes = report->staging_bytes;
    for (uint32_t t = 0; t < s->machine.n_tiers; t++) out->tier_bytes += out->tiers[t] = report->tier_bytes[t];
}

static tide_status log_last_step(session *s, const tide_trainer *trainer, const outcome *out, float loss,
                                 const tide_step_report *report) {
    uint64_t step = tide_trainer_steps_done(trainer);
    const log_entry entry = {out->policy, step, loss, tide_trainer_rate(trainer, step - 1), report, s->machine.n_tiers};
    return log_step(&s->log, &entry);
}

/* The step times go to `times`, the losses to out->losses. */
static tide_status run_steps(session *s, tide_trainer *trainer, uint64_t **times, outcome *out) {
    uint64_t room = 0, per_step, n = s->steps - out->first_step;
    const char *unit = unit_of(s, &per_step);
    tide_status status = TIDE_OK;
    progress bar;
    saver save;
    save_begin(&save, &s->options->save);
    progress_start(&bar, out->policy, out->first_step, n, unit, per_step, s->options->quiet);
    for (uint64_t i = 0; i < n && status == TIDE_OK; i++) {
        tide_step_report report;
        if (!reserve_step(i, &room, times, out)) {
            status = complain(TIDE_E_MEMORY, "out of host memory");
            break;
        }
        status = take_step(trainer, out, i + 1 == n, &out->losses[i], &report);
        if (status != TIDE_OK) break;
        (*times)[i] = report.step_ns;
        out->n_steps++;
        note_report(s, &report, out);
        progress_step(&bar, i + 1, out->losses[i], &report, &s->machine);
        tide_status logged = log_last_step(s, trainer, out, out->losses[i], &report);
        bool stop = save_interrupted() || logged != TIDE_OK;
        bool due = save_is_due(&save, trainer, i + 1 == n, stop);
        status = ranks_agree(&s->ranks, tide_trainer_steps_done(trainer), &stop, &due);
        if (status == TIDE_OK) status = save_after_step(&save, trainer, due, stop, out->shard != TIDE_SHARD_NONE);
        if (status == TIDE_E_CANCELLED && logged != TIDE_OK) status = logged;
    }
    progress_end(&bar);
    ranks_note(&s->ranks, out);
    save_end(s->ranks.net && status == TIDE_E_CANCELLED); /* the signal may reach this rank after all have agreed */
    return status;
}

static tide_status train_steps(session *s, tide_trainer *trainer, outcome *out) {
    uint64_t steps = s->steps - out->first_step;
    uint64_t *times = NULL;
    tide_status status = run_steps(s, trainer, &times, out);
    if (status == TIDE_OK && times) {
        qsort(times, steps, sizeof *times, by_value);
        out->step_ns = times[steps / 2];
    }
    free(times);
    return status;
}

/* A training stays what it is when its weights cannot be judged in these budgets: it has no accuracy then. Where ranks need each
 * other's weights, none goes on without the others. */
static tide_status judge(const session *s, tide_trainer *trainer, outcome *out) {
    out->judged = tide_trainer_test(trainer, &s->data.test, s->data.test.n_samples, &out->test);
    if (out->judged == TIDE_OK || (s->ranks.net && out->shard == TIDE_SHARD_ALL)) return out->judged;
    out->test = (tide_evaluation){.accuracy = NAN, .loss = NAN};
    snprintf(out->why_not_judged, sizeof out->why_not_judged, "%s", tide_last_error());
    return TIDE_OK;
}

static bool several(const session *s) { return s->ranks.n_trainers > 1; }

/* With the least shard of those allowed with which all ranks fit. */
static tide_status create_trainer(const session *s, tide_trainer_options *options, tide_fit_report *fit, outcome *out,
                                  tide_trainer **trainer) {
    const train_options *o = s->options;
    for (tide_shard shard = o->least_shard;; shard++) {
        options->step.shard = out->shard = several(s) ? shard : TIDE_SHARD_NONE;
        tide_status status = tide_trainer_create(options, fit, trainer);
        bool fits = status == TIDE_OK;
        if (status != TIDE_OK && !tide_status_is_misfit(status)) return status;
        if (shard == o->most_shard || !several(s)) return status;
        tide_status agreed = ranks_all(&s->ranks, &fits);
        if (agreed == TIDE_OK && fits) return TIDE_OK;
        if (status == TIDE_OK) tide_trainer_destroy(*trainer);
        if (agreed != TIDE_OK) return agreed;
    }
}

static tide_status save_weights(const session *s, tide_trainer *trainer, const outcome *out) {
    const char *path = s->options->save_weights;
    bool sends = s->ranks.saves_weights && out->shard != TIDE_SHARD_NONE;
    return path || sends ? tide_trainer_save_weights(trainer, path) : TIDE_OK;
}

static tide_status train_once(session *s, const char *policy, bool budgeted, tide_fit_report *fit, outcome *out) {
    tide_trainer_options options;
    tide_trainer *trainer;
    snprintf(out->policy, sizeof out->policy, "%s", policy);
    out->machine = &s->machine;
    out->bits_any = s->options->bits_any;
    tide_status status = trainer_options(s, policy, &options);
    if (status == TIDE_OK && budgeted) status = set_budgets(s, &options);
    if (budgeted) options.mode = mode_of(s->options); /* the reference is planned */
    if (options.plan.arena_budget.kind == TIDE_BUDGET_SMALLEST) watch_search(&options.plan);
    if (status == TIDE_OK) status = create_trainer(s, &options, fit, out, &trainer);
    unwatch_search(&options.plan);
    if (status != TIDE_OK) return status;
    if (tide_trainer_plan(trainer)) out->arena_bytes = tide_plan_arena_bytes(tide_trainer_plan(trainer));
    status = load_weights(s, trainer);
    if (status == TIDE_OK) status = resume(s, trainer, out);
    if (status == TIDE_OK) status = train_steps(s, trainer, out);
    if (status == TIDE_OK) status = save_weights(s, trainer, out);
    if (status == TIDE_OK && out->record) status = record_begin(out->record, trainer);
    if (status == TIDE_OK && out->record) status = record_gather(out->record, &s->ranks);
    if (status == TIDE_OK) status = tide_trainer_hash(trainer, &out->hash);
    if (status == TIDE_OK) status = judge(s, trainer, out);
    if (status == TIDE_OK) status = ranks_gather(&s->ranks, out);
    tide_trainer_destroy(trainer);
    return status;
}

/* ---- several ---- */

/* What was asked for and could not be had of a training that is there. */
static int report_omissions(const outcome *runs, int n) {
    int exit_code = 0;
    for (int i = 0; i < n; i++) {
        if (runs[i].unrecorded)
            exit_code = report_failure(
                complain(TIDE_E_UNSUPPORTED,
                         "--record: the last step of policy %s followed no plan; nothing is recorded", runs[i].policy));
        if (runs[i].judged != TIDE_OK)
            exit_code = report_failure(complain(runs[i].judged, "policy %s: the evaluation at the end: %s",
                                                runs[i].policy, runs[i].why_not_judged));
    }
    return exit_code;
}

static int finish(const session *s, outcome *runs, int n) {
    uint64_t steps = s->steps - runs[0].first_step; /* all resume from the same place */
    bool same = compare_bits(runs, n, steps);
    if (s->options->json)
        print_runs_json(stdout, tide_model_name(s->model), runs, n, steps);
    else
        print_runs(runs, n, steps);
    if (runs[n - 1].record && s->options->record) {
        tide_status status =
            record_write(runs[n - 1].record, s->options->record, tide_model_name(s->model), runs, n, steps);
        if (status != TIDE_OK) return report_failure(status);
    }
    if (!same && !s->options->bits_any) return report_failure(complain(TIDE_E_INTERNAL, "the bits differ"));
    return report_omissions(runs, n);
}

/* The op at fault has a name in the step that was to be trained. */
static int report_run_failure(const session *s, tide_status status, const tide_fit_report *fit) {
    const train_options *o = s->options;
    char why[512];
    tide_step *step = NULL;
    if (!o->json || !is_mode(o, "planned") || fit->op == TIDE_NONE)
        return report_misfit(status, fit, NULL, &s->machine, o->json && is_mode(o, "planned"));
    snprintf(why, sizeof why, "%s", tide_last_error());
    tide_status built = load_step(s->model, &o->model, &s->machine, s->device, &step);
    complain(status, "%s", why);
    int exit_code = report_misfit(status, fit, built == TIDE_OK ? tide_step_program(step) : NULL, &s->machine, true);
    tide_step_destroy(step);
    return exit_code;
}

static int run_all(session *s, const run_list *list) {
    const train_options *o = s->options;
    outcome runs[MAX_RUNS] = {0};
    tide_fit_report fit = {.op = TIDE_NONE};
    train_record record = {0};
    int exit_code = 0;
    if (o->record || s->ranks.records) runs[list->n - 1].record = &record;
    for (int i = 0; i < list->n && exit_code == 0; i++) {
        bool reference = o->verify_bits && i == 0;
        tide_status status = train_once(s, list->policy[i], !reference, &fit, &runs[i]);
        if (status != TIDE_OK) exit_code = report_run_failure(s, status, &fit);
    }
    if (exit_code == 0) exit_code = finish(s, runs, list->n);
    for (int i = 0; i < MAX_RUNS; i++) {
        free(runs[i].losses);
        free(runs[i].ranks);
    }
    record_free(&record);
    return exit_code;
}

static int train(session *s, train_options *o) {
    int exit_code;
    if (!read_train_options(s->argc, s->argv, o, &exit_code)) return exit_code;
    ignore_failed_writes();
    s->options = o;
    run_list list;
    tide_status status = list_runs(o, &list);
    if (status == TIDE_OK) status = check_train_options(o, &list);
    if (status == TIDE_OK && o->supervise) return supervise(s->argc, s->argv, o);
    if (status == TIDE_OK) status = ranks_fit_options(&s->ranks, o);
    if (status == TIDE_OK) status = tide_machine_load(o->machine, &s->machine);
    if (status == TIDE_OK) status = ranks_lend(&s->ranks, o, s->argc, s->argv, &s->machine);
    if (status == TIDE_OK && ranks_only_lends(&s->ranks)) return report_failure(ranks_wait(&s->ranks));
    if (status == TIDE_OK) status = open_session(s, o->spec);
    exit_code = status == TIDE_OK ? run_all(s, &list) : report_failure(status);
    close_session(s);
    return exit_code;
}

/* One rank of a job, or a process alone. */
int cmd_train(int argc, char **argv) {
    session s = {.argc = argc, .argv = argv};
    train_options options;
    tide_status status = ranks_join(&s.ranks);
    return status == TIDE_OK ? ranks_leave(&s.ranks, train(&s, &options)) : report_failure(status);
}
