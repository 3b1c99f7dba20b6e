/* SLICE and STACK: rows of one step out of those of all steps, and back. Step s of S has rows s, s + S, s + 2 S ... */
#include <string.h>

#include "device/cpu/view.h"

/* Between `part`, the rows of step `step`, and `all`. */
static void copy_rows(const tide_op_desc *d, int64_t step, int64_t n, const char *from, char *to) {
    const int64_t width = d->x.c * (d->bf16 ? 2 : 4); /* bytes */
    const bool slice = d->kind == TIDE_OP_SLICE;
    for (int64_t i = 0; i < n; i++) {
        int64_t all = (i * d->steps + step) * width, part = i * width;
        memcpy(to + (slice ? part : all), from + (slice ? all : part), (size_t)width);
    }
}

static tide_status run_slice(const tide__cpu_kernel *k, const tide__call *call) {
    copy_rows(&k->desc, k->desc.step, k->desc.y.n, tide__at(call, 0), tide__at(call, 1));
    return TIDE_OK;
}

static tide_status run_stack(const tide__cpu_kernel *k, const tide__call *call) {
    const tide_op_desc *d = &k->desc;
    char *y = tide__at(call, k->n_reads);
#pragma omp parallel for schedule(static) if (d->y.n * d->y.c > TIDE__PARALLEL_FLOATS)
    for (int32_t step = 0; step < d->steps; step++) copy_rows(d, step, d->x.n, tide__at(call, (uint32_t)step), y);
    return TIDE_OK;
}

tide_status tide__build_steps(tide__cpu_kernel *k, const tide_op_desc *source) {
    const bool slice = source->kind == TIDE_OP_SLICE;
    k->run = slice ? run_slice : run_stack;
    for (int32_t i = 0; i < (slice ? 1 : source->steps); i++) TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
    return tide__add_activation(k, TIDE__WRITE, source->y);
}
