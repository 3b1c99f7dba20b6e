/* Prediction: a network that only looks, with weights from a file. See predict.h. */
#include <tidemark/predict.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "nn/model.h"
#include "nn/probabilities.h"
#include "nn/states.h"
#include "nn/weights.h"

struct tide_predictor {
    const tide_model *model;
    tide__network network;
    tide__probabilities last;
    uint64_t runs;
    bool loaded; /* it has its weights */
    bool ran;    /* there are probabilities to read */
};

void tide_predictor_options_init(tide_predictor_options *o) {
    *o = (tide_predictor_options){.size = sizeof *o};
    tide_plan_options_init(&o->plan);
}

/* What a file that is loaded in part does not have. */
static tide_status zero_piece(void *context, const tide_state *state, const tide_piece *piece, float *plain) {
    uint64_t elements = 1;
    (void)context;
    (void)state;
    for (int i = 0; i < 4; i++) elements *= piece->to[i] - piece->from[i];
    memset(plain, 0, elements * sizeof *plain);
    return TIDE_OK;
}

static tide_status open_predictor(const tide_predictor_options *o, tide_fit_report *fit, tide_predictor *p) {
    tide_trainer_options trainer;
    tide_step_options step;
    tide_trainer_options_init(&trainer);
    tide_step_options_init(&step);
    tide__step_for_inference(&step);
    trainer.model = o->model;
    trainer.device = o->device;
    trainer.machine = o->machine;
    trainer.plan = o->plan;
    trainer.disk_path = o->disk_path;
    TIDE_TRY(tide__network_open(&trainer, &step, NULL, fit, &p->network));
    for (uint32_t i = 0; i < tide_step_state_count(p->network.step); i++)
        TIDE_TRY(tide__network_write_state(&p->network, i, zero_piece, NULL));
    return tide__probabilities_open(&p->network, o->device, &p->last);
}

tide_status tide_predictor_create(const tide_predictor_options *options, tide_fit_report *fit, tide_predictor **out) {
    tide_predictor_options taken;
    tide_predictor_options_init(&taken);
    if (!out) return tide__fail(TIDE_E_ARGUMENT, "a predictor needs a place for its handle");
    TIDE_TRY(tide__options_take("tide_predictor_options", options, sizeof taken, &taken));
    if (!taken.model || !taken.device || !taken.machine)
        return tide__fail(TIDE_E_ARGUMENT, "a predictor needs a model, a device and a machine");
    tide_predictor *p = calloc(1, sizeof *p);
    if (!p) return tide__fail_memory();
    p->model = taken.model;
    tide_status status = open_predictor(&taken, fit, p);
    if (status == TIDE_OK)
        *out = p;
    else
        tide_predictor_destroy(p);
    return status;
}

void tide_predictor_destroy(tide_predictor *p) {
    if (!p) return;
    tide__probabilities_close(&p->last);
    tide__network_close(&p->network);
    free(p);
}

tide_status tide_predictor_load(tide_predictor *p, const char *path, const tide_weights_options *options) {
    TIDE_NEED(p, path);
    p->ran = p->loaded = false;
    TIDE_TRY(tide__network_load_weights(&p->network, p->model->naming, path, options));
    p->loaded = true;
    return TIDE_OK;
}

/* Labels, which only the loss reads, are all 0. */
tide_status tide_predictor_run(tide_predictor *p, const float *plain) {
    TIDE_NEED(p, plain);
    tide_step_args args = {.step = p->runs};
    if (!p->loaded) return tide__fail(TIDE_E_ARGUMENT, "a predictor needs weights before it runs");
    p->ran = false;
    TIDE_TRY(tide__network_pack_input(&p->network, 0, plain, p->network.batch.inputs[0]));
    TIDE_TRY(tide_run_step(p->network.run, &args, NULL));
    p->runs++;
    p->ran = true;
    return TIDE_OK;
}

tide_status tide_predictor_read(tide_predictor *p, uint64_t row, float *probabilities) {
    TIDE_NEED(p, probabilities);
    const float *rows;
    uint64_t n;
    if (!p->ran) return tide__fail(TIDE_E_ARGUMENT, "there is no batch whose probabilities could be read");
    if (row >= p->last.rows)
        return tide__fail(TIDE_E_ARGUMENT, "row %llu of %llu", (unsigned long long)row,
                          (unsigned long long)p->last.rows);
    TIDE_TRY(tide__probabilities_read(&p->last, row, &rows, &n));
    memcpy(probabilities, rows, p->last.classes * p->last.pixels * sizeof *probabilities);
    return TIDE_OK;
}
