/* Local response normalisation across channels, as AlexNet has it:
 *
 *     s_c = k + alpha / size * sum of x^2 over the `size` channels around c;   y_c = x_c * s_c^-beta
 *
 * Own loops, because oneDNN's backward wants a workspace twice as large as x from its forward. A pixel's channels are
 * gathered into rows with a margin of zeros, so that the window is a few shifted vector loops. A row belongs to one
 * thread; its rows lie in the workspace. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/view.h"

enum { ROW_X, ROW_DY, ROW_S, ROW_RATIO, ROW_OUT, N_ROWS };

/* The rows of one thread: each has `margin` zeros, the channels, `margin` zeros. */
typedef struct rows {
    float *row[N_ROWS];              /* at channel 0 */
    int64_t channels, before, after; /* the window of channel c is [c - before, c + after] */
} rows;

static int64_t margin_of(const tide_op_desc *d) { return d->lrn_size; }

static uint64_t rows_bytes(const tide_op_desc *d) {
    uint64_t floats = (uint64_t)(d->x.c + 2 * margin_of(d)) * N_ROWS;
    return (floats * sizeof(float) + TIDE__CPU_ALIGN - 1) / TIDE__CPU_ALIGN * TIDE__CPU_ALIGN;
}

static rows rows_of_thread(const tide_op_desc *d, char *workspace) {
    float *base = (float *)(void *)(workspace + (uint64_t)omp_get_thread_num() * rows_bytes(d));
    int64_t length = d->x.c + 2 * margin_of(d), before = (d->lrn_size - 1) / 2;
    rows r = {.channels = d->x.c, .before = before, .after = d->lrn_size - 1 - before};
    memset(base, 0, rows_bytes(d));
    for (int i = 0; i < N_ROWS; i++) r.row[i] = base + i * length + margin_of(d);
    return r;
}

static void gather(const tide__view *v, int64_t n, int64_t p, const float *from, float *row) {
    for (int64_t g = 0; g < v->groups; g++) {
        const float *lanes = from + tide__view_at(v, n, g) + p * v->lanes;
        for (int l = 0; l < v->lanes && g * v->lanes + l < v->channels; l++) row[g * v->lanes + l] = lanes[l];
    }
}

static void scatter(const tide__view *v, int64_t n, int64_t p, const float *row, float *to) {
    for (int64_t g = 0; g < v->groups; g++) {
        float *lanes = to + tide__view_at(v, n, g) + p * v->lanes;
        for (int l = 0; l < v->lanes; l++) lanes[l] = g * v->lanes + l < v->channels ? row[g * v->lanes + l] : 0;
    }
}

/* s^-beta; AlexNet's beta without pow. */
static inline float inverse_power(float s, float beta) {
    if (beta != 0.75f) return powf(s, -beta);
    float root = sqrtf(s);
    return 1 / (root * sqrtf(root));
}

static void compute_scale(const tide_op_desc *d, rows *r) {
    const float *x = r->row[ROW_X], share = d->lrn_alpha / (float)d->lrn_size;
    float *s = r->row[ROW_S];
    for (int64_t c = 0; c < r->channels; c++) s[c] = 0;
    for (int64_t k = -r->before; k <= r->after; k++)
        for (int64_t c = 0; c < r->channels; c++) s[c] += x[c + k] * x[c + k];
    for (int64_t c = 0; c < r->channels; c++) s[c] = d->lrn_k + share * s[c];
}

static void forward_rows(const tide_op_desc *d, rows *r) {
    compute_scale(d, r);
    for (int64_t c = 0; c < r->channels; c++)
        r->row[ROW_OUT][c] = r->row[ROW_X][c] * inverse_power(r->row[ROW_S][c], d->lrn_beta);
}

/* dx_c = dy_c s_c^-beta - 2 alpha beta / size * x_c * sum of dy_j x_j s_j^(-beta - 1) over j whose window has c. */
static void backward_rows(const tide_op_desc *d, rows *r) {
    const float *x = r->row[ROW_X], *dy = r->row[ROW_DY], *s = r->row[ROW_S];
    const float factor = 2 * d->lrn_alpha * d->lrn_beta / (float)d->lrn_size;
    float *ratio = r->row[ROW_RATIO], *out = r->row[ROW_OUT];
    compute_scale(d, r);
    for (int64_t c = 0; c < r->channels; c++) {
        float power = inverse_power(s[c], d->lrn_beta);
        ratio[c] = dy[c] * x[c] * power / s[c];
        out[c] = dy[c] * power;
    }
    for (int64_t k = -r->after; k <= r->before; k++)
        for (int64_t c = 0; c < r->channels; c++) out[c] -= factor * x[c] * ratio[c + k];
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__view v = tide__view_of(&k->desc.x);
#pragma omp parallel if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    {
        rows r = rows_of_thread(&k->desc, tide__at(call, 2));
#pragma omp for collapse(2) schedule(static)
        for (int64_t n = 0; n < v.n; n++)
            for (int64_t p = 0; p < v.pixels; p++) {
                gather(&v, n, p, tide__floats(call, 0), r.row[ROW_X]);
                forward_rows(&k->desc, &r);
                scatter(&v, n, p, r.row[ROW_OUT], tide__floats(call, 1));
            }
    }
    return TIDE_OK;
}

static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    const tide__view v = tide__view_of(&k->desc.x);
#pragma omp parallel if (tide__view_size(&v) > TIDE__PARALLEL_FLOATS)
    {
        rows r = rows_of_thread(&k->desc, tide__at(call, 4));
#pragma omp for collapse(2) schedule(static)
        for (int64_t n = 0; n < v.n; n++)
            for (int64_t p = 0; p < v.pixels; p++) {
                gather(&v, n, p, tide__floats(call, 0), r.row[ROW_X]);
                gather(&v, n, p, tide__floats(call, 2), r.row[ROW_DY]);
                backward_rows(&k->desc, &r);
                scatter(&v, n, p, r.row[ROW_OUT], tide__floats(call, 3));
            }
    }
    return TIDE_OK;
}

tide_status tide__build_lrn(tide__cpu_kernel *k, const tide_op_desc *source) {
    bool forward = source->kind == TIDE_OP_LRN_FWD;
    k->run = forward ? run_forward : run_backward;
    k->workspace_bytes = rows_bytes(source) * ((tide__cpu *)k->base.device)->threads;
    for (int i = 0; i < (forward ? 1 : 3); i++) TIDE_TRY(tide__add_activation(k, TIDE__READ, source->x));
    return tide__add_activation(k, TIDE__WRITE, source->x);
}
