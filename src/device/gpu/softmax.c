/* Softmax with cross-entropy loss (kernels/softmax.gpu). */
#include "device/gpu/kernel.h"

#define STRIP 64 /* pixels of a group, as in kernels/softmax.gpu */
#define WIDE_BYTES 8

static tide_status add_forward(tide__gpu_kernel *k, const tide_op_desc *d, int64_t pixels) {
    const int64_t strips = (pixels + STRIP - 1) / STRIP;
    const uint32_t workspace = tide__workspace(k);
    tide__gpu_set_workspace(k, (uint64_t)(d->x.n * strips) * WIDE_BYTES);
    TIDE_TRY(TIDE__LAUNCH(k, "softmax", "loss_forward", strips, d->x.n, 1, tide__place(0), tide__place(1),
                          tide__place(2), tide__place(workspace), tide__int(d->x.c), tide__int(pixels),
                          tide__int(strips)));
    return TIDE__LAUNCH(k, "softmax", "loss_total", 1, 1, 1, tide__place(workspace), tide__place(3),
                        tide__long((uint64_t)(d->x.n * strips)), tide__long((uint64_t)(d->x.n * pixels)));
}

tide_status tide__gpu_build_softmax_loss(tide__gpu_kernel *k, const tide_op_desc *d) {
    const int64_t pixels = d->x.h * d->x.w;
    const float scale = d->loss_scale != 0 ? d->loss_scale : 1.0f, share = scale / (float)(d->x.n * pixels);
    if (pixels > INT32_MAX) return tide__fail(TIDE_E_UNSUPPORTED, "images of more than %d pixels", INT32_MAX);
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, tide__shape_elements(&d->x)));
    TIDE_TRY(tide__gpu_reads(k, TIDE__I32, (uint64_t)(d->x.n * pixels)));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, tide__shape_elements(&d->x)));
    if (d->kind == TIDE_OP_SOFTMAX_LOSS_BWD)
        return TIDE__LAUNCH(k, "softmax", "loss_backward", d->x.n, 1, 1, tide__place(0), tide__place(1), tide__place(2),
                            tide__int(d->x.c), tide__int(pixels), tide__float(share));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, 1));
    return add_forward(k, d, pixels);
}
