/* Softmax with cross-entropy loss over (N, classes, 1, 1), own loops (oneDNN's backward is reference code).
 *
 * The loss is the mean over the batch of log(sum exp(x - max)) - (x[label] - max), summed in double in order of the
 * samples; a sample's share lies in the workspace until all are done. Labels are data from outside: one that is not a
 * class fails the queue before anything is read or written with it. */
#include <math.h>

#include "device/cpu/view.h"

static tide_status check_labels(const int32_t *label, const tide_shape *x) {
    for (int64_t n = 0; n < x->n; n++)
        if (label[n] < 0 || label[n] >= x->c)
            return tide__fail(TIDE_E_ARGUMENT, "softmax-loss: label %d of sample %lld is not one of %lld classes",
                              label[n], (long long)n, (long long)x->c);
    return TIDE_OK;
}

/* Returns the sample's loss. */
static double softmax_row(const float *x, int64_t classes, int32_t label, float *prob) {
    float largest = x[0];
    for (int64_t c = 1; c < classes; c++) largest = x[c] > largest ? x[c] : largest;
    prob[0] = expf(x[0] - largest);
    double sum = (double)prob[0];
    for (int64_t c = 1; c < classes; c++) {
        prob[c] = expf(x[c] - largest);
        sum += (double)prob[c];
    }
    float scale = (float)(1.0 / sum), own = x[label];
    for (int64_t c = 0; c < classes; c++) prob[c] *= scale;
    /* cppcheck-suppress invalidFunctionArg ; sum >= 1: the largest element alone contributes 1 */
    return log(sum) - (double)(own - largest);
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_shape *s = &k->desc.x;
    const float *x = tide__floats(call, 0);
    const int32_t *label = tide__at(call, 1);
    float *prob = tide__floats(call, 2), *loss = tide__floats(call, 3);
    double *share = tide__at(call, 4), sum = 0;
    TIDE_TRY(check_labels(label, s));
#pragma omp parallel for schedule(static) if (s->n * s->c > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < s->n; n++) share[n] = softmax_row(x + n * s->c, s->c, label[n], prob + n * s->c);
    for (int64_t n = 0; n < s->n; n++) sum += share[n];
    loss[0] = (float)(sum / (double)s->n);
    return TIDE_OK;
}

/* dx may lie on prob. */
static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_shape *s = &k->desc.x;
    float loss_scale = k->desc.loss_scale != 0 ? k->desc.loss_scale : 1.0f;
    const float *prob = tide__floats(call, 0), share = loss_scale / (float)s->n;
    const int32_t *label = tide__at(call, 1);
    float *dx = tide__floats(call, 2);
    TIDE_TRY(check_labels(label, s));
#pragma omp parallel for schedule(static) if (s->n * s->c > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t c = 0; c < s->c; c++)
            dx[n * s->c + c] = (prob[n * s->c + c] - (c == label[n] ? 1.0f : 0.0f)) * share;
    return TIDE_OK;
}

tide_status tide__build_softmax_loss(tide__cpu_kernel *k, const tide_op_desc *source) {
    const tide_shape *x = &source->x;
    TIDE_TRY(tide__check_shape(x, "x"));
    if (x->h != 1 || x->w != 1) return tide__fail(TIDE_E_ARGUMENT, "the input must be (N, classes, 1, 1)");
    TIDE_TRY(tide__add_activation(k, TIDE__READ, *x));
    TIDE_TRY(tide__add_vector(k, TIDE__READ, x->n, dnnl_s32));
    TIDE_TRY(tide__add_activation(k, TIDE__WRITE, *x));
    if (source->kind == TIDE_OP_SOFTMAX_LOSS_BWD) {
        k->run = run_backward;
        return TIDE_OK;
    }
    k->run = run_forward;
    k->workspace_bytes = (uint64_t)x->n * sizeof(double);
    return tide__add_vector(k, TIDE__WRITE, 1, dnnl_f32);
}
