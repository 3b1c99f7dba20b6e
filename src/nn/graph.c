/* Appending layers: shape inference, parameters and all the checks that hostile model specs need. */
#include "nn/graph.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "nn/rules.h"

#define MAX_ELEMENTS (UINT64_C(1) << 57)

void tide__graph_deinit(tide__graph *g) {
    tide__vec_free(&g->layers);
    tide__vec_free(&g->params);
    tide__vec_free(&g->layer_params);
    tide__vec_free(&g->inputs);
    tide__vec_free(&g->input_channels);
    tide__vec_free(&g->names);
    tide__vec_free(&g->blocks);
}

void tide__graph_prefix(tide__graph *g, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(g->prefix, sizeof g->prefix, format, args);
    va_end(args);
}

const char *tide__layer_name(const tide__graph *g, uint32_t layer) {
    return g->names.data + g->layers.data[layer].name;
}

void tide__param_name(const tide__graph *g, const tide__param *param, char out[TIDE__PARAM_NAME_BYTES]) {
    snprintf(out, TIDE__PARAM_NAME_BYTES, "%s.%s", tide__layer_name(g, param->layer), param->role);
}

uint32_t tide__layer_param(const tide__graph *g, uint32_t layer, uint32_t i) {
    return g->layer_params.data[g->layers.data[layer].first_param + i];
}

uint32_t tide__layer_input(const tide__graph *g, uint32_t layer, uint32_t i) {
    return g->inputs.data[g->layers.data[layer].first_input + i];
}

tide_op_desc tide__layer_desc(const tide__graph *g, uint32_t layer) {
    const tide__layer *l = &g->layers.data[layer];
    tide_op_desc desc = l->desc;
    if (desc.n_parts > 0) desc.part_channels = g->input_channels.data + l->first_input;
    return desc;
}

tide_shape tide__layer_shape(const tide__graph *g, uint32_t layer) { return g->layers.data[layer].desc.y; }

bool tide__shape_elements(tide_shape s, uint64_t *out) {
    const int64_t dims[4] = {s.n, s.c, s.h, s.w};
    uint64_t product = 1;
    for (int i = 0; i < 4; i++) {
        if (dims[i] < 1 || dims[i] > INT32_MAX) return false;
        if (!tide__mul(product, (uint64_t)dims[i], &product) || product >= MAX_ELEMENTS) return false;
    }
    *out = product;
    return true;
}

/* ---- appending ---- */

static tide_status append_name(tide__graph *g, const char *name) {
    size_t prefix = strlen(g->prefix), length = strlen(name);
    if (g->names.count + prefix + length + 1 > UINT32_MAX) return tide__fail(TIDE_E_OVERFLOW, "too many layer names");
    TIDE_TRY(tide__vec_reserve(&g->names, prefix + length + 1));
    memcpy(g->names.data + g->names.count, g->prefix, prefix);
    memcpy(g->names.data + g->names.count + prefix, name, length + 1);
    g->names.count += prefix + length + 1;
    return TIDE_OK;
}

static tide_status check_shape(const tide__graph *g, const char *name, tide_shape y) {
    uint64_t elements;
    if (tide__shape_elements(y, &elements)) return TIDE_OK;
    return tide__fail(TIDE_E_OVERFLOW, "layer %s%s: an output of %lld x %lld x %lld x %lld is too large", g->prefix,
                      name, (long long)y.n, (long long)y.c, (long long)y.h, (long long)y.w);
}

/* An input of the layer being made. */
static tide_status add_input(tide__graph *g, tide__layer *layer, uint32_t input) {
    TIDE_TRY(tide__vec_push(&g->inputs, input));
    TIDE_TRY(tide__vec_push(&g->input_channels, g->layers.data[input].desc.y.c));
    g->layers.data[input].n_consumers++;
    layer->n_inputs++;
    layer->needs_grad = layer->needs_grad || g->layers.data[input].needs_grad;
    return TIDE_OK;
}

tide_status tide__graph_append(tide__graph *g, const char *name, const tide_op_desc *desc, const uint32_t *inputs,
                               uint32_t n_inputs) {
    if (g->layers.count >= TIDE__MAX_LAYERS)
        return tide__fail(TIDE_E_ARGUMENT, "a model has at most %u layers", TIDE__MAX_LAYERS);
    TIDE_TRY(check_shape(g, name, desc->y));
    tide__layer layer = {.desc = *desc, .name = (uint32_t)g->names.count};
    layer.first_param = (uint32_t)g->layer_params.count;
    layer.first_input = (uint32_t)g->inputs.count;
    for (uint32_t i = 0; i < n_inputs; i++) TIDE_TRY(add_input(g, &layer, inputs[i]));
    layer.desc.needs_dx = layer.needs_grad;
    TIDE_TRY(append_name(g, name));
    return tide__vec_push(&g->layers, layer);
}

uint32_t tide__graph_settle(tide__graph *g, tide_status status) {
    if (status == TIDE_OK) return (uint32_t)g->layers.count - 1;
    g->status = status;
    return 0;
}

tide_status tide__graph_add_param(tide__graph *g, tide__param param) {
    param.layer = (uint32_t)g->layers.count - 1;
    uint64_t elements;
    if (!tide__shape_elements(param.shape, &elements) ||
        (param.trainable && !tide__add(g->parameter_count, elements, &g->parameter_count)))
        return tide__fail(TIDE_E_OVERFLOW, "layer %s: its %s is too large", tide__layer_name(g, param.layer),
                          param.role);
    TIDE_TRY(tide__vec_push(&g->params, param));
    return tide__graph_share_param(g, (uint32_t)g->params.count - 1);
}

tide_status tide__graph_share_param(tide__graph *g, uint32_t param) {
    tide__layer *layer = &g->layers.data[g->layers.count - 1];
    TIDE_TRY(tide__vec_push(&g->layer_params, param));
    layer->n_params++;
    layer->needs_grad = layer->needs_grad || g->params.data[param].trainable;
    return TIDE_OK;
}

static tide_shape vector_shape(int64_t length) { return (tide_shape){length, 1, 1, 1}; }

tide_status tide__graph_add_weight(tide__graph *g, tide_shape shape, uint32_t rank, int64_t inputs, bool bias) {
    tide__param weight = {.role = "weight", .shape = shape, .rank = rank, .init = TIDE_INIT_NORMAL, .trainable = true};
    weight.init_scale = g->deviation > 0 ? g->deviation : sqrtf(2.0f / (float)inputs);
    TIDE_TRY(tide__graph_add_param(g, weight));
    if (!bias) return TIDE_OK;
    return tide__graph_add_param(
        g, (tide__param){.role = "bias", .shape = vector_shape(shape.n), .rank = 1, .trainable = true});
}

/* ---- layers ---- */

uint32_t tide__graph_input(tide__graph *g, tide_shape shape) {
    if (g->status != TIDE_OK) return 0;
    tide_op_desc desc = {.kind = TIDE__LAYER_INPUT, .x = shape, .y = shape};
    return tide__graph_settle(g, tide__graph_append(g, "input", &desc, NULL, 0));
}

/* Output size of a window that slides over `size` with padding. */
static tide_status slide(const tide__graph *g, const char *name, int64_t size, const tide__pool *window, int64_t *out) {
    if (window->kernel == 0 || window->stride == 0 || window->kernel > INT16_MAX || window->stride > INT16_MAX ||
        window->pad >= window->kernel)
        return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: kernel %u, stride %u, padding %u make no sense", g->prefix,
                          name, window->kernel, window->stride, window->pad);
    int64_t padded = size + 2 * (int64_t)window->pad;
    if (padded < window->kernel)
        return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: a kernel of %u does not fit an input of %lld", g->prefix, name,
                          window->kernel, (long long)size);
    *out = (padded - window->kernel) / window->stride + 1;
    return TIDE_OK;
}

/* Fills x, y (but for its channels) and the window's fields; the two strides are equal. */
static tide_status set_window(const tide__graph *g, const char *name, uint32_t x, const tide__pool *window_h,
                              const tide__pool *window_w, tide_op_desc *desc) {
    desc->x = desc->y = tide__layer_shape(g, x);
    TIDE_TRY(slide(g, name, desc->x.h, window_h, &desc->y.h));
    TIDE_TRY(slide(g, name, desc->x.w, window_w, &desc->y.w));
    desc->kernel_h = (int32_t)window_h->kernel;
    desc->kernel_w = (int32_t)window_w->kernel;
    desc->stride = (int32_t)window_h->stride;
    desc->pad_h = (int32_t)window_h->pad;
    desc->pad_w = (int32_t)window_w->pad;
    return TIDE_OK;
}

static tide_status append_conv(tide__graph *g, const char *name, uint32_t x, const tide__conv *conv) {
    tide_op_desc desc = {.kind = TIDE_OP_CONV_FWD, .bias = conv->bias};
    tide__pool high = {conv->kernel, conv->stride, conv->pad}, wide = {conv->kernel_w, conv->stride, conv->pad_w};
    TIDE_TRY(set_window(g, name, x, &high, conv->kernel_w ? &wide : &high, &desc));
    desc.y.c = conv->channels;
    TIDE_TRY(tide__graph_append(g, name, &desc, &x, 1));
    return tide__graph_add_weight(g, (tide_shape){conv->channels, desc.x.c, desc.kernel_h, desc.kernel_w}, 4,
                                  desc.x.c * desc.kernel_h * desc.kernel_w, conv->bias);
}

uint32_t tide__graph_conv(tide__graph *g, const char *name, uint32_t x, tide__conv conv) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_conv(g, name, x, &conv));
}

static tide_status append_fc(tide__graph *g, const char *name, uint32_t x, uint32_t outputs) {
    tide_shape in = tide__layer_shape(g, x);
    tide_op_desc desc = {.kind = TIDE_OP_FC_FWD, .x = in, .y = {in.n, outputs, 1, 1}, .bias = 1};
    TIDE_TRY(tide__graph_append(g, name, &desc, &x, 1));
    return tide__graph_add_weight(g, (tide_shape){outputs, in.c, in.h, in.w}, 2, in.c * in.h * in.w, true);
}

uint32_t tide__graph_fc(tide__graph *g, const char *name, uint32_t x, uint32_t outputs) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_fc(g, name, x, outputs));
}

static tide_status append_upconv(tide__graph *g, const char *name, uint32_t x, uint32_t channels, uint32_t factor) {
    tide_shape in = tide__layer_shape(g, x);
    if (factor == 0 || factor > INT16_MAX)
        return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: a factor of %u makes no sense", g->prefix, name, factor);
    tide_op_desc desc = {.kind = TIDE_OP_UPCONV_FWD, .x = in, .bias = 1};
    desc.y = (tide_shape){in.n, channels, in.h * factor, in.w * factor};
    desc.kernel_h = desc.kernel_w = desc.stride = (int32_t)factor;
    TIDE_TRY(tide__graph_append(g, name, &desc, &x, 1));
    return tide__graph_add_weight(g, (tide_shape){channels, in.c, factor, factor}, 4, in.c, true);
}

uint32_t tide__graph_upconv(tide__graph *g, const char *name, uint32_t x, uint32_t channels, uint32_t factor) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_upconv(g, name, x, channels, factor));
}

uint32_t tide__graph_classifier(tide__graph *g, const char *name, uint32_t x, uint32_t classes) {
    if (g->status != TIDE_OK) return 0;
    tide_shape in = tide__layer_shape(g, x);
    g->deviation = 1 / sqrtf(3 * (float)in.c * (float)in.h * (float)in.w);
    x = tide__graph_fc(g, name, x, classes);
    g->deviation = 0;
    return x;
}

static tide_status append_bn(tide__graph *g, const char *name, uint32_t x) {
    tide_shape shape = tide__layer_shape(g, x), channels = vector_shape(shape.c);
    tide_op_desc desc = {.kind = TIDE_OP_BN_FWD, .x = shape, .y = shape, .eps = 1e-5f, .momentum = 0.1f};
    TIDE_TRY(tide__graph_append(g, name, &desc, &x, 1));
    tide__param scale = {.role = "weight", .shape = channels, .rank = 1, .init = TIDE_INIT_ONE, .trainable = true};
    tide__param shift = {.role = "bias", .shape = channels, .rank = 1, .trainable = true};
    tide__param mean = {.role = "running_mean", .shape = channels, .rank = 1};
    tide__param var = {.role = "running_var", .shape = channels, .rank = 1, .init = TIDE_INIT_ONE};
    if (g->bn_from_zero) scale.init = TIDE_INIT_ZERO;
    TIDE_TRY(tide__graph_add_param(g, scale));
    TIDE_TRY(tide__graph_add_param(g, shift));
    TIDE_TRY(tide__graph_add_param(g, mean));
    return tide__graph_add_param(g, var);
}

uint32_t tide__graph_bn(tide__graph *g, const char *name, uint32_t x) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_bn(g, name, x));
}

uint32_t tide__graph_append_same(tide__graph *g, const char *name, uint32_t x, tide_op_desc desc) {
    if (g->status != TIDE_OK) return 0;
    desc.x = desc.y = tide__layer_shape(g, x);
    return tide__graph_settle(g, tide__graph_append(g, name, &desc, &x, 1));
}

uint32_t tide__graph_relu(tide__graph *g, const char *name, uint32_t x) {
    return tide__graph_append_same(g, name, x, (tide_op_desc){.kind = TIDE_OP_RELU_FWD});
}

uint32_t tide__graph_dropout(tide__graph *g, const char *name, uint32_t x, float rate) {
    return tide__graph_append_same(g, name, x, (tide_op_desc){.kind = TIDE_OP_DROPOUT_FWD, .drop_rate = rate});
}

/* The constants of Krizhevsky et al. 2012. */
uint32_t tide__graph_lrn(tide__graph *g, const char *name, uint32_t x, uint32_t size) {
    tide_op_desc desc = {.kind = TIDE_OP_LRN_FWD, .lrn_size = (int32_t)size};
    desc.lrn_alpha = 1e-4f;
    desc.lrn_beta = 0.75f;
    desc.lrn_k = 2.0f;
    return tide__graph_append_same(g, name, x, desc);
}

static tide_status append_pool(tide__graph *g, const char *name, uint32_t x, tide_op_desc desc, tide__pool pool) {
    TIDE_TRY(set_window(g, name, x, &pool, &pool, &desc));
    if (desc.kind == TIDE_OP_MAXPOOL_FWD && pool.kernel > 16)
        return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: max pooling keeps its index in a byte: kernel at most 16",
                          g->prefix, name);
    return tide__graph_append(g, name, &desc, &x, 1);
}

uint32_t tide__graph_maxpool(tide__graph *g, const char *name, uint32_t x, tide__pool pool) {
    tide_op_desc desc = {.kind = TIDE_OP_MAXPOOL_FWD};
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_pool(g, name, x, desc, pool));
}

uint32_t tide__graph_relu_maxpool(tide__graph *g, const char *relu_name, const char *pool_name, uint32_t x,
                                  tide__pool pool) {
    return tide__graph_relu(g, relu_name, tide__graph_maxpool(g, pool_name, x, pool));
}

uint32_t tide__graph_avgpool(tide__graph *g, const char *name, uint32_t x, tide__pool pool) {
    tide_op_desc desc = {.kind = TIDE_OP_AVGPOOL_FWD};
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_pool(g, name, x, desc, pool));
}

uint32_t tide__graph_global_avgpool(tide__graph *g, const char *name, uint32_t x) {
    if (g->status != TIDE_OK) return 0;
    tide_shape in = tide__layer_shape(g, x);
    tide_op_desc desc = {.kind = TIDE_OP_AVGPOOL_FWD, .x = in, .y = {in.n, in.c, 1, 1}, .stride = 1};
    desc.kernel_h = (int32_t)in.h;
    desc.kernel_w = (int32_t)in.w;
    return tide__graph_settle(g, tide__graph_append(g, name, &desc, &x, 1));
}

static tide_status append_add(tide__graph *g, const char *name, uint32_t a, uint32_t b) {
    tide_shape sa = tide__layer_shape(g, a), sb = tide__layer_shape(g, b);
    if (a == b || sa.n != sb.n || sa.c != sb.c || sa.h != sb.h || sa.w != sb.w)
        return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: joins two different outputs of the same shape", g->prefix,
                          name);
    tide_op_desc desc = {.kind = TIDE_OP_ADD, .x = sa, .y = sa};
    return tide__graph_append(g, name, &desc, (uint32_t[]){a, b}, 2);
}

uint32_t tide__graph_add(tide__graph *g, const char *name, uint32_t a, uint32_t b) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_add(g, name, a, b));
}

static bool is_repeated(const uint32_t *parts, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (parts[i] == parts[n]) return true;
    return false;
}

static tide_status append_concat(tide__graph *g, const char *name, const uint32_t *parts, uint32_t n) {
    if (n < 2 || n > TIDE_KERNEL_MAX_OPERANDS)
        return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: joins 2 to %d parts, not %u", g->prefix, name,
                          TIDE_KERNEL_MAX_OPERANDS, n);
    tide_shape y = tide__layer_shape(g, parts[0]);
    for (uint32_t i = 1; i < n; i++) {
        tide_shape part = tide__layer_shape(g, parts[i]);
        if (is_repeated(parts, i) || part.n != y.n || part.h != y.h || part.w != y.w)
            return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: joins different outputs of one height and width", g->prefix,
                              name);
        y.c += part.c;
    }
    tide_op_desc desc = {.kind = TIDE_OP_CONCAT_FWD, .x = y, .y = y, .n_parts = n};
    return tide__graph_append(g, name, &desc, parts, n);
}

uint32_t tide__graph_concat(tide__graph *g, const char *name, const uint32_t *parts, uint32_t n_parts) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_concat(g, name, parts, n_parts));
}

static tide_status append_loss(tide__graph *g, const char *name, uint32_t x) {
    tide_shape in = tide__layer_shape(g, x);
    if (in.h != 1 || in.w != 1)
        return tide__fail(TIDE_E_ARGUMENT, "layer %s%s: the loss wants one score per class", g->prefix, name);
    tide_op_desc desc = {.kind = TIDE_OP_SOFTMAX_LOSS_FWD, .x = in, .y = in};
    return tide__graph_append(g, name, &desc, &x, 1);
}

uint32_t tide__graph_pixel_loss(tide__graph *g, const char *name, uint32_t x) {
    return tide__graph_append_same(g, name, x, (tide_op_desc){.kind = TIDE_OP_SOFTMAX_LOSS_FWD});
}

uint32_t tide__graph_softmax_loss(tide__graph *g, const char *name, uint32_t x) {
    return g->status != TIDE_OK ? 0 : tide__graph_settle(g, append_loss(g, name, x));
}

/* ---- the whole ---- */

/* Where no other backward op wants the output of a ReLU, its own takes the signs of it: the output itself need not stay. */
static void choose_signs(tide__graph *g) {
    for (size_t i = 0; i < g->layers.count; i++) {
        tide__layer *layer = &g->layers.data[i];
        layer->desc.signs = layer->desc.kind == TIDE_OP_RELU_FWD && layer->needs_grad;
        if (i == 0 || tide__op_rule_of(layer->desc.kind, TIDE_FORWARD)->forgets) continue;
        for (uint32_t k = 0; k < layer->n_inputs; k++)
            g->layers.data[tide__layer_input(g, (uint32_t)i, k)].desc.signs = 0;
    }
}

tide_status tide__graph_finish(tide__graph *g) {
    if (g->status != TIDE_OK) return g->status;
    size_t n = g->layers.count;
    if (n < 2 || g->layers.data[0].desc.kind != TIDE__LAYER_INPUT)
        return tide__fail(TIDE_E_ARGUMENT, "a model starts with its input and has at least one layer");
    for (size_t i = 0; i < n; i++) {
        bool loss = g->layers.data[i].desc.kind == TIDE_OP_SOFTMAX_LOSS_FWD, last = i + 1 == n;
        if (loss != last || (!last && g->layers.data[i].n_consumers == 0))
            return tide__fail(TIDE_E_ARGUMENT, "layer %s: every output is used, and the loss comes last",
                              tide__layer_name(g, (uint32_t)i));
    }
    choose_signs(g);
    return TIDE_OK;
}
