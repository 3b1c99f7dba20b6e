/* Batch norm (kernels/norm.gpu). */
#include "device/gpu/kernel.h"

#define MAX_CHUNKS 16 /* ranges of images that are summed apart */
#define WIDE_BYTES 8

static int64_t chunk_count(const tide_op_desc *d) { return d->x.n < MAX_CHUNKS ? d->x.n : MAX_CHUNKS; }
static int64_t pixels_of(const tide_op_desc *d) { return d->x.h * d->x.w; }
static float count_of(const tide_op_desc *d) { return (float)(d->x.n * pixels_of(d)); }

static tide_status add_vectors(tide__gpu_kernel *k, bool reads, int count) {
    const uint64_t n = (uint64_t)k->desc.x.c;
    for (int i = 0; i < count; i++)
        TIDE_TRY(reads ? tide__gpu_reads(k, TIDE__F32, n) : tide__gpu_writes(k, TIDE__F32, n));
    return TIDE_OK;
}

/* The two sums per channel and what becomes of them, in operands a and b. dy, mean and inv_std: backward only. */
static tide_status add_sums(tide__gpu_kernel *k, bool backward, uint32_t a, uint32_t b) {
    const tide_op_desc *d = &k->desc;
    const int64_t chunks = chunk_count(d);
    const uint32_t workspace = tide__workspace(k);
    tide__gpu_set_workspace(k, (uint64_t)(chunks * d->x.c) * 2 * WIDE_BYTES);
    TIDE_TRY(TIDE__LAUNCH(k, "norm", "batch_sums", d->x.c, chunks, 1, tide__place(0), tide__place(backward ? 1 : 0),
                          tide__place(backward ? 3 : 0), tide__place(backward ? 4 : 0), tide__place(workspace),
                          tide__int(d->x.n), tide__int(d->x.c), tide__int(pixels_of(d)), tide__int(chunks),
                          tide__int(backward)));
    return TIDE__LAUNCH(k, "norm", "batch_totals", tide__lane_groups(k, (uint64_t)d->x.c), 1, 1, tide__place(workspace),
                        tide__place(a), tide__place(b), tide__int(d->x.c), tide__int(chunks), tide__float(count_of(d)),
                        tide__float(d->eps), tide__int(backward));
}

static tide_status add_normalise(tide__gpu_kernel *k, uint32_t mean, uint32_t spread, uint32_t y, bool variance) {
    const tide_op_desc *d = &k->desc;
    return TIDE__LAUNCH(k, "norm", "batch_normalise", d->x.c, d->x.n, 1, tide__place(0), tide__place(1), tide__place(2),
                        tide__place(mean), tide__place(spread), tide__place(y), tide__int(d->x.c),
                        tide__int(pixels_of(d)), tide__float(d->eps), tide__int(variance));
}

static tide_status build_forward(tide__gpu_kernel *k) {
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, tide__shape_elements(&k->desc.x)));
    TIDE_TRY(add_vectors(k, true, 2));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, tide__shape_elements(&k->desc.x)));
    TIDE_TRY(add_vectors(k, false, 2));
    TIDE_TRY(add_sums(k, false, 4, 5));
    return add_normalise(k, 4, 5, 3, false);
}

static tide_status build_infer(tide__gpu_kernel *k) {
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, tide__shape_elements(&k->desc.x)));
    TIDE_TRY(add_vectors(k, true, 4));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, tide__shape_elements(&k->desc.x)));
    return add_normalise(k, 3, 4, 5, true);
}

static tide_status build_statistics(tide__gpu_kernel *k) {
    const tide_op_desc *d = &k->desc;
    const float m = count_of(d), unbias = m > 1 ? m / (m - 1) : 1;
    TIDE_TRY(add_vectors(k, true, 4));
    TIDE_TRY(add_vectors(k, false, 2));
    return TIDE__LAUNCH(k, "norm", "batch_statistics", tide__lane_groups(k, (uint64_t)d->x.c), 1, 1, tide__place(0),
                        tide__place(1), tide__place(2), tide__place(3), tide__place(4), tide__place(5),
                        tide__int(d->x.c), tide__float(d->momentum), tide__float(unbias), tide__float(d->eps));
}

static tide_status build_backward(tide__gpu_kernel *k) {
    const tide_op_desc *d = &k->desc;
    const uint64_t n = tide__shape_elements(&d->x);
    for (int i = 0; i < 2; i++) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, n));
    TIDE_TRY(add_vectors(k, true, 3));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, n));
    TIDE_TRY(add_vectors(k, false, 2));
    TIDE_TRY(add_sums(k, true, 7, 6));
    return TIDE__LAUNCH(k, "norm", "batch_backward", d->x.c, d->x.n, 1, tide__place(0), tide__place(1), tide__place(2),
                        tide__place(3), tide__place(4), tide__place(5), tide__place(6), tide__place(7),
                        tide__int(d->x.c), tide__int(pixels_of(d)), tide__float(count_of(d)));
}

tide_status tide__gpu_build_bn(tide__gpu_kernel *k, const tide_op_desc *d) {
    switch (d->kind) {
    case TIDE_OP_BN_FWD: return build_forward(k);
    case TIDE_OP_BN_INFER: return build_infer(k);
    case TIDE_OP_BN_STATS: return build_statistics(k);
    default: return build_backward(k);
    }
}
