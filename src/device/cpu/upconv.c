/* Transposed convolutions whose windows do not overlap, as the mirror image of a convolution: what is x here is y
 * there, so forward is that convolution's backward-data, backward-data its forward, and its weights are (I, O, H, W).
 * The bias, which backward-data has no place for, is added in an own loop.
 *
 * The stored layout of the weights is what forward likes; backward-data states what it wants instead. */
#include "device/cpu/linear.h"
#include "device/cpu/view.h"

static tide_op_desc mirror_of(const tide_op_desc *d) {
    tide_op_desc m = {.x = d->y, .y = d->x, .kernel_h = d->kernel_h, .kernel_w = d->kernel_w, .stride = d->stride};
    return m;
}

/* ---- bias ---- */

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__view v = tide__view_of(&k->desc.y);
    TIDE_TRY(tide__prim_run(k, call));
    if (!k->desc.bias) return TIDE_OK;
    const float *bias = tide__floats(call, 2);
    float *y = tide__floats(call, 3);
#pragma omp parallel for collapse(2) schedule(static) if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    for (int64_t n = 0; n < v.n; n++)
        for (int64_t c = 0; c < v.channels; c++) {
            float *to = y + tide__view_channel(&v, n, c);
            for (int64_t p = 0; p < v.pixels; p++) to[p * v.lanes] += bias[c];
        }
    return TIDE_OK;
}

static float sum_channel(const tide__view *v, const float *dy, int64_t c) {
    double sum = 0;
    for (int64_t n = 0; n < v->n; n++) {
        const float *from = dy + tide__view_channel(v, n, c);
        for (int64_t p = 0; p < v->pixels; p++) sum += (double)from[p * v->lanes];
    }
    return (float)sum;
}

static tide_status run_backward_weights(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__view v = tide__view_of(&k->desc.y);
    TIDE_TRY(tide__prim_run(k, call));
    if (!k->desc.bias) return TIDE_OK;
    const float *dy = tide__floats(call, 1);
    float *dbias = tide__floats(call, 3);
#pragma omp parallel for schedule(static) if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    for (int64_t c = 0; c < v.channels; c++) dbias[c] = sum_channel(&v, dy, c);
    return TIDE_OK;
}

/* ---- building ---- */

static tide_status add_swapped_weights(tide__cpu_kernel *k, tide__access access, tide__md md) {
    tide__md swapped;
    TIDE_TRY(tide__md_swapped(&k->mds, md, &swapped));
    return tide__add_weights(k, access, swapped);
}

static tide_status build_forward(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd) {
    const tide_op_desc *d = &k->desc;
    const tide__bind binds[] = {
        {DNNL_ARG_DIFF_DST, 0}, {DNNL_ARG_WEIGHTS, 1, true}, {DNNL_ARG_DIFF_SRC, d->bias ? 3 : 2}};
    TIDE_TRY(tide__add_activation(k, TIDE__READ, d->x));
    TIDE_TRY(add_swapped_weights(k, TIDE__READ, tide__pd_md(pd, DNNL_ARG_WEIGHTS)));
    if (d->bias) TIDE_TRY(tide__add_vector(k, TIDE__READ, d->y.c, dnnl_f32));
    TIDE_TRY(tide__add_activation(k, TIDE__WRITE, d->y));
    TIDE_TRY(tide__prim_attach(k, pd, binds, 3));
    k->run = run_forward;
    return TIDE_OK;
}

static tide_status build_backward_data(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd) {
    static const tide__bind binds[] = {{DNNL_ARG_WEIGHTS, 0, true}, {DNNL_ARG_SRC, 1}, {DNNL_ARG_DST, 2}};
    TIDE_TRY(add_swapped_weights(k, TIDE__READ, tide__pd_md(pd, DNNL_ARG_WEIGHTS)));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.y));
    TIDE_TRY(tide__add_activation(k, TIDE__WRITE, k->desc.x));
    return tide__prim_attach(k, pd, binds, 3);
}

static tide_status build_backward_weights(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd, tide__md stored) {
    static const tide__bind binds[] = {{DNNL_ARG_DIFF_DST, 0}, {DNNL_ARG_SRC, 1}, {DNNL_ARG_DIFF_WEIGHTS, 2, true}};
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.x));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.y));
    TIDE_TRY(add_swapped_weights(k, TIDE__WRITE, stored));
    if (k->desc.bias) TIDE_TRY(tide__add_vector(k, TIDE__WRITE, k->desc.y.c, dnnl_f32));
    TIDE_TRY(tide__prim_attach(k, pd, binds, 3));
    k->run = run_backward_weights;
    return TIDE_OK;
}

tide_status tide__build_upconv(tide__cpu_kernel *k, const tide_op_desc *source) {
    dnnl_primitive_desc_t pd = NULL;
    tide__md stored;
    tide_status status;
    const tide_op_desc mirror = mirror_of(source);
    switch (source->kind) {
    case TIDE_OP_UPCONV_FWD:
        TIDE_TRY(tide__conv_choose(k, &mirror, TIDE_OP_CONV_BWD_DATA, &pd));
        status = build_forward(k, pd);
        break;
    case TIDE_OP_UPCONV_BWD_DATA:
        TIDE_TRY(tide__conv_choose(k, &mirror, TIDE_OP_CONV_FWD, &pd));
        status = build_backward_data(k, pd);
        break;
    default:
        TIDE_TRY(tide__conv_choose_weights(k, &mirror, TIDE_OP_CONV_BWD_DATA, &stored, &pd));
        status = build_backward_weights(k, pd, stored);
        break;
    }
    tide__pd_destroy(pd);
    return status;
}
