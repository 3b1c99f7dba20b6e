/* Embeddings and the causal softmax (kernels/tokens.gpu). */
#include "device/gpu/kernel.h"
#include "device/op_check.h"

#define COLUMNS_OF_ITEM 64 /* as in kernels/tokens.gpu */

static tide_status build_forward(tide__gpu_kernel *k, const tide_op_desc *d) {
    const int64_t width = d->y.c;
    TIDE_TRY(tide__gpu_reads(k, TIDE__I32, (uint64_t)d->y.n));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)(d->vocabulary * width)));
    if (d->bias) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)(tide__position_rows(d) * width)));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, tide__shape_elements(&d->y)));
    return TIDE__LAUNCH(k, "tokens", "embed", d->y.n, 1, 1, tide__place(0), tide__place(1),
                        tide__place(d->bias ? 2 : 1), tide__place(d->bias ? 3 : 2), tide__int(width), tide__int(d->x.c),
                        tide__int(d->vocabulary), tide__int(d->bias ? 1 : 0));
}

static tide_status add_zero(tide__gpu_kernel *k, uint32_t operand, int64_t n) {
    return TIDE__LAUNCH(k, "elementwise", "zero", tide__runs((uint64_t)n), 1, 1, tide__place(operand),
                        tide__long((uint64_t)n));
}

static tide_status build_backward(tide__gpu_kernel *k, const tide_op_desc *d) {
    const int64_t width = d->y.c, table = d->vocabulary * width, positions = tide__position_rows(d) * width;
    TIDE_TRY(tide__gpu_reads(k, TIDE__I32, (uint64_t)d->y.n));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, tide__shape_elements(&d->y)));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, (uint64_t)table));
    TIDE_TRY(add_zero(k, 2, table));
    if (d->bias) {
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, (uint64_t)positions));
        TIDE_TRY(add_zero(k, 3, positions));
    }
    return TIDE__LAUNCH(k, "tokens", "embed_backward", (width + COLUMNS_OF_ITEM - 1) / COLUMNS_OF_ITEM, 1, 1,
                        tide__place(0), tide__place(1), tide__place(2), tide__place(d->bias ? 3 : 2), tide__int(d->y.n),
                        tide__int(width), tide__int(d->x.c), tide__int(d->vocabulary), tide__int(d->bias ? 1 : 0));
}

tide_status tide__gpu_build_embedding(tide__gpu_kernel *k, const tide_op_desc *d) {
    return d->kind == TIDE_OP_EMBEDDING_FWD ? build_forward(k, d) : build_backward(k, d);
}
