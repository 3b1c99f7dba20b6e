/* Layer norm over rows (kernels/norm.gpu). */
#include "device/gpu/kernel.h"

#define MAX_CHUNKS 16 /* ranges of rows that are summed apart */
#define WIDE_BYTES 8

static tide_status build_forward(tide__gpu_kernel *k, const tide_op_desc *d) {
    const uint64_t n = tide__shape_elements(&d->x), width = (uint64_t)d->x.c, rows = (uint64_t)d->x.n;
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, n));
    for (int i = 0; i < 2; i++) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, width));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, n));
    for (int i = 0; i < 2; i++) TIDE_TRY(tide__gpu_writes(k, TIDE__F32, rows));
    return TIDE__LAUNCH(k, "norm", "layer_forward", rows, 1, 1, tide__place(0), tide__place(1), tide__place(2),
                        tide__place(3), tide__place(4), tide__place(5), tide__int(d->x.c), tide__float(d->eps));
}

static tide_status build_backward(tide__gpu_kernel *k, const tide_op_desc *d) {
    const uint64_t n = tide__shape_elements(&d->x), width = (uint64_t)d->x.c, rows = (uint64_t)d->x.n;
    const uint64_t chunks = rows < MAX_CHUNKS ? rows : MAX_CHUNKS;
    for (int i = 0; i < 2; i++) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, n));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, width));
    for (int i = 0; i < 2; i++) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, rows));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, n));
    for (int i = 0; i < 2; i++) TIDE_TRY(tide__gpu_writes(k, TIDE__F32, width));
    tide__gpu_set_workspace(k, chunks * 2 * width * WIDE_BYTES);
    TIDE_TRY(TIDE__LAUNCH(k, "norm", "layer_backward", chunks, 1, 1, tide__place(0), tide__place(1), tide__place(2),
                          tide__place(3), tide__place(4), tide__place(5), tide__place(8), tide__int(d->x.n),
                          tide__int(d->x.c), tide__int((int64_t)chunks)));
    return TIDE__LAUNCH(k, "norm", "layer_totals", tide__lane_groups(k, width), 1, 1, tide__place(8), tide__place(6),
                        tide__place(7), tide__int(d->x.c), tide__int((int64_t)chunks));
}

tide_status tide__gpu_build_layernorm(tide__gpu_kernel *k, const tide_op_desc *d) {
    return d->kind == TIDE_OP_LAYERNORM_FWD ? build_forward(k, d) : build_backward(k, d);
}
