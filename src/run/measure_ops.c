/* Rates of kernels. Two mixes of ops stand for what training runs: the three kinds of convolutions of some ResNet
 * layers, and passes over large tensors. The fastest op of a mix gives the peak; what the mix as a whole reaches of it
 * is the efficiency. So the product, which the cost model uses, is what was measured. */
#include "base/size.h"
#include "run/measure.h"

#define OPERAND_ALIGN UINT64_C(4096)
enum { TINY_KERNELS = 1000 };

/* What a mix has summed up so far: flops or bytes. */
typedef struct mix {
    double amount, best_per_ns;
    uint64_t ns;
} mix;

/* Samples in the large tensors: 16, of 3 MiB each, three tensors to an op; fewer in a smaller arena. */
static int64_t batch(const tide__bench *b) {
    uint64_t n = b->options->arena_bytes / (UINT64_C(12) << 20);
    return n < 1 ? 1 : n > 16 ? 16 : (int64_t)n;
}

/* ---- one kernel ---- */

static void add_operand(tide__bench_item *it, uint64_t size_bytes) {
    it->offsets[it->n_offsets++] = it->end;
    it->end += (size_bytes + OPERAND_ALIGN - 1) & ~(OPERAND_ALIGN - 1);
}

tide_status tide__bench_open_item(const tide__bench *b, const tide_op_desc *desc, uint64_t offset,
                                  tide__bench_item *it) {
    tide_kernel_info info;
    *it = (tide__bench_item){.arena = b->arena, .end = offset};
    TIDE_TRY(tide_kernel_create(b->device, desc, &it->kernel));
    tide_status status = tide_kernel_get_info(it->kernel, &info);
    if (status != TIDE_OK) {
        tide_kernel_destroy(it->kernel);
        return status;
    }
    for (uint32_t i = 0; i < info.n_reads; i++) add_operand(it, info.read[i].size_bytes);
    for (uint32_t i = 0; i < info.n_writes; i++) add_operand(it, info.write[i].size_bytes);
    for (uint32_t i = 0; i < info.n_reads; i++) it->operand_bytes += info.read[i].size_bytes;
    for (uint32_t i = 0; i < info.n_writes; i++) it->operand_bytes += info.write[i].size_bytes;
    if (info.variant[0].workspace_bytes) add_operand(it, info.variant[0].workspace_bytes);
    return TIDE_OK;
}

tide_status tide__bench_enqueue_item(void *context, tide_queue *queue) {
    const tide__bench_item *it = context;
    return tide_kernel_enqueue(it->kernel, 0, queue, it->arena, it->offsets, it->n_offsets, NULL);
}

static tide_status enqueue_many(void *context, tide_queue *queue) {
    for (int i = 0; i < TINY_KERNELS; i++) TIDE_TRY(tide__bench_enqueue_item(context, queue));
    return TIDE_OK;
}

/* Times one op and adds it to its mix: `flops` of work, or its operands' bytes if 0. A device need not have every
 * kernel. */
static tide_status add_to_mix(const tide__bench *b, const tide_op_desc *desc, double flops, mix *m) {
    tide__bench_item it;
    tide__timing t;
    tide_status status = tide__bench_open_item(b, desc, 0, &it);
    if (status == TIDE_E_UNSUPPORTED) return TIDE_OK;
    if (status != TIDE_OK) return status;
    status = tide__bench_time(b, b->compute, tide__bench_enqueue_item, &it, &t);
    tide_kernel_destroy(it.kernel);
    if (status != TIDE_OK) return status;
    double amount = flops > 0 ? flops : (double)it.operand_bytes, rate = amount / (double)t.best_ns;
    m->amount += amount;
    m->ns += t.median_ns;
    if (rate > m->best_per_ns) m->best_per_ns = rate;
    return TIDE_OK;
}

static tide_status finish_mix(const mix *m, const char *what, double *peak_per_s, double *efficiency) {
    if (m->ns == 0) return tide__fail(TIDE_E_UNSUPPORTED, "the device has no %s to measure", what);
    *peak_per_s = tide__bench_round(m->best_per_ns * 1e9);
    *efficiency = tide__bench_round(1000 * m->amount / (double)m->ns / m->best_per_ns) / 1000;
    return TIDE_OK;
}

/* ---- the mixes ---- */

static tide_status measure_matrix(const tide__bench *b, tide_machine *m) {
    static const struct {
        int64_t inputs, outputs, pixels; /* channels, channels, height and width */
        int32_t window;
    } layers[] = {{64, 64, 56, 3}, {128, 128, 28, 3}, {256, 256, 14, 3}, {64, 256, 56, 1}, {256, 1024, 14, 1}};
    static const tide_op_kind kinds[] = {TIDE_OP_CONV_FWD, TIDE_OP_CONV_BWD_DATA, TIDE_OP_CONV_BWD_WEIGHTS};
    int64_t n = (batch(b) + 1) / 2;
    mix sum = {0};
    for (size_t i = 0; i < 5 * 3; i++) {
        int64_t pixels = layers[i / 3].pixels;
        int32_t window = layers[i / 3].window;
        tide_op_desc d = {.kind = kinds[i % 3],
                          .x = {n, layers[i / 3].inputs, pixels, pixels},
                          .y = {n, layers[i / 3].outputs, pixels, pixels},
                          .kernel_h = window,
                          .kernel_w = window,
                          .stride = 1,
                          .pad_h = window / 2,
                          .pad_w = window / 2,
                          .needs_dx = 1};
        double products = (double)(n * pixels * pixels * window * window) * (double)(d.x.c * d.y.c);
        TIDE_TRY(add_to_mix(b, &d, 2 * products, &sum));
    }
    return finish_mix(&sum, "convolutions", &m->flops_per_s, &m->matrix_efficiency);
}

static tide_status measure_vector(const tide__bench *b, tide_machine *m) {
    static const tide_op_kind kinds[] = {TIDE_OP_RELU_FWD, TIDE_OP_RELU_BWD, TIDE_OP_ADD,
                                         TIDE_OP_BN_FWD,   TIDE_OP_BN_BWD,   TIDE_OP_MAXPOOL_FWD};
    const tide_shape large = {batch(b), 64, 112, 112};
    mix sum = {0};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tide_op_desc d = {.kind = kinds[i], .x = large, .y = large, .eps = 1e-5f, .momentum = 0.1f};
        if (d.kind == TIDE_OP_MAXPOOL_FWD) {
            d.kernel_h = d.kernel_w = 3;
            d.stride = 2;
            d.pad_h = d.pad_w = 1;
            d.y.h = d.y.w = 56;
        }
        TIDE_TRY(add_to_mix(b, &d, 0, &sum));
    }
    return finish_mix(&sum, "passes over large tensors", &m->bytes_per_s, &m->vector_efficiency);
}

/* Tiny kernels in a row: what an op costs that does nothing. */
static tide_status measure_launch(const tide__bench *b, tide_machine *m) {
    const tide_shape tiny = {1, 16, 1, 1};
    const tide_op_desc d = {.kind = TIDE_OP_RELU_FWD, .x = tiny, .y = tiny};
    tide__bench_item it;
    tide__timing t;
    TIDE_TRY(tide__bench_open_item(b, &d, 0, &it));
    tide_status status = tide__bench_time(b, b->compute, enqueue_many, &it, &t);
    tide_kernel_destroy(it.kernel);
    if (status == TIDE_OK) m->launch_ns = (uint64_t)tide__bench_round((double)t.median_ns / TINY_KERNELS);
    return status;
}

tide_status tide__measure_ops(const tide__bench *b, tide_machine *m) {
    tide__bench_say(b, "convolutions");
    TIDE_TRY(measure_matrix(b, m));
    tide__bench_say(b, "passes over large tensors");
    TIDE_TRY(measure_vector(b, m));
    tide__bench_say(b, "launches");
    return measure_launch(b, m);
}
