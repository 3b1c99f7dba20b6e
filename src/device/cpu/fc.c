/* Fully connected layers by oneDNN's inner product. x is (N, C, H, W), seen as N rows of C*H*W.
 *
 * All three kinds use the weight layout of the forward primitive, so no reorder is ever needed. Padded channels of x
 * meet zero weights, so they add nothing, and the padding of dx comes out as zero. */
#include "device/cpu/linear.h"

typedef struct mds {
    dnnl_memory_desc_t x, w, bias, y;
} mds;

/* A single pixel makes x a matrix; its bytes are the same. Its weights are then plain rows, one per output, like the
 * table of an embedding, which may be the same tensor. */
static mds make_mds(const tide_op_desc *d) {
    const dnnl_dims_t x = {d->x.n, d->x.c}, y = {d->y.n, d->y.c}, w2 = {d->y.c, d->x.c}, bias = {d->y.c};
    const dnnl_dims_t w4 = {d->y.c, d->x.c, d->x.h, d->x.w};
    bool matrix = d->x.h == 1 && d->x.w == 1;
    mds m;
    if (matrix)
        dnnl_memory_desc_init_by_tag(&m.x, 2, x, dnnl_f32, dnnl_nc);
    else
        tide__activation_md(&d->x, dnnl_f32, &m.x);
    if (matrix)
        dnnl_memory_desc_init_by_tag(&m.w, 2, w2, dnnl_f32, dnnl_ab);
    else
        dnnl_memory_desc_init_by_tag(&m.w, 4, w4, dnnl_f32, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&m.bias, 1, bias, dnnl_f32, dnnl_a);
    dnnl_memory_desc_init_by_tag(&m.y, 2, y, dnnl_f32, dnnl_nc);
    return m;
}

static tide_status forward_pd(dnnl_engine_t engine, const tide_op_desc *d, const mds *m, dnnl_primitive_desc_t *out) {
    dnnl_inner_product_desc_t op;
    TIDE_TRY(tide__dnnl(dnnl_inner_product_forward_desc_init(&op, dnnl_forward_training, &m->x, &m->w,
                                                             d->bias ? &m->bias : NULL, &m->y),
                        "describe an inner product"));
    return tide__pd_create(engine, &op, NULL, out);
}

static tide_status backward_pd(dnnl_engine_t engine, const tide_op_desc *d, const mds *m,
                               const_dnnl_primitive_desc_t forward, dnnl_primitive_desc_t *out) {
    const dnnl_memory_desc_t *w = tide__pd_md(forward, DNNL_ARG_WEIGHTS), *bias = d->bias ? &m->bias : NULL;
    dnnl_inner_product_desc_t op;
    dnnl_status_t described = d->kind == TIDE_OP_FC_BWD_DATA
                                  ? dnnl_inner_product_backward_data_desc_init(&op, &m->x, w, &m->y)
                                  : dnnl_inner_product_backward_weights_desc_init(&op, &m->x, w, bias, &m->y);
    TIDE_TRY(tide__dnnl(described, "describe an inner product"));
    return tide__pd_create(engine, &op, forward, out);
}

static tide_status build_backward(tide__cpu_kernel *k, dnnl_engine_t engine, const mds *m,
                                  const_dnnl_primitive_desc_t forward) {
    dnnl_primitive_desc_t pd = NULL;
    TIDE_TRY(backward_pd(engine, &k->desc, m, forward, &pd));
    tide_status status = k->desc.kind == TIDE_OP_FC_BWD_DATA
                             ? tide__linear_backward_data(k, pd)
                             : tide__linear_backward_weights(k, pd, tide__pd_md(pd, DNNL_ARG_DIFF_WEIGHTS));
    dnnl_primitive_desc_destroy(pd);
    return status;
}

tide_status tide__build_fc(tide__cpu_kernel *k, const tide_op_desc *source) {
    dnnl_engine_t engine = ((tide__cpu *)k->base.device)->engine;
    dnnl_primitive_desc_t forward = NULL;
    mds m = make_mds(source);
    TIDE_TRY(forward_pd(engine, source, &m, &forward));
    tide_status status =
        source->kind == TIDE_OP_FC_FWD ? tide__linear_forward(k, forward) : build_backward(k, engine, &m, forward);
    dnnl_primitive_desc_destroy(forward);
    return status;
}
