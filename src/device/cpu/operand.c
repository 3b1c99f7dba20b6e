/* Operands: their sizes, layout ids and oneDNN descriptions.
 *
 * Invariant: two operands have the same layout id iff the same bytes mean the same values (up to 64-bit collisions). */
#include "base/hash.h"
#include "device/cpu/kernel.h"

/* ---- descriptions ---- */

tide_status tide__activation_md(tide__mds *mds, const tide_shape *s, dnnl_data_type_t type, tide__md *out) {
    const dnnl_dims_t dims = {s->n, s->c, s->h, s->w};
    bool blocked = tide__is_blocked(s) || s->c % 8 == 0;
    return tide__md_create(mds, 4, dims, type, blocked ? dnnl_nChw8c : dnnl_nchw, out);
}

static tide_status describe(tide__mds *mds, const tide__operand *operand, tide__md *out) {
    const dnnl_dims_t n = {operand->shape.n};
    if (operand->md) return tide__md_keep(mds, operand->md, out);
    if (operand->form == TIDE__FORM_VECTOR) return tide__md_create(mds, 1, n, operand->type, dnnl_a, out);
    return tide__activation_md(mds, &operand->shape, operand->type, out);
}

/* The stride of a dimension of one element says nothing about the layout. */
static uint64_t hash_md(tide__md md) {
    const tide__md_view v = tide__md_look(md);
    uint64_t hash = tide__hash_word(TIDE__FORM_WEIGHTS, (uint64_t)v.n_dims);
    for (int i = 0; i < v.n_dims; i++) {
        hash = tide__hash_word(hash, (uint64_t)v.dims[i]);
        hash = tide__hash_word(hash, (uint64_t)v.padded[i]);
        hash = tide__hash_word(hash, v.padded[i] == 1 ? 0 : (uint64_t)v.strides[i]);
    }
    for (int i = 0; i < v.n_blocks; i++) {
        hash = tide__hash_word(hash, (uint64_t)v.block_dims[i]);
        hash = tide__hash_word(hash, (uint64_t)v.block_sizes[i]);
    }
    return hash ? hash : 1; /* 0 is TIDE_LAYOUT_ANY */
}

static uint64_t hash_shape(const tide__operand *o) {
    const int64_t dims[4] = {o->shape.n, o->shape.c, o->shape.h, o->shape.w};
    uint64_t hash = tide__hash_word((uint64_t)o->form, (uint64_t)o->type);
    for (int i = 0; i < 4; i++) hash = tide__hash_word(hash, (uint64_t)dims[i]);
    return hash ? hash : 1;
}

/* ---- declaring ---- */

/* The description is made once, so that using a kernel allocates nothing. */
static tide_status add(tide__cpu_kernel *k, tide__access access, tide__operand operand) {
    TIDE_TRY(describe(&k->operand_mds, &operand, &operand.md));
    operand.size_bytes = tide__md_bytes(operand.md);
    tide_status status = tide__vec_push(&k->operands, operand);
    if (status == TIDE_OK && access == TIDE__READ) k->n_reads++;
    return status;
}

static tide_status add_like(tide__cpu_kernel *k, tide__access access, tide__form form, tide_shape shape,
                            dnnl_data_type_t type) {
    tide__operand operand = {.form = form, .type = type, .shape = shape};
    operand.layout = hash_shape(&operand);
    return add(k, access, operand);
}

tide_status tide__add_activation(tide__cpu_kernel *k, tide__access access, tide_shape shape) {
    return add_like(k, access, TIDE__FORM_ACTIVATION, shape, k->desc.bf16 ? dnnl_bf16 : dnnl_f32);
}

tide_status tide__add_float32(tide__cpu_kernel *k, tide__access access, tide_shape shape) {
    return add_like(k, access, TIDE__FORM_FLOAT32, shape, dnnl_f32);
}

tide_status tide__add_bytes_like(tide__cpu_kernel *k, tide__access access, tide_shape shape) {
    return add_like(k, access, TIDE__FORM_ACTIVATION, shape, dnnl_u8);
}

tide_status tide__add_vector(tide__cpu_kernel *k, tide__access access, int64_t n, dnnl_data_type_t type) {
    tide__operand operand = {.form = TIDE__FORM_VECTOR, .type = type, .shape = {n, 1, 1, 1}};
    operand.layout = hash_shape(&operand);
    return add(k, access, operand);
}

tide_status tide__add_floats(tide__cpu_kernel *k, tide__access access, uint64_t n) {
    tide__operand operand = {.form = TIDE__FORM_VECTOR, .type = dnnl_f32, .shape = {(int64_t)n, 1, 1, 1}};
    operand.layout = TIDE_LAYOUT_ANY;
    return add(k, access, operand);
}

tide_status tide__add_copy(tide__cpu_kernel *k, tide__access access, const tide__operand *other) {
    return add(k, access, *other);
}

tide_status tide__add_weights(tide__cpu_kernel *k, tide__access access, tide__md md) {
    tide__operand operand = {.form = TIDE__FORM_WEIGHTS, .type = dnnl_f32, .layout = hash_md(md), .md = md};
    return add(k, access, operand);
}

tide_status tide__add_matrix(tide__cpu_kernel *k, tide__access access, int64_t rows, int64_t columns) {
    const dnnl_dims_t dims = {rows, columns};
    tide__md md;
    TIDE_TRY(tide__md_create(&k->mds, 2, dims, dnnl_f32, dnnl_ab, &md));
    return tide__add_weights(k, access, md);
}
