/* Operands: their sizes, layout ids, oneDNN descriptions, and the way to and from plain float32.
 *
 * Invariant: two operands have the same layout id iff the same bytes mean the same values (up to 64-bit collisions). */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "device/cpu/kernel.h"

/* ---- descriptions ---- */

void tide__activation_md(const tide_shape *s, dnnl_data_type_t type, dnnl_memory_desc_t *out) {
    const dnnl_dims_t dims = {s->n, s->c, s->h, s->w};
    bool blocked = tide__is_blocked(s) || s->c % 8 == 0;
    dnnl_memory_desc_init_by_tag(out, 4, dims, type, blocked ? dnnl_nChw8c : dnnl_nchw);
}

void tide__operand_md(const tide__operand *operand, dnnl_memory_desc_t *out) {
    const dnnl_dims_t n = {operand->shape.n};
    switch (operand->form) {
    case TIDE__FORM_ACTIVATION: tide__activation_md(&operand->shape, operand->type, out); break;
    case TIDE__FORM_VECTOR: dnnl_memory_desc_init_by_tag(out, 1, n, operand->type, dnnl_a); break;
    case TIDE__FORM_WEIGHTS: *out = *operand->md; break;
    }
}

/* The stride of a dimension of one element says nothing about the layout. */
static uint64_t hash_md(const dnnl_memory_desc_t *md) {
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    uint64_t hash = tide__hash_word(TIDE__FORM_WEIGHTS, (uint64_t)md->ndims);
    for (int i = 0; i < md->ndims; i++) {
        hash = tide__hash_word(hash, (uint64_t)md->dims[i]);
        hash = tide__hash_word(hash, (uint64_t)md->padded_dims[i]);
        hash = tide__hash_word(hash, md->padded_dims[i] == 1 ? 0 : (uint64_t)b->strides[i]);
    }
    for (int i = 0; i < b->inner_nblks; i++) {
        hash = tide__hash_word(hash, (uint64_t)b->inner_idxs[i]);
        hash = tide__hash_word(hash, (uint64_t)b->inner_blks[i]);
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

static tide_status add(tide__cpu_kernel *k, tide__access access, tide__operand operand) {
    if (operand.form != TIDE__FORM_WEIGHTS) {
        dnnl_memory_desc_t md;
        tide__operand_md(&operand, &md);
        operand.size_bytes = dnnl_memory_desc_get_size(&md);
    }
    tide_status status = tide__vec_push(&k->operands, operand);
    if (status == TIDE_OK && access == TIDE__READ) k->n_reads++;
    return status;
}

static tide_status add_like(tide__cpu_kernel *k, tide__access access, tide_shape shape, dnnl_data_type_t type) {
    tide__operand operand = {.form = TIDE__FORM_ACTIVATION, .type = type, .shape = shape};
    operand.layout = hash_shape(&operand);
    return add(k, access, operand);
}

tide_status tide__add_activation(tide__cpu_kernel *k, tide__access access, tide_shape shape) {
    return add_like(k, access, shape, dnnl_f32);
}

tide_status tide__add_bytes_like(tide__cpu_kernel *k, tide__access access, tide_shape shape) {
    return add_like(k, access, shape, dnnl_u8);
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
    tide__operand operand = *other;
    if (other->md) {
        operand.md = malloc(sizeof *operand.md);
        if (!operand.md) return tide__fail_memory();
        *operand.md = *other->md;
    }
    tide_status status = add(k, access, operand);
    if (status != TIDE_OK) free(operand.md);
    return status;
}

tide_status tide__add_weights(tide__cpu_kernel *k, tide__access access, const dnnl_memory_desc_t *md) {
    dnnl_memory_desc_t copy = *md;
    tide__operand operand = {.form = TIDE__FORM_WEIGHTS, .type = dnnl_f32, .layout = hash_md(md), .md = &copy};
    operand.size_bytes = dnnl_memory_desc_get_size(md);
    return tide__add_copy(k, access, &operand);
}

void tide__operand_deinit(tide__operand *operand) { free(operand->md); }

/* ---- to and from plain float32 ---- */

static void plain_md(const dnnl_memory_desc_t *stored, dnnl_memory_desc_t *out) {
    static const dnnl_format_tag_t tags[] = {dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd};
    dnnl_memory_desc_init_by_tag(out, stored->ndims, stored->dims, dnnl_f32, tags[stored->ndims - 1]);
}

static tide_status execute_reorder(dnnl_engine_t engine, dnnl_primitive_t reorder, dnnl_memory_t from,
                                   dnnl_memory_t to) {
    dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    dnnl_stream_t stream;
    TIDE_TRY(tide__dnnl(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "create a stream"));
    dnnl_status_t status = dnnl_primitive_execute(reorder, stream, 2, args);
    if (status == dnnl_success) status = dnnl_stream_wait(stream);
    dnnl_stream_destroy(stream);
    return tide__dnnl(status, "reorder");
}

static tide_status reorder_host(dnnl_engine_t engine, const dnnl_memory_desc_t *from_md, void *from,
                                const dnnl_memory_desc_t *to_md, void *to) {
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_memory_t from_memory = NULL, to_memory = NULL;
    tide_status status;
    TIDE_TRY_GOTO(tide__dnnl(dnnl_reorder_primitive_desc_create(&pd, from_md, engine, to_md, engine, NULL), "reorder"),
                  end);
    TIDE_TRY_GOTO(tide__dnnl(dnnl_primitive_create(&reorder, pd), "create a reorder"), end);
    TIDE_TRY_GOTO(tide__dnnl(dnnl_memory_create(&from_memory, from_md, engine, from), "describe memory"), end);
    TIDE_TRY_GOTO(tide__dnnl(dnnl_memory_create(&to_memory, to_md, engine, to), "describe memory"), end);
    status = execute_reorder(engine, reorder, from_memory, to_memory);
end:
    dnnl_memory_destroy(to_memory);
    dnnl_memory_destroy(from_memory);
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* A box of whole tiles, as it lies in the operand but from its own first byte on. */
static tide_status box_md(const dnnl_memory_desc_t *whole, const tide_piece *piece, dnnl_memory_desc_t *out) {
    dnnl_dims_t size, from;
    for (int i = 0; i < whole->ndims; i++) {
        from[i] = (dnnl_dim_t)piece->from[i];
        size[i] = (dnnl_dim_t)(piece->to[i] - piece->from[i]);
    }
    TIDE_TRY(tide__dnnl(dnnl_memory_desc_init_submemory(out, whole, size, from), "describe a piece of an operand"));
    out->offset0 = 0;
    return TIDE_OK;
}

/* On the caller's thread alone: it may have no OpenMP threads yet, and should not get any for this. */
static tide_status convert(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece, void *plain,
                           void *stored, bool pack) {
    const tide__cpu_kernel *k = (const tide__cpu_kernel *)kernel;
    dnnl_engine_t engine = ((const tide__cpu *)kernel->device)->engine;
    dnnl_memory_desc_t whole_md, stored_md, plain_f32;
    tide__operand_md(&k->operands.data[operand], &whole_md);
    TIDE_TRY(box_md(&whole_md, piece, &stored_md));
    plain_md(&stored_md, &plain_f32);
    int old = tide__set_threads(1);
    tide_status status = pack ? reorder_host(engine, &plain_f32, plain, &stored_md, stored)
                              : reorder_host(engine, &stored_md, stored, &plain_f32, plain);
    tide__set_threads(old);
    return status;
}

/* oneDNN takes all memory as writable; it does not write to a source. */
static void *writable(const void *p) {
    void *q;
    memcpy(&q, &p, sizeof q);
    return q;
}

tide_status tide__cpu_operand_layout(const tide_kernel *kernel, uint32_t operand, tide__operand_layout *out) {
    const tide__operand *o = &((const tide__cpu_kernel *)kernel)->operands.data[operand];
    dnnl_memory_desc_t md;
    tide__operand_md(o, &md);
    const dnnl_blocking_desc_t *b = &md.format_desc.blocking;
    *out = (tide__operand_layout){.n_dims = (uint32_t)md.ndims, .element_bytes = o->type == dnnl_u8 ? 1 : 4};
    for (int i = 0; i < md.ndims; i++) {
        out->dims[i] = (uint64_t)md.dims[i];
        out->stride[i] = (uint64_t)b->strides[i];
        out->tile[i] = 1;
    }
    for (int i = 0; i < b->inner_nblks; i++) out->tile[b->inner_idxs[i]] *= (uint64_t)b->inner_blks[i];
    return TIDE_OK;
}

tide_status tide__cpu_piece_pack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                 const float *plain, void *stored) {
    return convert(kernel, operand, piece, writable(plain), stored, true);
}

tide_status tide__cpu_piece_unpack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                   const void *stored, float *plain) {
    return convert(kernel, operand, piece, plain, writable(stored), false);
}
