/* tidemark predict for images: which classes are likely, of each file or of each sample of a data set. See predict.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "predict.h"

uint32_t likeliest(const float *probabilities, uint32_t classes, uint32_t n, choice *out) {
    uint32_t found = 0;
    for (uint32_t c = 0; c < classes; c++) {
        uint32_t at = found < n ? found++ : n;
        for (; at > 0 && out[at - 1].probability < probabilities[c]; at--)
            if (at < n) out[at] = out[at - 1];
        if (at < n) out[at] = (choice){c, probabilities[c]};
    }
    return found;
}

static const char *label_of(const prediction *p, uint32_t which) {
    if (!p->labels && p->data->pictures) return tide_picture_folder_class(p->data->pictures, which);
    return p->labels && which < p->n_labels ? p->labels[which] : NULL;
}

void json_choices(json_out *j, const prediction *p, const char *key, const choice *choices, uint32_t n) {
    json_open(j, key, '[');
    for (uint32_t i = 0; i < n; i++) {
        json_open(j, NULL, '{');
        json_u64(j, "class", choices[i].which);
        if (label_of(p, choices[i].which)) json_text(j, "label", label_of(p, choices[i].which));
        json_number(j, "probability", (double)choices[i].probability);
        json_close(j, '{');
    }
    json_close(j, '[');
}

/* ---- one after the other ---- */

/* Buffers of one sample. */
typedef struct desk {
    float *pixels, *probabilities;
    choice *choices;
    uint32_t classes, top;
} desk;

static tide_status open_desk(const prediction *p, desk *d) {
    tide_shape in = tide_model_input(p->model);
    d->classes = tide_model_classes(p->model);
    d->top = p->options->top < d->classes ? p->options->top : d->classes;
    d->pixels = malloc((size_t)(in.c * in.h * in.w) * sizeof *d->pixels);
    d->probabilities = malloc(d->classes * sizeof *d->probabilities);
    d->choices = malloc(d->top * sizeof *d->choices);
    return d->pixels && d->probabilities && d->choices ? TIDE_OK : complain(TIDE_E_MEMORY, "out of host memory");
}

static void close_desk(desk *d) {
    free(d->pixels);
    free(d->probabilities);
    free(d->choices);
}

static tide_status judge(const prediction *p, desk *d) {
    tide_status status = tide_predictor_run(p->predictor, d->pixels);
    if (status == TIDE_OK) status = tide_predictor_read(p->predictor, 0, d->probabilities);
    if (status == TIDE_OK) (void)likeliest(d->probabilities, d->classes, d->top, d->choices);
    return status;
}

/* truth: NULL if nobody knows. */
static void print_choices(const prediction *p, const desk *d, const char *name, const int32_t *truth) {
    printf("%s", show_name(name));
    if (truth) printf(" (is %" PRId32 ")", *truth);
    for (uint32_t i = 0; i < d->top; i++) {
        const char *label = label_of(p, d->choices[i].which);
        printf("%s %" PRIu32 "%s%s %.2f %%", i ? "," : ":", d->choices[i].which, label ? " " : "",
               label ? show_name(label) : "", 100 * (double)d->choices[i].probability);
    }
    putchar('\n');
}

static void tell(const prediction *p, const desk *d, json_out *j, const char *name, const int32_t *truth) {
    if (!p->options->json) {
        print_choices(p, d, name, truth);
        return;
    }
    json_open(j, NULL, '{');
    json_text(j, "input", name);
    if (truth) json_u64(j, "is", (uint64_t)*truth);
    json_choices(j, p, "classes", d->choices, d->top);
    json_close(j, '{');
}

static tide_status predict_files(const prediction *p, desk *d, json_out *j) {
    tide_shape in = tide_model_input(p->model);
    tide_status status = TIDE_OK;
    for (uint32_t i = 0; i < p->options->n_images && status == TIDE_OK; i++) {
        const char *path = p->options->images[i];
        status = tide_picture_read(path, (uint32_t)in.c, (uint32_t)in.h, (uint32_t)in.w, d->pixels);
        if (status == TIDE_OK) status = judge(p, d);
        if (status == TIDE_OK) tell(p, d, j, path, NULL);
    }
    return status;
}

static tide_status predict_samples(const prediction *p, desk *d, json_out *j) {
    if (p->options->n_images) return predict_files(p, d, j);
    const tide_data *data = &p->data->test;
    tide_status status = TIDE_OK;
    for (uint64_t i = 0; i < data->n_samples && status == TIDE_OK; i++) {
        char name[32];
        int32_t truth;
        snprintf(name, sizeof name, "sample %" PRIu64, i);
        status = data->sample(data->context, i, d->pixels, &truth);
        if (status == TIDE_OK) status = judge(p, d);
        if (status == TIDE_OK) tell(p, d, j, name, &truth);
    }
    return status;
}

/* JSON is there as a whole, or not at all. */
static tide_status predict_json(const prediction *p, desk *d) {
    char *text = NULL;
    size_t size;
    json_out j;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return complain(TIDE_E_MEMORY, "out of host memory");
    json_begin(&j, stream);
    json_text(&j, "model", tide_model_name(p->model));
    json_open(&j, "predictions", '[');
    tide_status status = predict_samples(p, d, &j);
    json_close(&j, '[');
    json_end(&j);
    if (fclose(stream) != 0) status = complain(TIDE_E_MEMORY, "out of host memory");
    if (status == TIDE_OK) fputs(text, stdout);
    free(text);
    return status;
}

tide_status predict_classes(const prediction *p) {
    desk d = {0};
    tide_status status = open_desk(p, &d);
    if (status == TIDE_OK) status = p->options->json ? predict_json(p, &d) : predict_samples(p, &d, NULL);
    close_desk(&d);
    return status;
}
