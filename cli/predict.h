/* Parts of tidemark predict: its options, and what it does for images and for text. */
#ifndef TIDE_CLI_PREDICT_H
#define TIDE_CLI_PREDICT_H

#include "train_data.h"
#include "weights.h"

typedef struct predict_options {
    const char *spec;
    const char **images; /* files */
    uint32_t n_images;
    model_args model;
    data_args data; /* samples to predict instead of files; samples: how many */
    weights_args weights;
    budget_args budgets;
    const char *machine, *device, *disk_path, *labels, *prompt, *ids;
    uint32_t threads, top, tokens;
    double temperature;
    bool json;
} predict_options;

/* What is open while it predicts. */
typedef struct prediction {
    const predict_options *options;
    tide_predictor *predictor;
    const tide_model *model;
    train_data *data;
    const char **labels; /* names of classes; NULL: those of the data, if it has any */
    uint32_t n_labels;
} prediction;

/* Prints what there is to say of every image or sample. */
tide_status predict_classes(const prediction *p);
/* Prints the prompt and what follows it. */
tide_status predict_text(const prediction *p);

/* A class and how likely it is. */
typedef struct choice {
    uint32_t which;
    float probability;
} choice;
/* The likeliest, at most n, into `out`; returns how many. Of equals the first. */
uint32_t likeliest(const float *probabilities, uint32_t classes, uint32_t n, choice *out);
void json_choices(json_out *j, const prediction *p, const char *key, const choice *choices, uint32_t n);

#endif
