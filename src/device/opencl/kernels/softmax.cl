/* Softmax with cross-entropy loss over the channels of each pixel. Item (strip, image): STRIP pixels at most; its share
 * of the loss lies in the workspace until all are done. A classifier's scores are images of one pixel, whose channels
 * lie side by side. A label that is no class is reported, and counts as class 0. */
#define STRIP 64 /* also in softmax.c */

inline int checked(global fault *faults, int label, int classes, int sample) {
    if (label >= 0 && label < classes) return label;
    report(faults, 1, label, sample, classes);
    return 0;
}

inline wide softmax_row(global const float *x, int classes, int label, global float *prob) {
    float8 most = (float8)(x[0]);
    float largest;
    wide8 lanes = 0;
    wide sum = 0;
    int i = 0;
    for (; i + 8 <= classes; i += 8) most = fmax(most, vload8(0, x + i));
    largest = largest8(most);
    for (; i < classes; i++) largest = fmax(largest, x[i]);
    const float own = x[label] - largest;
    for (i = 0; i + 8 <= classes; i += 8) {
        float8 e = exp(vload8(0, x + i) - largest);
        vstore8(e, 0, prob + i);
        lanes += WIDE8(e);
    }
    for (; i < classes; i++) {
        prob[i] = exp(x[i] - largest);
        sum += (wide)prob[i];
    }
    sum += sum8(lanes);
    const float share = (float)(1 / sum);
    for (i = 0; i < classes; i++) prob[i] *= share;
    return log(sum) - (wide)own;
}

kernel void loss_forward(global char *arena, global fault *faults, ulong x_at, ulong label_at, ulong prob_at,
                         ulong share_at, int classes, int pixels, int strips) {
    const long n = (long)get_global_id(1);
    const int first = (int)get_global_id(0) * STRIP, count = min(STRIP, pixels - first);
    global const int *label = INTS(label_at) + n * pixels + first;
    global const float *x = FLOATS(x_at) + n * classes * pixels + first;
    global float *prob = FLOATS(prob_at) + n * classes * pixels + first;
    global wide *share = (global wide *)(arena + share_at) + n * strips + get_global_id(0);
    if (pixels == 1) {
        *share = softmax_row(x, classes, checked(faults, label[0], classes, (int)n), prob);
        return;
    }
    float largest[STRIP];
    wide sum[STRIP], loss = 0;
    for (int p = 0; p < count; p++) largest[p] = x[p], sum[p] = 0;
    for (int c = 1; c < classes; c++)
        for (int p = 0; p < count; p++) largest[p] = fmax(largest[p], x[(long)c * pixels + p]);
    for (int p = 0; p < count; p++)
        loss -= (wide)(x[(long)checked(faults, label[p], classes, (int)n) * pixels + p] - largest[p]);
    for (int c = 0; c < classes; c++)
        for (int p = 0; p < count; p++) {
            const float e = exp(x[(long)c * pixels + p] - largest[p]);
            prob[(long)c * pixels + p] = e;
            sum[p] += (wide)e;
        }
    for (int c = 0; c < classes; c++)
        for (int p = 0; p < count; p++) prob[(long)c * pixels + p] *= (float)(1 / sum[p]);
    for (int p = 0; p < count; p++) loss += log(sum[p]);
    *share = loss;
}

kernel void loss_total(global char *arena, ulong share_at, ulong loss_at, ulong shares, ulong count) {
    global const wide *share = (global const wide *)(arena + share_at);
    wide sum = 0;
    for (ulong i = 0; i < shares; i++) sum += share[i];
    FLOATS(loss_at)[0] = (float)(sum / (wide)count);
}

/* dx = (prob - [class is label]) * share; dx may lie on prob. Item: an image. */
kernel void loss_backward(global char *arena, global fault *faults, ulong prob_at, ulong label_at, ulong dx_at,
                          int classes, int pixels, float share) {
    const long n = (long)get_global_id(0), image = (long)classes * pixels;
    global const float *prob = FLOATS(prob_at) + n * image;
    global const int *label = INTS(label_at) + n * pixels;
    global float *dx = FLOATS(dx_at) + n * image;
    long i = 0;
    for (; i + 8 <= image; i += 8) vstore8(vload8(0, prob + i) * share, 0, dx + i);
    for (; i < image; i++) dx[i] = prob[i] * share;
    for (int p = 0; p < pixels; p++) dx[(long)checked(faults, label[p], classes, (int)n) * pixels + p] -= share;
}
