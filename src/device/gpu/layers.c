/* Dropout and local response normalisation (kernels/layers.gpu). */
#include "device/gpu/kernel.h"

#define BLOCK 16 /* pixels of a group, as in kernels/layers.gpu */

/* Backward draws what forward drew. */
tide_status tide__gpu_build_dropout(tide__gpu_kernel *k, const tide_op_desc *d) {
    const uint64_t n = tide__shape_elements(&d->x);
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, n));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, n));
    return TIDE__LAUNCH(k, "layers", "dropout", tide__runs(n), 1, 1, tide__place(0), tide__place(1), tide__long(n),
                        tide__of_step(TIDE__ARG_SEED), tide__of_step(TIDE__ARG_STREAM), tide__float(d->drop_rate),
                        tide__float(1 / (1 - d->drop_rate)));
}

tide_status tide__gpu_build_lrn(tide__gpu_kernel *k, const tide_op_desc *d) {
    const uint64_t n = tide__shape_elements(&d->x);
    const int64_t pixels = d->x.h * d->x.w, blocks = (pixels + BLOCK - 1) / BLOCK;
    const float share = d->lrn_alpha / (float)d->lrn_size;
    if (pixels > INT32_MAX) return tide__fail(TIDE_E_UNSUPPORTED, "images of more than %d pixels", INT32_MAX);
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, n));
    if (d->kind == TIDE_OP_LRN_FWD) {
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, n));
        return TIDE__LAUNCH(k, "layers", "lrn", blocks, d->x.n, 1, tide__place(0), tide__place(1), tide__int(d->x.c),
                            tide__int(pixels), tide__int(d->lrn_size), tide__float(share), tide__float(d->lrn_beta),
                            tide__float(d->lrn_k));
    }
    for (int i = 0; i < 2; i++) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, n));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, n));
    tide__gpu_set_workspace(k, n * sizeof(float));
    return TIDE__LAUNCH(k, "layers", "lrn_backward", blocks, d->x.n, 1, tide__place(0), tide__place(2), tide__place(3),
                        tide__place(4), tide__int(d->x.c), tide__int(pixels), tide__int(d->lrn_size),
                        tide__float(share), tide__float(d->lrn_beta), tide__float(d->lrn_k));
}
