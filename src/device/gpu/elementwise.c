/* Ops that treat every float alike: relu, gelu, add, accumulate, zero. */
#include "device/gpu/kernel.h"

typedef struct simple {
    tide_op_kind kind;
    uint32_t n_reads; /* one write */
    const char *name;
} simple;

static const simple ops[] = {
    {TIDE_OP_RELU_FWD, 1, "relu"},
    {TIDE_OP_RELU_BWD, 2, "relu_backward"},
    {TIDE_OP_ADD, 2, "sum"},
    {TIDE_OP_ACCUMULATE, 2, "sum"},
    {TIDE_OP_ZERO, 0, "zero"},
    {TIDE_OP_GELU_FWD, 1, "gelu"},
    {TIDE_OP_GELU_BWD, 2, "gelu_backward"},
};

static const simple *find(tide_op_kind kind) {
    const simple *op = ops;
    while (op->kind != kind) op++; /* kernel.c sends no other kinds */
    return op;
}

/* A group's run is of bytes with eight signs each. */
static tide_status build_with_signs(tide__gpu_kernel *k, const tide_op_desc *d) {
    const bool forward = d->kind == TIDE_OP_RELU_FWD;
    const uint64_t n = tide__shape_elements(&d->x), sign_bytes = (n + 7) / 8;
    if (!forward) TIDE_TRY(tide__gpu_reads(k, TIDE__U8, sign_bytes));
    TIDE_TRY(tide__gpu_reads(k, TIDE__F32, n));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, n));
    if (forward) TIDE_TRY(tide__gpu_writes(k, TIDE__U8, sign_bytes));
    return TIDE__LAUNCH(k, "elementwise", forward ? "relu_signs" : "relu_backward_signs", tide__runs(sign_bytes), 1, 1,
                        tide__place(0), tide__place(1), tide__place(2), tide__long(n));
}

tide_status tide__gpu_build_elementwise(tide__gpu_kernel *k, const tide_op_desc *d) {
    if (d->signs && (d->kind == TIDE_OP_RELU_FWD || d->kind == TIDE_OP_RELU_BWD)) return build_with_signs(k, d);
    const simple *op = find(d->kind);
    const bool stored = d->kind == TIDE_OP_ACCUMULATE || d->kind == TIDE_OP_ZERO;
    const uint64_t n = stored ? d->elements : tide__shape_elements(&d->x);
    tide__gpu_arg args[4];
    for (uint32_t i = 0; i < op->n_reads; i++) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, n));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, n));
    for (uint32_t i = 0; i <= op->n_reads; i++) args[i] = tide__place(i);
    args[op->n_reads + 1] = tide__long(n);
    return tide__gpu_launch_add(k, "elementwise", op->name, (const size_t[3]){tide__runs(n), 1, 1}, args,
                                op->n_reads + 2);
}
