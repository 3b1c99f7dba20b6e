/* GRAD_NORM: the factor by which clipping scales all gradients, min(1, clip_norm / (norm + 1e-6)); NaN where the norm is not
 * finite.
 *
 * Squares are summed in double over blocks of fixed size, one partial sum each in the workspace, then in order. Where the
 * gradients come in groups, the sum goes from group to group: the same bits as of all at once, also where a gradient is cut between two blocks. */
#include <math.h>
#include <string.h>

#include "device/cpu/view.h"

#define BLOCK_FLOATS 16384
#define SUM_FLOATS 2 /* a double */

static int64_t block_count(const tide__operand *o) { return (o->shape.n + BLOCK_FLOATS - 1) / BLOCK_FLOATS; }

static double sum_of_squares(const float *x, int64_t n) {
    double lane[8] = {0}, sum = 0;
    int64_t whole = n & ~INT64_C(7);
    for (int64_t i = 0; i < whole; i += 8)
        for (int l = 0; l < 8; l++) lane[l] += (double)x[i + l] * (double)x[i + l];
    for (int l = 0; l < 8; l++) sum += lane[l];
    for (int64_t i = whole; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

static double add_norm(const tide__operand *o, const float *x, double *partial, double sum) {
    int64_t n = o->shape.n, blocks = block_count(o);
#pragma omp parallel for schedule(static) if (n > TIDE__PARALLEL_FLOATS)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t at = b * BLOCK_FLOATS;
        partial[b] = sum_of_squares(x + at, n - at < BLOCK_FLOATS ? n - at : BLOCK_FLOATS);
    }
    for (int64_t b = 0; b < blocks; b++) sum += partial[b];
    return sum;
}

static tide_status run_grad_norm(const tide__cpu_kernel *k, const tide__call *call) {
    const uint32_t n = k->n_reads - (k->desc.has_prev ? 1 : 0);
    double sum = 0, *partial = tide__at(call, k->n_reads + 1);
    if (k->desc.has_prev) memcpy(&sum, tide__at(call, n), sizeof sum);
    for (uint32_t i = 0; i < n; i++) sum = add_norm(&k->operands.data[i], tide__floats(call, i), partial, sum);
    if (k->desc.has_next) {
        memcpy(tide__at(call, k->n_reads), &sum, sizeof sum);
        return TIDE_OK;
    }
    double factor = (double)k->desc.clip_norm / (sqrt(sum) + 1e-6);
    *tide__floats(call, k->n_reads) = !isfinite(sum) ? NAN : factor < 1 ? (float)factor : 1;
    return TIDE_OK;
}

tide_status tide__build_grad_norm(tide__cpu_kernel *k, const tide_op_desc *source) {
    int64_t most_blocks = 0;
    for (uint32_t i = 0; i < source->n_grads; i++) {
        TIDE_TRY(tide__add_floats(k, TIDE__READ, source->grad_elements[i]));
        int64_t blocks = block_count(&k->operands.data[i]);
        if (blocks > most_blocks) most_blocks = blocks;
    }
    k->run = run_grad_norm;
    k->workspace_bytes = (uint64_t)most_blocks * sizeof(double);
    if (source->has_prev) TIDE_TRY(tide__add_floats(k, TIDE__READ, SUM_FLOATS));
    if (source->has_next) return tide__add_floats(k, TIDE__WRITE, SUM_FLOATS);
    return tide__add_vector(k, TIDE__WRITE, 1, dnnl_f32);
}
