/* See linear.h. */
#include "device/cpu/linear.h"

typedef struct binding {
    tide__bind binds[4];
    uint32_t n;
} binding;

/* With a bias the operand of it follows that of the weights. */
static binding forward_binding(const tide_op_desc *d) {
    uint32_t y = d->bias ? 3 : 2;
    return (binding){
        {{DNNL_ARG_SRC, 0, false}, {DNNL_ARG_WEIGHTS, 1, false}, {DNNL_ARG_DST, y, false}, {DNNL_ARG_BIAS, 2, false}},
        d->bias ? 4 : 3};
}

static binding data_binding(void) {
    return (binding){{{DNNL_ARG_WEIGHTS, 0, false}, {DNNL_ARG_DIFF_DST, 1, false}, {DNNL_ARG_DIFF_SRC, 2, false}}, 3};
}

static binding weights_binding(const tide_op_desc *d) {
    return (binding){{{DNNL_ARG_SRC, 0, false},
                      {DNNL_ARG_DIFF_DST, 1, false},
                      {DNNL_ARG_DIFF_WEIGHTS, 2, false},
                      {DNNL_ARG_DIFF_BIAS, 3, false}},
                     d->bias ? 4 : 3};
}

/* ---- operands ---- */

static tide_status declare_forward(tide__cpu_kernel *k, tide__md weights) {
    const tide_op_desc *d = &k->desc;
    TIDE_TRY(tide__add_activation(k, TIDE__READ, d->x));
    TIDE_TRY(tide__add_weights(k, TIDE__READ, weights));
    if (d->bias) TIDE_TRY(tide__add_vector(k, TIDE__READ, d->y.c, dnnl_f32));
    return tide__add_activation(k, TIDE__WRITE, d->y);
}

static tide_status declare_backward_data(tide__cpu_kernel *k, tide__md weights) {
    TIDE_TRY(tide__add_weights(k, TIDE__READ, weights));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.y));
    return tide__add_activation(k, TIDE__WRITE, k->desc.x);
}

static tide_status declare_backward_weights(tide__cpu_kernel *k, tide__md weights) {
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.x));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.y));
    TIDE_TRY(tide__add_weights(k, TIDE__WRITE, weights));
    return k->desc.bias ? tide__add_vector(k, TIDE__WRITE, k->desc.y.c, dnnl_f32) : TIDE_OK;
}

tide_status tide__linear_declare(tide__cpu_kernel *k, tide__md weights) {
    switch (k->desc.kind) {
    case TIDE_OP_CONV_FWD: return declare_forward(k, weights);
    case TIDE_OP_CONV_BWD_DATA: return declare_backward_data(k, weights);
    default: return declare_backward_weights(k, weights);
    }
}

/* ---- primitives ---- */

tide_status tide__linear_forward(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd) {
    const binding b = forward_binding(&k->desc);
    TIDE_TRY(declare_forward(k, tide__pd_md(pd, DNNL_ARG_WEIGHTS)));
    return tide__prim_attach(k, pd, b.binds, b.n);
}

tide_status tide__linear_backward_data(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd) {
    const binding b = data_binding();
    TIDE_TRY(declare_backward_data(k, tide__pd_md(pd, DNNL_ARG_WEIGHTS)));
    return tide__prim_attach(k, pd, b.binds, b.n);
}

tide_status tide__linear_backward_weights(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd, tide__md stored) {
    const binding b = weights_binding(&k->desc);
    TIDE_TRY(declare_backward_weights(k, stored));
    return tide__prim_attach(k, pd, b.binds, b.n);
}

tide_status tide__linear_alternative(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd) {
    const binding b = k->desc.kind == TIDE_OP_CONV_FWD        ? forward_binding(&k->desc)
                      : k->desc.kind == TIDE_OP_CONV_BWD_DATA ? data_binding()
                                                              : weights_binding(&k->desc);
    return tide__prim_add_alternative(k, pd, b.binds, b.n);
}
