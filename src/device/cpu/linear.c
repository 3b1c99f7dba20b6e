/* See linear.h. */
#include "device/cpu/linear.h"

tide_status tide__linear_forward(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd) {
    const tide_op_desc *d = &k->desc;
    const tide__bind binds[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DST, d->bias ? 3 : 2}, {DNNL_ARG_BIAS, 2}};
    TIDE_TRY(tide__add_activation(k, TIDE__READ, d->x));
    TIDE_TRY(tide__add_weights(k, TIDE__READ, tide__pd_md(pd, DNNL_ARG_WEIGHTS)));
    if (d->bias) TIDE_TRY(tide__add_vector(k, TIDE__READ, d->y.c, dnnl_f32));
    TIDE_TRY(tide__add_activation(k, TIDE__WRITE, d->y));
    return tide__prim_attach(k, pd, binds, d->bias ? 4 : 3);
}

tide_status tide__linear_backward_data(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd) {
    static const tide__bind binds[] = {{DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DIFF_DST, 1}, {DNNL_ARG_DIFF_SRC, 2}};
    TIDE_TRY(tide__add_weights(k, TIDE__READ, tide__pd_md(pd, DNNL_ARG_WEIGHTS)));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.y));
    TIDE_TRY(tide__add_activation(k, TIDE__WRITE, k->desc.x));
    return tide__prim_attach(k, pd, binds, 3);
}

tide_status tide__linear_backward_weights(tide__cpu_kernel *k, const_dnnl_primitive_desc_t pd,
                                          const dnnl_memory_desc_t *stored) {
    static const tide__bind binds[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_DIFF_DST, 1}, {DNNL_ARG_DIFF_WEIGHTS, 2}, {DNNL_ARG_DIFF_BIAS, 3}};
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.x));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, k->desc.y));
    TIDE_TRY(tide__add_weights(k, TIDE__WRITE, stored));
    if (k->desc.bias) TIDE_TRY(tide__add_vector(k, TIDE__WRITE, k->desc.y.c, dnnl_f32));
    return tide__prim_attach(k, pd, binds, k->desc.bias ? 4 : 3);
}
