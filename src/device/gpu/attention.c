/* Attention, tiled (kernels/attention.gpu). */
#include <math.h>

#include "device/gpu/gemm.h"

#define MOST_ROWS 96 /* of a tile; also in kernels/attention.gpu */

/* How all groups of an op are cut. */
typedef struct tiling {
    tide__gemm_blocks blocks;
    int64_t context, heads, head, samples;
} tiling;

static uint64_t shared_bytes(const tide__gemm_blocks *b) {
    const uint64_t rows = MOST_ROWS * (2 * sizeof(float) + sizeof(double));
    return b->a_bytes + b->b_bytes + 2 * b->c_bytes + rows;
}

/* As a product of queries and keys, but with two tiles in shared memory. */
static tide_status cut(const tide__gpu_kernel *k, const tide_op_desc *d, tiling *out) {
    const tide__gpu *gpu = (const tide__gpu *)k->base.device;
    tiling t = {{0}, d->context, d->heads, d->y.c / d->heads, d->x.n / d->context};
    t.blocks = tide__cut_blocks(gpu, t.context, t.context, t.samples * t.heads);
    while (t.blocks.mc > MOST_ROWS || shared_bytes(&t.blocks) > gpu->local_bytes)
        if (!tide__shrink_blocks(gpu, t.context, t.context, &t.blocks))
            return tide__fail(TIDE_E_UNSUPPORTED, "attention wants %llu bytes of shared memory",
                              (unsigned long long)shared_bytes(&t.blocks));
    *out = t;
    return TIDE_OK;
}

#define TILE_ARGS(t)                                                                                      \
    tide__local((t)->blocks.a_bytes), tide__local((t)->blocks.b_bytes), tide__local((t)->blocks.c_bytes), \
        tide__local((t)->blocks.c_bytes), tide__int((t)->blocks.mc), tide__int((t)->blocks.nc),           \
        tide__int((t)->blocks.kc), tide__int((t)->context), tide__int((t)->heads), tide__int((t)->head),  \
        tide__float(1 / sqrtf((float)(t)->head))

/* Of dQ, or of dK and dV. */
static tide_status add_gradients(tide__gpu_kernel *k, const char *name, const tiling *t) {
    return TIDE__LAUNCH(k, "attention", name, t->blocks.rows, t->samples * t->heads, 1, tide__place(0), tide__place(2),
                        tide__place(3), tide__place(tide__workspace(k)), tide__place(4), TILE_ARGS(t));
}

tide_status tide__gpu_build_attention(tide__gpu_kernel *k, const tide_op_desc *d) {
    const uint64_t y = tide__shape_elements(&d->y), rows = (uint64_t)(d->y.n * d->heads);
    tiling t;
    TIDE_TRY(cut(k, d, &t));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, 3 * y));
    if (d->kind == TIDE_OP_ATTENTION_FWD) {
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, y));
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, rows));
        return TIDE__LAUNCH(k, "attention", "attention", t.blocks.rows, t.samples * t.heads, 1, tide__place(0),
                            tide__place(1), tide__place(2), TILE_ARGS(&t));
    }
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, y));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, rows));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, y));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, 3 * y));
    tide__gpu_set_workspace(k, rows * sizeof(float));
    TIDE_TRY(TIDE__LAUNCH(k, "attention", "attention_sums", d->y.n, 1, 1, tide__place(1), tide__place(3),
                          tide__place(tide__workspace(k)), tide__int(t.context), tide__int(t.heads),
                          tide__int(t.head)));
    TIDE_TRY(add_gradients(k, "attention_queries", &t));
    return add_gradients(k, "attention_keys", &t);
}
