/* See train_data.h. */
#include "train_data.h"

#include <string.h>

#define TEST_SEED UINT64_C(0x74657374) /* other samples than those it learned from */

tide_status check_data_args(const data_args *a) {
    if (!a->data || strcmp(a->data, "digits") == 0 || strcmp(a->data, "grammar") == 0) return TIDE_OK;
    return complain(TIDE_E_ARGUMENT, "--data: \"%s\" is not digits or grammar", a->data);
}

/* What the data sets are like, where the command line leaves it open: 256 bytes for language models (unless the spec
 * says a vocabulary), ink or none per pixel, else ten digits. */
tide_status fill_data_shape(const char *spec, model_args *args) {
    const model_args any = {.batch = 1}, bytes = {.batch = 1, .classes = 256};
    tide_model *model;
    tide_status status = load_model(spec, &any, &model);
    if (status != TIDE_OK) return status;
    bool tokens = tide_model_takes_tokens(model), by_pixel = tide_model_labels(model) > 1;
    tide_model_destroy(model);
    if (tokens && !args->classes && load_model(spec, &bytes, &model) == TIDE_OK) {
        tide_model_destroy(model);
        args->classes = bytes.classes;
    }
    if (tokens) return TIDE_OK;
    if (!args->input) args->input = by_pixel ? "1x32x32" : "1x28x28";
    if (!args->classes) args->classes = by_pixel ? 2 : 10;
    return TIDE_OK;
}

static tide_status open_text(const data_args *a, const tide_model *model, train_data *d) {
    d->train_text = (tide_text){.seed = a->seed, .context = (uint32_t)tide_model_input(model).c};
    d->test_text = d->train_text;
    d->test_text.seed ^= TEST_SEED;
    tide_status status = tide_data_text(&d->train_text, a->samples, &d->train);
    return status == TIDE_OK ? tide_data_text(&d->test_text, a->test_samples, &d->test) : status;
}

static tide_status open_digits(const data_args *a, const tide_model *model, train_data *d) {
    tide_shape in = tide_model_input(model);
    d->train_digits = (tide_digits){a->seed, (uint32_t)in.c, (uint32_t)in.h, (uint32_t)in.w, false};
    d->train_digits.by_pixel = tide_model_labels(model) > 1;
    d->test_digits = d->train_digits;
    d->test_digits.seed ^= TEST_SEED;
    tide_status status = tide_data_digits(&d->train_digits, a->samples, &d->train);
    return status == TIDE_OK ? tide_data_digits(&d->test_digits, a->test_samples, &d->test) : status;
}

tide_status open_data(const data_args *a, const tide_model *model, train_data *out) {
    const char *own = tide_model_takes_tokens(model) ? "grammar" : "digits";
    if (a->data && strcmp(a->data, own) != 0)
        return complain(TIDE_E_ARGUMENT, "--data: %s learns from %s, not from \"%s\"", tide_model_name(model), own,
                        a->data);
    return tide_model_takes_tokens(model) ? open_text(a, model, out) : open_digits(a, model, out);
}
