/* Softmax with cross-entropy loss over the channels of each pixel, own loops (oneDNN's backward is reference code).
 *
 * The loss is the mean over all pixels of log(sum exp(x - max)) - (x[label] - max). The pixels of an image are cut into
 * strips of at most STRIP; a strip's share of the loss lies in the workspace until all are done, and the shares are
 * added in order. Labels are data from outside: one that is not a class fails the queue before anything is read or
 * written with it.
 *
 * A classifier's scores are images of one pixel: rows of classes, which have loops of their own. */
#include <math.h>

#include "device/cpu/rows.h"
#include "device/cpu/softmax.h"
#include "device/cpu/view.h"
#include "device/cpu/wide.h"

#define STRIP 64

static bool is_rows(const tide__view *v) { return v->pixels == 1; }

static int64_t strips_of(const tide__view *v) { return (v->pixels + STRIP - 1) / STRIP; }

tide_status tide__check_labels(const int32_t *label, int64_t samples, int64_t pixels, int64_t classes) {
    for (int64_t i = 0; i < samples * pixels; i++)
        if (label[i] < 0 || label[i] >= classes)
            return tide__fail(TIDE_E_ARGUMENT, "softmax-loss: label %d of sample %lld is not one of %lld classes",
                              label[i], (long long)(i / pixels), (long long)classes);
    return TIDE_OK;
}

/* ---- forward: rows ---- */

double tide__softmax_row(const float *x, int64_t classes, int32_t label, float *prob) {
    float largest = tide__row_max(x, classes), own = x[label];
    tide__row_exp(x, classes, largest, prob);
    double sum = tide__row_sum(prob, classes);
    tide__row_scale(prob, classes, (float)(1.0 / sum), prob);
    /* cppcheck-suppress invalidFunctionArg ; sum >= 1: the largest element alone contributes 1 */
    return log(sum) - (double)(own - largest);
}

/* ---- forward: strips of pixels ---- */

static int64_t channel_at(const tide__view *v, int64_t c) { return c / v->lanes * v->pixels * v->lanes + c % v->lanes; }

/* Pixels [0, n) from x on; returns their loss. */
static double softmax_strip(const tide__view *v, const float *x, int64_t n, const int32_t *label, float *prob) {
    const int64_t step = v->lanes;
    float largest[STRIP];
    double sum[STRIP] = {0}, loss = 0;
    for (int64_t p = 0; p < n; p++) largest[p] = x[p * step];
    for (int64_t c = 1; c < v->channels; c++)
        for (int64_t p = 0; p < n; p++) {
            float value = x[channel_at(v, c) + p * step];
            largest[p] = value > largest[p] ? value : largest[p];
        }
    for (int64_t p = 0; p < n; p++) loss -= (double)(x[channel_at(v, label[p]) + p * step] - largest[p]);
    for (int64_t c = 0; c < v->channels; c++)
        for (int64_t p = 0; p < n; p++) {
            int64_t i = channel_at(v, c) + p * step;
            prob[i] = tide__exp(x[i] - largest[p]);
            sum[p] += (double)prob[i];
        }
    for (int64_t c = 0; c < v->groups * v->lanes; c++)
        for (int64_t p = 0; p < n; p++) {
            int64_t i = channel_at(v, c) + p * step;
            prob[i] = c < v->channels ? prob[i] * (float)(1.0 / sum[p]) : 0;
        }
    for (int64_t p = 0; p < n; p++) loss += log(sum[p]);
    return loss;
}

static double softmax_pixels(const tide__view *v, int64_t n, int64_t strip, const tide__call *call) {
    const int64_t first = strip * STRIP, at = tide__view_at(v, n, 0) + first * v->lanes;
    const int32_t *label = tide__at(call, 1);
    int64_t count = v->pixels - first < STRIP ? v->pixels - first : STRIP;
    return softmax_strip(v, tide__floats(call, 0) + at, count, label + n * v->pixels + first,
                         tide__floats(call, 2) + at);
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__view v = tide__view_of(&k->desc.x);
    const float *x = tide__floats(call, 0);
    const int32_t *label = tide__at(call, 1);
    float *prob = tide__floats(call, 2), *loss = tide__floats(call, 3);
    const int64_t strips = strips_of(&v);
    double *share = tide__at(call, 4), sum = 0;
    TIDE_TRY(tide__check_labels(label, v.n, v.pixels, v.channels));
#pragma omp parallel for collapse(2) schedule(static) if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t s = 0; s < strips; s++)
            share[n * strips + s] =
                is_rows(&v) ? tide__softmax_row(x + n * v.channels, v.channels, label[n], prob + n * v.channels)
                            : softmax_pixels(&v, n, s, call);
    for (int64_t i = 0; i < v.n * strips; i++) sum += share[i];
    loss[0] = (float)(sum / (double)(v.n * v.pixels));
    return TIDE_OK;
}

/* ---- backward: (prob - [class is label]) * share ---- */

/* dx may lie on prob. */
static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__view v = tide__view_of(&k->desc.x);
    float loss_scale = k->desc.loss_scale != 0 ? k->desc.loss_scale : 1.0f;
    const float *prob = tide__floats(call, 0), share = loss_scale / (float)(v.n * v.pixels);
    const int64_t image = v.groups * v.lanes * v.pixels;
    const int32_t *label = tide__at(call, 1);
    float *dx = tide__floats(call, 2);
    TIDE_TRY(tide__check_labels(label, v.n, v.pixels, v.channels));
#pragma omp parallel for schedule(static) if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < v.n; n++) {
        tide__row_scale(prob + n * image, image, share, dx + n * image);
        for (int64_t p = 0; p < v.pixels; p++)
            dx[n * image + channel_at(&v, label[n * v.pixels + p]) + p * v.lanes] -= share;
    }
    return TIDE_OK;
}

tide_status tide__build_softmax_loss(tide__cpu_kernel *k, const tide_op_desc *source) {
    const tide_shape *x = &source->x;
    const tide__view v = tide__view_of(x);
    if (source->kind == TIDE_OP_SOFTMAX_LOSS_BWD) {
        k->run = run_backward;
        TIDE_TRY(tide__add_float32(k, TIDE__READ, *x));
        TIDE_TRY(tide__add_vector(k, TIDE__READ, v.n * v.pixels, dnnl_s32));
        return tide__add_activation(k, TIDE__WRITE, *x);
    }
    k->run = run_forward;
    TIDE_TRY(tide__add_activation(k, TIDE__READ, *x));
    TIDE_TRY(tide__add_vector(k, TIDE__READ, v.n * v.pixels, dnnl_s32));
    TIDE_TRY(tide__add_float32(k, TIDE__WRITE, *x));
    k->workspace_bytes = (uint64_t)(v.n * strips_of(&v)) * sizeof(double);
    return tide__add_vector(k, TIDE__WRITE, 1, dnnl_f32);
}
