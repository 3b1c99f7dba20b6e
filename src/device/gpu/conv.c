/* Convolutions and transposed ones (kernels/conv.gpu). A transposed convolution is the mirror image of a convolution:
 * its forward is that one's backward-data and the other way round. Weights are (outputs, inputs, kh, kw) in both. */
#include "device/gpu/conv.h"

#include "device/gpu/gemm.h"

#define MAX_IMAGES 256 /* of the variants that have launches for each */

/* As kernels/conv.gpu sees it: m rows of the result, `groups` channels that are summed over. */
typedef struct weights_view {
    int64_t m, groups, row, group;
} weights_view;

static int64_t window_of(const tide_op_desc *d) { return (int64_t)d->kernel_h * d->kernel_w; }
static uint64_t weights_elements(const tide_op_desc *d) { return (uint64_t)(d->y.c * d->x.c * window_of(d)); }

/* m: the op's outputs, or its inputs. */
static weights_view view_of(const tide_op_desc *d, bool by_outputs) {
    const int64_t window = window_of(d), output = d->x.c * window;
    if (by_outputs) return (weights_view){d->y.c, d->x.c, output, window};
    return (weights_view){d->x.c, d->y.c, window, output};
}

static bool is_transposed(const tide_op_desc *d) {
    return d->kind == TIDE_OP_UPCONV_FWD || d->kind == TIDE_OP_UPCONV_BWD_DATA || d->kind == TIDE_OP_UPCONV_BWD_WEIGHTS;
}

typedef struct images {
    const tide_shape *wide, *small; /* the convolution's input and output */
} images;

static images images_of(const tide_op_desc *d) {
    return is_transposed(d) ? (images){&d->y, &d->x} : (images){&d->x, &d->y};
}

#define GEOMETRY(i, d)                                                                                     \
    tide__int((i).wide->h), tide__int((i).wide->w), tide__int((i).small->h), tide__int((i).small->w),      \
        tide__int((d)->kernel_h), tide__int((d)->kernel_w), tide__int((d)->stride), tide__int((d)->pad_h), \
        tide__int((d)->pad_w)

/* in and w are read, the bias after them; `to_small`: the result is the smaller image. */
static tide_status add_convolve(tide__gpu_kernel *k, const tide_op_desc *d, uint32_t in, uint32_t w, bool bias,
                                bool to_small, bool by_outputs) {
    const images i = images_of(d);
    const weights_view v = view_of(d, by_outputs);
    const tide_shape *out = to_small ? i.small : i.wide;
    const uint32_t result = bias ? 3 : 2;
    const tide__gemm_blocks b = tide__cut_blocks((tide__gpu *)k->base.device, v.m, out->h * out->w, out->n);
    return TIDE__LAUNCH(k, "conv", "convolve", b.rows, b.columns, out->n, tide__place(w), tide__place(in),
                        tide__place(result), tide__place(bias ? 2 : 0), tide__local(b.a_bytes), tide__local(b.b_bytes),
                        tide__local(b.c_bytes), tide__int(v.m), tide__int(v.groups), tide__long((uint64_t)v.row),
                        tide__long((uint64_t)v.group), tide__int(b.mc), tide__int(b.nc), tide__int(b.kc),
                        tide__int(bias), tide__int(to_small), GEOMETRY(i, d));
}

/* ---- variants with the windows of one image in a workspace, image by image ---- */

/* Not for transposed convolutions, nor where the windows are the image. */
static bool has_windows(const tide_op_desc *d) {
    return !is_transposed(d) && (window_of(d) > 1 || d->stride > 1) && d->x.n <= MAX_IMAGES;
}

static uint64_t windows_bytes(const tide_op_desc *d) {
    return (uint64_t)(d->x.c * window_of(d) * d->y.h * d->y.w) * sizeof(float);
}

/* y = w * windows: the same sums in the same order, so the same bits as without a workspace, unless the product is
 * a library's. */
static tide_status add_windows_forward(tide__gpu_kernel *k, const tide_op_desc *d) {
    const images i = images_of(d);
    const uint32_t y = d->bias ? 3 : 2, windows = y + 1;
    const int64_t depth = d->x.c * window_of(d), pixels = d->y.h * d->y.w, image = d->x.c * d->x.h * d->x.w;
    tide__gemm product = {.m = d->y.c,
                          .n = pixels,
                          .depth = depth,
                          .a = {.operand = 1, .row = depth, .column = 1},
                          .b = {.operand = windows, .row = pixels, .column = 1},
                          .c = {.operand = y, .row = pixels},
                          .alpha = 1,
                          .flags = d->bias ? TIDE__GEMM_ROW_BIAS : 0,
                          .bias = 2};
    tide__gpu_variant(k, !tide__gpu_product_is_foreign(k, &product));
    tide__gpu_set_workspace(k, windows_bytes(d));
    for (int64_t n = 0; n < d->x.n; n++) {
        TIDE_TRY(TIDE__LAUNCH(k, "conv", "gather_windows", depth, 1, 1, tide__place_at(0, n * image * 4),
                              tide__place(windows), GEOMETRY(i, d)));
        product.c.first = n * d->y.c * pixels;
        TIDE_TRY(tide__gpu_gemm(k, &product));
    }
    return TIDE_OK;
}

/* windows = w' dy, then added up: other bits, but with strides no products with zero. */
static tide_status add_windows_data(tide__gpu_kernel *k, const tide_op_desc *d) {
    const images i = images_of(d);
    const int64_t depth = d->x.c * window_of(d), pixels = d->y.h * d->y.w, image = d->x.c * d->x.h * d->x.w;
    tide__gpu_variant(k, false);
    tide__gpu_set_workspace(k, windows_bytes(d));
    for (int64_t n = 0; n < d->x.n; n++) {
        const tide__gemm product = {.m = depth,
                                    .n = pixels,
                                    .depth = d->y.c,
                                    .a = {.operand = 0, .row = 1, .column = depth},
                                    .b = {.operand = 1, .row = pixels, .column = 1, .first = n * d->y.c * pixels},
                                    .c = {.operand = 3, .row = pixels},
                                    .alpha = 1};
        TIDE_TRY(tide__gpu_gemm(k, &product));
        TIDE_TRY(TIDE__LAUNCH(k, "conv", "add_windows", d->x.c, 1, 1, tide__place(3), tide__place_at(2, n * image * 4),
                              GEOMETRY(i, d)));
    }
    return TIDE_OK;
}

/* ---- building ---- */

static tide_status build_forward(tide__gpu_kernel *k, const tide_op_desc *d) {
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, tide__shape_elements(&d->x)));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, weights_elements(d)));
    if (d->bias) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, (uint64_t)d->y.c));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, tide__shape_elements(&d->y)));
    TIDE_TRY(add_convolve(k, d, 0, 1, d->bias, !is_transposed(d), true));
    return has_windows(d) ? add_windows_forward(k, d) : TIDE_OK;
}

static tide_status build_data(tide__gpu_kernel *k, const tide_op_desc *d) {
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, weights_elements(d)));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, tide__shape_elements(&d->y)));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, tide__shape_elements(&d->x)));
    TIDE_TRY(add_convolve(k, d, 1, 0, false, is_transposed(d), false));
    return has_windows(d) ? add_windows_data(k, d) : TIDE_OK;
}

tide_status tide__gpu_conv_add_bias(tide__gpu_kernel *k, const tide_op_desc *d) {
    if (d->kind != TIDE_OP_CONV_FWD || !d->bias) return TIDE_OK;
    const int64_t pixels = d->y.h * d->y.w;
    return TIDE__LAUNCH(k, "conv", "add_bias", tide__runs((uint64_t)pixels), d->y.n * d->y.c, 1, tide__place(3),
                        tide__place(2), tide__int(d->y.c), tide__int(pixels));
}

tide_status tide__gpu_conv_bias_gradient(tide__gpu_kernel *k, const tide_op_desc *d) {
    if ((d->kind != TIDE_OP_CONV_BWD_WEIGHTS && d->kind != TIDE_OP_UPCONV_BWD_WEIGHTS) || !d->bias) return TIDE_OK;
    return TIDE__LAUNCH(k, "conv", "sum_channels", d->y.c, 1, 1, tide__place(1), tide__place(3), tide__int(d->y.n),
                        tide__int(d->y.c), tide__int(d->y.h * d->y.w));
}

/* Operands 0 and 1 are x and dy; the smaller image's channels are the rows of the product. */
static tide_status build_weights(tide__gpu_kernel *k, const tide_op_desc *d) {
    const images i = images_of(d);
    const bool up = is_transposed(d);
    const weights_view v = view_of(d, !up);
    const tide__gemm_blocks b = tide__cut_blocks((tide__gpu *)k->base.device, v.m, v.groups * window_of(d), 1);
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, tide__shape_elements(&d->x)));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, tide__shape_elements(&d->y)));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, weights_elements(d)));
    TIDE_TRY(TIDE__LAUNCH(k, "conv", "weights_gradient", b.rows, b.columns, 1, tide__place(up ? 0 : 1),
                          tide__place(up ? 1 : 0), tide__place(2), tide__local(b.a_bytes), tide__local(b.b_bytes),
                          tide__local(b.c_bytes), tide__int(d->x.n), tide__int(v.m), tide__int(v.groups),
                          tide__long((uint64_t)v.row), tide__long((uint64_t)v.group), tide__int(b.mc), tide__int(b.nc),
                          tide__int(b.kc), GEOMETRY(i, d)));
    if (d->bias) TIDE_TRY(tide__gpu_writes(k, TIDE__F32, (uint64_t)d->y.c));
    return tide__gpu_conv_bias_gradient(k, d);
}

/* Kernels count an image's pixels, and channels times window positions, in 32 bits. */
static tide_status check_size(const tide_op_desc *d) {
    const int64_t most = d->x.c > d->y.c ? d->x.c : d->y.c;
    if (d->x.h * d->x.w <= INT32_MAX && d->y.h * d->y.w <= INT32_MAX && most * window_of(d) <= INT32_MAX)
        return TIDE_OK;
    return tide__fail(TIDE_E_UNSUPPORTED, "images or windows of more than %d elements", INT32_MAX);
}

tide_status tide__gpu_build_conv(tide__gpu_kernel *k, const tide_op_desc *d) {
    TIDE_TRY(check_size(d));
    switch (d->kind) {
    case TIDE_OP_CONV_FWD:
    case TIDE_OP_UPCONV_FWD: return build_forward(k, d);
    case TIDE_OP_CONV_BWD_DATA:
    case TIDE_OP_UPCONV_BWD_DATA: return build_data(k, d);
    default: return build_weights(k, d);
    }
}
