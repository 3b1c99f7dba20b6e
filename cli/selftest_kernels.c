/* Kernels against the CPU device, op by op: the same numbers go in, and what comes out is the same bits or close. And twice
 * on the device itself, which must be the same bits. */
#include "selftest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES (UINT64_C(32) << 20)
#define CLOSE 1e-4 /* of the largest number of an operand */

/* Classes of labels, tokens of a vocabulary: both are small whole numbers. */
enum { CLASSES = 10, N_OPERANDS = 16 };

static const tide_op_desc ops[] = {
    {.kind = TIDE_OP_CONV_FWD,
     .x = {2, 8, 13, 11},
     .y = {2, 12, 13, 11},
     .kernel_h = 3,
     .kernel_w = 3,
     .stride = 1,
     .pad_h = 1,
     .pad_w = 1,
     .bias = 1},
    {.kind = TIDE_OP_CONV_BWD_DATA,
     .x = {2, 8, 13, 11},
     .y = {2, 12, 7, 6},
     .kernel_h = 3,
     .kernel_w = 3,
     .stride = 2,
     .pad_h = 1,
     .pad_w = 1},
    {.kind = TIDE_OP_CONV_BWD_WEIGHTS,
     .x = {2, 8, 13, 11},
     .y = {2, 12, 13, 11},
     .kernel_h = 3,
     .kernel_w = 3,
     .stride = 1,
     .pad_h = 1,
     .pad_w = 1,
     .bias = 1},
    {.kind = TIDE_OP_UPCONV_FWD, .x = {2, 8, 5, 6}, .y = {2, 6, 10, 12}, .kernel_h = 2, .kernel_w = 2, .stride = 2},
    {.kind = TIDE_OP_FC_FWD, .x = {17, 70, 1, 1}, .y = {17, 33, 1, 1}, .bias = 1},
    {.kind = TIDE_OP_FC_BWD_DATA, .x = {17, 70, 1, 1}, .y = {17, 33, 1, 1}},
    {.kind = TIDE_OP_FC_BWD_WEIGHTS, .x = {17, 70, 1, 1}, .y = {17, 33, 1, 1}, .bias = 1},
    {.kind = TIDE_OP_BN_FWD, .x = {4, 6, 9, 7}, .y = {4, 6, 9, 7}, .eps = 1e-5f},
    {.kind = TIDE_OP_LAYERNORM_FWD, .x = {33, 70, 1, 1}, .y = {33, 70, 1, 1}, .eps = 1e-5f},
    {.kind = TIDE_OP_RELU_FWD, .x = {2, 5, 9, 7}, .y = {2, 5, 9, 7}},
    {.kind = TIDE_OP_RELU_BWD, .x = {2, 5, 9, 7}, .y = {2, 5, 9, 7}},
    {.kind = TIDE_OP_ADD, .x = {2, 5, 9, 7}, .y = {2, 5, 9, 7}},
    {.kind = TIDE_OP_GELU_FWD, .x = {33, 70, 1, 1}, .y = {33, 70, 1, 1}},
    {.kind = TIDE_OP_GELU_BWD, .x = {33, 70, 1, 1}, .y = {33, 70, 1, 1}},
    {.kind = TIDE_OP_MAXPOOL_FWD,
     .x = {2, 5, 9, 7},
     .y = {2, 5, 5, 4},
     .kernel_h = 3,
     .kernel_w = 3,
     .stride = 2,
     .pad_h = 1,
     .pad_w = 1},
    {.kind = TIDE_OP_AVGPOOL_FWD, .x = {2, 5, 8, 6}, .y = {2, 5, 4, 3}, .kernel_h = 2, .kernel_w = 2, .stride = 2},
    {.kind = TIDE_OP_AVGPOOL_BWD, .x = {2, 5, 8, 6}, .y = {2, 5, 4, 3}, .kernel_h = 2, .kernel_w = 2, .stride = 2},
    {.kind = TIDE_OP_LRN_FWD,
     .x = {2, 9, 5, 7},
     .y = {2, 9, 5, 7},
     .lrn_size = 5,
     .lrn_alpha = 1e-2f,
     .lrn_beta = 0.75f,
     .lrn_k = 2},
    {.kind = TIDE_OP_DROPOUT_FWD, .x = {2, 5, 9, 7}, .y = {2, 5, 9, 7}, .drop_rate = 0.3f},
    {.kind = TIDE_OP_SOFTMAX_LOSS_FWD, .x = {17, CLASSES, 1, 1}, .y = {17, CLASSES, 1, 1}},
    {.kind = TIDE_OP_EMBEDDING_FWD, .x = {3, 7, 1, 1}, .y = {21, 24, 1, 1}, .vocabulary = CLASSES},
    {.kind = TIDE_OP_SCORES_FWD, .x = {14, 48, 1, 1}, .y = {2, 4, 7, 7}},
    {.kind = TIDE_OP_CAUSAL_SOFTMAX_FWD, .x = {2, 4, 7, 7}, .y = {2, 4, 7, 7}},
    {.kind = TIDE_OP_LSTM_FWD, .x = {9, 20, 1, 1}, .y = {9, 16, 1, 1}, .has_prev = 1},
    {.kind = TIDE_OP_SGD, .elements = 5000, .weight_decay = 1e-4f},
    {.kind = TIDE_OP_MOMENTUM, .elements = 5000, .weight_decay = 1e-4f, .beta1 = 0.9f},
    {.kind = TIDE_OP_ADAM, .elements = 5000, .beta1 = 0.9f, .beta2 = 0.999f},
};

/* An op's operands on one device. */
typedef struct run {
    uint32_t n_reads, n;
    uint64_t elements[N_OPERANDS];
    float *plain[N_OPERANDS];
} run;

static void free_run(run *r) {
    for (uint32_t i = 0; i < r->n; i++) free(r->plain[i]);
}

static tide_status count_elements(const tide_kernel *kernel, uint32_t operand, uint64_t *out) {
    tide_piece whole;
    tide_status status = tide_operand_piece(kernel, operand, 0, UINT64_MAX, &whole);
    if (status == TIDE_OK) *out = whole.dims[0] * whole.dims[1] * whole.dims[2] * whole.dims[3];
    return status;
}

/* Between -1 and 1, or whole numbers where they are labels or tokens, or between 0 and 1 for what Adam keeps. */
static float number(tide_op_kind kind, uint32_t operand, uint64_t i) {
    const uint64_t mixed = (i * 2654435761u + operand * UINT64_C(97531)) >> 7;
    const float unit = (float)(mixed % 20011) / 20011;
    if ((kind == TIDE_OP_SOFTMAX_LOSS_FWD && operand == 1) || (kind == TIDE_OP_EMBEDDING_FWD && operand == 0))
        return (float)(mixed % CLASSES);
    return kind == TIDE_OP_ADAM && operand == 2 ? unit : 2 * unit - 1;
}

static tide_status make_operands(const tide_op_desc *d, const tide_kernel *kernel, const tide_kernel_info *info,
                                 run *r) {
    r->n_reads = info->n_reads;
    for (uint32_t i = 0; i < info->n_reads + info->n_writes && i < N_OPERANDS; i++) {
        tide_status status = count_elements(kernel, i, &r->elements[i]);
        if (status != TIDE_OK) return status;
        r->plain[i] = calloc(r->elements[i], sizeof(float));
        if (!r->plain[i]) return TIDE_E_MEMORY;
        r->n = i + 1;
        for (uint64_t k = 0; i < info->n_reads && k < r->elements[i]; k++) r->plain[i][k] = number(d->kind, i, k);
    }
    return TIDE_OK;
}

/* The kernel between the stored bytes of its reads and of its writes. */
static tide_status compute(tide_device *device, tide_kernel *kernel, unsigned char *bytes, const uint64_t *offsets,
                           uint32_t n_offsets, uint64_t end) {
    const tide_step_args args = {.seed = 5, .step = 2, .counter = 3, .learning_rate = 0.05f};
    tide_arena *arena = NULL;
    tide_queue *queue = NULL;
    tide_status status = tide_arena_create(device, end, &arena);
    if (status == TIDE_OK) status = tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue);
    if (status == TIDE_OK) status = tide_copy_in(queue, arena, 0, end, selftest_from(bytes));
    if (status == TIDE_OK) status = tide_kernel_enqueue(kernel, 0, queue, arena, offsets, n_offsets, &args);
    if (status == TIDE_OK) status = tide_copy_out(queue, arena, 0, end, selftest_to(bytes));
    if (status == TIDE_OK) status = tide_queue_sync(queue);
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    return status;
}

static uint64_t size_of(const tide_kernel_info *info, uint32_t i) {
    return i < info->n_reads ? info->read[i].size_bytes : info->write[i - info->n_reads].size_bytes;
}

static tide_status run_kernel(tide_device *device, const tide_kernel_info *info, tide_kernel *kernel, run *r) {
    uint64_t offsets[N_OPERANDS + 1], end = 0;
    uint32_t n = 0;
    unsigned char *bytes = calloc(1, ARENA_BYTES);
    tide_status status = bytes ? TIDE_OK : TIDE_E_MEMORY;
    for (; n < r->n && status == TIDE_OK; n++, end = (end + 4095) & ~UINT64_C(4095)) {
        offsets[n] = end;
        end += size_of(info, n);
        if (end > ARENA_BYTES) status = TIDE_E_INTERNAL;
        if (status == TIDE_OK && n < r->n_reads) status = tide_operand_pack(kernel, n, r->plain[n], bytes + offsets[n]);
    }
    if (info->variant[0].workspace_bytes) offsets[n++] = end, end += info->variant[0].workspace_bytes;
    if (end > ARENA_BYTES) status = TIDE_E_INTERNAL;
    if (status == TIDE_OK) status = compute(device, kernel, bytes, offsets, n, end);
    for (uint32_t i = r->n_reads; i < r->n && status == TIDE_OK; i++)
        status = tide_operand_unpack(kernel, i, bytes + offsets[i], r->plain[i]);
    free(bytes);
    return status;
}

static tide_status run_op(tide_device *device, const tide_op_desc *d, run *r) {
    tide_kernel *kernel = NULL;
    tide_kernel_info info;
    tide_status status = tide_kernel_create(device, d, &kernel);
    if (status == TIDE_OK) status = tide_kernel_get_info(kernel, &info);
    if (status == TIDE_OK) status = make_operands(d, kernel, &info, r);
    if (status == TIDE_OK) status = run_kernel(device, &info, kernel, r);
    tide_kernel_destroy(kernel);
    return status;
}

/* ---- comparing ---- */

/* The largest difference as a share of the largest number of its operand; infinite where the two are not alike. */
static double distance(const run *a, const run *b, bool *same) {
    double worst = 0;
    *same = a->n == b->n;
    if (!*same) return INFINITY;
    for (uint32_t i = a->n_reads; i < a->n; i++) {
        double largest = 0, apart = 0;
        if (a->elements[i] != b->elements[i]) return INFINITY;
        for (uint64_t k = 0; k < a->elements[i]; k++) {
            largest = fmax(largest, fabs((double)b->plain[i][k]));
            const double difference = fabs((double)a->plain[i][k] - (double)b->plain[i][k]);
            apart = difference <= apart ? apart : difference; /* also NaN */
        }
        *same = *same && memcmp(a->plain[i], b->plain[i], a->elements[i] * sizeof(float)) == 0;
        const double share = apart == 0 ? 0 : largest == 0 ? INFINITY : apart / largest;
        worst = share <= worst ? worst : share;
    }
    return worst;
}

static void compare_op(selftest *s, tide_device *cpu, const tide_op_desc *d) {
    run first = {0}, second = {0}, reference = {0};
    bool again = false, same = false;
    char what[128];
    double apart = 0;
    tide_status status = run_op(s->device, d, &first);
    if (status == TIDE_OK) status = run_op(s->device, d, &second);
    if (status == TIDE_OK) status = run_op(cpu, d, &reference);
    if (status == TIDE_OK) {
        (void)distance(&first, &second, &again);
        apart = distance(&first, &reference, &same);
    }
    if (same)
        snprintf(what, sizeof what, "%-18s the CPU's bits", tide_op_kind_name(d->kind));
    else
        snprintf(what, sizeof what, "%-18s within %.1e of the CPU's%s", tide_op_kind_name(d->kind), apart,
                 again ? "" : ", other bits when run again");
    selftest_check(s, what, status, again && apart <= CLOSE);
    free_run(&first);
    free_run(&second);
    free_run(&reference);
}

void selftest_kernels(selftest *s) {
    tide_device *cpu = NULL;
    tide_device_options options;
    tide_device_options_init(&options);
    options.threads = 1;
    selftest_head(s, "kernels, each run twice");
    tide_status status = tide_device_open("cpu", &options, &cpu);
    if (status != TIDE_OK) {
        selftest_check(s, "the CPU device, to compare with", status, false);
        return;
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) compare_op(s, cpu, &ops[i]);
    tide_device_close(cpu);
}
