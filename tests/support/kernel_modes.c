/* See kernel_modes.h. */
#include "support/kernel_modes.h"

#include "support/cuda.h"
#include "support/kernel_pairs.h"
#include "support/opencl.h"
#include "support/test.h"

/* Ends the program where the arguments make no sense. */
static kernel_modes modes_of(int argc, char **argv) {
    kernel_modes m = {.cpu = true, .opencl = true, .cuda = true};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "test") == 0)
            m.test = true;
        else if (strcmp(argv[i], "grad") == 0)
            m.grad = true;
        else if (strcmp(argv[i], "perf") == 0)
            m.perf = true;
        else if (strcmp(argv[i], "bits") == 0)
            m.bits = true;
        else if (strcmp(argv[i], "cpu") == 0)
            m.opencl = m.cuda = false;
        else if (strcmp(argv[i], "opencl") == 0)
            m.cpu = m.cuda = false;
        else if (strcmp(argv[i], "cuda") == 0)
            m.cpu = m.opencl = false;
        else {
            fprintf(stderr, "usage: %s [test | grad | perf | bits] [cpu | opencl | cuda]\n", argv[0]);
            exit(2);
        }
    }
    if (!m.test && !m.grad && !m.perf && !m.bits) m.test = m.grad = true;
    if (m.opencl) m.opencl = has_opencl();
    if (m.cuda) m.cuda = has_cuda();
    return m;
}

/* ---- perf ---- */

enum { MAX_RIGS = 3 };

typedef struct rigs {
    kernel_rig rig[MAX_RIGS];
    int count;
} rigs;

/* Of products; 0: the op is a pass over its operands. */
static double flops_of(const tide_op_desc *d) {
    const double x = (double)(d->x.n * d->x.c * d->x.h * d->x.w), y = (double)(d->y.n * d->y.c * d->y.h * d->y.w);
    const double window = (double)d->kernel_h * (double)d->kernel_w;
    switch (d->kind) {
    case TIDE_OP_CONV_FWD:
    case TIDE_OP_CONV_BWD_DATA:
    case TIDE_OP_CONV_BWD_WEIGHTS: return 2 * y * (double)d->x.c * window;
    case TIDE_OP_UPCONV_FWD:
    case TIDE_OP_UPCONV_BWD_DATA:
    case TIDE_OP_UPCONV_BWD_WEIGHTS: return 2 * x * (double)d->y.c * window;
    case TIDE_OP_FC_FWD:
    case TIDE_OP_FC_BWD_DATA:
    case TIDE_OP_FC_BWD_WEIGHTS: return 2 * x * (double)d->y.c;
    case TIDE_OP_LSTM_FWD:
    case TIDE_OP_LSTM_BWD_WEIGHTS:
    case TIDE_OP_LSTM_BWD_DATA: return 8 * (double)d->x.n * (double)d->y.c * (double)(d->x.c + d->y.c);
    default: return 0;
    }
}

static void print_rate(const tide_op_desc *d, void *context) {
    rigs *all = context;
    const double flops = flops_of(d);
    char shape[64];
    rig_case c;
    rig_case_init(&c, d, 1);
    if (d->n_grads)
        snprintf(shape, sizeof shape, "%u x %llu", d->n_grads, (unsigned long long)d->grad_elements[0]);
    else if (d->elements)
        snprintf(shape, sizeof shape, "%llu", (unsigned long long)d->elements);
    else
        snprintf(shape, sizeof shape, "%lld x %lld x %lld x %lld", (long long)d->x.n, (long long)d->x.c,
                 (long long)d->x.h, (long long)d->x.w);
    printf("%-20s %-20s", tide_op_kind_name(d->kind), shape);
    for (int i = 0; i < all->count; i++) {
        uint64_t bytes;
        const double took = rig_time(&all->rig[i], &c, 0, &bytes);
        if (flops > 0)
            printf("  %9.3f ms %7.1f GF/s", took * 1e3, flops / took * 1e-9);
        else
            printf("  %9.3f ms %7.1f GB/s", took * 1e3, (double)bytes / took * 1e-9);
    }
    printf("\n");
    fflush(stdout);
    rig_case_deinit(&c);
}

/* A line per descriptor: its kind, its shape, and time and rate on each device. Speeds are per second of processor
 * time, of all threads together, where the device is the processor. */
static void print_rates(const kernel_modes *modes, visit_all_fn visit_all) {
    const rig_config configs[MAX_RIGS] = {{.device = "cpu"}, {.device = "opencl"}, {.device = "cuda"}};
    const bool wanted[MAX_RIGS] = {modes->cpu, modes->opencl, modes->cuda};
    rigs all = {.count = 0};
    printf("%-20s %-20s", "op", "x");
    for (int i = 0; i < MAX_RIGS; i++) {
        if (!wanted[i]) continue;
        rig_open(&all.rig[all.count++], &configs[i]);
        printf("  %24s", configs[i].device);
    }
    printf("\n");
    visit_all(print_rate, &all);
    for (int i = 0; i < all.count; i++) rig_close(&all.rig[i]);
}

/* ---- all of it ---- */

static int run_gradients(const kernel_modes *modes, CMUnitTestFunction gradients) {
    static rig_config cpu = {.device = "cpu", .threads = 1}, opencl = {.device = "opencl"};
    static rig_config cuda = {.device = "cuda"};
    static rig_config lanes = {.device = "opencl", .lanes = "8"}; /* the kernels of GPUs */
    const struct CMUnitTest tests[] = {{"finite differences on cpu", gradients, NULL, NULL, &cpu}};
    const struct CMUnitTest opencl_tests[] = {{"finite differences on opencl", gradients, NULL, NULL, &opencl},
                                              {"finite differences with lanes", gradients, NULL, NULL, &lanes}};
    const struct CMUnitTest cuda_tests[] = {{"finite differences on cuda", gradients, NULL, NULL, &cuda}};
    int failed = 0;
    if (modes->cpu) failed += cmocka_run_group_tests(tests, NULL, NULL);
    if (modes->opencl) failed += cmocka_run_group_tests(opencl_tests, NULL, NULL);
    if (modes->cuda) failed += cmocka_run_group_tests(cuda_tests, NULL, NULL);
    return failed;
}

int kernel_modes_run(int argc, char **argv, int (*checks)(const kernel_modes *modes), void (*gradients)(void **state),
                     visit_all_fn visit_all, visit_all_fn visit_large) {
    const kernel_modes modes = modes_of(argc, argv);
    int failed = 0;
    if (modes.test) failed += checks(&modes);
    if (modes.grad) failed += run_gradients(&modes, gradients);
    if (modes.bits) failed += modes.cuda && modes.opencl ? check_pairs(visit_all) : SKIPPED;
    if (modes.perf) print_rates(&modes, visit_large);
    return failed;
}
