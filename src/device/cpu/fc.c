/* Fully connected layers by oneDNN's inner product. x is (N, C, H, W), seen as N rows of C*H*W.
 *
 * All three kinds use the weight layout of the forward primitive, so no reorder is ever needed. Padded channels of x
 * meet zero weights, so they add nothing, and the padding of dx comes out as zero. */
#include "device/cpu/linear.h"

/* A single pixel makes x a matrix; its bytes are the same. Its weights are then plain rows, one per output, like the
 * table of an embedding, which may be the same tensor. */
static tide_status describe_input(tide__mds *mds, const tide_op_desc *d, tide__fc_spec *s) {
    const dnnl_dims_t x = {d->x.n, d->x.c}, w2 = {d->y.c, d->x.c}, w4 = {d->y.c, d->x.c, d->x.h, d->x.w};
    if (d->x.h == 1 && d->x.w == 1) {
        TIDE_TRY(tide__md_create(mds, 2, x, dnnl_f32, dnnl_nc, &s->x));
        return tide__md_create(mds, 2, w2, dnnl_f32, dnnl_ab, &s->w);
    }
    TIDE_TRY(tide__activation_md(mds, &d->x, dnnl_f32, &s->x));
    return tide__md_create(mds, 4, w4, dnnl_f32, dnnl_format_tag_any, &s->w);
}

static tide_status describe(tide__mds *mds, const tide_op_desc *d, tide__fc_spec *out) {
    const dnnl_dims_t y = {d->y.n, d->y.c}, bias = {d->y.c};
    tide__fc_spec s = {.bias = NULL};
    TIDE_TRY(describe_input(mds, d, &s));
    if (d->bias) TIDE_TRY(tide__md_create(mds, 1, bias, dnnl_f32, dnnl_a, &s.bias));
    TIDE_TRY(tide__md_create(mds, 2, y, dnnl_f32, dnnl_nc, &s.y));
    *out = s;
    return TIDE_OK;
}

static tide_status build_backward(tide__cpu_kernel *k, dnnl_engine_t engine, tide__fc_spec spec,
                                  const_dnnl_primitive_desc_t forward) {
    dnnl_primitive_desc_t pd = NULL;
    spec.w = tide__pd_md(forward, DNNL_ARG_WEIGHTS);
    TIDE_TRY(tide__fc_pd_create(engine, k->desc.kind, &spec, forward, &pd));
    tide_status status = k->desc.kind == TIDE_OP_FC_BWD_DATA
                             ? tide__linear_backward_data(k, pd)
                             : tide__linear_backward_weights(k, pd, tide__pd_md(pd, DNNL_ARG_DIFF_WEIGHTS));
    tide__pd_destroy(pd);
    return status;
}

tide_status tide__build_fc(tide__cpu_kernel *k, const tide_op_desc *source) {
    dnnl_engine_t engine = ((tide__cpu *)k->base.device)->engine;
    dnnl_primitive_desc_t forward = NULL;
    tide__fc_spec spec;
    TIDE_TRY(describe(&k->mds, source, &spec));
    TIDE_TRY(tide__fc_pd_create(engine, TIDE_OP_FC_FWD, &spec, NULL, &forward));
    tide_status status =
        source->kind == TIDE_OP_FC_FWD ? tide__linear_forward(k, forward) : build_backward(k, engine, spec, forward);
    tide__pd_destroy(forward);
    return status;
}
