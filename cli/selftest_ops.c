/* Ops on a device, between numbers of the host: what comparisons of the self-test stand on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "selftest.h"

#define ARENA_BYTES (UINT64_C(32) << 20)
#define N_OPERANDS SELFTEST_OPERANDS

void selftest_free_operands(selftest_operands *r) {
    for (uint32_t i = 0; i < r->n; i++) free(r->plain[i]);
}

static tide_status count_elements(const tide_kernel *kernel, uint32_t operand, uint64_t *out) {
    tide_piece whole;
    tide_status status = tide_operand_piece(kernel, operand, 0, UINT64_MAX, &whole);
    if (status == TIDE_OK) *out = whole.dims[0] * whole.dims[1] * whole.dims[2] * whole.dims[3];
    return status;
}

/* Between -1 and 1, or whole numbers where they are labels, tokens or bytes of signs, or between 0 and 1 for what Adam keeps. */
static float number(const tide_op_desc *d, uint32_t operand, uint64_t i) {
    const tide_op_kind kind = d->kind;
    const uint64_t mixed = (i * 2654435761u + operand * UINT64_C(97531)) >> 7;
    const float unit = (float)(mixed % 20011) / 20011;
    if ((kind == TIDE_OP_SOFTMAX_LOSS_FWD && operand == 1) || (kind == TIDE_OP_EMBEDDING_FWD && operand == 0))
        return (float)(mixed % SELFTEST_CLASSES);
    if (kind == TIDE_OP_RELU_BWD && d->signs && operand == 0) return (float)(mixed % 256);
    return kind == TIDE_OP_ADAM && operand == 2 ? unit : 2 * unit - 1;
}

static tide_status make_operands(const tide_op_desc *d, const tide_kernel *kernel, const tide_kernel_info *info,
                                 selftest_operands *r) {
    r->n_reads = info->n_reads;
    for (uint32_t i = 0; i < info->n_reads + info->n_writes && i < N_OPERANDS; i++) {
        tide_status status = count_elements(kernel, i, &r->elements[i]);
        if (status != TIDE_OK) return status;
        r->plain[i] = calloc(r->elements[i], sizeof(float));
        if (!r->plain[i]) return TIDE_E_MEMORY;
        r->n = i + 1;
        for (uint64_t k = 0; i < info->n_reads && k < r->elements[i]; k++) r->plain[i][k] = number(d, i, k);
    }
    return TIDE_OK;
}

/* The kernel between the stored bytes of its reads and of its writes. */
static tide_status compute(tide_device *device, tide_kernel *kernel, uint32_t variant, unsigned char *bytes,
                           const uint64_t *offsets, uint32_t n_offsets, uint64_t end) {
    const tide_step_args args = {.seed = 5, .step = 2, .counter = 3, .learning_rate = 0.05f};
    tide_arena *arena = NULL;
    tide_queue *queue = NULL;
    tide_status status = tide_arena_create(device, end, &arena);
    if (status == TIDE_OK) status = tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue);
    if (status == TIDE_OK) status = tide_copy_in(queue, arena, 0, end, selftest_from(bytes));
    if (status == TIDE_OK) status = tide_kernel_enqueue(kernel, variant, queue, arena, offsets, n_offsets, &args);
    if (status == TIDE_OK) status = tide_copy_out(queue, arena, 0, end, selftest_to(bytes));
    if (status == TIDE_OK) status = tide_queue_sync(queue);
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    return status;
}

static uint64_t size_of(const tide_kernel_info *info, uint32_t i) {
    return i < info->n_reads ? info->read[i].size_bytes : info->write[i - info->n_reads].size_bytes;
}

static tide_status run_kernel(tide_device *device, const tide_kernel_info *info, tide_kernel *kernel, uint32_t variant,
                              selftest_operands *r) {
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
    if (info->variant[variant].workspace_bytes) offsets[n++] = end, end += info->variant[variant].workspace_bytes;
    if (end > ARENA_BYTES) status = TIDE_E_INTERNAL;
    if (status == TIDE_OK) status = compute(device, kernel, variant, bytes, offsets, n, end);
    for (uint32_t i = r->n_reads; i < r->n && status == TIDE_OK; i++)
        status = tide_operand_unpack(kernel, i, bytes + offsets[i], r->plain[i]);
    free(bytes);
    return status;
}

tide_status selftest_run_op(tide_device *device, const tide_op_desc *d, uint32_t variant, selftest_operands *r) {
    tide_kernel *kernel = NULL;
    tide_kernel_info info;
    tide_status status = tide_kernel_create(device, d, &kernel);
    if (status == TIDE_OK) status = tide_kernel_get_info(kernel, &info);
    if (status == TIDE_OK) status = make_operands(d, kernel, &info, r);
    if (status == TIDE_OK) status = run_kernel(device, &info, kernel, variant, r);
    tide_kernel_destroy(kernel);
    return status;
}

/* ---- comparing ---- */

double selftest_distance(const selftest_operands *a, const selftest_operands *b, bool *same) {
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
