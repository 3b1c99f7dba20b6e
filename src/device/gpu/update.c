/* Optimizers and the norm they clip by (kernels/update.gpu). */
#include "device/gpu/kernel.h"

#define DEFAULT_ADAM_EPS 1e-8f
#define WIDE_BYTES 8 /* of a partial sum: what `wide` is at most */

typedef struct args {
    tide__gpu_arg arg[24];
    size_t n;
} args;

static void add(args *a, tide__gpu_arg arg) { a->arg[a->n++] = arg; }

static uint64_t updated(const tide_op_desc *d) { return d->part_elements ? d->part_elements : d->elements; }

/* Reads are w, the state, dw and, with clipping, the scale; writes are w and the state again. */
static args places(const tide_op_desc *d, uint32_t states) {
    const uint32_t n_reads = states + 2 + (d->clipped ? 1 : 0);
    const int64_t skip = (int64_t)d->part_first * 4;
    args a = {.n = 0};
    for (uint32_t i = 0; i < states + 2; i++) add(&a, tide__place_at(i, i == 0 || i == states + 1 ? skip : 0));
    add(&a, tide__place(d->clipped ? states + 2 : 0));
    for (uint32_t i = 0; i < states + 1; i++) add(&a, tide__place_at(n_reads + i, i == 0 ? skip : 0));
    add(&a, tide__long(updated(d)));
    add(&a, tide__int(d->clipped ? 1 : 0));
    add(&a, tide__of_step(TIDE__ARG_RATE));
    return a;
}

static void add_adam(args *a, const tide_op_desc *d) {
    const bool apart = d->kind == TIDE_OP_ADAMW; /* its decay is not part of the gradient */
    add(a, tide__float(apart ? 0 : d->weight_decay));
    add(a, apart ? tide__of_step(TIDE__ARG_KEEP) : tide__float(1));
    add(a, tide__float(d->beta1));
    add(a, tide__float(d->beta2));
    add(a, tide__float(d->eps > 0 ? d->eps : DEFAULT_ADAM_EPS));
    add(a, tide__of_step(TIDE__ARG_M_SHARE));
    add(a, tide__of_step(TIDE__ARG_V_SHARE));
}

tide_status tide__gpu_build_update(tide__gpu_kernel *k, const tide_op_desc *d) {
    const uint32_t states = d->kind == TIDE_OP_SGD ? 0 : d->kind == TIDE_OP_MOMENTUM ? 1 : 2;
    static const char *const names[] = {"sgd", "momentum", "adam"};
    args a = places(d, states);
    for (uint32_t i = 0; i < states + 2; i++)
        TIDE_TRY(tide__gpu_reads(k, TIDE__F32, i == 0 || i == states + 1 ? d->elements : updated(d)));
    if (d->clipped) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, 1));
    for (uint32_t i = 0; i < states + 1; i++)
        TIDE_TRY(tide__gpu_writes(k, TIDE__F32, i == 0 ? d->elements : updated(d)));
    if (states == 2) {
        add_adam(&a, d);
    } else {
        add(&a, tide__float(d->weight_decay));
        if (states == 1) add(&a, tide__float(d->beta1));
    }
    return tide__gpu_launch_add(k, "update", names[states], (const size_t[3]){tide__runs(updated(d)), 1, 1}, a.arg,
                                a.n);
}

tide_status tide__gpu_build_grad_norm(tide__gpu_kernel *k, const tide_op_desc *d) {
    const uint32_t sum = d->n_grads, result = d->n_grads + (d->has_prev ? 1 : 0), workspace = result + 1;
    uint64_t runs = 0;
    for (uint32_t i = 0; i < d->n_grads; i++) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, d->grad_elements[i]));
    if (d->has_prev) TIDE_TRY(tide__gpu_reads(k, TIDE__F32, WIDE_BYTES / sizeof(float)));
    TIDE_TRY(tide__gpu_writes(k, TIDE__F32, d->has_next ? WIDE_BYTES / sizeof(float) : 1));
    for (uint32_t i = 0; i < d->n_grads; i++) {
        const size_t own = tide__runs(d->grad_elements[i]);
        TIDE_TRY(TIDE__LAUNCH(k, "update", "squares", own, 1, 1, tide__place(i),
                              tide__place_at(workspace, (int64_t)runs * WIDE_BYTES), tide__long(d->grad_elements[i])));
        runs += own;
    }
    tide__gpu_set_workspace(k, runs * WIDE_BYTES);
    return TIDE__LAUNCH(k, "update", "clip_factor", 1, 1, 1, tide__place(workspace), tide__place(d->has_prev ? sum : 0),
                        tide__place(result), tide__long(runs), tide__float(d->clip_norm), tide__int(d->has_prev),
                        tide__int(d->has_next));
}
