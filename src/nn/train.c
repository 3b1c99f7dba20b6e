/* Training: fresh weights, batches in a shuffled order, steps, evaluation. Everything random is a function of the
 * seed and a counter, so two trainers with the same options see and compute the same, whatever their plans. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"
#include "nn/parts.h"
#include "nn/schedule.h"
#include "nn/trainer.h"

void tide_trainer_options_init(tide_trainer_options *options) {
    *options = (tide_trainer_options){.size = sizeof *options, .learning_rate = 0.05f, .seed = 1};
    tide_step_options_init(&options->step);
    tide_plan_options_init(&options->plan);
    tide_schedule_init(&options->schedule);
    options->step.optimizer = TIDE_MOMENTUM;
}

/* To train or to test with: its samples are as the model takes them. */
static tide_status check_data(const tide_model *model, const tide_data *d) {
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

static tide_status check_options(const tide_trainer_options *o) {
    if (o->size != sizeof *o) return tide__fail(TIDE_E_ARGUMENT, "tide_trainer_options: wrong size");
    if (!o->model || !o->device || !o->machine || !o->data)
        return tide__fail(TIDE_E_ARGUMENT, "training needs a model, a device, a machine and data");
    TIDE_TRY(check_data(o->model, o->data));
    TIDE_TRY(tide__parts_check(o));
    return tide__schedule_check(&o->schedule);
}

/* ---- weights ---- */

/* Two uniform numbers become one normal one (Box and Muller). */
static float normal(uint64_t seed, uint64_t stream, uint64_t i) {
    float u = 1 - tide__random_unit(seed, stream, 2 * i), v = tide__random_unit(seed, stream, 2 * i + 1);
    return sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
}

static float initial(const tide_state *s, uint64_t seed, uint64_t stream, uint64_t i) {
    switch (s->init) {
    case TIDE_INIT_ZERO: return 0;
    case TIDE_INIT_ONE: return 1;
    case TIDE_INIT_NORMAL: return s->init_scale * normal(seed, stream, i);
    case TIDE_INIT_UNIFORM: return s->init_scale * (2 * tide__random_unit(seed, stream, i) - 1);
    }
    return 0;
}

/* A state's randomness comes from its name, so that it does not depend on the order of states. */
void tide__state_init(const tide_state *s, uint64_t seed, float *plain) {
    uint64_t elements = tide__elements(s->shape), stream = tide__hash_bytes(0, s->name, strlen(s->name));
    for (uint64_t k = 0; k < elements; k++) plain[k] = initial(s, seed, stream, k);
}

static tide_status init_state(tide__network *n, uint32_t i, uint64_t seed, tide__room *room) {
    const tide_state *s = tide_step_state(n->step, i);
    tide__state_init(s, seed, room->plain);
    tide_status status = tide__network_write_state(n, i, room);
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "state \"%s\"", s->name);
}

static tide_status init_states(tide__network *n, uint64_t seed) {
    tide_status status = TIDE_OK;
    tide__room room;
    TIDE_TRY(tide__room_open(n, NULL, &room));
    for (uint32_t i = 0; i < tide_step_state_count(n->step) && status == TIDE_OK; i++)
        status = init_state(n, i, seed, &room);
    tide__room_close(&room);
    return status;
}

/* ---- life ---- */

/* They come with a step, so that nobody waits for them apart. */
static tide_status watch_losses(tide_trainer *t) {
    const tide__network *n = &t->network;
    t->losses = calloc(n->n_micros, sizeof *t->losses);
    if (!t->losses) return tide__fail_memory();
    for (uint32_t m = 0; m < n->n_micros; m++)
        TIDE_TRY(tide_run_watch(n->run, tide_step_loss(n->step, m), &t->losses[m], sizeof t->losses[m]));
    return TIDE_OK;
}

static tide_status open_trainer(tide_trainer *t, tide_fit_report *fit) {
    const tide_trainer_options *o = &t->options;
    uint64_t micros = o->step.accumulate > 1 ? o->step.accumulate : 1;
    t->batch = micros * (uint64_t)tide_model_input(o->model).n;
    if (o->n_parts) return tide__parts_open(t); /* parameters have their first values */
    TIDE_TRY(tide__network_open(o, &o->step, NULL, fit, &t->network));
    TIDE_TRY(watch_losses(t));
    tide__learning_open(t);
    tide__loader_open(&t->loader, &t->network, o->data, o->device);
    return init_states(&t->network, o->seed);
}

tide_status tide_trainer_create(const tide_trainer_options *options, tide_fit_report *fit, tide_trainer **out) {
    TIDE_TRY(check_options(options));
    tide_trainer *t = calloc(1, sizeof *t);
    if (!t) return tide__fail_memory();
    t->options = *options;
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
    free(t->losses);
    free(t);
}

const tide_plan *tide_trainer_plan(const tide_trainer *t) { return t->network.plan; }
const tide_step *tide_trainer_step_program(const tide_trainer *t) { return t->network.step; }

/* ---- steps ---- */

static float mean_loss(const tide_trainer *t) {
    double sum = 0;
    for (uint32_t m = 0; m < t->network.n_micros; m++) sum += (double)t->losses[m];
    return (float)(sum / t->network.n_micros);
}

/* The batch at hand, and the one after it begins to load. */
static tide_status load_batch(tide_trainer *t) {
    tide__cursor cursor = {.seed = t->options.seed, .n_samples = t->options.data->n_samples, .seen = t->seen};
    TIDE_TRY(tide__loader_take(&t->loader, &cursor));
    cursor.seen += t->batch;
    tide__loader_begin(&t->loader, &cursor);
    return TIDE_OK;
}

static tide_step_args step_args(const tide_trainer *t) {
    const tide_trainer_options *o = &t->options;
    return (tide_step_args){
        .seed = o->seed, .step = t->step, .learning_rate = tide_schedule_rate(&o->schedule, o->learning_rate, t->step)};
}

static tide_status train_part(tide_trainer *t, float *loss, tide_step_report *report, bool traced) {
    const tide_step_args args = step_args(t);
    if (traced) return tide__fail(TIDE_E_UNSUPPORTED, "steps of a network that changes cannot be traced");
    TIDE_TRY(tide__parts_step(t, &args, loss, report));
    t->step++;
    t->seen += t->batch;
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
    if (status == TIDE_OK) *loss = mean_loss(t);
    if (status == TIDE_OK) status = tide__learning_note(t, timeline ? *timeline : NULL, report);
    tide_timeline_destroy(own);
    return status;
}

tide_status tide_trainer_step(tide_trainer *t, float *loss, tide_step_report *report) {
    return train_step(t, loss, report, NULL);
}

tide_status tide_trainer_step_traced(tide_trainer *t, float *loss, tide_step_report *report, tide_timeline **out) {
    tide_timeline *timeline = NULL;
    tide_status status = train_step(t, loss, report, &timeline);
    if (status == TIDE_OK)
        *out = timeline;
    else
        tide_timeline_destroy(timeline);
    return status;
}

tide_status tide_trainer_step_timed(tide_trainer *t, float *loss, tide_step_report *report, uint64_t *op_ns) {
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
    tide__network *n = &t->network;
    tide_status status = TIDE_OK;
    tide__room room;
    uint64_t h = t->step, size;
    TIDE_TRY(tide__room_open(n, NULL, &room));
    for (uint32_t i = 0; i < tide_step_state_count(n->step) && status == TIDE_OK; i++) {
        status = tide__network_read_stored(n, i, &room, &size);
        if (status == TIDE_OK) h = tide__hash_bytes(h, room.stored, size);
    }
    tide__room_close(&room);
    if (status == TIDE_OK) *hash = h;
    return status;
}

/* ---- evaluation ---- */

static tide_status copy_states(tide__network *from, tide__network *to) {
    uint32_t source = 0;
    tide_status status = TIDE_OK;
    tide__room room;
    TIDE_TRY(tide__room_open(to, from, &room));
    for (uint32_t i = 0; i < tide_step_state_count(to->step) && status == TIDE_OK; i++) {
        const tide_state *s = tide_step_state(to->step, i);
        if (!tide__step_find_state(from->step, s->name, &source))
            status = tide__fail(TIDE_E_INTERNAL, "the training step has no state \"%s\"", s->name);
        if (status == TIDE_OK) status = tide__network_read_state(from, source, &room);
        if (status == TIDE_OK) status = tide__network_write_state(to, i, &room);
    }
    tide__room_close(&room);
    return status;
}

/* From `first` on, over and over. */
typedef struct stretch {
    uint64_t first, n_samples;
} stretch;

static uint64_t in_order(const void *context, uint64_t i) {
    const stretch *s = context;
    return (s->first + i) % s->n_samples;
}

/* The op whose first write are the probabilities. */
static tide_id loss_op(const tide__network *n) {
    tide_id tensor = tide_step_probabilities(n->step, 0), op = tide_program_op_count(n->program) - 1;
    while (op > 0 && tide_program_op(n->program, op)->writes[0] != tensor) op--;
    return op;
}

/* Row-major. */
static tide_status read_probabilities(tide__network *n, tide_id op, float *plain) {
    tide_id tensor = tide_step_probabilities(n->step, 0);
    uint64_t size = tide_program_tensor(n->program, tensor)->size_bytes;
    void *stored = malloc(size + 1);
    if (!stored) return tide__fail_memory();
    tide_status status = tide__network_read(n, tensor, stored, size);
    if (status == TIDE_OK)
        status = tide_operand_unpack(n->kernels[op], tide_program_op(n->program, op)->n_reads, stored, plain);
    free(stored);
    return status;
}

/* The likeliest class of pixel p; classes lie `pixels` apart. */
static uint64_t likeliest(const float *p, uint64_t classes, uint64_t pixels) {
    uint64_t best = 0;
    for (uint64_t c = 1; c < classes; c++)
        if (p[c * pixels] > p[best * pixels]) best = c;
    return best;
}

/* Sums over labels. */
typedef struct score {
    uint64_t right;
    double loss;
} score;

/* Of one label, from the probabilities of its pixel. The smallest float stands for 0. */
static void add_label(const float *p, uint64_t classes, uint64_t pixels, uint64_t label, score *sum) {
    float own = p[label * pixels];
    sum->right += likeliest(p, classes, pixels) == label;
    sum->loss -= log((double)(own > 0x1p-149f ? own : 0x1p-149f));
}

/* The first `limit` labels. */
static tide_status add_labels(tide__network *n, const int32_t *labels, uint64_t limit, score *sum) {
    tide_id op = loss_op(n);
    tide_shape shape = tide_step_op_desc(n->step, op)->x;
    uint64_t classes = (uint64_t)shape.c, pixels = (uint64_t)(shape.h * shape.w);
    float *p = malloc((tide__elements(shape) + 1) * sizeof *p);
    if (!p) return tide__fail_memory();
    tide_status status = read_probabilities(n, op, p);
    for (uint64_t i = 0; status == TIDE_OK && i < limit; i++) /* the step has checked them */
        add_label(p + i / pixels * classes * pixels + i % pixels, classes, pixels, (uint64_t)labels[i], sum);
    free(p);
    return status;
}

/* borrows: the parameters stay where they are. */
static tide_status evaluate(tide_trainer *t, tide__network *n, bool borrows, const tide_data *data, uint64_t n_samples,
                            score *sum) {
    uint64_t batch = (uint64_t)tide_model_input(t->options.model).n;
    tide_step_args args = {.seed = t->options.seed};
    TIDE_TRY(borrows ? tide__network_borrow_states(n, &t->network) : copy_states(&t->network, n));
    for (uint64_t at = 0; at < n_samples; at += batch) {
        stretch s = {.first = at, .n_samples = data->n_samples};
        uint64_t limit = n_samples - at < batch ? n_samples - at : batch;
        TIDE_TRY(tide__network_fill(n, &n->batch, data, in_order, &s));
        TIDE_TRY(tide_run_step(n->run, &args, NULL));
        TIDE_TRY(add_labels(n, n->batch.labels[0], limit * tide_model_labels(t->options.model), sum));
        args.step++;
    }
    return TIDE_OK;
}

/* The same for a network that changes: the whole of it, through its session. */
static tide_status evaluate_parts(tide_trainer *t, const tide_data *data, uint64_t n_samples, score *sum) {
    uint64_t batch = (uint64_t)tide_model_input(t->options.model).n;
    tide_step_args args = {.seed = t->options.seed};
    for (uint64_t at = 0; at < n_samples; at += batch, args.step++) {
        stretch s = {.first = at, .n_samples = data->n_samples};
        uint64_t limit = n_samples - at < batch ? n_samples - at : batch;
        tide__network *n;
        const int32_t *labels;
        TIDE_TRY(tide__parts_look(t, data, in_order, &s, &args, &n, &labels));
        TIDE_TRY(add_labels(n, labels, limit * tide_model_labels(t->options.model), sum));
    }
    return TIDE_OK;
}

/* One way to plan an evaluation. */
typedef struct attempt {
    const char *policy;
    bool borrows; /* parameters are brought in where they are needed, instead of all at the beginning */
    bool beside;  /* the arena, where the budget has room left; else in it */
} attempt;

static bool can_attempt(const tide_trainer *t, const attempt *a) {
    uint64_t budget = t->options.plan.budgets.arena_bytes, used = tide_run_guest_bytes(t->network.run);
    if (a->beside) return budget > used;
    return a->policy != NULL;
}

/* Under what the trainer leaves of its budgets. A file of decisions is for the training step alone. */
static tide_status try_evaluation(tide_trainer *t, const attempt *a, tide__network *network) {
    tide_trainer_options options = t->options;
    tide_step_options step = t->options.step;
    uint64_t *arena = &options.plan.budgets.arena_bytes, used = tide_run_guest_bytes(t->network.run);
    tide__step_for_inference(&step);
    step.client_weights = a->borrows;
    options.plan.policy = a->policy;
    options.plan.decisions = NULL;
    options.plan_folder = NULL;
    options.mode = TIDE_MODE_PLANNED;
    tide_run_guest_tiers(t->network.run, &options.plan.budgets);
    if (!a->beside)
        *arena = used;
    else if (*arena != UINT64_MAX)
        *arena -= used;
    return tide__network_open(&options, &step, a->beside ? NULL : &t->network, NULL, network);
}

/* The first way that fits; where none does, the reason is that of the first. */
static tide_status open_evaluation(tide_trainer *t, tide__network *network, bool *borrows) {
    const char *own = t->options.plan.decisions ? NULL : t->options.plan.policy;
    const attempt attempts[] = {{.policy = "liveness"},
                                {.policy = "liveness", .beside = true},
                                {.policy = "liveness", .borrows = true},
                                {.policy = own},
                                {.policy = own, .borrows = true}};
    char first[512] = "";
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        if (!can_attempt(t, &attempts[i])) continue;
        tide_status status = try_evaluation(t, &attempts[i], network);
        *borrows = attempts[i].borrows;
        if (status != TIDE_E_FIT && status != TIDE_E_TIER_FULL) return status;
        if (i == 0) snprintf(first, sizeof first, "%s", tide_last_error());
    }
    return tide__fail(TIDE_E_FIT, "evaluation does not fit: %s", first);
}

static tide_status evaluate_apart(tide_trainer *t, const tide_data *data, uint64_t n_samples, score *sum) {
    tide__network network;
    bool borrows;
    tide__loader_rest(&t->loader); /* the evaluation may use the same buffers */
    TIDE_TRY(open_evaluation(t, &network, &borrows));
    tide_status status = evaluate(t, &network, borrows, data, n_samples, sum);
    tide__network_close(&network);
    return status == TIDE_OK ? tide_run_left_by_guest(t->network.run) : status;
}

tide_status tide_trainer_test(tide_trainer *t, const tide_data *data, uint64_t n_samples, tide_evaluation *out) {
    TIDE_TRY(check_data(t->options.model, data));
    if (n_samples == 0 || n_samples > data->n_samples)
        return tide__fail(TIDE_E_ARGUMENT, "evaluation on %llu of %llu samples", (unsigned long long)n_samples,
                          (unsigned long long)data->n_samples);
    score sum = {0};
    tide_status status = t->parts ? evaluate_parts(t, data, n_samples, &sum) : evaluate_apart(t, data, n_samples, &sum);
    double labels = (double)(n_samples * tide_model_labels(t->options.model));
    if (status == TIDE_OK) *out = (tide_evaluation){(double)sum.right / labels, sum.loss / labels};
    return status;
}

tide_status tide_trainer_evaluate(tide_trainer *t, const tide_data *data, uint64_t n_samples, double *accuracy) {
    tide_evaluation e;
    TIDE_TRY(tide_trainer_test(t, data, n_samples, &e));
    *accuracy = e.accuracy;
    return TIDE_OK;
}
