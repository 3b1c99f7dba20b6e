/* Max and average pooling (kernels/pool.gpu). */
#include "device/gpu/kernel.h"

#define POOL(d)                                                                                              \
    tide__int((d)->x.c), tide__int((d)->x.h), tide__int((d)->x.w), tide__int((d)->y.h), tide__int((d)->y.w), \
        tide__int((d)->kernel_h), tide__int((d)->kernel_w), tide__int((d)->stride), tide__int((d)->pad_h),   \
        tide__int((d)->pad_w)

tide_status tide__gpu_build_pool(tide__gpu_kernel *k, const tide_op_desc *d) {
    const uint64_t x = tide__shape_elements(&d->x), y = tide__shape_elements(&d->y);
    if (d->x.h * d->x.w > INT32_MAX) return tide__fail(TIDE_E_UNSUPPORTED, "images of more than %d pixels", INT32_MAX);
    switch (d->kind) {
    case TIDE_OP_MAXPOOL_FWD:
        TIDE_TRY(tide__gpu_reads(k, TIDE__F32, x));
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, y));
        TIDE_TRY(tide__gpu_writes(k, TIDE__U8, y));
        return TIDE__LAUNCH(k, "pool", "max_forward", d->x.c, d->x.n, 1, tide__place(0), tide__place(1), tide__place(2),
                            POOL(d));
    case TIDE_OP_MAXPOOL_BWD:
        TIDE_TRY(tide__gpu_reads(k, TIDE__U8, y));
        TIDE_TRY(tide__gpu_reads(k, TIDE__F32, y));
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, x));
        return TIDE__LAUNCH(k, "pool", "max_backward", d->x.c, d->x.n, 1, tide__place(0), tide__place(1),
                            tide__place(2), POOL(d));
    case TIDE_OP_AVGPOOL_FWD:
        TIDE_TRY(tide__gpu_reads(k, TIDE__F32, x));
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, y));
        return TIDE__LAUNCH(k, "pool", "average_forward", d->x.c, d->x.n, 1, tide__place(0), tide__place(1), POOL(d));
    default:
        TIDE_TRY(tide__gpu_reads(k, TIDE__F32, y));
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, x));
        return TIDE__LAUNCH(k, "pool", "average_backward", d->x.c, d->x.n, 1, tide__place(0), tide__place(1), POOL(d));
    }
}
