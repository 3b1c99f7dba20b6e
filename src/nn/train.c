/* Training: fresh weights, batches in a shuffled order, steps. Everything random is a function of the
 * seed and a counter, so two trainers with the same options see and compute the same, whatever their plans. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/options.h"
#include "nn/parts.h"
#include "nn/schedule.h"
#include "nn/owners.h"
#include "nn/states.h"
#include "nn/step.h"
#include "nn/trainer.h"

void tide_trainer_options_init(tide_trainer_options *options) {
    *options = (tide_trainer_options){
        .size = sizeof *options, .learning_rate = 0.05f, .seed = 1, .disk_checksums = true, .disk_packing = true};
    tide_step_options_init(&options->step);
    tide_plan_options_init(&options->plan);
    tide_schedule_init(&options->schedule);
    options->step.optimizer = TIDE_MOMENTUM;
}

tide_status tide__check_data(const tide_model *model, const tide_data *d) {
    tide_shape in = tide_model_input(model);
    if (in.c != d->channels || in.h != d->height || in.w != d->width)
        return tide__fail(TIDE_E_ARGUMENT, "model %s takes %lldx%lldx%lld, data set %s has %ux%ux%u",
                          tide_model_name(model), (long long)in.c, (long long)in.h, (long long)in.w, d->name,
                          d->channels, d->height, d->width);
    if (tide_model_classes(model) < d->classes)
        return tide__fail(TIDE_E_ARGUMENT, "data set %s has %u classes, the model %u", d->name, d->classes,
                          tide_model_classes(model));
    if (tide_model_labels(model) != (d->labels ? d->labels : 1))
        return tide__fail(TIDE_E_ARGUMENT, "model %s learns %llu labels per sample, data set %s has %llu",
                          tide_model_name(model), (unsigned long long)tide_model_labels(model), d->name,
                          (unsigned long long)d->labels);
    if (d->n_samples == 0 || d->n_samples >> 62)
        return tide__fail(TIDE_E_ARGUMENT, "a data set has 1 to 2^62 - 1 samples");
    return TIDE_OK;
}

static tide_status check_peers(const tide_trainer_options *o) {
    uint32_t micros = tide__step_micros(&o->step);
    if (!o->peers->message || o->peers->rank >= o->peers->count)
        return tide__fail(TIDE_E_ARGUMENT, "rank %u of %u, or no function for messages", o->peers->rank,
                          o->peers->count);
    if (micros % o->peers->count != 0)
        return tide__fail(TIDE_E_ARGUMENT, "%u micro-batches cannot be shared by %u ranks", micros, o->peers->count);
    if (o->n_parts || o->mode != TIDE_MODE_PLANNED)
        return tide__fail(TIDE_E_UNSUPPORTED, "several ranks train from plans, a network that does not change");
    if ((unsigned)o->step.shard > TIDE_SHARD_ALL)
        return tide__fail(TIDE_E_ARGUMENT, "unknown shard %d", (int)o->step.shard);
    return TIDE_OK;
}

/* Each takes a run of micro-batches. */
static void take_share(tide_trainer_options *o) {
    o->step.micro_count = tide__step_micros(&o->step) / o->peers->count;
    o->step.first_micro = o->peers->rank * o->step.micro_count;
}

static tide_status check_options(const tide_trainer_options *o) {
    if (!o->model || !o->device || !o->machine || !o->data)
        return tide__fail(TIDE_E_ARGUMENT, "training needs a model, a device, a machine and data");
    if (!isfinite(o->learning_rate) || o->learning_rate < 0)
        return tide__fail(TIDE_E_ARGUMENT, "a learning rate of %g is no number from 0 up", (double)o->learning_rate);
    if ((unsigned)o->mode > TIDE_MODE_AUTO)
        return tide__fail(TIDE_E_ARGUMENT, "there is no mode %d of training", (int)o->mode);
    TIDE_TRY(tide__check_data(o->model, o->data));
    TIDE_TRY(tide__parts_check(o));
    if (o->peers) TIDE_TRY(check_peers(o));
    return tide__schedule_check(&o->schedule);
}

/* ---- weights ---- */

static tide_status init_states(tide__network *n, uint64_t seed) {
    for (uint32_t i = 0; i < tide_step_state_count(n->step); i++) TIDE_TRY(tide__network_init_state(n, i, seed));
    return TIDE_OK;
}

/* ---- life ---- */

/* It comes with a step, so that nobody waits for it apart. */
static tide_status watch_loss(tide_trainer *t) {
    const tide__network *n = &t->network;
    TIDE_TRY(tide_run_watch(n->run, tide_step_loss(n->step), &t->loss_sum, sizeof t->loss_sum));
    tide_id scale = tide_step_update_scale(n->step);
    return scale == TIDE_NONE ? TIDE_OK : tide_run_watch(n->run, scale, &t->update_scale, sizeof t->update_scale);
}

static tide_status open_trainer(tide_trainer *t, tide_fit_report *fit) {
    tide_trainer_options *o = &t->options;
    t->batch = tide__step_micros(&o->step) * (uint64_t)tide_model_input(o->model).n;
    if (o->peers) take_share(o);
    if (o->n_parts) return tide__parts_open(t); /* parameters have their first values */
    TIDE_TRY(tide__network_open(o, &o->step, NULL, fit, &t->network));
    TIDE_TRY(watch_loss(t));
    tide__learning_open(t);
    tide__loader_open(&t->loader, &t->network, o->data, o->device);
    return init_states(&t->network, o->seed);
}

tide_status tide_trainer_create(const tide_trainer_options *options, tide_fit_report *fit, tide_trainer **out) {
    tide_trainer_options taken;
    tide_trainer_options_init(&taken);
    if (!out) return tide__fail(TIDE_E_ARGUMENT, "training needs a place for its handle");
    TIDE_TRY(tide__options_take("tide_trainer_options", options, sizeof taken, &taken));
    TIDE_TRY(check_options(&taken));
    tide_trainer *t = calloc(1, sizeof *t);
    if (!t) return tide__fail_memory();
    t->options = taken;
    t->update_scale = 1;
    tide_status status = open_trainer(t, fit);
    if (status == TIDE_OK)
        *out = t;
    else
        tide_trainer_destroy(t);
    return status;
}

void tide_trainer_destroy(tide_trainer *t) {
    if (!t) return;
    tide__loader_close(&t->loader);
    tide__learning_close(t);
    tide__parts_close(t);
    tide__network_close(&t->network);
    free(t);
}

const tide_plan *tide_trainer_plan(const tide_trainer *t) { return t->network.plan; }
const tide_machine *tide_trainer_machine(const tide_trainer *t) { return &t->network.machine; }
const tide_budgets *tide_trainer_budgets(const tide_trainer *t) { return &t->options.plan.budgets; }
const tide_step *tide_trainer_step_program(const tide_trainer *t) { return t->network.step; }

/* ---- steps ---- */

enum { MOST_SKIPS_IN_A_ROW = 15 };

/* Of the step just done, whose number is counted from 1. */
static tide_status check_finite(tide_trainer *t, float loss) {
    bool skipped = isnan(t->update_scale);
    t->skipped += skipped;
    t->skipped_in_a_row = skipped ? t->skipped_in_a_row + 1 : 0;
    if (t->skipped_in_a_row > MOST_SKIPS_IN_A_ROW)
        return tide__fail(TIDE_E_DIVERGED, "step %llu is the %uth in a row whose gradients are not finite",
                          (unsigned long long)t->step, t->skipped_in_a_row);
    if (isfinite(loss) || skipped) return TIDE_OK;
    return tide__fail(TIDE_E_DIVERGED,
                      "the loss of step %llu is %s: a smaller learning rate, a warm-up or clipping may help",
                      (unsigned long long)t->step, isnan(loss) ? "no number" : "infinite");
}

static float mean_loss(const tide_trainer *t) { return t->loss_sum / (float)tide__step_micros(&t->options.step); }

/* The batch at hand, and the one after it begins to load. */
static tide_status load_batch(tide_trainer *t) {
    tide__cursor cursor = {.seed = t->options.seed, .n_samples = t->options.data->n_samples, .seen = t->seen};
    TIDE_TRY(tide__loader_take(&t->loader, &cursor));
    cursor.seen += t->batch;
    tide__loader_begin(&t->loader, &cursor);
    return TIDE_OK;
}

float tide_trainer_rate(const tide_trainer *t, uint64_t step) {
    return tide_schedule_rate(&t->options.schedule, t->options.learning_rate, step);
}

static tide_step_args step_args(const tide_trainer *t) {
    return (tide_step_args){.seed = t->options.seed, .step = t->step, .learning_rate = tide_trainer_rate(t, t->step)};
}

static tide_status train_part(tide_trainer *t, float *loss, tide_step_report *report, bool traced) {
    const tide_step_args args = step_args(t);
    if (traced) return tide__fail(TIDE_E_UNSUPPORTED, "steps of a network that changes cannot be traced");
    float own;
    TIDE_TRY(tide__parts_step(t, &args, &own, report));
    t->step++;
    t->seen += t->batch;
    TIDE_TRY(check_finite(t, own));
    *loss = own;
    return TIDE_OK;
}

/* timeline: NULL if nobody wants it. */
static tide_status run_step(tide_trainer *t, tide_step_report *report, tide_timeline **timeline) {
    const tide_step_args args = step_args(t);
    TIDE_TRY(load_batch(t));
    TIDE_TRY(timeline ? tide_run_step_traced(t->network.run, &args, report, timeline)
                      : tide_run_step(t->network.run, &args, report));
    t->step++;
    t->seen += t->batch;
    return TIDE_OK;
}

/* timeline: where it goes; some steps are timed even if nobody asks for that. */
static tide_status train_step(tide_trainer *t, float *loss, tide_step_report *report, tide_timeline **timeline) {
    tide_timeline *own = NULL;
    tide_step_report own_report;
    if (t->spoiled) return tide__fail(TIDE_E_POISONED, "the trainer's values come from half a checkpoint");
    if (t->parts) return train_part(t, loss, report, timeline != NULL);
    TIDE_TRY(tide__learning_settle(t));
    if (!timeline && tide__learning_wants_times(t)) timeline = &own;
    if (!report) report = &own_report;
    tide_status status = run_step(t, report, timeline);
    if (status == TIDE_OK) status = check_finite(t, mean_loss(t));
    if (status == TIDE_OK) *loss = mean_loss(t);
    if (status == TIDE_OK) status = tide__learning_note(t, timeline ? *timeline : NULL, report);
    tide_timeline_destroy(own);
    return status;
}

tide_status tide_trainer_step(tide_trainer *t, float *loss, tide_step_report *report) {
    TIDE_NEED(t, loss);
    return train_step(t, loss, report, NULL);
}

tide_status tide_trainer_step_traced(tide_trainer *t, float *loss, tide_step_report *report, tide_timeline **out) {
    TIDE_NEED(t, loss, out);
    tide_timeline *timeline = NULL;
    tide_status status = train_step(t, loss, report, &timeline);
    if (status == TIDE_OK)
        *out = timeline;
    else
        tide_timeline_destroy(timeline);
    return status;
}

tide_status tide_trainer_step_timed(tide_trainer *t, float *loss, tide_step_report *report, uint64_t *op_ns) {
    TIDE_NEED(t, loss, op_ns);
    if (t->parts) return tide__fail(TIDE_E_UNSUPPORTED, "steps of a network that changes cannot be timed");
    tide__op_timer timer = {.device = t->options.device};
    uint64_t sum = 0;
    t->network.timer = &timer;
    tide_status status = tide_trainer_step(t, loss, report);
    t->network.timer = NULL;
    if (status == TIDE_OK) status = tide__op_timer_read(&timer, op_ns, &sum);
    if (status == TIDE_OK && report) report->compute_ns = sum;
    tide__op_timer_free(&timer);
    return status;
}

tide_status tide_trainer_hash(tide_trainer *t, uint64_t *hash) {
    TIDE_NEED(t, hash);
    const tide__network *n = &t->network;
    uint64_t h = t->step;
    for (uint32_t i = 0; i < tide_step_state_count(n->step); i++) TIDE_TRY(tide__owner_hashes_state(t, i, &h));
    *hash = h;
    return TIDE_OK;
}
