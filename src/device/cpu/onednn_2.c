/* oneDNN 2: layouts are structs, and a primitive description comes of an op's description. See onednn.h. */
#include "device/cpu/onednn.h"

#include <stdlib.h>
#include <string.h>

/* ---- layouts ---- */

static dnnl_memory_desc_t *md_new(void) { return calloc(1, sizeof(dnnl_memory_desc_t)); }

/* *made was asked to become `md`: on success it is one of mds, else it is gone. */
static tide_status take(tide__mds *mds, dnnl_status_t status, dnnl_memory_desc_t *made, tide__md *out) {
    if (status == dnnl_success) return tide__mds_take(mds, made, out);
    free(made);
    return tide__dnnl(status, "describe a layout");
}

tide_status tide__md_create(tide__mds *mds, int n_dims, const dnnl_dims_t dims, dnnl_data_type_t type,
                            dnnl_format_tag_t tag, tide__md *out) {
    dnnl_memory_desc_t *md = md_new();
    if (!md) return tide__fail_memory();
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(md, n_dims, dims, type, tag);
    return take(mds, status, md, out); /* NOLINT(clang-analyzer-unix.Malloc): it is now one of mds */
}

tide__md tide__md_clone(tide__md md) {
    dnnl_memory_desc_t *copy = md_new();
    if (copy) *copy = *md;
    return copy;
}

void tide__md_destroy(tide__md md) {
    void *block; /* layouts are read-only until they go */
    memcpy(&block, &md, sizeof block);
    free(block);
}

tide_status tide__md_swapped(tide__mds *mds, tide__md md, tide__md *out) {
    static const int order[] = {1, 0, 2, 3};
    dnnl_memory_desc_t *swapped = md_new();
    if (!swapped) return tide__fail_memory();
    dnnl_status_t status = dnnl_memory_desc_permute_axes(swapped, md, order);
    return take(mds, status, swapped, out); /* NOLINT(clang-analyzer-unix.Malloc): it is now one of mds */
}

tide__md_view tide__md_look(tide__md md) {
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    return (tide__md_view){.n_dims = md->ndims,
                           .n_blocks = b->inner_nblks,
                           .type = md->data_type,
                           .dims = md->dims,
                           .padded = md->padded_dims,
                           .strides = b->strides,
                           .block_dims = b->inner_idxs,
                           .block_sizes = b->inner_blks};
}

/* ---- primitive descriptions ---- */

static tide_status create_pd(dnnl_engine_t engine, const_dnnl_op_desc_t op, const_dnnl_primitive_desc_t hint,
                             dnnl_primitive_desc_t *out) {
    dnnl_primitive_attr_t attr = tide__attr_create();
    if (!attr) return tide__fail_memory();
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_primitive_desc_create(&pd, op, attr, engine, hint);
    dnnl_primitive_attr_destroy(attr);
    if (status == dnnl_success) *out = pd;
    return tide__dnnl(status, "compute this op");
}

static tide_status describe_conv(tide_op_kind kind, const tide__conv_spec *s, dnnl_convolution_desc_t *out) {
    dnnl_status_t status;
    if (kind == TIDE_OP_CONV_FWD)
        status = dnnl_convolution_forward_desc_init(out, dnnl_forward_training, dnnl_convolution_direct, s->x, s->w,
                                                    s->bias, s->y, s->strides, s->pad_before, s->pad_after);
    else if (kind == TIDE_OP_CONV_BWD_DATA)
        status = dnnl_convolution_backward_data_desc_init(out, dnnl_convolution_direct, s->x, s->w, s->y, s->strides,
                                                          s->pad_before, s->pad_after);
    else
        status = dnnl_convolution_backward_weights_desc_init(out, dnnl_convolution_direct, s->x, s->w, s->bias, s->y,
                                                             s->strides, s->pad_before, s->pad_after);
    return tide__dnnl(status, "describe a convolution");
}

tide_status tide__conv_pd_create(dnnl_engine_t engine, tide_op_kind kind, const tide__conv_spec *spec,
                                 const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out) {
    dnnl_convolution_desc_t op;
    TIDE_TRY(describe_conv(kind, spec, &op));
    return create_pd(engine, &op, hint, out);
}

static tide_status visit_all(dnnl_primitive_desc_iterator_t it, tide__pd_visit visit, void *context) {
    tide_status status;
    do {
        dnnl_primitive_desc_t pd = dnnl_primitive_desc_iterator_fetch(it);
        if (!pd) return tide__fail_memory();
        status = visit(context, pd);
        tide__pd_destroy(pd);
    } while (status == TIDE_OK && dnnl_primitive_desc_iterator_next(it) == dnnl_success);
    return status;
}

tide_status tide__conv_pd_each(dnnl_engine_t engine, tide_op_kind kind, const tide__conv_spec *spec,
                               const_dnnl_primitive_desc_t hint, tide__pd_visit visit, void *context) {
    dnnl_convolution_desc_t op;
    dnnl_primitive_desc_iterator_t it = NULL;
    if (describe_conv(kind, spec, &op) != TIDE_OK) return TIDE_OK;
    dnnl_primitive_attr_t attr = tide__attr_create();
    if (!attr) return tide__fail_memory();
    tide_status status = TIDE_OK;
    if (dnnl_primitive_desc_iterator_create(&it, &op, attr, engine, hint) == dnnl_success)
        status = visit_all(it, visit, context);
    dnnl_primitive_desc_iterator_destroy(it);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

tide_status tide__fc_pd_create(dnnl_engine_t engine, tide_op_kind kind, const tide__fc_spec *s,
                               const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out) {
    dnnl_inner_product_desc_t op;
    dnnl_status_t status;
    if (kind == TIDE_OP_FC_FWD)
        status = dnnl_inner_product_forward_desc_init(&op, dnnl_forward_training, s->x, s->w, s->bias, s->y);
    else if (kind == TIDE_OP_FC_BWD_DATA)
        status = dnnl_inner_product_backward_data_desc_init(&op, s->x, s->w, s->y);
    else
        status = dnnl_inner_product_backward_weights_desc_init(&op, s->x, s->w, s->bias, s->y);
    TIDE_TRY(tide__dnnl(status, "describe an inner product"));
    return create_pd(engine, &op, hint, out);
}
