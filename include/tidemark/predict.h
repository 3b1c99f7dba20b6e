/* Prediction: a model with weights from a file says how likely each class is, or each next token. Forward only, from a plan,
 * inside a byte budget, as everything here. */
#ifndef TIDEMARK_PREDICT_H
#define TIDEMARK_PREDICT_H

#include <tidemark/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_predictor tide_predictor;

typedef struct tide_predictor_options {
    size_t size; /* sizeof(tide_predictor_options) */
    const tide_model *model;
    tide_device *device;         /* one with kernels */
    const tide_machine *machine; /* tiers and channels */
    tide_plan_options plan;      /* policy, budgets */
    const char *disk_path;       /* folder for spilled bytes; NULL: the system's temporary folder */
} tide_predictor_options;
TIDE_API void tide_predictor_options_init(tide_predictor_options *options);
/* It has no weights yet. TIDE_E_FIT fills *fit (may be NULL). */
TIDE_API tide_status tide_predictor_create(const tide_predictor_options *options, tide_fit_report *fit,
                                           tide_predictor **out);
TIDE_API void tide_predictor_destroy(tide_predictor *predictor); /* NULL is fine */
/* As tide_trainer_load_weights. With `partial`, what the file does not have is 0. After a failure it has no weights. */
TIDE_API tide_status tide_predictor_load(tide_predictor *predictor, const char *path,
                                         const tide_weights_options *options);
/* One batch. plain: the input of the model, row-major; tokens as floats. */
TIDE_API tide_status tide_predictor_run(tide_predictor *predictor, const float *plain);
/* Of the batch just run. Row i belongs to sample i, or to token i % T of sample i / T: how likely each token is to follow it.
 * probabilities: one per class, or of each class one per pixel. */
TIDE_API tide_status tide_predictor_read(tide_predictor *predictor, uint64_t row, float *probabilities);

#ifdef __cplusplus
}
#endif
#endif
