/* Kernels of every device that has them, every op kind: against plain reference code on shapes from tiny to padded, gradients
 * against finite differences, in place against out of place, and bits against bits (repeated, elsewhere in the arena,
 * other numbers of threads where own loops promise it). */
#include "support/test.h"

#include <math.h>

#include "base/rng.h"
#include "support/kernel_modes.h"
#include "support/opencl.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const rig_options plainly = {.in_place_read = -1};

/* ---- descriptors ---- */

typedef struct conv_case {
    tide_shape x;
    int64_t outputs;
    int32_t kernel_h, kernel_w, stride, pad;
    int32_t pad_more_w; /* width is padded by pad + this */
} conv_case;

static const conv_case convs[] = {
    {{2, 1, 28, 28}, 6, 5, 5, 1, 2},  /* lenet */
    {{2, 6, 14, 14}, 16, 5, 5, 1, 0}, /* plain in, blocked out */
    {{2, 16, 5, 5}, 120, 5, 5, 1, 0}, /* down to one pixel */
    {{3, 1, 12, 12}, 20, 5, 5, 1, 0}, /* padded output channels */
    {{2, 20, 6, 6}, 50, 5, 5, 1, 0},  /* padded on both sides */
    {{2, 3, 8, 8}, 16, 3, 3, 1, 1},   /* resnet-cifar */
    {{2, 16, 8, 8}, 16, 3, 3, 1, 1},    {{2, 16, 8, 8}, 32, 3, 3, 2, 1},     {{2, 16, 8, 8}, 32, 1, 1, 2, 0},
    {{1, 3, 17, 17}, 8, 7, 7, 2, 3},    {{3, 12, 7, 5}, 20, 3, 3, 2, 1},     {{1, 8, 1, 1}, 8, 1, 1, 1, 0},
    {{2, 12, 1, 1}, 12, 1, 1, 1, 0},    {{2, 3, 9, 9}, 5, 3, 3, 1, 1},       {{1, 5, 4, 6}, 9, 1, 3, 1, 0},
    {{1, 1, 1, 1}, 1, 1, 1, 1, 0},      {{2, 64, 4, 4}, 64, 3, 3, 1, 1},     {{2, 13, 2, 2}, 9, 2, 2, 1, 0},
    {{2, 16, 9, 9}, 16, 1, 7, 1, 0, 3}, {{2, 16, 9, 9}, 24, 7, 1, 1, 3, -3}, /* inception: rows and columns */
    {{3, 64, 14, 14}, 80, 3, 3, 1, 1},  {{8, 80, 7, 9}, 64, 3, 3, 1, 1},     /* many channels: Winograd's method */
    {{2, 24, 6, 6}, 20, 1, 1, 1, 0},    {{1, 40, 19, 19}, 100, 3, 3, 1, 1},  /* several blocks of a product */
};

static tide_op_desc conv_desc(tide_op_kind kind, const conv_case *c, int32_t bias) {
    tide_op_desc d = {.kind = kind, .x = c->x, .stride = c->stride, .pad_h = c->pad, .bias = bias};
    d.pad_w = c->pad + c->pad_more_w;
    d.kernel_h = c->kernel_h;
    d.kernel_w = c->kernel_w;
    d.y = (tide_shape){c->x.n, c->outputs, (c->x.h + 2 * d.pad_h - c->kernel_h) / c->stride + 1,
                       (c->x.w + 2 * d.pad_w - c->kernel_w) / c->stride + 1};
    return d;
}

static const conv_case pools[] = {
    {{2, 6, 8, 8}, 6, 2, 2, 2, 0},   {{2, 16, 9, 9}, 16, 3, 3, 2, 1}, {{2, 64, 8, 8}, 64, 8, 8, 8, 0},
    {{2, 12, 4, 4}, 12, 4, 4, 4, 0}, /* blocked to plain, padded channels lost */
    {{3, 20, 5, 7}, 20, 3, 2, 2, 0}, {{1, 1, 1, 1}, 1, 1, 1, 1, 0},   {{4, 24, 16, 16}, 24, 3, 3, 2, 1},
    {{2, 10, 1, 1}, 10, 1, 1, 1, 0}, {{1, 9, 6, 6}, 9, 5, 5, 1, 2},
};

static const conv_case fcs[] = {
    {{4, 16, 5, 5}, 120, 0, 0, 0, 0}, {{3, 50, 4, 4}, 20, 0, 0, 0, 0},  {{5, 784, 1, 1}, 32, 0, 0, 0, 0},
    {{2, 1, 28, 28}, 10, 0, 0, 0, 0}, {{3, 13, 1, 1}, 7, 0, 0, 0, 0},   {{1, 1, 1, 1}, 1, 0, 0, 0, 0},
    {{2, 9, 3, 3}, 11, 0, 0, 0, 0},   {{33, 64, 1, 1}, 10, 0, 0, 0, 0}, {{2, 120, 1, 1}, 84, 0, 0, 0, 0},
};

static tide_op_desc fc_desc(tide_op_kind kind, const conv_case *c, int32_t bias) {
    return (tide_op_desc){.kind = kind, .x = c->x, .y = {c->x.n, c->outputs, 1, 1}, .bias = bias};
}

/* x, outputs and the factor. */
static const conv_case upconvs[] = {
    {{2, 16, 4, 4}, 8, 2, 2, 2, 0},  {{1, 16, 1, 1}, 16, 2, 2, 2, 0}, {{2, 3, 3, 5}, 5, 2, 2, 2, 0},
    {{2, 12, 3, 3}, 20, 3, 3, 3, 0}, {{1, 1, 1, 1}, 1, 1, 1, 1, 0},   {{2, 9, 2, 2}, 1, 2, 2, 2, 0},
    {{3, 32, 6, 5}, 16, 2, 2, 2, 0}, {{1, 1, 4, 4}, 9, 4, 4, 4, 0},
};

static tide_op_desc upconv_desc(tide_op_kind kind, const conv_case *c, int32_t bias) {
    tide_op_desc d = {.kind = kind, .x = c->x, .stride = c->stride, .bias = bias};
    d.kernel_h = d.kernel_w = c->kernel_h;
    d.y = (tide_shape){c->x.n, c->outputs, c->x.h * c->kernel_h, c->x.w * c->kernel_w};
    return d;
}

/* Aligned blocks, parts that begin in the middle of one, plain parts in a blocked whole, rows. */
typedef struct concat_case {
    tide_shape y;
    uint32_t n_parts;
    int64_t channels[5];
} concat_case;

static const concat_case concats[] = {
    {{2, 24, 5, 3}, 2, {8, 16}},         {{3, 33, 2, 2}, 3, {8, 12, 13}},     {{2, 20, 4, 4}, 2, {16, 4}},
    {{2, 7, 3, 3}, 3, {1, 2, 4}},        {{4, 21, 1, 1}, 2, {9, 12}},         {{1, 9, 1, 2}, 1, {9}},
    {{2, 12, 3, 3}, 5, {1, 2, 3, 2, 4}}, {{2, 160, 14, 14}, 3, {64, 32, 64}}, {{2, 22, 3, 3}, 2, {8, 14}},
};

static tide_op_desc concat_desc(tide_op_kind kind, const concat_case *c) {
    return (tide_op_desc){.kind = kind, .x = c->y, .y = c->y, .n_parts = c->n_parts, .part_channels = c->channels};
}

static const tide_shape shapes[] = {
    {1, 1, 1, 1},  {2, 3, 5, 7},    {2, 8, 4, 4},   {3, 13, 3, 5},
    {4, 10, 1, 1}, {2, 64, 16, 16}, {33, 16, 3, 3}, {17, 9, 1, 2},
};

static tide_op_desc shape_desc(tide_op_kind kind, const tide_shape *s) {
    return (tide_op_desc){.kind = kind,
                          .x = *s,
                          .y = *s,
                          .eps = 1e-5f,
                          .momentum = 0.1f,
                          .drop_rate = 0.3f,
                          .lrn_size = 5,
                          .lrn_alpha = 0.5f,
                          .lrn_beta = 0.75f,
                          .lrn_k = 2};
}

static tide_op_desc update_desc(tide_op_kind kind, uint64_t elements, int32_t clipped) {
    return (tide_op_desc){
        .kind = kind, .elements = elements, .beta1 = 0.9f, .beta2 = 0.99f, .weight_decay = 0.1f, .clipped = clipped};
}

/* ---- every descriptor of this file, for tests that want them all ---- */

static void visit_windows(visit_fn visit, void *context) {
    static const tide_op_kind conv_kinds[] = {TIDE_OP_CONV_FWD, TIDE_OP_CONV_BWD_DATA, TIDE_OP_CONV_BWD_WEIGHTS};
    static const tide_op_kind fc_kinds[] = {TIDE_OP_FC_FWD, TIDE_OP_FC_BWD_DATA, TIDE_OP_FC_BWD_WEIGHTS};
    static const tide_op_kind pool_kinds[] = {TIDE_OP_MAXPOOL_FWD, TIDE_OP_MAXPOOL_BWD, TIDE_OP_AVGPOOL_FWD,
                                              TIDE_OP_AVGPOOL_BWD};
    static const tide_op_kind up_kinds[] = {TIDE_OP_UPCONV_FWD, TIDE_OP_UPCONV_BWD_DATA, TIDE_OP_UPCONV_BWD_WEIGHTS};
    tide_op_desc d;
    for (size_t k = 0; k < 3; k++)
        for (int32_t bias = 0; bias < 2; bias++) {
            for (size_t i = 0; i < COUNT(upconvs); i++)
                d = upconv_desc(up_kinds[k], &upconvs[i], bias), visit(&d, context);
            for (size_t i = 0; i < COUNT(convs); i++) d = conv_desc(conv_kinds[k], &convs[i], bias), visit(&d, context);
            for (size_t i = 0; i < COUNT(fcs); i++) d = fc_desc(fc_kinds[k], &fcs[i], bias), visit(&d, context);
        }
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < COUNT(pools); i++) d = conv_desc(pool_kinds[k], &pools[i], 0), visit(&d, context);
}

static const tide_op_kind shape_kinds[] = {TIDE_OP_RELU_FWD,    TIDE_OP_RELU_BWD, TIDE_OP_ADD,    TIDE_OP_BN_FWD,
                                           TIDE_OP_BN_STATS,    TIDE_OP_BN_INFER, TIDE_OP_BN_BWD, TIDE_OP_DROPOUT_FWD,
                                           TIDE_OP_DROPOUT_BWD, TIDE_OP_LRN_FWD,  TIDE_OP_LRN_BWD};

static void visit_shapes(visit_fn visit, void *context) {
    static const tide_shape rows[] = {{1, 1, 1, 1}, {3, 10, 1, 1}, {64, 1000, 1, 1}, {5, 17, 1, 1},
                                      {2, 2, 9, 9}, {3, 1, 2, 2},  {2, 21, 7, 11},   {1, 8, 8, 8}};
    tide_op_desc d;
    for (size_t k = 0; k < COUNT(shape_kinds); k++)
        for (size_t i = 0; i < COUNT(shapes); i++) d = shape_desc(shape_kinds[k], &shapes[i]), visit(&d, context);
    for (size_t i = 0; i < COUNT(rows); i++) {
        d = shape_desc(TIDE_OP_SOFTMAX_LOSS_FWD, &rows[i]), visit(&d, context);
        d = shape_desc(TIDE_OP_SOFTMAX_LOSS_BWD, &rows[i]), visit(&d, context);
        d.loss_scale = 0.25f, visit(&d, context);
    }
}

static void visit_concats(visit_fn visit, void *context) {
    tide_op_desc d;
    for (size_t i = 0; i < COUNT(concats); i++) {
        d = concat_desc(TIDE_OP_CONCAT_FWD, &concats[i]), visit(&d, context);
        d = concat_desc(TIDE_OP_CONCAT_BWD, &concats[i]), visit(&d, context);
    }
}

static const tide_op_kind update_kinds[] = {TIDE_OP_SGD, TIDE_OP_MOMENTUM, TIDE_OP_ADAM, TIDE_OP_ADAMW};

static void visit_updates(visit_fn visit, void *context) {
    static const uint64_t sizes[] = {1, 37, 40000};
    tide_op_desc d;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        for (size_t k = 0; k < COUNT(update_kinds); k++)
            for (int32_t clipped = 0; clipped < 2; clipped++)
                d = update_desc(update_kinds[k], sizes[i], clipped), visit(&d, context);
        d = update_desc(TIDE_OP_ACCUMULATE, sizes[i], 0), visit(&d, context);
        d = update_desc(TIDE_OP_ZERO, sizes[i], 0), visit(&d, context);
        d = (tide_op_desc){.kind = TIDE_OP_CUT, .elements = sizes[i], .part_first = sizes[i] / 3};
        d.part_elements = sizes[i] - d.part_first, visit(&d, context);
    }
}

static void visit_grad_norms(visit_fn visit, void *context) {
    static const uint64_t sizes[] = {5, 40000, 1, 16384, 7, 8, 9, 100, 33}; /* more than a kernel_info has room for */
    for (uint32_t n = 1; n <= COUNT(sizes); n += 4)
        for (int i = 0; i < 2; i++) {
            tide_op_desc d = {
                .kind = TIDE_OP_GRAD_NORM, .n_grads = n, .grad_elements = sizes, .clip_norm = i ? 0.5f : 1e3f};
            visit(&d, context);
        }
}

static void visit_reorders(visit_fn visit, void *context) {
    for (size_t i = 0; i < COUNT(convs); i++) {
        tide_op_desc from = conv_desc(TIDE_OP_CONV_FWD, &convs[i], 0),
                     to = conv_desc(TIDE_OP_CONV_BWD_DATA, &convs[i], 0);
        tide_op_desc d = {.kind = TIDE_OP_REORDER, .from = &from, .to = &to, .from_operand = 1, .to_operand = 0};
        visit(&d, context);
    }
    for (size_t i = 0; i < COUNT(upconvs); i++) {
        tide_op_desc from = upconv_desc(TIDE_OP_UPCONV_FWD, &upconvs[i], 0),
                     to = upconv_desc(TIDE_OP_UPCONV_BWD_DATA, &upconvs[i], 0);
        tide_op_desc d = {.kind = TIDE_OP_REORDER, .from = &from, .to = &to, .from_operand = 1, .to_operand = 0};
        visit(&d, context);
    }
}

static void visit_all(visit_fn visit, void *context) {
    visit_windows(visit, context);
    visit_shapes(visit, context);
    visit_concats(visit, context);
    visit_updates(visit, context);
    visit_grad_norms(visit, context);
    visit_reorders(visit, context);
}

/* ---- every descriptor against every check ---- */

static void test_reference(void **state) { check_all_on(*state, visit_all, check_reference); }
static void test_same_bits(void **state) { check_all_on(*state, visit_all, check_repeat); }
static void test_in_place(void **state) { check_all_on(*state, visit_all, check_in_place); }

#ifndef __SANITIZE_THREAD__
static void test_same_bits_on_any_threads(void **state) {
    (void)state;
    check_all_threads(visit_all);
}
#endif

/* ---- finite differences ---- */

static const gradient_case gradients[] = {
    {TIDE_OP_CONV_FWD, TIDE_OP_CONV_BWD_DATA, 0, 0, 1, 0, {{0, 1}, {-1}}},
    {TIDE_OP_CONV_FWD, TIDE_OP_CONV_BWD_WEIGHTS, 1, 0, 1, 0, {{0, 0}, {-1}}},
    {TIDE_OP_CONV_FWD, TIDE_OP_CONV_BWD_WEIGHTS, 2, 0, 1, 1, {{0, 0}, {-1}}},
    {TIDE_OP_FC_FWD, TIDE_OP_FC_BWD_DATA, 0, 0, 1, 0, {{0, 1}, {-1}}},
    {TIDE_OP_FC_FWD, TIDE_OP_FC_BWD_WEIGHTS, 1, 0, 1, 0, {{0, 0}, {-1}}},
    {TIDE_OP_FC_FWD, TIDE_OP_FC_BWD_WEIGHTS, 2, 0, 1, 1, {{0, 0}, {-1}}},
    {TIDE_OP_UPCONV_FWD, TIDE_OP_UPCONV_BWD_DATA, 0, 0, 1, 0, {{0, 1}, {-1}}},
    {TIDE_OP_UPCONV_FWD, TIDE_OP_UPCONV_BWD_WEIGHTS, 1, 0, 1, 0, {{0, 0}, {-1}}},
    {TIDE_OP_UPCONV_FWD, TIDE_OP_UPCONV_BWD_WEIGHTS, 2, 0, 1, 1, {{0, 0}, {-1}}},
    {TIDE_OP_CONCAT_FWD, TIDE_OP_CONCAT_BWD, 1, 0, 0, 1, {{-1}}},
    {TIDE_OP_BN_FWD, TIDE_OP_BN_BWD, 0, 0, 1, 0, {{0, 0}, {2, 1}, {3, 4}, {4, 5}, {-1}}},
    {TIDE_OP_BN_FWD, TIDE_OP_BN_BWD, 1, 0, 1, 1, {{0, 0}, {2, 1}, {3, 4}, {4, 5}, {-1}}},
    {TIDE_OP_BN_FWD, TIDE_OP_BN_BWD, 2, 0, 1, 2, {{0, 0}, {2, 1}, {3, 4}, {4, 5}, {-1}}},
    {TIDE_OP_RELU_FWD, TIDE_OP_RELU_BWD, 0, 0, 1, 0, {{0, 1}, {-1}}},
    {TIDE_OP_DROPOUT_FWD, TIDE_OP_DROPOUT_BWD, 0, 0, 0, 0, {{-1}}},
    {TIDE_OP_LRN_FWD, TIDE_OP_LRN_BWD, 0, 0, 2, 0, {{0, 0}, {1, 1}, {-1}}},
    {TIDE_OP_MAXPOOL_FWD, TIDE_OP_MAXPOOL_BWD, 0, 0, 1, 0, {{0, 2}, {-1}}},
    {TIDE_OP_AVGPOOL_FWD, TIDE_OP_AVGPOOL_BWD, 0, 0, 0, 0, {{-1}}},
    {TIDE_OP_SOFTMAX_LOSS_FWD, TIDE_OP_SOFTMAX_LOSS_BWD, 0, 1, -1, 0, {{0, 2}, {1, 1}, {-1}}},
};

static tide_op_desc gradient_desc(tide_op_kind kind, int32_t which) {
    static const conv_case small_conv = {{2, 9, 4, 3}, 10, 3, 3, 1, 1}, small_pool = {{2, 9, 5, 5}, 9, 3, 3, 2, 1};
    static const conv_case small_fc = {{2, 9, 2, 2}, 5, 0, 0, 0, 0};
    static const tide_shape small_rows = {4, 6, 1, 2}, small = {3, 9, 3, 2};
    tide_op_kind forward = gradients[which].forward;
    if (forward == TIDE_OP_CONV_FWD) return conv_desc(kind, &small_conv, 1);
    if (forward == TIDE_OP_FC_FWD) return fc_desc(kind, &small_fc, 1);
    if (forward == TIDE_OP_UPCONV_FWD) return upconv_desc(kind, &upconvs[2], 1);
    if (forward == TIDE_OP_CONCAT_FWD) return concat_desc(kind, &concats[3]);
    if (forward == TIDE_OP_MAXPOOL_FWD || forward == TIDE_OP_AVGPOOL_FWD) return conv_desc(kind, &small_pool, 0);
    return shape_desc(kind, forward == TIDE_OP_SOFTMAX_LOSS_FWD ? &small_rows : &small);
}

static void test_finite_differences(void **state) {
    kernel_rig rig;
    rig_open(&rig, *state);
    for (int32_t i = 0; i < (int32_t)COUNT(gradients); i++) {
        tide_op_desc forward = gradient_desc(gradients[i].forward, i),
                     backward = gradient_desc(gradients[i].backward, i);
        check_gradient(&rig, &gradients[i], &forward, &backward);
    }
    rig_close(&rig);
}

/* ---- layouts ---- */

/* Neighbouring layers agree on activations whatever their kind, and the three kinds of a layer agree on weights. */
static void test_layouts_agree(void **state) {
    kernel_rig rig;
    rig_open(&rig, *state);
    for (size_t i = 0; i < COUNT(convs); i++) {
        tide_op_desc f = conv_desc(TIDE_OP_CONV_FWD, &convs[i], 1),
                     w = conv_desc(TIDE_OP_CONV_BWD_WEIGHTS, &convs[i], 1),
                     b = conv_desc(TIDE_OP_CONV_BWD_DATA, &convs[i], 1), r = shape_desc(TIDE_OP_RELU_FWD, &f.y);
        tide_op_desc reorder = {.kind = TIDE_OP_REORDER, .from = &f, .to = &b, .from_operand = 1, .to_operand = 0};
        tide_kernel_info fi = info_of(&rig, &f), wi = info_of(&rig, &w), bi = info_of(&rig, &b), ri = info_of(&rig, &r),
                         oi = info_of(&rig, &reorder);
        assert_true(fi.write[0].layout == ri.read[0].layout && fi.write[0].size_bytes == ri.read[0].size_bytes);
        assert_true(fi.read[1].layout == wi.write[0].layout && fi.read[1].size_bytes == wi.write[0].size_bytes);
        assert_true(fi.read[0].layout == wi.read[0].layout && fi.read[0].layout == bi.write[0].layout);
        assert_true(fi.write[0].layout == wi.read[1].layout && fi.write[0].layout == bi.read[1].layout);
        assert_true(oi.read[0].layout == fi.read[1].layout && oi.write[0].layout == bi.read[0].layout);
        assert_true(fi.read[0].layout != TIDE_LAYOUT_ANY && fi.read[1].layout != TIDE_LAYOUT_ANY);
    }
    for (size_t i = 0; i < COUNT(fcs); i++) {
        tide_op_desc f = fc_desc(TIDE_OP_FC_FWD, &fcs[i], 1), w = fc_desc(TIDE_OP_FC_BWD_WEIGHTS, &fcs[i], 1),
                     b = fc_desc(TIDE_OP_FC_BWD_DATA, &fcs[i], 1), r = shape_desc(TIDE_OP_RELU_BWD, &f.x);
        tide_kernel_info fi = info_of(&rig, &f), wi = info_of(&rig, &w), bi = info_of(&rig, &b), ri = info_of(&rig, &r);
        assert_true(fi.read[0].layout == ri.write[0].layout && bi.write[0].layout == ri.write[0].layout);
        assert_true(fi.read[1].layout == wi.write[0].layout && fi.read[1].layout == bi.read[0].layout);
    }
    tide_op_desc sgd = update_desc(TIDE_OP_SGD, 10, 0), a = shape_desc(TIDE_OP_RELU_FWD, &shapes[1]),
                 b = shape_desc(TIDE_OP_RELU_FWD, &shapes[2]);
    assert_true(info_of(&rig, &sgd).read[0].layout == TIDE_LAYOUT_ANY);
    assert_true(info_of(&rig, &a).read[0].layout != info_of(&rig, &b).read[0].layout);
    rig_close(&rig);
}

/* Other implementations: each with another amount of workspace; with the same bits exactly if they say so. */
static void compare_variants(kernel_rig *rig, const tide_op_desc *d, const tide_kernel_info *info) {
    uint64_t hash[4];
    rig_case c;
    rig_case_init(&c, d, 10);
    for (uint32_t i = 0; i < info->n_variants; i++)
        hash[i] = rig_run(rig, &c, &(rig_options){.in_place_read = -1, .variant = i});
    rig_case_deinit(&c);
    for (uint32_t a = 0; a < info->n_variants; a++)
        for (uint32_t b = 0; b < a; b++) {
            assert_true(info->variant[a].workspace_bytes != info->variant[b].workspace_bytes);
            if (info->variant[a].bits_class == info->variant[b].bits_class) assert_true(hash[a] == hash[b]);
        }
}

static void test_variants(void **state) {
    static const tide_op_kind kinds[] = {TIDE_OP_CONV_FWD, TIDE_OP_CONV_BWD_DATA, TIDE_OP_CONV_BWD_WEIGHTS};
    kernel_rig rig;
    uint32_t most = 0;
    rig_open(&rig, *state);
    for (size_t i = 0; i < 3 * COUNT(convs); i++) {
        tide_op_desc d = conv_desc(kinds[i % 3], &convs[i / 3], 0);
        tide_kernel_info info = info_of(&rig, &d);
        most = info.n_variants > most ? info.n_variants : most;
        compare_variants(&rig, &d, &info);
    }
    assert_true(most >= 2);
    rig_close(&rig);
}

/* ---- special values ---- */

/* Of equal maxima the first wins, also among zeros after a relu. */
static void test_maxpool_ties(void **state) {
    kernel_rig rig;
    rig_open(&rig, *state);
    for (size_t i = 0; i < COUNT(pools); i++) {
        tide_op_desc d = conv_desc(TIDE_OP_MAXPOOL_FWD, &pools[i], 0);
        rig_case c;
        rig_case_init(&c, &d, 8);
        for (uint64_t k = 0; k < c.spec.elements[0]; k++) c.plain[0][k] = fmaxf(0, roundf(c.plain[0][k] * 2));
        rig_run(&rig, &c, &plainly);
        rig_compare(&c);
        rig_case_deinit(&c);
    }
    rig_close(&rig);
}

/* A run that diverges must look like one. */
static void test_nan_comes_through(void **state) {
    static const tide_shape s = {2, 12, 4, 4};
    tide_op_desc ops[] = {shape_desc(TIDE_OP_RELU_FWD, &s), conv_desc(TIDE_OP_MAXPOOL_FWD, &pools[3], 0),
                          conv_desc(TIDE_OP_MAXPOOL_FWD, &pools[0], 0), shape_desc(TIDE_OP_BN_FWD, &s)};
    kernel_rig rig;
    rig_open(&rig, *state);
    for (size_t i = 0; i < COUNT(ops); i++) {
        rig_case c;
        bool found = false;
        rig_case_init(&c, &ops[i], 9);
        c.plain[0][1] = NAN;
        rig_run(&rig, &c, &plainly);
        for (uint64_t k = 0; k < c.spec.elements[c.spec.n_reads]; k++) found |= isnan(c.plain[c.spec.n_reads][k]);
        assert_true(found);
        rig_case_deinit(&c);
    }
    rig_close(&rig);
}

/* ---- signs ---- */

/* Makes a case of ReLU one with signs: its operand `at` is as many bytes as the device wants. */
static void with_signs(kernel_rig *rig, rig_case *c, uint32_t at) {
    c->desc.signs = 1;
    const tide_kernel_info info = info_of(rig, &c->desc);
    const bool reads = at < info.n_reads;
    c->spec.n_writes = info.n_writes;
    c->spec.elements[at] = reads ? info.read[at].size_bytes : info.write[at - info.n_reads].size_bytes;
    if (reads) free(c->plain[at]);
    c->plain[at] = calloc(c->spec.elements[at], sizeof(float));
    assert_non_null(c->plain[at]);
}

/* Of the same numbers, signs let the same gradients pass as y itself does; they are a bit per number as stored. */
static void check_signs(kernel_rig *rig, const tide_shape *shape, int32_t bf16) {
    static const float special[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f};
    tide_op_desc forward = shape_desc(TIDE_OP_RELU_FWD, shape), backward = shape_desc(TIDE_OP_RELU_BWD, shape);
    rig_case f, s, b, t;
    forward.bf16 = backward.bf16 = bf16;
    rig_case_init(&f, &forward, 5);
    rig_case_init(&s, &forward, 5);
    rig_case_init(&b, &backward, 6);
    rig_case_init(&t, &backward, 6);
    with_signs(rig, &s, 2);
    with_signs(rig, &t, 0);
    for (size_t i = 0; i < COUNT(special) && i < f.spec.elements[0]; i++) f.plain[0][i] = s.plain[0][i] = special[i];
    const uint64_t y_bytes = f.spec.elements[0] * sizeof(float);
    const tide_kernel_info info = info_of(rig, &s.desc);
    assert_int_equal(info.write[1].size_bytes, (info.write[0].size_bytes / (bf16 ? 2 : 4) + 7) / 8);
    rig_run(rig, &f, &plainly);
    const uint64_t apart = rig_run(rig, &s, &plainly);
    assert_memory_equal(f.plain[1], s.plain[1], y_bytes);
    assert_true(rig_run(rig, &s, &(rig_options){.in_place_read = 0}) == apart);
    memcpy(b.plain[0], f.plain[1], y_bytes);
    memcpy(t.plain[0], s.plain[2], s.spec.elements[2] * sizeof(float));
    const uint64_t by_values = rig_run(rig, &b, &plainly);
    assert_true(rig_run(rig, &t, &plainly) == by_values);
    assert_true(rig_run(rig, &t, &(rig_options){.in_place_read = 1}) == by_values);
    rig_case_deinit(&f);
    rig_case_deinit(&s);
    rig_case_deinit(&b);
    rig_case_deinit(&t);
}

static void test_signs(void **state) {
    const rig_config *config = *state;
    kernel_rig rig;
    rig_open(&rig, config);
    for (size_t i = 0; i < COUNT(shapes); i++) {
        check_signs(&rig, &shapes[i], 0);
        if (strcmp(config->device, "cpu") == 0) check_signs(&rig, &shapes[i], 1);
    }
    tide_op_desc sum = shape_desc(TIDE_OP_ADD, &shapes[0]); /* has no signs, whatever it says */
    sum.signs = 1;
    const tide_kernel_info info = info_of(&rig, &sum);
    assert_int_equal(info.read[0].size_bytes, info.write[0].size_bytes);
    rig_close(&rig);
}

/* ---- randomness ---- */

/* What is dropped depends on seed, step and counter, and on nothing else. */
static void test_dropout_replays(void **state) {
    static const tide_shape s = {4, 12, 8, 8};
    kernel_rig rig;
    rig_case c;
    tide_op_desc d = shape_desc(TIDE_OP_DROPOUT_FWD, &s);
    rig_open(&rig, *state);
    rig_case_init(&c, &d, 7);
    uint64_t first = rig_run(&rig, &c, &plainly), elements = c.spec.elements[1], kept = 0;
    for (uint64_t i = 0; i < elements; i++) kept += c.plain[1][i] != 0;
    assert_in_range(kept * 100 / elements, 65, 75);
    assert_true(rig_run(&rig, &c, &plainly) == first);
    c.args.step++;
    assert_true(rig_run(&rig, &c, &plainly) != first);
    c.args.step--, c.args.counter++;
    assert_true(rig_run(&rig, &c, &plainly) != first);
    c.args.counter--, c.args.seed++;
    assert_true(rig_run(&rig, &c, &plainly) != first);
    rig_case_deinit(&c);
    rig_close(&rig);
}

/* ---- what is refused ---- */

static void test_refused_descriptors(void **state) {
    kernel_rig rig;
    rig_open(&rig, *state);
    tide_op_desc conv = conv_desc(TIDE_OP_CONV_FWD, &convs[6], 0), d = conv;
    d.y.h++;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    assert_error_has("conv: ");
    d = conv, d.stride = 0;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = conv, d.x.c = 0;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = fc_desc(TIDE_OP_FC_FWD, &fcs[0], 0), d.x = (tide_shape){1, 1, 1 << 20, 1 << 20},
    d.y = (tide_shape){1, 1 << 30, 1, 1};
    refuse(&rig, d, TIDE_E_ARGUMENT); /* the weights' size would overflow */
    d = conv, d.x.n = INT64_MAX;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = conv, d.kind = (tide_op_kind)TIDE_OP_KIND_COUNT;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = conv_desc(TIDE_OP_MAXPOOL_FWD, &pools[1], 0), d.pad_h = d.pad_w = 3;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = upconv_desc(TIDE_OP_UPCONV_FWD, &upconvs[0], 1), d.stride = 1;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = concat_desc(TIDE_OP_CONCAT_FWD, &concats[0]), d.n_parts = 1;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    assert_error_has("the parts have 8 channels, the whole 24");
    d.part_channels = NULL;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = shape_desc(TIDE_OP_DROPOUT_FWD, &shapes[1]), d.drop_rate = 1;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = shape_desc(TIDE_OP_LRN_FWD, &shapes[1]), d.lrn_size = 0;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d = shape_desc(TIDE_OP_BN_FWD, &shapes[1]), d.eps = 0;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    refuse(&rig, (tide_op_desc){.kind = TIDE_OP_GRAD_NORM, .clip_norm = 1}, TIDE_E_ARGUMENT);
    refuse(&rig, update_desc(TIDE_OP_SGD, 0, 0), TIDE_E_ARGUMENT);
    refuse(&rig, update_desc(TIDE_OP_ZERO, UINT64_MAX, 0), TIDE_E_ARGUMENT);
    tide_op_desc other = conv_desc(TIDE_OP_CONV_FWD, &convs[7], 0);
    d = (tide_op_desc){.kind = TIDE_OP_REORDER, .from = &conv, .to = &other, .from_operand = 1, .to_operand = 1};
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d.to = &conv, d.to_operand = 17;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d.to = NULL;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    d.to = &d;
    refuse(&rig, d, TIDE_E_ARGUMENT);
    rig_close(&rig);
}

static void test_refused_enqueues(void **state) {
    kernel_rig rig;
    tide_kernel *kernel = NULL;
    tide_queue *copies = NULL;
    tide_op_desc d = shape_desc(TIDE_OP_RELU_FWD, &shapes[2]);
    uint64_t size = tide_arena_size((rig_open(&rig, *state), rig.arena));
    const uint64_t good[] = {0, 4096}, odd[] = {0, 4100}, high[] = {0, size - rig.align};
    float plain[4];
    assert_ok(tide_kernel_create(rig.device, &d, &kernel));
    assert_ok(tide_queue_create(rig.device, TIDE_QUEUE_COPY, &copies));
    assert_status(tide_kernel_enqueue(kernel, 1, rig.queue, rig.arena, good, 2, NULL), TIDE_E_ARGUMENT);
    assert_status(tide_kernel_enqueue(kernel, 0, copies, rig.arena, good, 2, NULL), TIDE_E_ARGUMENT);
    assert_status(tide_kernel_enqueue(kernel, 0, rig.queue, rig.arena, good, 1, NULL), TIDE_E_ARGUMENT);
    assert_status(tide_kernel_enqueue(kernel, 0, rig.queue, rig.arena, odd, 2, NULL), TIDE_E_ARGUMENT);
    assert_error_has("operand 1: offset 4100 is not a multiple of");
    assert_status(tide_kernel_enqueue(kernel, 0, rig.queue, rig.arena, high, 2, NULL), TIDE_E_ARGUMENT);
    assert_error_has("operand 1: ");
    assert_status(tide_operand_unpack(kernel, 2, rig.bytes, plain), TIDE_E_ARGUMENT);
    assert_ok(tide_kernel_enqueue(kernel, 0, rig.queue, rig.arena, good, 2, NULL));
    assert_ok(tide_queue_sync(rig.queue));
    tide_queue_destroy(copies);
    tide_kernel_destroy(kernel);
    tide_kernel_destroy(NULL);
    rig_close(&rig);
}

/* Labels are data: a wrong one fails the queue and says which. */
static void test_wrong_label(void **state) {
    kernel_rig rig;
    tide_kernel *kernel = NULL;
    tide_op_desc d = {.kind = TIDE_OP_SOFTMAX_LOSS_BWD, .x = {2, 3, 1, 1}, .y = {2, 3, 1, 1}};
    const uint64_t offsets[] = {0, 4096, 8192};
    rig_open(&rig, *state);
    const int32_t label[2] = {2, 3};
    memcpy(rig.bytes + 4096, label, sizeof label);
    rig_put(&rig, 0, 8192);
    assert_ok(tide_kernel_create(rig.device, &d, &kernel));
    assert_ok(tide_kernel_enqueue(kernel, 0, rig.queue, rig.arena, offsets, 3, NULL));
    assert_status(tide_queue_sync(rig.queue), TIDE_E_ARGUMENT);
    assert_error_has("label 3 of sample 1");
    tide_kernel_destroy(kernel);
    rig_close(&rig);
}

/* ---- perf: one of a size that takes a while for every kind ---- */

static void visit_large(visit_fn visit, void *context) {
    static const conv_case conv = {{8, 64, 28, 28}, 64, 3, 3, 1, 1}, narrow = {{8, 64, 28, 28}, 128, 1, 1, 1, 0};
    static const conv_case up = {{4, 64, 28, 28}, 32, 2, 2, 2, 0}, pool = {{8, 64, 56, 56}, 64, 3, 3, 2, 1};
    static const conv_case fc = {{256, 1024, 1, 1}, 1024, 0, 0, 0, 0};
    static const concat_case joined = {{8, 128, 28, 28}, 2, {64, 64}};
    static const tide_shape image = {8, 64, 28, 28}, classes = {256, 1000, 1, 1};
    static const uint64_t grads[] = {500000, 500000};
    tide_op_desc d;
    for (int k = 0; k < 3; k++) {
        d = conv_desc((tide_op_kind)(TIDE_OP_CONV_FWD + k), &conv, 0), visit(&d, context);
        d = conv_desc((tide_op_kind)(TIDE_OP_CONV_FWD + k), &narrow, 0), visit(&d, context);
        d = upconv_desc((tide_op_kind)(TIDE_OP_UPCONV_FWD + k), &up, 0), visit(&d, context);
        d = fc_desc((tide_op_kind)(TIDE_OP_FC_FWD + k), &fc, 0), visit(&d, context);
    }
    for (int k = 0; k < 4; k++) d = conv_desc((tide_op_kind)(TIDE_OP_MAXPOOL_FWD + k), &pool, 0), visit(&d, context);
    for (size_t k = 0; k < COUNT(shape_kinds); k++) d = shape_desc(shape_kinds[k], &image), visit(&d, context);
    d = shape_desc(TIDE_OP_SOFTMAX_LOSS_FWD, &classes), visit(&d, context);
    d = shape_desc(TIDE_OP_SOFTMAX_LOSS_BWD, &classes), visit(&d, context);
    d = concat_desc(TIDE_OP_CONCAT_FWD, &joined), visit(&d, context);
    d = concat_desc(TIDE_OP_CONCAT_BWD, &joined), visit(&d, context);
    for (size_t k = 0; k < COUNT(update_kinds); k++) d = update_desc(update_kinds[k], 1000000, 0), visit(&d, context);
    d = (tide_op_desc){.kind = TIDE_OP_GRAD_NORM, .n_grads = 2, .grad_elements = grads, .clip_norm = 1};
    visit(&d, context);
    const tide_op_desc from = conv_desc(TIDE_OP_CONV_FWD, &conv, 0), to = conv_desc(TIDE_OP_CONV_BWD_DATA, &conv, 0);
    d = (tide_op_desc){.kind = TIDE_OP_REORDER, .from = &from, .to = &to, .from_operand = 1, .to_operand = 0};
    visit(&d, context);
}

/* The products of this file, by CLBlast. */
static void test_products(void **state) {
    check_all_on(*state, visit_windows, check_reference);
    check_all_on(*state, visit_windows, check_repeat);
}

static void test_bf16(void **state) { check_all_bf16(*state, visit_all); }

static int run_checks(const kernel_modes *modes) {
    static rig_config one = {.device = "cpu", .threads = 1};
    static rig_config two = {.device = "cpu", .threads = MAX_THREADS};
    static rig_config opencl = {.device = "opencl"}, clblast = {.device = "opencl", .products = "clblast"};
    static rig_config lanes = {.device = "opencl", .lanes = "8"}; /* the kernels of GPUs */
    static rig_config cuda = {.device = "cuda"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_reference, &one),
        cmocka_unit_test_prestate(test_same_bits, &one),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test_prestate(test_reference, &two),
        cmocka_unit_test_prestate(test_same_bits, &two),
        cmocka_unit_test(test_same_bits_on_any_threads),
#endif
        cmocka_unit_test_prestate(test_in_place, &two),
        cmocka_unit_test_prestate(test_layouts_agree, &one),
        cmocka_unit_test_prestate(test_layouts_agree, &two),
        cmocka_unit_test_prestate(test_variants, &two),
        cmocka_unit_test_prestate(test_bf16, &two),
        cmocka_unit_test_prestate(test_maxpool_ties, &one),
        cmocka_unit_test_prestate(test_nan_comes_through, &one),
        cmocka_unit_test_prestate(test_signs, &two),
        cmocka_unit_test_prestate(test_dropout_replays, &two),
        cmocka_unit_test_prestate(test_refused_descriptors, &one),
        cmocka_unit_test_prestate(test_refused_enqueues, &one),
        cmocka_unit_test_prestate(test_wrong_label, &one),
    };
    const struct CMUnitTest opencl_tests[] = {
        cmocka_unit_test_prestate(test_reference, &opencl),
        cmocka_unit_test_prestate(test_same_bits, &opencl),
        cmocka_unit_test_prestate(test_in_place, &opencl),
        cmocka_unit_test_prestate(test_layouts_agree, &opencl),
        cmocka_unit_test_prestate(test_variants, &opencl),
        cmocka_unit_test_prestate(test_maxpool_ties, &opencl),
        cmocka_unit_test_prestate(test_nan_comes_through, &opencl),
        cmocka_unit_test_prestate(test_signs, &opencl),
        cmocka_unit_test_prestate(test_dropout_replays, &opencl),
        cmocka_unit_test_prestate(test_refused_descriptors, &opencl),
        cmocka_unit_test_prestate(test_refused_enqueues, &opencl),
        cmocka_unit_test_prestate(test_wrong_label, &opencl),
        cmocka_unit_test_prestate(test_reference, &lanes),
        cmocka_unit_test_prestate(test_same_bits, &lanes),
        cmocka_unit_test_prestate(test_in_place, &lanes),
        cmocka_unit_test_prestate(test_variants, &lanes),
        cmocka_unit_test_prestate(test_maxpool_ties, &lanes),
        cmocka_unit_test_prestate(test_nan_comes_through, &lanes),
        cmocka_unit_test_prestate(test_signs, &lanes),
        cmocka_unit_test_prestate(test_dropout_replays, &lanes),
        cmocka_unit_test_prestate(test_wrong_label, &lanes),
    };
    const struct CMUnitTest cuda_tests[] = {
        cmocka_unit_test_prestate(test_reference, &cuda),
        cmocka_unit_test_prestate(test_same_bits, &cuda),
        cmocka_unit_test_prestate(test_in_place, &cuda),
        cmocka_unit_test_prestate(test_layouts_agree, &cuda),
        cmocka_unit_test_prestate(test_variants, &cuda),
        cmocka_unit_test_prestate(test_maxpool_ties, &cuda),
        cmocka_unit_test_prestate(test_nan_comes_through, &cuda),
        cmocka_unit_test_prestate(test_signs, &cuda),
        cmocka_unit_test_prestate(test_dropout_replays, &cuda),
        cmocka_unit_test_prestate(test_refused_descriptors, &cuda),
        cmocka_unit_test_prestate(test_refused_enqueues, &cuda),
        cmocka_unit_test_prestate(test_wrong_label, &cuda),
    };
    const struct CMUnitTest clblast_tests[] = {cmocka_unit_test_prestate(test_products, &clblast)};
    int failed = 0;
    if (modes->cpu) failed += cmocka_run_group_tests(tests, NULL, NULL);
    if (modes->opencl) failed += cmocka_run_group_tests(opencl_tests, NULL, NULL);
    if (modes->cuda) failed += cmocka_run_group_tests(cuda_tests, NULL, NULL);
    if (modes->opencl && has_clblast()) failed += cmocka_run_group_tests(clblast_tests, NULL, NULL);
    return failed;
}

int main(int argc, char **argv) {
    return kernel_modes_run(argc, argv, run_checks, test_finite_differences, visit_all, visit_large);
}
