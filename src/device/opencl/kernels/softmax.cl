/* Softmax with cross-entropy loss over the channels of each pixel. Group (strip, image): STRIP pixels at most; its share
 * of the loss lies in the workspace until all are done. A classifier's scores are images of one pixel, whose channels
 * lie side by side. A label that is no class is reported, and counts as class 0. */
#define STRIP 64 /* also in softmax.c */

inline int checked(global fault *faults, int label, int classes, int sample) {
    if (label >= 0 && label < classes) return label;
    report(faults, 1, label, sample, classes);
    return 0;
}

/* A strip of `count` pixels; the loss of a lane's. */
#if LANES == 1
inline wide softmax_strip(global fault *faults, global const float *x, global const int *label, int classes, int pixels,
                          int count, int image, global float *prob) {
    float largest[STRIP];
    wide sum[STRIP], loss = 0;
    for (int p = 0; p < count; p++) largest[p] = x[p], sum[p] = 0;
    for (int c = 1; c < classes; c++)
        for (int p = 0; p < count; p++) largest[p] = fmax(largest[p], x[(long)c * pixels + p]);
    for (int p = 0; p < count; p++)
        loss -= (wide)(x[(long)checked(faults, label[p], classes, image) * pixels + p] - largest[p]);
    for (int c = 0; c < classes; c++)
        for (int p = 0; p < count; p++) {
            const float e = exp(x[(long)c * pixels + p] - largest[p]);
            prob[(long)c * pixels + p] = e;
            sum[p] += (wide)e;
        }
    for (int c = 0; c < classes; c++)
        for (int p = 0; p < count; p++) prob[(long)c * pixels + p] *= (float)(1 / sum[p]);
    for (int p = 0; p < count; p++) loss += log(sum[p]);
    return loss;
}
#else
inline wide softmax_strip(global fault *faults, global const float *x, global const int *label, int classes, int pixels,
                          int count, int image, global float *prob) {
    wide loss = 0;
    for (int p = LANE; p < count; p += LANES) {
        float largest = x[p];
        wide sum = 0;
        for (int c = 1; c < classes; c++) largest = fmax(largest, x[(long)c * pixels + p]);
        loss -= (wide)(x[(long)checked(faults, label[p], classes, image) * pixels + p] - largest);
        for (int c = 0; c < classes; c++) {
            const float e = exp(x[(long)c * pixels + p] - largest);
            prob[(long)c * pixels + p] = e;
            sum += (wide)e;
        }
        for (int c = 0; c < classes; c++) prob[(long)c * pixels + p] *= (float)(1 / sum);
        loss += log(sum);
    }
    return loss;
}
#endif

KERNEL void loss_forward(ARENA, ulong x_at, ulong label_at, ulong prob_at, ulong share_at, int classes, int pixels,
                         int strips) {
    const long n = (long)get_group_id(1);
    const int first = (int)get_group_id(0) * STRIP, count = min(STRIP, pixels - first);
    global const int *label = INTS(label_at) + n * pixels + first;
    global const float *x = FLOATS(x_at) + n * classes * pixels + first;
    global float *prob = FLOATS(prob_at) + n * classes * pixels + first;
    global wide *share = (global wide *)(arena + share_at) + n * strips + get_group_id(0);
    local float scratch[LANES];
    local wide wide_scratch[LANES];
    wide loss;
    if (pixels == 1) {
        float largest;
        const int own = checked(faults, label[0], classes, (int)n);
        loss = log(row_softmax(x, classes, prob, scratch, wide_scratch, &largest));
        loss -= (wide)(x[own] - largest);
    } else {
        loss = group_sum(softmax_strip(faults, x, label, classes, pixels, count, (int)n, prob), wide_scratch);
    }
    if (LANE == 0) *share = loss;
}

KERNEL void loss_total(ARENA, ulong share_at, ulong loss_at, ulong shares, ulong count) {
    SKIP_AFTER_FAULT;
    global const wide *share = (global const wide *)(arena + share_at);
    local wide scratch[LANES];
    wide sum = 0;
    for (ulong i = LANE; i < shares; i += LANES) sum += share[i];
    sum = group_sum(sum, scratch);
    if (LANE == 0) FLOATS(loss_at)[0] = (float)(sum / (wide)count);
}

/* dx = (prob - [class is label]) * share; dx may lie on prob. Group: an image. */
KERNEL void loss_backward(ARENA, ulong prob_at, ulong label_at, ulong dx_at, int classes, int pixels, float share) {
    const long n = (long)get_group_id(0), image = (long)classes * pixels;
    global const float *prob = FLOATS(prob_at) + n * image;
    global const int *label = INTS(label_at) + n * pixels;
    global float *dx = FLOATS(dx_at) + n * image;
    FOR_ROW(image, vstore8(vload8(0, prob + i) * share, 0, dx + i), dx[i] = prob[i] * share);
    MEET; /* another lane may have written the element of the label */
    for (int p = LANE; p < pixels; p += LANES)
        dx[(long)checked(faults, label[p], classes, (int)n) * pixels + p] -= share;
}
