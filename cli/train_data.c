/* See train_data.h. */
#include "train_data.h"

#include <string.h>
#include <sys/stat.h>

#include "busy.h"

#define TEST_SEED UINT64_C(0x74657374) /* other samples than those it learned from */

static bool is_built_in(const char *name) { return strcmp(name, "digits") == 0 || strcmp(name, "grammar") == 0; }

tide_status check_data_args(const data_args *a) {
    struct stat info;
    if (!a->data || is_built_in(a->data) || is_path(a->data)) return TIDE_OK;
    if (stat(a->data, &info) == 0 && S_ISDIR(info.st_mode)) return TIDE_OK;
    return complain(TIDE_E_ARGUMENT, "--data: \"%s\" is not digits or grammar; a file in this folder is ./%s", a->data,
                    a->data);
}

static bool wants_files(const data_args *a) { return a->data && !is_built_in(a->data); }

/* ---- the model's shape ---- */

/* 256 bytes for language models, or what the tokenizer has, unless the spec says a vocabulary. */
static void fill_vocabulary(const char *spec, const tide_tokenizer *tokenizer, model_args *model) {
    const model_args bytes = {.batch = 1, .classes = tokenizer ? tide_tokenizer_size(tokenizer) : 256};
    tide_model *probe;
    if (model->classes || load_model(spec, &bytes, &probe) != TIDE_OK) return;
    tide_model_destroy(probe);
    model->classes = bytes.classes;
}

/* Photographs, in the network's own world; the built-in digits are drawn as large for it. */
static bool is_large(tide_shape in) { return in.h > 64; }

/* Networks for small images get grey ones of MNIST's size, which they learn in a minute. */
static void fill_image_shape(const train_data *d, const tide_model *model, model_args *args) {
    static char input[64];
    const tide_data *images = d->files ? tide_data_files_train(d->files) : NULL;
    bool by_pixel = tide_model_labels(model) > 1;
    if (images) snprintf(input, sizeof input, "%ux%ux%u", images->channels, images->height, images->width);
    if (!args->input && images) args->input = input;
    if (!args->input && !is_large(tide_model_input(model))) args->input = by_pixel ? "1x32x32" : "1x28x28";
    if (!args->classes) args->classes = images ? images->classes : by_pixel ? 2 : 10;
}

/* Pictures become what the network takes; its own size, unless the command line says another. */
static tide_status open_pictures(const data_args *a, const char *spec, model_args *model, train_data *d) {
    const model_args own = {.batch = 1, .input = model->input};
    tide_picture_folder_options o;
    tide_model *probe;
    tide_status status = load_model(spec, &own, &probe);
    if (status != TIDE_OK) return status;
    tide_shape in = tide_model_input(probe);
    tide_model_destroy(probe);
    tide_picture_folder_options_init(&o);
    o.channels = (uint32_t)in.c;
    o.height = (uint32_t)in.h;
    o.width = (uint32_t)in.w;
    o.seed = a->seed;
    o.no_augment = a->no_augment;
    o.threads = a->threads ? a->threads : count_cores();
    status = tide_picture_folder_open(a->data, &o, &d->pictures);
    if (status == TIDE_OK && !model->classes) model->classes = tide_picture_folder_classes(d->pictures);
    return status;
}

tide_status prepare_data(const data_args *a, const char *spec, model_args *model, train_data *d) {
    const model_args any = {.batch = 1};
    tide_model *probe;
    tide_status status = load_model(spec, &any, &probe);
    if (status != TIDE_OK) return status;
    bool tokens = tide_model_takes_tokens(probe);
    if (a->tokenizer && !tokens) status = complain(TIDE_E_ARGUMENT, "--tokenizer is for language models");
    if (a->tokenizer && tokens) status = tide_tokenizer_open(a->tokenizer, &d->tokenizer);
    if (tokens && status == TIDE_OK) fill_vocabulary(spec, d->tokenizer, model);
    bool pictures = !tokens && wants_files(a) && tide_picture_folder_is(a->data);
    if (a->no_augment && !pictures && status == TIDE_OK)
        status = complain(TIDE_E_ARGUMENT, "--no-augment is for folders of pictures");
    if (pictures && status == TIDE_OK) status = open_pictures(a, spec, model, d);
    if (!tokens && wants_files(a) && !pictures && status == TIDE_OK)
        status = tide_data_files_open(a->data, 0, a->seed, &d->files);
    if (!tokens && !pictures && status == TIDE_OK) fill_image_shape(d, probe, model);
    tide_model_destroy(probe);
    return status;
}

/* ---- opening ---- */

/* Takes the first `wanted` samples of a part; 0: `usual`. Never more than there are. */
static void take(const tide_data *from, const char *option, uint64_t wanted, uint64_t usual, tide_data *out) {
    *out = *from;
    if (wanted > from->n_samples)
        fprintf(stderr, "tidemark: %s: there are %llu, which are all taken\n", option,
                (unsigned long long)from->n_samples);
    if (!wanted) wanted = usual;
    if (wanted < from->n_samples) out->n_samples = wanted;
}

static tide_status open_files(const data_args *a, const tide_model *model, train_data *d) {
    bool tokens = tide_model_takes_tokens(model);
    tide_status status = TIDE_OK;
    uint32_t context = (uint32_t)tide_model_input(model).c;
    if (tokens && d->tokenizer)
        status = tide_data_files_open_tokens(a->data, d->tokenizer, context, a->seed, &d->files);
    else if (tokens)
        status = tide_data_files_open(a->data, context, a->seed, &d->files);
    if (status != TIDE_OK) return status;
    take(d->pictures ? tide_picture_folder_train(d->pictures) : tide_data_files_train(d->files), "--samples",
         a->samples, UINT64_MAX, &d->train);
    take(d->pictures ? tide_picture_folder_test(d->pictures) : tide_data_files_test(d->files), "--test-samples",
         a->test_samples, 1000, &d->test);
    return TIDE_OK;
}

static uint64_t built_in_samples(const data_args *a) { return a->samples ? a->samples : 8192; }
/* Large images take long to judge, too. */
static uint64_t built_in_tests(const data_args *a, const tide_model *model) {
    if (a->test_samples) return a->test_samples;
    return !tide_model_takes_tokens(model) && is_large(tide_model_input(model)) ? 100 : 1000;
}

static tide_status open_text(const data_args *a, const tide_model *model, train_data *d) {
    d->train_text = (tide_text){.seed = a->seed, .context = (uint32_t)tide_model_input(model).c};
    d->test_text = d->train_text;
    d->test_text.seed ^= TEST_SEED;
    tide_status status = tide_data_text(&d->train_text, built_in_samples(a), &d->train);
    return status == TIDE_OK ? tide_data_text(&d->test_text, built_in_tests(a, model), &d->test) : status;
}

static tide_status open_digits(const data_args *a, const tide_model *model, train_data *d) {
    tide_shape in = tide_model_input(model);
    d->train_digits = (tide_digits){a->seed, (uint32_t)in.c, (uint32_t)in.h, (uint32_t)in.w, false};
    d->train_digits.by_pixel = tide_model_labels(model) > 1;
    d->test_digits = d->train_digits;
    d->test_digits.seed ^= TEST_SEED;
    tide_status status = tide_data_digits(&d->train_digits, built_in_samples(a), &d->train);
    return status == TIDE_OK ? tide_data_digits(&d->test_digits, built_in_tests(a, model), &d->test) : status;
}

tide_status open_data(const data_args *a, const tide_model *model, train_data *d) {
    if (wants_files(a)) return open_files(a, model, d);
    if (d->tokenizer) return complain(TIDE_E_ARGUMENT, "--tokenizer is for a --data file of text");
    const char *own = tide_model_takes_tokens(model) ? "grammar" : "digits";
    if (a->data && strcmp(a->data, own) != 0)
        return complain(TIDE_E_ARGUMENT, "--data: %s learns from %s, not from \"%s\"", tide_model_name(model), own,
                        a->data);
    return tide_model_takes_tokens(model) ? open_text(a, model, d) : open_digits(a, model, d);
}

void close_data(train_data *d) {
    tide_data_files_close(d->files);
    tide_picture_folder_close(d->pictures);
    tide_tokenizer_close(d->tokenizer);
}
