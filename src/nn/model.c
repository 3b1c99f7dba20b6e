/* Specs become models: the table of families, strict parsing, defaults. Specs are hostile input. */
#include "nn/model.h"

#include <tidemark/nearest.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/options.h"
#include "base/rng.h"

#define DEFAULT_BATCH 32

typedef struct family {
    const char *name;
    const char *usage; /* the spec as people write it */
    const char *summary;
    tide__family_build build;
    uint32_t min_numbers, max_numbers; /* after the colon */
    uint32_t depth;
    uint32_t channels, height, width, classes; /* own; 0: taken from the numbers (mlp) */
    uint32_t context_at; /* language models: which number is the context; the next one is the vocabulary. Without these
                            numbers channels and classes say them. 0: other models */
    const char *preset;  /* numbers of a spec without any; NULL: none */
    const tide_training_recipe *recipe;
    const tide__naming *naming; /* NULL: names are PyTorch's, or nobody's */
} family;

/* Rates and decays are those of the papers, for their batches; PyTorch's published recipes where the paper's optimizer is not
 * here. Networks without batch norm have the paper's rate at half its batch: at its share of a small batch they hardly
 * begin. Warm-ups are ours: fresh deep networks take the full rate badly, above all without batch norm. */
#define HE "normal, deviation sqrt(2 / inputs)"
static const tide_training_recipe small_nets = {TIDE_MOMENTUM, 0.01f, 32, 0, 0, 0, HE};
static const tide_training_recipe plain_nets = {TIDE_MOMENTUM, 0.01f, 64, 500, 5e-4f, 0, HE "; fully connected 0.01",
                                                true};
#define HE_CLASSIFIER HE "; the classifier 1 / sqrt(3 inputs)"
static const tide_training_recipe norm_nets = {TIDE_MOMENTUM, 0.1f, 256, 500, 1e-4f, 0, HE_CLASSIFIER};
static const tide_training_recipe small_norm_nets = {TIDE_MOMENTUM, 0.1f, 128, 500, 1e-4f, 0, HE_CLASSIFIER};
static const tide_training_recipe residual_nets = {
    TIDE_MOMENTUM, 0.1f, 256, 500, 1e-4f, 0, HE_CLASSIFIER "; the last scale of a block 0"};
static const tide_training_recipe pixel_nets = {TIDE_ADAM, 3e-4f, 16, 100, 0, 1, HE, true};
static const tide_training_recipe transformers = {
    TIDE_ADAMW, 6e-4f, 32, 500, 0.1f, 1, "normal, deviation 0.02; into residual sums 0.02 / sqrt(2 layers)", true};
static const tide_training_recipe lstms = {TIDE_ADAM, 2e-3f, 32, 100, 0, 1, HE, true};

#define IMAGENET 3, 224, 224, 1000
#define GPT2(name, summary, preset) \
    { name, name, summary, tide__build_gpt2, 3, 5, 0, 1024, 1, 1, 50257, 3, preset, &transformers, &tide__naming_gpt2 }

static const family families[] = {
    {"mlp", "mlp:W0,W1,...", "fully connected layers of these widths, ReLU between", tide__build_mlp, 2,
     TIDE__MAX_LAYERS / 2, 0, 0, 0, 0, 0, .recipe = &small_nets},
    {"lenet", "lenet", "LeNet-5 with ReLU and max pooling, for 28 x 28 digits", tide__build_lenet, 0, 0, 5, 1, 28, 28,
     10, .recipe = &small_nets},
    {"alexnet", "alexnet", "AlexNet in one column (no groups), with LRN and dropout, 227 x 227", tide__build_alexnet, 0,
     0, 8, 3, 227, 227, 1000, .recipe = &plain_nets},
    {"alexnet-owt", "alexnet-owt", "AlexNet as torchvision has it: fewer channels, no LRN, 224 x 224",
     tide__build_alexnet_owt, 0, 0, 8, IMAGENET, .recipe = &plain_nets},
    {"vgg11", "vgg11", "VGG, configuration A", tide__build_vgg, 0, 0, 11, IMAGENET, .recipe = &plain_nets},
    {"vgg13", "vgg13", "VGG, configuration B", tide__build_vgg, 0, 0, 13, IMAGENET, .recipe = &plain_nets},
    {"vgg16", "vgg16", "VGG, configuration D", tide__build_vgg, 0, 0, 16, IMAGENET, .recipe = &plain_nets},
    {"vgg19", "vgg19", "VGG, configuration E", tide__build_vgg, 0, 0, 19, IMAGENET, .recipe = &plain_nets},
    {"resnet18", "resnet18", "ResNet of basic blocks", tide__build_resnet, 0, 0, 18, IMAGENET,
     .recipe = &residual_nets},
    {"resnet34", "resnet34", "ResNet of basic blocks", tide__build_resnet, 0, 0, 34, IMAGENET,
     .recipe = &residual_nets},
    {"resnet50", "resnet50", "ResNet of bottleneck blocks", tide__build_resnet, 0, 0, 50, IMAGENET,
     .recipe = &residual_nets},
    {"resnet101", "resnet101", "ResNet of bottleneck blocks", tide__build_resnet, 0, 0, 101, IMAGENET,
     .recipe = &residual_nets},
    {"resnet152", "resnet152", "ResNet of bottleneck blocks", tide__build_resnet, 0, 0, 152, IMAGENET,
     .recipe = &residual_nets},
    {"resnet", "resnet:N1,N2,N3,N4",
     "bottleneck ResNet of any depth: blocks per stage, 3 (N1 + N2 + N3 + N4) + 2 layers",
     tide__build_resnet_bottleneck, 4, 4, 0, IMAGENET, .recipe = &residual_nets},
    {"resnet-cifar", "resnet-cifar:N", "ResNet of 6 N + 2 layers for small images", tide__build_resnet_cifar, 1, 1, 0,
     3, 32, 32, 10, .recipe = &small_norm_nets},
    {"densenet121", "densenet121", "DenseNet of growth 32", tide__build_densenet, 0, 0, 121, IMAGENET,
     .recipe = &norm_nets, .naming = &tide__naming_densenet},
    {"densenet169", "densenet169", "DenseNet of growth 32", tide__build_densenet, 0, 0, 169, IMAGENET,
     .recipe = &norm_nets, .naming = &tide__naming_densenet},
    {"densenet201", "densenet201", "DenseNet of growth 32", tide__build_densenet, 0, 0, 201, IMAGENET,
     .recipe = &norm_nets, .naming = &tide__naming_densenet},
    {"inception-v4", "inception-v4", "Inception-v4, 299 x 299", tide__build_inception_v4, 0, 0, 0, 3, 299, 299, 1000,
     .recipe = &norm_nets},
    {"unet", "unet[:CHANNELS]", "U-Net with padded convolutions: a class per pixel, 512 x 512, 64 channels",
     tide__build_unet, 1, 1, 0, 3, 512, 512, 2, 0, "64", .recipe = &pixel_nets},
    {"gpt2", "gpt2:LAYERS,WIDTH,HEADS[,CONTEXT[,VOCABULARY]]",
     "GPT-2 of any size, without dropout; gpt2 alone is small", tide__build_gpt2, 3, 5, 0, 1024, 1, 1, 50257, 3,
     "12,768,12", .recipe = &transformers, .naming = &tide__naming_gpt2},
    GPT2("gpt2:nano", "GPT-2 of 6 layers for 256 tokens", "6,384,6,256"),
    GPT2("gpt2:small", "GPT-2 of 12 layers for 1024 tokens", "12,768,12"),
    GPT2("gpt2:medium", "GPT-2 of 24 layers for 1024 tokens", "24,1024,16"),
    GPT2("gpt2:large", "GPT-2 of 36 layers for 1024 tokens", "36,1280,20"),
    GPT2("gpt2:xl", "GPT-2 of 48 layers for 1024 tokens", "48,1600,25"),
    {"lstm", "lstm:LAYERS,WIDTH,STEPS[,VOCABULARY]", "language model of LSTM layers, unrolled over its steps",
     tide__build_lstm, 3, 4, 0, 1, 1, 1, 10000, 2, NULL, .recipe = &lstms},
};
#define N_FAMILIES (sizeof families / sizeof families[0])

const char *tide_model_family(uint32_t i, const char **summary) {
    if (i >= N_FAMILIES) return NULL;
    if (summary) *summary = families[i].summary;
    return families[i].usage;
}

void tide_model_options_init(tide_model_options *options) { *options = (tide_model_options){.size = sizeof *options}; }

/* ---- parsing ---- */

static tide_status fail_unknown(const char *spec) {
    char known[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < N_FAMILIES && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", families[i].usage);
    tide_nearest near = tide_nearest_begin(spec, strcspn(spec, ":"));
    for (size_t i = 0; i < N_FAMILIES; i++) tide_nearest_offer(&near, families[i].name, strcspn(families[i].name, ":"));
    return tide__fail(TIDE_E_ARGUMENT, "unknown model \"%.60s\"%s%.*s%s; known: %s", spec,
                      near.best ? "; did you mean " : "", (int)near.best_length, near.best ? near.best : "",
                      near.best ? "?" : "", known);
}

/* A whole spec may be the name of a family ("gpt2:small"). */
static tide_status find_family(const char *spec, const family **out) {
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strcmp(spec, families[i].name) == 0) return *out = &families[i], TIDE_OK;
    size_t length = strcspn(spec, ":");
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strlen(families[i].name) == length && strncmp(spec, families[i].name, length) == 0)
            return *out = &families[i], TIDE_OK;
    return fail_unknown(spec);
}

typedef TIDE_VEC(uint32_t) number_vec;

/* "6,32,100,6": positive decimal numbers, at most `max` of them. */
static tide_status parse_numbers(const char *spec, const char *text, uint32_t max, number_vec *out) {
    for (;;) {
        size_t length = strcspn(text, ",");
        uint64_t value;
        if (!tide__parse_u64(text, length, INT32_MAX, &value) || value == 0)
            return tide__fail(TIDE_E_ARGUMENT, "model \"%.60s\": \"%.*s\" is not a number from 1 to %d", spec,
                              (int)(length < 40 ? length : 40), text, INT32_MAX);
        if (out->count == max) return tide__fail(TIDE_E_ARGUMENT, "model \"%.60s\": too many numbers", spec);
        TIDE_TRY(tide__vec_push(out, (uint32_t)value));
        if (text[length] == '\0') return TIDE_OK;
        text += length + 1;
    }
}

static tide_status parse(const char *spec, const family *f, number_vec *numbers) {
    const char *rest = spec + strlen(f->name), *colon = *rest == ':' ? rest : NULL;
    if (!colon && f->preset) return parse_numbers(spec, f->preset, f->max_numbers, numbers);
    if (colon && f->max_numbers == 0)
        return tide__fail(TIDE_E_ARGUMENT, "model \"%.60s\": %s takes no numbers", spec, f->name);
    if (colon) TIDE_TRY(parse_numbers(spec, colon + 1, f->max_numbers, numbers));
    if (numbers->count >= f->min_numbers) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "model \"%.60s\": write %s with at least %u number%s", spec, f->usage,
                      f->min_numbers, f->min_numbers == 1 ? "" : "s");
}

/* ---- defaults ---- */

static uint32_t or_default(uint32_t value, uint32_t own) { return value ? value : own; }

/* The input is N x T tokens, the classes are the vocabulary. */
static tide_status fill_tokens(const family *f, const tide_model_options *o, const number_vec *numbers,
                               tide__request *r) {
    if (o->channels || o->height || o->width)
        return tide__fail(TIDE_E_ARGUMENT, "a language model takes tokens: no channels, height or width");
    bool own_vocabulary = numbers->count > f->context_at + 1;
    r->context = numbers->count > f->context_at ? numbers->data[f->context_at] : f->channels;
    if (o->length > r->context)
        return tide__fail(TIDE_E_ARGUMENT, "samples of %u tokens, but the context is %u", o->length, r->context);
    r->input.c = or_default(o->length, r->context);
    r->input.h = r->input.w = 1;
    r->classes = own_vocabulary ? numbers->data[f->context_at + 1] : or_default(o->classes, f->classes);
    if (o->classes && o->classes != r->classes)
        return tide__fail(TIDE_E_ARGUMENT, "%u classes were asked for, but the vocabulary is %u", o->classes,
                          r->classes);
    return TIDE_OK;
}

static tide_status fill_request(const family *f, const tide_model_options *o, const number_vec *numbers,
                                tide__request *r) {
    uint32_t first = numbers->count ? numbers->data[0] : 0,
             last = numbers->count ? numbers->data[numbers->count - 1] : 0;
    bool own_shape = f->channels == 0 && !o->channels && !o->height && !o->width; /* mlp: a flat input */
    *r = (tide__request){.numbers = numbers->data, .n_numbers = (uint32_t)numbers->count, .depth = f->depth};
    r->input.n = or_default(o->batch, DEFAULT_BATCH);
    r->skip = o->skip;
    r->n_skip = o->n_skip;
    if (o->n_skip && strncmp(f->name, "resnet", strlen("resnet")) != 0)
        return tide__fail(TIDE_E_ARGUMENT, "%s has no residual blocks to leave out", f->name);
    if (f->context_at) return fill_tokens(f, o, numbers, r);
    if (o->length) return tide__fail(TIDE_E_ARGUMENT, "%s takes images, which have no length", f->name);
    r->input.c = own_shape ? first : or_default(o->channels, or_default(f->channels, 1));
    r->input.h = own_shape ? 1 : or_default(o->height, or_default(f->height, 1));
    r->input.w = own_shape ? 1 : or_default(o->width, or_default(f->width, 1));
    r->classes = or_default(o->classes, or_default(f->classes, last));
    if (f->classes == 0 && r->classes != last)
        return tide__fail(TIDE_E_ARGUMENT, "%u classes were asked for, but the last width is %u", r->classes, last);
    return TIDE_OK;
}

/* ---- models ---- */

static tide_status build(const family *f, const tide__request *request, const char *spec, tide_model *model) {
    model->name = strdup(spec);
    if (!model->name) return tide__fail_memory();
    model->classes = request->classes;
    model->recipe = f->recipe;
    model->naming = f->naming ? f->naming : &tide__naming_plain;
    f->build(&model->graph, request);
    return tide__graph_finish(&model->graph);
}

static tide_status create(const char *spec, const tide_model_options *options, const family *f, number_vec *numbers,
                          tide_model **out) {
    tide__request request;
    TIDE_TRY(parse(spec, f, numbers));
    TIDE_TRY(fill_request(f, options, numbers, &request));
    tide_model *model = calloc(1, sizeof *model);
    if (!model) return tide__fail_memory();
    tide_status status = build(f, &request, spec, model);
    if (status != TIDE_OK) {
        tide_model_destroy(model);
        return tide__fail_in(status, "model \"%.60s\"", spec);
    }
    *out = model;
    return TIDE_OK;
}

tide_status tide_model_create(const char *spec, const tide_model_options *options, tide_model **out) {
    tide_model_options taken;
    tide_model_options_init(&taken);
    if (!spec || !out) return tide__fail(TIDE_E_ARGUMENT, "a model needs a spec and a place for its handle");
    TIDE_TRY(tide__options_take("tide_model_options", options, sizeof taken, &taken));
    options = &taken;
    const family *f = NULL;
    number_vec numbers = {0};
    TIDE_TRY(find_family(spec, &f));
    tide_status status = create(spec, options, f, &numbers, out);
    tide__vec_free(&numbers);
    return status;
}

void tide_model_destroy(tide_model *model) {
    if (!model) return;
    tide__graph_deinit(&model->graph);
    free(model->name);
    free(model);
}

const char *tide_model_name(const tide_model *model) { return model->name; }

uint64_t tide_model_parameter_count(const tide_model *model) { return model->graph.parameter_count; }

uint32_t tide_model_layer_count(const tide_model *model) { return (uint32_t)model->graph.layers.count - 1; }

tide_shape tide_model_input(const tide_model *model) { return model->graph.layers.data[0].desc.y; }

const tide_training_recipe *tide_model_recipe(const tide_model *model) { return model->recipe; }

float tide_recipe_rate(const tide_training_recipe *r, uint64_t batch) {
    double share = (double)batch / r->base_batch;
    return (float)((double)r->learning_rate * (r->rate_by_root ? sqrt(share) : share));
}

uint32_t tide_model_classes(const tide_model *model) { return model->classes; }

bool tide_model_takes_tokens(const tide_model *model) {
    return model->graph.layers.data[1].desc.kind == TIDE_OP_EMBEDDING_FWD;
}

uint32_t tide_model_block_count(const tide_model *model) { return (uint32_t)model->graph.blocks.count; }

bool tide_model_block_is_fixed(const tide_model *model, uint32_t block) {
    return block >= model->graph.blocks.count || model->graph.blocks.data[block].fixed;
}

bool tide_model_skips(const tide_model *model, uint32_t block) {
    return block < model->graph.blocks.count && model->graph.blocks.data[block].skipped;
}

uint64_t tide_model_labels(const tide_model *model) {
    tide_shape scores = model->graph.layers.data[model->graph.layers.count - 1].desc.x;
    return (uint64_t)(scores.n / tide_model_input(model).n * scores.h * scores.w);
}

float tide_random_unit(uint64_t seed, uint64_t stream, uint64_t counter) {
    return tide__random_unit(seed, stream, counter);
}
