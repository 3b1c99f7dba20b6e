/* The analytic back end: a letter per operand, and three ways to trade workspace for speed in a convolution. */
#include "nn/analytic.h"

#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "device/op_check.h"
#include "nn/graph.h"

/* ---- operands ----
 * x, y: activations of these shapes (and their gradients)   w, b: weight, bias (absent without one)
 * c: one float per channel   i: a byte per output (index of the maximum)
 * l: an int32 per pixel (label)   1: one float   e: `elements` floats   q: those of its part   s: one float if the update is clipped
 * p: all parts of y   r: one float per row   v: table of the vocabulary   o: positions (absent without)
 * a: one float per row and head (attention)   u: two floats per row   n: scale or sum of a norm   t: x of each step
 * d: a bit per output (signs, or absent)   Y: y, or absent where there are signs
 * g: gates, four times y   k, j: weight and bias of an LSTM cell   h, z: y of the step before, of the next (or absent) */
typedef struct operand_letters {
    const char *reads, *writes;
} operand_letters;

static const operand_letters operands[TIDE_OP_KIND_COUNT] = {
    [TIDE_OP_CONV_FWD] = {"xwb", "y"},
    [TIDE_OP_CONV_BWD_DATA] = {"wy", "x"},
    [TIDE_OP_CONV_BWD_WEIGHTS] = {"xy", "wb"},
    [TIDE_OP_FC_FWD] = {"xwb", "y"},
    [TIDE_OP_FC_BWD_DATA] = {"wy", "x"},
    [TIDE_OP_FC_BWD_WEIGHTS] = {"xy", "wb"},
    [TIDE_OP_BN_FWD] = {"xcc", "ycc"},
    [TIDE_OP_BN_STATS] = {"cccc", "cc"},
    [TIDE_OP_BN_INFER] = {"xcccc", "y"},
    [TIDE_OP_BN_BWD] = {"xyccc", "xcc"},
    [TIDE_OP_RELU_FWD] = {"x", "yd"},
    [TIDE_OP_RELU_BWD] = {"Ydy", "x"},
    [TIDE_OP_MAXPOOL_FWD] = {"x", "yi"},
    [TIDE_OP_MAXPOOL_BWD] = {"iy", "x"},
    [TIDE_OP_AVGPOOL_FWD] = {"x", "y"},
    [TIDE_OP_AVGPOOL_BWD] = {"y", "x"},
    [TIDE_OP_ADD] = {"xx", "y"},
    [TIDE_OP_SOFTMAX_LOSS_FWD] = {"xl", "y1"},
    [TIDE_OP_SOFTMAX_LOSS_BWD] = {"yl", "x"},
    [TIDE_OP_DROPOUT_FWD] = {"x", "y"},
    [TIDE_OP_DROPOUT_BWD] = {"y", "x"},
    [TIDE_OP_LRN_FWD] = {"x", "y"},
    [TIDE_OP_LRN_BWD] = {"xyy", "x"},
    [TIDE_OP_SGD] = {"ees", "e"},
    [TIDE_OP_MOMENTUM] = {"eqes", "eq"},
    [TIDE_OP_ADAM] = {"eqqes", "eqq"},
    [TIDE_OP_ADAMW] = {"eqqes", "eqq"},
    [TIDE_OP_GRAD_NORM] = {"e", "n"},
    [TIDE_OP_ACCUMULATE] = {"ee", "e"},
    [TIDE_OP_CUT] = {"e", "q"},
    [TIDE_OP_PASTE] = {"fq", "e"},
    [TIDE_OP_CONCAT_FWD] = {"p", "y"},
    [TIDE_OP_CONCAT_BWD] = {"y", "p"},
    [TIDE_OP_UPCONV_FWD] = {"xwb", "y"},
    [TIDE_OP_UPCONV_BWD_DATA] = {"wy", "x"},
    [TIDE_OP_UPCONV_BWD_WEIGHTS] = {"xy", "wb"},
    [TIDE_OP_LAYERNORM_FWD] = {"xcc", "yrr"},
    [TIDE_OP_LAYERNORM_BWD] = {"xycrr", "xcc"},
    [TIDE_OP_GELU_FWD] = {"x", "y"},
    [TIDE_OP_GELU_BWD] = {"xy", "x"},
    [TIDE_OP_EMBEDDING_FWD] = {"xvo", "y"},
    [TIDE_OP_EMBEDDING_BWD] = {"xy", "vo"},
    [TIDE_OP_ATTENTION_FWD] = {"x", "ya"},
    [TIDE_OP_ATTENTION_BWD] = {"xyay", "x"},
    [TIDE_OP_SLICE] = {"x", "y"},
    [TIDE_OP_STACK] = {"t", "y"},
    [TIDE_OP_LSTM_FWD] = {"xhhkj", "yyg"},
    [TIDE_OP_LSTM_BWD_GATES] = {"gyhyz", "gh"},
    [TIDE_OP_LSTM_BWD_WEIGHTS] = {"xhg", "kj"},
    [TIDE_OP_LSTM_BWD_DATA] = {"kg", "xh"},
    [TIDE_OP_HEAD_LOSS] = {"xwl", "xw1"},
    [TIDE_OP_HEAD_SCORE] = {"xwl", "u1"},
};

static bool is_head(tide_op_kind kind) { return kind == TIDE_OP_HEAD_LOSS || kind == TIDE_OP_HEAD_SCORE; }

/* (outputs, inputs...) of the layer's weight. */
static tide_shape weight_shape(const tide_op_desc *d) {
    bool fc = (d->kind >= TIDE_OP_FC_FWD && d->kind <= TIDE_OP_FC_BWD_WEIGHTS) || is_head(d->kind);
    if (fc) return (tide_shape){d->y.c, d->x.c, d->x.h, d->x.w};
    return (tide_shape){d->y.c, d->x.c, d->kernel_h, d->kernel_w};
}

static bool shape_bytes(tide_shape shape, uint64_t element_bytes, uint64_t *out) {
    uint64_t elements;
    return tide__shape_elements(shape, &elements) && tide__mul(elements, element_bytes, out);
}

/* Activations and their gradients, which mixed precision keeps in 2 bytes; but not tokens, nor what a loss divides. */
static bool is_shortened(const tide_op_desc *d, char letter) {
    bool tokens = d->kind == TIDE_OP_EMBEDDING_FWD || d->kind == TIDE_OP_EMBEDDING_BWD;
    bool loss = d->kind == TIDE_OP_SOFTMAX_LOSS_FWD || d->kind == TIDE_OP_SOFTMAX_LOSS_BWD;
    return strchr("xtyYhzgp", letter) && !(tokens && letter == 'x') && !(loss && letter == 'y');
}

/* `unit`: bytes of a number. */
static bool letter_bytes(const tide_op_desc *d, char letter, uint64_t unit, uint64_t *out) {
    switch (letter) {
    case 't':
    case 'x': return shape_bytes(d->x, unit, out);
    case 'h':
    case 'z':
    case 'Y':
    case 'y': return shape_bytes(d->y, unit, out);
    case 'w': return shape_bytes(weight_shape(d), unit, out);
    case 'b': return *out = unit * (uint64_t)d->y.c, true;
    case 'c': return *out = unit * (uint64_t)d->x.c, true;
    case 'i': return shape_bytes(d->y, 1, out);
    case 'd': return shape_bytes(d->y, 1, out) && (*out = (*out + 7) / 8, true);
    case 'l': return shape_bytes((tide_shape){d->x.n, 1, d->x.h, d->x.w}, unit, out);
    case 'u': return *out = 2 * unit * (uint64_t)d->x.n, true;
    case 'r': return *out = unit * (uint64_t)d->x.n, true;
    case 'v': return shape_bytes((tide_shape){d->vocabulary, d->y.c, 1, 1}, unit, out);
    case 'o': return shape_bytes((tide_shape){d->positions ? d->positions : d->x.c, d->y.c, 1, 1}, unit, out);
    case 'a': return shape_bytes((tide_shape){d->y.n, d->heads, 1, 1}, unit, out);
    case 'g': return shape_bytes(d->y, 4 * unit, out);
    case 'k': return shape_bytes((tide_shape){d->y.c, d->x.c + d->y.c, 1, 1}, 4 * unit, out);
    case 'j': return *out = 4 * unit * (uint64_t)d->y.c, true;
    case 'n': return *out = d->has_next ? 2 * unit : unit, true;
    case 'f':
    case 'e': return tide__mul(d->elements, unit, out);
    case 'q': return tide__mul(d->part_elements ? d->part_elements : d->elements, unit, out);
    default: return *out = unit, true;
    }
}

static bool is_absent(const tide_op_desc *d, char letter) {
    return ((letter == 'b' || letter == 'o') && !d->bias) || (letter == 's' && !d->clipped) ||
           (letter == 'd' && !d->signs) || (letter == 'Y' && d->signs) ||
           ((letter == 'h' || letter == 'f') && !d->has_prev) || (letter == 'z' && !d->has_next);
}

static bool list_parts(const tide_op_desc *d, bool half, tide_operand_info *list, uint32_t *n) {
    for (uint32_t i = 0; i < d->n_parts; i++) {
        tide_shape part = {d->y.n, d->part_channels[i], d->y.h, d->y.w};
        if (*n == TIDE_KERNEL_MAX_OPERANDS || !shape_bytes(part, half ? 2 : 4, &list[*n].size_bytes)) return false;
        list[(*n)++].layout = half ? TIDE__LAYOUT_HALF : 0;
    }
    return true;
}

static bool list_operands(const tide_op_desc *d, const char *letters, bool half, tide_operand_info *list, uint32_t *n) {
    for (*n = 0; *letters; letters++) {
        if (is_absent(d, *letters)) continue;
        bool shortened = half && is_shortened(d, *letters);
        if (*letters == 'p') {
            if (!list_parts(d, shortened, list, n)) return false;
            continue;
        }
        if (!letter_bytes(d, *letters, shortened ? 2 : 4, &list[*n].size_bytes)) return false;
        list[(*n)++].layout = shortened ? TIDE__LAYOUT_HALF : 0;
    }
    return true;
}

tide_status tide__analytic_operands(const tide_op_desc *d, bool half, tide_kernel_info *info) {
    if (d->kind >= TIDE_OP_KIND_COUNT || !operands[d->kind].reads)
        return tide__fail(TIDE_E_INTERNAL, "no operands are known for op kind %d", (int)d->kind);
    tide_kernel_info list = {.n_variants = 1};
    if (!list_operands(d, operands[d->kind].reads, half, list.read, &list.n_reads) ||
        !list_operands(d, operands[d->kind].writes, half, list.write, &list.n_writes))
        return tide__fail(TIDE_E_OVERFLOW, "an operand of %s is too large", tide_op_kind_name(d->kind));
    if (d->kind == TIDE_OP_GRAD_NORM) list.n_reads = d->n_grads + (d->has_prev ? 1 : 0);
    if (d->kind == TIDE_OP_STACK) list.n_reads = (uint32_t)d->steps;
    if (is_head(d->kind) &&
        !shape_bytes((tide_shape){tide__head_rows(d), d->y.c, 1, 1}, 4, &list.variant[0].workspace_bytes))
        return tide__fail(TIDE_E_OVERFLOW, "the workspace of %s is too large", tide_op_kind_name(d->kind));
    *info = list;
    return TIDE_OK;
}

/* ---- convolution variants ---- */

/* Speeds relative to the default; see docs/costs.md. */
#define SPEED_GEMM_ONE 1.10
#define SPEED_GEMM_ALL 1.25
#define SPEED_WINOGRAD 0.80 /* on 4/9 of the multiplications */

#define MAX_WORKSPACE_BYTES (UINT64_C(1) << 59)

static void add_variant(tide_kernel_info *info, tide__work *work, tide_variant variant, tide__work its_work) {
    work[info->n_variants] = its_work;
    info->variant[info->n_variants++] = variant;
}

/* Columns of one image: every input value under every kernel position. */
static bool column_bytes(const tide_op_desc *d, uint64_t unit, uint64_t *out) {
    uint64_t depth, pixels;
    return tide__shape_elements((tide_shape){d->x.c, d->kernel_h, d->kernel_w, 1}, &depth) &&
           tide__shape_elements((tide_shape){d->y.h, d->y.w, 1, 1}, &pixels) && tide__mul(depth, pixels, out) &&
           tide__mul(*out, unit, out);
}

/* Explicit GEMM over the columns of one image, or of the whole batch. Each sum is formed in the order of the default
 * variant, so the bits are the same; more images at once only means more parallel work. */
static void add_gemm(const tide_op_desc *d, bool half, tide_kernel_info *info, tide__work *work) {
    uint64_t one, all, traffic, copy = info->variant[0].workspace_bytes;
    if (!column_bytes(d, half ? 2 : 4, &one) || !tide__mul(one, (uint64_t)d->x.n, &all) || all > MAX_WORKSPACE_BYTES ||
        !tide__add(work[0].bytes, 2 * all, &traffic))
        return;
    add_variant(info, work, (tide_variant){.workspace_bytes = copy + one},
                (tide__work){work[0].flops, traffic, SPEED_GEMM_ONE, half});
    if (d->x.n == 1) return;
    add_variant(info, work, (tide_variant){.workspace_bytes = copy + all},
                (tide__work){work[0].flops, traffic, SPEED_GEMM_ALL, half});
}

/* Winograd's F(2x2, 3x3) (Lavin and Gray 2016): 16 products per 4 outputs instead of 36, other bits. */
static void add_winograd(const tide_op_desc *d, bool half, tide_kernel_info *info, tide__work *work) {
    uint64_t tiles, in_out, weights, numbers, bytes, traffic;
    tide_shape tile_shape = {d->y.n, (d->y.h + 1) / 2, (d->y.w + 1) / 2, 1};
    if (!tide__shape_elements(tile_shape, &tiles) || !tide__mul(tiles, (uint64_t)(d->x.c + d->y.c), &in_out) ||
        !tide__mul((uint64_t)d->x.c, (uint64_t)d->y.c, &weights) || !tide__add(in_out, weights, &numbers) ||
        !tide__mul(numbers, half ? 16 * 2 : 16 * 4, &bytes) || bytes > MAX_WORKSPACE_BYTES ||
        !tide__add(work[0].bytes, 2 * bytes, &traffic))
        return;
    tide__work its_work = {work[0].flops / 9 * 4, traffic, SPEED_WINOGRAD, half};
    add_variant(info, work,
                (tide_variant){.workspace_bytes = info->variant[0].workspace_bytes + bytes, .bits_class = 1}, its_work);
}

/* The weight that a product reads, as a copy of 2 bytes per element, written once and read once. */
static void copy_weight(const tide_op_desc *d, tide_kernel_info *info, tide__work *work) {
    const char *letters = operands[d->kind].reads;
    uint64_t bytes;
    char weight = strchr(letters, 'w') ? 'w' : 'k';
    if (!strchr(letters, weight) || !letter_bytes(d, weight, 2, &bytes) || bytes > MAX_WORKSPACE_BYTES) return;
    info->variant[0].workspace_bytes = bytes;
    work[0].bytes += 2 * bytes;
}

void tide__analytic_variants(const tide_op_desc *d, bool half, tide_kernel_info *info,
                             tide__work work[TIDE__MAX_VARIANTS]) {
    if (half) copy_weight(d, info, work);
    if (d->kind > TIDE_OP_CONV_BWD_WEIGHTS) return;
    bool pointwise = d->kernel_h == 1 && d->kernel_w == 1 && d->stride == 1 && d->pad_h == 0 && d->pad_w == 0;
    if (pointwise) return; /* its columns are its input */
    add_gemm(d, half, info, work);
    if (d->kernel_h == 3 && d->kernel_w == 3 && d->stride == 1) add_winograd(d, half, info, work);
}
