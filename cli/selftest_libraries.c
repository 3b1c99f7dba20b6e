/* Libraries of the device (cuBLAS, cuDNN) against its own kernels: the same bits every time, and close to ours, or they are
 * not used. Where all of them pass, the device is told so, and uses them from then on. */
#include <string.h>

#include "selftest.h"

#define CLOSE 1e-4      /* of the largest number of an operand */
#define CLOSE_TF32 5e-3 /* ten bits behind the point instead of 23 */
enum { RUNS = 3 };

static const tide_op_desc ops[] = {
    {.kind = TIDE_OP_FC_FWD, .x = {33, 150, 1, 1}, .y = {33, 70, 1, 1}, .bias = 1},
    {.kind = TIDE_OP_FC_FWD, .x = {128, 256, 1, 1}, .y = {128, 192, 1, 1}},
    {.kind = TIDE_OP_FC_BWD_DATA, .x = {33, 150, 1, 1}, .y = {33, 70, 1, 1}},
    {.kind = TIDE_OP_FC_BWD_WEIGHTS, .x = {33, 150, 1, 1}, .y = {33, 70, 1, 1}, .bias = 1},
#define CONVOLUTION(op, side, small, window, step, pad, has_bias)                                           \
    {                                                                                                       \
        .kind = TIDE_OP_CONV_##op, .x = {2, 8, side, side}, .y = {2, 12, small, small}, .kernel_h = window, \
        .kernel_w = window, .stride = step, .pad_h = pad, .pad_w = pad, .bias = has_bias                    \
    }
    CONVOLUTION(FWD, 13, 13, 3, 1, 1, 1),
    CONVOLUTION(FWD, 14, 7, 3, 2, 1, 0),
    CONVOLUTION(FWD, 12, 12, 1, 1, 0, 0),
    CONVOLUTION(BWD_DATA, 13, 13, 3, 1, 1, 0),
    CONVOLUTION(BWD_DATA, 14, 7, 3, 2, 1, 0),
    CONVOLUTION(BWD_WEIGHTS, 13, 13, 3, 1, 1, 1),
    CONVOLUTION(BWD_WEIGHTS, 14, 7, 5, 2, 2, 0),
};

typedef struct variants {
    uint32_t n, own;
    const char *library[4];
    uint64_t cost_ns[4]; /* as the device measured them; 0: it did not */
} variants;

static tide_status list_variants(tide_device *device, const tide_op_desc *d, variants *out) {
    tide_kernel *kernel = NULL;
    tide_kernel_info info;
    tide_status status = tide_kernel_create(device, d, &kernel);
    if (status == TIDE_OK) status = tide_kernel_get_info(kernel, &info);
    if (status == TIDE_OK) {
        *out = (variants){.n = info.n_variants};
        for (uint32_t i = 0; i < out->n; i++) {
            out->library[i] = tide_kernel_variant_library(kernel, i);
            out->cost_ns[i] = info.variant[i].cost_ns;
            if (!out->library[i] && out->library[out->own]) out->own = i;
        }
    }
    tide_kernel_destroy(kernel);
    return status;
}

/* One library's way, `own` being ours. */
static void compare(selftest *s, tide_device *device, const tide_op_desc *d, const variants *v, uint32_t variant) {
    selftest_operands own = {0}, runs[RUNS] = {{0}};
    bool again = true, same = false;
    double apart = 0;
    char what[128];
    tide_status status = selftest_run_op(device, d, v->own, &own);
    for (int i = 0; i < RUNS && status == TIDE_OK; i++) {
        status = selftest_run_op(device, d, variant, &runs[i]);
        if (status != TIDE_OK) break;
        (void)selftest_distance(&runs[i], &runs[0], &same);
        again = again && same;
    }
    if (status == TIDE_OK) apart = selftest_distance(&runs[0], &own, &same);
    snprintf(what, sizeof what, "%-18s %-12s within %.1e of ours%s", tide_op_kind_name(d->kind), v->library[variant],
             apart, again ? "" : ", other bits when run again");
    selftest_check(s, what, status, again && apart <= (strstr(v->library[variant], "TF32") ? CLOSE_TF32 : CLOSE));
    selftest_free_operands(&own);
    for (int i = 0; i < RUNS; i++) selftest_free_operands(&runs[i]);
}

static uint32_t compare_all(selftest *s, tide_device *device) {
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        variants v = {0};
        tide_status status = list_variants(device, &ops[i], &v);
        if (status != TIDE_OK) selftest_check(s, tide_op_kind_name(ops[i].kind), status, false);
        for (uint32_t k = 0; k < v.n; k++)
            if (v.library[k]) compare(s, device, &ops[i], &v, k), n++;
    }
    return n;
}

/* ---- speed, as the device has measured it ---- */

static void print_speed(selftest *s, tide_device *device, const tide_op_desc *d, const char *what, double flops) {
    variants v = {0};
    if (list_variants(device, d, &v) != TIDE_OK || !v.cost_ns[v.own]) return;
    for (uint32_t i = 0; i < v.n; i++)
        if (v.library[i] && v.cost_ns[i])
            selftest_say(s, "%s: ours %.1f GFLOP/s, %.0f %% of the %.1f of %s", what, flops / (double)v.cost_ns[v.own],
                         100 * (double)v.cost_ns[i] / (double)v.cost_ns[v.own], flops / (double)v.cost_ns[i],
                         v.library[i]);
}

/* Small where the device is slow: a stand-in for a GPU is. */
static void print_speeds(selftest *s, tide_device *device) {
    const int64_t size = s->info.flops_per_s > 1e12 ? 2048 : 128, images = size / 64;
    const tide_op_desc product = {.kind = TIDE_OP_FC_FWD, .x = {size, size, 1, 1}, .y = {size, size, 1, 1}};
    const tide_op_desc convolution = {.kind = TIDE_OP_CONV_FWD,
                                      .x = {images, 64, 28, 28},
                                      .y = {images, 64, 28, 28},
                                      .kernel_h = 3,
                                      .kernel_w = 3,
                                      .stride = 1,
                                      .pad_h = 1,
                                      .pad_w = 1};
    print_speed(s, device, &product, "product", 2.0 * (double)(size * size * size));
    print_speed(s, device, &convolution, "convolution", 2.0 * (double)(images * 28 * 28 * 64) * 64 * 9);
}

void selftest_libraries(selftest *s) {
    tide_device_options options;
    tide_device *device = NULL;
    const uint32_t failed = s->failed;
    selftest_head(s, "libraries against our kernels, each run three times");
    tide_device_options_init(&options);
    options.libraries = TIDE_LIBRARIES_ALL;
    tide_status status = tide_device_open(s->info.name, &options, &device);
    if (status != TIDE_OK) {
        selftest_check(s, "the device, with libraries", status, false);
        return;
    }
    if (compare_all(s, device) == 0)
        selftest_say(s, "none here");
    else if (s->failed == failed) {
        print_speeds(s, device);
        selftest_check(s, "they are used from now on", tide_device_trust(device), true);
    } else {
        selftest_say(s, "they are not used");
    }
    tide_device_close(device);
}
