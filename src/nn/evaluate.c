/* Evaluation: a forward-only step with the trainer's weights, in its arena where it fits there, else in what its budgets
 * leave. It changes nothing: what is in its way comes back to where it was. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/size.h"
#include "nn/parts.h"
#include "nn/probabilities.h"
#include "nn/states.h"
#include "nn/step.h"
#include "nn/trainer.h"
#include "run/guest.h"

/* ---- batches ---- */

/* From `first` on, over and over. */
typedef struct stretch {
    uint64_t first, n_samples;
} stretch;

static uint64_t in_order(const void *context, uint64_t i, uint64_t *draw) {
    (void)draw;
    const stretch *s = context;
    return (s->first + i) % s->n_samples;
}

/* ---- scores ---- */

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

/* The first `limit` labels, which the step has checked. */
static tide_status read_labels(const tide__probabilities *r, const int32_t *labels, uint64_t limit, score *sum) {
    const float *rows;
    uint64_t n;
    for (uint64_t first = 0; first < r->rows; first += n) {
        TIDE_TRY(tide__probabilities_read(r, first, &rows, &n));
        for (uint64_t i = first * r->pixels; i < limit && i < (first + n) * r->pixels; i++)
            add_label(rows + (i / r->pixels - first) * r->classes * r->pixels + i % r->pixels, r->classes, r->pixels,
                      (uint64_t)labels[i], sum);
    }
    return TIDE_OK;
}

/* Where the step has scored its labels: pairs of the logarithm of a probability and the likeliest class. */
static tide_status add_scores(const tide__network *n, const int32_t *labels, uint64_t limit, score *sum) {
    const tide_id tensor = tide_step_scores(n->step, 0);
    const uint64_t bytes = tide_program_tensor(n->program, tensor)->size_bytes;
    float *pairs = malloc(bytes);
    if (!pairs) return tide__fail_memory();
    tide_status status = tide__network_read_part(n, tensor, 0, pairs, bytes);
    for (uint64_t i = 0; status == TIDE_OK && i < limit; i++) {
        sum->right += pairs[2 * i + 1] == (float)labels[i];
        sum->loss -= (double)pairs[2 * i];
    }
    free(pairs);
    return status;
}

static tide_status add_labels(const tide_trainer *t, tide__network *n, const int32_t *labels, uint64_t limit,
                              score *sum) {
    if (tide_step_scores(n->step, 0) != TIDE_NONE) return add_scores(n, labels, limit, sum);
    tide__probabilities r;
    tide_status status = tide__probabilities_open(n, t->options.device, &r);
    if (status == TIDE_OK) status = read_labels(&r, labels, limit, sum);
    tide__probabilities_close(&r);
    return status;
}

/* ---- steps ---- */

/* borrows: the parameters stay where they are. */
static tide_status evaluate(tide_trainer *t, tide__network *n, bool borrows, const tide_data *data, uint64_t n_samples,
                            score *sum) {
    uint64_t batch = (uint64_t)tide_model_input(t->options.model).n;
    tide_step_args args = {.seed = t->options.seed};
    TIDE_TRY(borrows ? tide__network_borrow_states(n, &t->network) : tide__network_copy_states(n, &t->network));
    for (uint64_t at = 0; at < n_samples; at += batch) {
        stretch s = {.first = at, .n_samples = data->n_samples};
        uint64_t limit = n_samples - at < batch ? n_samples - at : batch;
        TIDE_TRY(tide__network_fill(n, &n->batch, data, in_order, &s));
        TIDE_TRY(tide_run_step(n->run, &args, NULL));
        TIDE_TRY(add_labels(t, n, n->batch.labels[0], limit * tide_model_labels(t->options.model), sum));
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
        TIDE_TRY(add_labels(t, n, labels, limit * tide_model_labels(t->options.model), sum));
    }
    return TIDE_OK;
}

/* ---- where it runs ---- */

/* One way to plan an evaluation. */
typedef struct attempt {
    const char *policy;
    bool borrows; /* parameters are brought in where they are needed, instead of all at the beginning */
    bool beside;  /* the arena, where the budget has room left; else in it */
} attempt;

static bool can_attempt(const tide_trainer *t, const attempt *a) {
    uint64_t budget = t->options.plan.budgets.arena_bytes, used = tide__run_guest_bytes(t->network.run);
    if (a->beside) return budget > used;
    return a->policy != NULL;
}

/* Under what the trainer leaves of its budgets. A file of decisions is for the training step alone. */
static tide_status try_evaluation(tide_trainer *t, const attempt *a, tide__network *network) {
    tide_trainer_options options = t->options;
    tide_step_options step = t->options.step;
    uint64_t *arena = &options.plan.budgets.arena_bytes, used = tide__run_guest_bytes(t->network.run);
    tide__step_for_inference(&step);
    step.scores_only = true;
    step.client_weights = a->borrows;
    options.plan.policy = a->policy;
    options.plan.decisions = NULL;
    options.plan_folder = NULL;
    options.mode = TIDE_MODE_PLANNED;
    tide__run_guest_tiers(t->network.run, &options.plan.budgets);
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
        if (!tide_status_is_misfit(status)) return status;
        if (i == 0) snprintf(first, sizeof first, "%s", tide_last_error());
    }
    return tide__fail(TIDE_E_FIT, "evaluation does not fit: %s", first);
}

static tide_status evaluate_apart(tide_trainer *t, const tide_data *data, uint64_t n_samples, score *sum) {
    tide__network network;
    bool borrows;
    tide__loader_rest(&t->loader); /* the evaluation may use the same buffers */
    TIDE_TRY(tide_run_rest(t->network.run));
    TIDE_TRY(open_evaluation(t, &network, &borrows));
    tide_status status = evaluate(t, &network, borrows, data, n_samples, sum);
    tide__network_close(&network);
    return status == TIDE_OK ? tide__run_left_by_guest(t->network.run) : status;
}

tide_status tide_trainer_test(tide_trainer *t, const tide_data *data, uint64_t n_samples, tide_evaluation *out) {
    TIDE_NEED(t, data, out);
    TIDE_TRY(tide__check_data(t->options.model, data));
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
    TIDE_NEED(t, data, accuracy);
    tide_evaluation e;
    TIDE_TRY(tide_trainer_test(t, data, n_samples, &e));
    *accuracy = e.accuracy;
    return TIDE_OK;
}
