/* oneDNN 3: layouts are handles, and a primitive description has its op's arguments. See onednn.h. */
#include "device/cpu/onednn.h"

#include <string.h>

/* ---- layouts ---- */

/* What oneDNN made, if it did, becomes one of mds. */
static tide_status take(tide__mds *mds, dnnl_status_t status, dnnl_memory_desc_t made, tide__md *out) {
    TIDE_TRY(tide__dnnl(status, "describe a layout"));
    return tide__mds_take(mds, made, out);
}

tide_status tide__md_create(tide__mds *mds, int n_dims, const dnnl_dims_t dims, dnnl_data_type_t type,
                            dnnl_format_tag_t tag, tide__md *out) {
    dnnl_memory_desc_t md = NULL;
    dnnl_status_t status = dnnl_memory_desc_create_with_tag(&md, n_dims, dims, type, tag);
    return take(mds, status, md, out);
}

tide__md tide__md_clone(tide__md md) {
    dnnl_memory_desc_t copy = NULL;
    return dnnl_memory_desc_clone(&copy, md) == dnnl_success ? copy : NULL;
}

void tide__md_destroy(tide__md md) {
    dnnl_memory_desc_t handle; /* layouts are read-only until they go */
    memcpy(&handle, &md, sizeof handle);
    if (handle) dnnl_memory_desc_destroy(handle);
}

tide_status tide__md_swapped(tide__mds *mds, tide__md md, tide__md *out) {
    static const int order[] = {1, 0, 2, 3};
    dnnl_memory_desc_t swapped = NULL;
    dnnl_status_t status = dnnl_memory_desc_permute_axes(&swapped, md, order);
    return take(mds, status, swapped, out);
}

/* A question to a layout in blocks cannot fail: all of ours are. */
static const dnnl_dim_t *dims_of(tide__md md, dnnl_query_t what) {
    const dnnl_dims_t *dims = NULL;
    dnnl_memory_desc_query(md, what, (void *)&dims);
    return dims ? *dims : NULL;
}

tide__md_view tide__md_look(tide__md md) {
    tide__md_view v = {.type = dnnl_data_type_undef};
    dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &v.n_dims);
    dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &v.n_blocks);
    dnnl_memory_desc_query(md, dnnl_query_data_type, &v.type);
    v.dims = dims_of(md, dnnl_query_dims);
    v.padded = dims_of(md, dnnl_query_padded_dims);
    v.strides = dims_of(md, dnnl_query_strides);
    v.block_dims = dims_of(md, dnnl_query_inner_idxs);
    v.block_sizes = dims_of(md, dnnl_query_inner_blks);
    return v;
}

/* ---- primitive descriptions ---- */

static dnnl_status_t new_conv(dnnl_engine_t engine, tide_op_kind kind, const tide__conv_spec *s,
                              const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr,
                              dnnl_primitive_desc_t *out) {
    static const dnnl_dims_t dense = {0};
    if (kind == TIDE_OP_CONV_FWD)
        return dnnl_convolution_forward_primitive_desc_create(out, engine, dnnl_forward_training,
                                                              dnnl_convolution_direct, s->x, s->w, s->bias, s->y,
                                                              s->strides, dense, s->pad_before, s->pad_after, attr);
    if (kind == TIDE_OP_CONV_BWD_DATA)
        return dnnl_convolution_backward_data_primitive_desc_create(out, engine, dnnl_convolution_direct, s->x, s->w,
                                                                    s->y, s->strides, dense, s->pad_before,
                                                                    s->pad_after, hint, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(out, engine, dnnl_convolution_direct, s->x, s->w,
                                                                   s->bias, s->y, s->strides, dense, s->pad_before,
                                                                   s->pad_after, hint, attr);
}

tide_status tide__conv_pd_create(dnnl_engine_t engine, tide_op_kind kind, const tide__conv_spec *spec,
                                 const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out) {
    dnnl_primitive_attr_t attr = tide__attr_create();
    if (!attr) return tide__fail_memory();
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = new_conv(engine, kind, spec, hint, attr, &pd);
    dnnl_primitive_attr_destroy(attr);
    if (status == dnnl_success) *out = pd;
    return tide__dnnl(status, "compute this op");
}

tide_status tide__conv_pd_each(dnnl_engine_t engine, tide_op_kind kind, const tide__conv_spec *spec,
                               const_dnnl_primitive_desc_t hint, tide__pd_visit visit, void *context) {
    dnnl_primitive_desc_t pd = NULL;
    if (tide__conv_pd_create(engine, kind, spec, hint, &pd) != TIDE_OK) return TIDE_OK;
    tide_status status;
    do status = visit(context, pd);
    while (status == TIDE_OK && dnnl_primitive_desc_next_impl(pd) == dnnl_success);
    tide__pd_destroy(pd);
    return status;
}

static dnnl_status_t new_fc(dnnl_engine_t engine, tide_op_kind kind, const tide__fc_spec *s,
                            const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr,
                            dnnl_primitive_desc_t *out) {
    if (kind == TIDE_OP_FC_FWD)
        return dnnl_inner_product_forward_primitive_desc_create(out, engine, dnnl_forward_training, s->x, s->w, s->bias,
                                                                s->y, attr);
    if (kind == TIDE_OP_FC_BWD_DATA)
        return dnnl_inner_product_backward_data_primitive_desc_create(out, engine, s->x, s->w, s->y, hint, attr);
    return dnnl_inner_product_backward_weights_primitive_desc_create(out, engine, s->x, s->w, s->bias, s->y, hint,
                                                                     attr);
}

tide_status tide__fc_pd_create(dnnl_engine_t engine, tide_op_kind kind, const tide__fc_spec *spec,
                               const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out) {
    dnnl_primitive_attr_t attr = tide__attr_create();
    if (!attr) return tide__fail_memory();
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = new_fc(engine, kind, spec, hint, attr, &pd);
    dnnl_primitive_attr_destroy(attr);
    if (status == dnnl_success) *out = pd;
    return tide__dnnl(status, "compute this op");
}
