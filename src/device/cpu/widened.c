/* bf16 kernels that leave the work to a kernel of float32: some samples at a time are widened into the workspace, the
 * kernel of that many samples runs there, and what it wrote is rounded to where it belongs. Products stay oneDNN's fast float32
 * ones, and whatever the batch, the workspace has a few samples.
 *
 * Sums over samples (gradients of weights) are float32: those of the first samples go to their place, those of later ones to the
 * workspace, and are added in order. How samples are cut depends on shapes alone, so bits depend on nothing else.
 *
 * In the workspace: what is widened, sums, the workspace of the kernel of float32. */
#include <stdlib.h>

#include "base/size.h"
#include "device/cpu/bf16.h"

/* Bytes to widen at once, unless one sample has more: an eighth of all, but no less than parts are worth, and no more than a
 * product wants and a cache has. */
#define LEAST_BYTES (UINT64_C(128) << 10)
#define MOST_BYTES (UINT64_C(4) << 20)
#define MAX_STAGED 8 /* operands of a kernel that is widened */

typedef enum role {
    WHOLE,
    ROWS,
    STAGED,
    SUM
} role; /* ROWS: numbers per sample that are stored as the kernel wants them */

struct tide__widened {
    tide__cpu_kernel *kernel, *last; /* of float32; last: of fewer samples, for the last ones; NULL: as many */
    int64_t parts;                   /* runs of a kernel */
    role roles[MAX_STAGED];
    uint64_t at[MAX_STAGED + 1]; /* in the workspace; the last one: of the kernel's */
};

bool tide__is_widened(const tide_op_desc *d) {
    if (!d->bf16) return false;
    switch (d->kind) {
    case TIDE_OP_CONV_FWD:
    case TIDE_OP_CONV_BWD_DATA:
    case TIDE_OP_CONV_BWD_WEIGHTS:
    case TIDE_OP_FC_FWD:
    case TIDE_OP_FC_BWD_DATA:
    case TIDE_OP_FC_BWD_WEIGHTS:
    case TIDE_OP_UPCONV_FWD:
    case TIDE_OP_UPCONV_BWD_DATA:
    case TIDE_OP_UPCONV_BWD_WEIGHTS:
    case TIDE_OP_MAXPOOL_FWD:
    case TIDE_OP_MAXPOOL_BWD:
    case TIDE_OP_AVGPOOL_FWD:
    case TIDE_OP_AVGPOOL_BWD:
    case TIDE_OP_SOFTMAX_LOSS_FWD:
    case TIDE_OP_SOFTMAX_LOSS_BWD:
    case TIDE_OP_LRN_FWD:
    case TIDE_OP_LRN_BWD:
    case TIDE_OP_LAYERNORM_FWD:
    case TIDE_OP_LAYERNORM_BWD:
    case TIDE_OP_ATTENTION_FWD:
    case TIDE_OP_ATTENTION_BWD:
    case TIDE_OP_LSTM_FWD:
    case TIDE_OP_LSTM_BWD_GATES:
    case TIDE_OP_LSTM_BWD_WEIGHTS:
    case TIDE_OP_LSTM_BWD_DATA: return true;
    default: return false;
    }
}

void tide__widened_destroy(tide__widened *w) {
    if (!w) return;
    if (w->kernel) tide__cpu_kernel_destroy(&w->kernel->base);
    if (w->last) tide__cpu_kernel_destroy(&w->last->base);
    free(w);
}

/* ---- how operands meet samples ---- */

/* The loss is a mean over all samples, and so are its gradients; steps of an LSTM are small. */
static bool is_cut(tide_op_kind kind) {
    const bool lstm = kind >= TIDE_OP_LSTM_FWD && kind <= TIDE_OP_LSTM_BWD_DATA;
    return kind != TIDE_OP_SOFTMAX_LOSS_FWD && kind != TIDE_OP_SOFTMAX_LOSS_BWD && !lstm;
}

/* Means and the like: a number per row. */
static bool has_row_per_sample(tide_op_kind kind, uint32_t operand) {
    switch (kind) {
    case TIDE_OP_LAYERNORM_FWD: return operand >= 4;
    case TIDE_OP_LAYERNORM_BWD: return operand == 3 || operand == 4;
    case TIDE_OP_ATTENTION_FWD:
    case TIDE_OP_ATTENTION_BWD: return true; /* lse, of each head */
    default: return false;
    }
}

static role role_of(const tide__cpu_kernel *kernel, uint32_t i) {
    const tide__operand *o = &kernel->operands.data[i];
    if (o->form == TIDE__FORM_ACTIVATION) return o->type == dnnl_f32 ? STAGED : ROWS;
    if (o->form == TIDE__FORM_VECTOR && has_row_per_sample(kernel->desc.kind, i)) return ROWS;
    return is_cut(kernel->desc.kind) && i >= kernel->n_reads ? SUM : WHOLE;
}

/* Samples that stay together, in rows. */
static int64_t rows_together(const tide_op_desc *d) {
    return d->kind == TIDE_OP_ATTENTION_FWD || d->kind == TIDE_OP_ATTENTION_BWD ? d->context : 1;
}

static tide_op_desc desc_of(const tide_op_desc *source, int64_t rows) {
    tide_op_desc d = *source;
    d.bf16 = 0;
    if (rows == source->x.n) return d;
    d.x.n = d.y.n = rows;
    return d;
}

static tide_status create(tide__cpu_kernel *k, const tide_op_desc *source, int64_t rows, tide__cpu_kernel **out) {
    const tide_op_desc d = desc_of(source, rows);
    tide_kernel *kernel = NULL;
    TIDE_TRY(tide__cpu_kernel_create(k->base.device, &d, &kernel));
    *out = (tide__cpu_kernel *)kernel;
    if ((*out)->operands.count <= MAX_STAGED) return TIDE_OK;
    return tide__fail(TIDE_E_INTERNAL, "%zu operands to widen", (*out)->operands.count);
}

/* ---- cutting ---- */

/* Of a kernel of these many rows. */
static void count_bytes(const tide__cpu_kernel *kernel, uint64_t *staged, uint64_t *sums) {
    *staged = *sums = 0;
    for (uint32_t i = 0; i < kernel->operands.count; i++) {
        const role r = role_of(kernel, i);
        if (r == STAGED) *staged += kernel->operands.data[i].size_bytes;
        if (r == SUM) *sums += kernel->operands.data[i].size_bytes;
    }
}

/* Sums are worth as many widened bytes as they have: each part adds to all of them. The parts are as even as can be. */
static int64_t rows_of_part(const tide_op_desc *d, const tide__cpu_kernel *one, int64_t together) {
    const int64_t units = d->x.n / together;
    uint64_t staged, sums;
    count_bytes(one, &staged, &sums);
    const uint64_t share = tide__max_u64(staged * (uint64_t)units / 8, LEAST_BYTES);
    const int64_t most = (int64_t)(tide__max_u64(tide__min_u64(share, MOST_BYTES), sums) / (staged ? staged : 1));
    if (most >= units) return d->x.n;
    const int64_t parts = most > 0 ? (units + most - 1) / most : units;
    return (units + parts - 1) / parts * together;
}

static bool are_alike(const tide__cpu_kernel *a, const tide__cpu_kernel *b) {
    for (uint32_t i = 0; i < a->operands.count; i++)
        if (a->operands.data[i].form == TIDE__FORM_WEIGHTS && a->operands.data[i].layout != b->operands.data[i].layout)
            return false;
    return true;
}

/* Replaces w->kernel, which has the fewest rows there are, where more of them fit. */
static tide_status create_parts(tide__cpu_kernel *k, const tide_op_desc *source, tide__widened *w) {
    const int64_t rows = rows_of_part(source, w->kernel, rows_together(source)), left = source->x.n % rows;
    if (rows != w->kernel->desc.x.n) {
        tide__cpu_kernel_destroy(&w->kernel->base);
        w->kernel = NULL;
        TIDE_TRY(create(k, source, rows, &w->kernel));
    }
    w->parts = (source->x.n + rows - 1) / rows;
    if (left > 0) TIDE_TRY(create(k, source, left, &w->last));
    if (!w->last || are_alike(w->kernel, w->last)) return TIDE_OK;
    tide__cpu_kernel_destroy(&w->kernel->base); /* weights in two layouts at once: all samples together */
    tide__cpu_kernel_destroy(&w->last->base);
    w->kernel = w->last = NULL;
    w->parts = 1;
    return create(k, source, source->x.n, &w->kernel);
}

/* ---- building ---- */

static tide_status declare(tide__cpu_kernel *k, const tide__cpu_kernel *kernel, uint32_t i, role r) {
    const tide__access access = i < kernel->n_reads ? TIDE__READ : TIDE__WRITE;
    const tide__operand *o = &kernel->operands.data[i];
    tide_shape shape = o->shape;
    if (r == WHOLE || r == SUM) return tide__add_copy(k, access, o);
    shape.n = shape.n / kernel->desc.x.n * k->desc.x.n;
    if (o->form == TIDE__FORM_VECTOR) return tide__add_vector(k, access, shape.n, o->type);
    return r == STAGED ? tide__add_activation(k, access, shape) : tide__add_bytes_like(k, access, shape);
}

/* `bytes` more of the workspace. */
static tide_status take(uint64_t *top, uint64_t bytes, uint64_t *at) {
    if (tide__align_up(*top, TIDE__CPU_ALIGN, at) && tide__add(*at, bytes, top)) return TIDE_OK;
    return tide__fail(TIDE_E_OVERFLOW, "the workspace is too large");
}

static tide_status lay_out(tide__cpu_kernel *k, tide__widened *w) {
    uint64_t own = w->kernel->workspace_bytes;
    const uint32_t n = (uint32_t)w->kernel->operands.count;
    if (w->last) own = tide__max_u64(own, w->last->workspace_bytes);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t bytes = w->kernel->operands.data[i].size_bytes;
        if (w->roles[i] == STAGED || (w->roles[i] == SUM && w->parts > 1))
            TIDE_TRY(take(&k->workspace_bytes, bytes, &w->at[i]));
    }
    return own > 0 ? take(&k->workspace_bytes, own, &w->at[n]) : TIDE_OK;
}

/* ---- running ---- */

static uint64_t stored_bytes(const tide__widened *w, uint32_t i) {
    const uint64_t bytes = w->kernel->operands.data[i].size_bytes;
    return w->roles[i] == STAGED ? bytes / 2 : bytes;
}

static char *stored_at(const tide__widened *w, const tide__call *call, uint32_t i, int64_t part) {
    return (char *)tide__at(call, i) + (uint64_t)part * stored_bytes(w, i);
}

static void place(const tide__widened *w, const tide__call *call, int64_t part, uint64_t *offsets) {
    const uint32_t n = (uint32_t)w->kernel->operands.count;
    const uint64_t workspace = call->offsets[n];
    for (uint32_t i = 0; i < n; i++) {
        const bool later_sum = w->roles[i] == SUM && part > 0;
        offsets[i] = call->offsets[i];
        if (w->roles[i] == STAGED || later_sum) offsets[i] = workspace + w->at[i];
        if (w->roles[i] == ROWS) offsets[i] += (uint64_t)part * stored_bytes(w, i);
    }
    offsets[n] = workspace + w->at[n];
}

static int64_t floats_of(const tide__cpu_kernel *kernel, uint32_t i) {
    return (int64_t)(kernel->operands.data[i].size_bytes / sizeof(float));
}

static void add_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise *o = context;
    tide__row_add(o->a + begin, end - begin, o->out + begin);
}

static tide_status run_part(const tide__widened *w, const tide__call *call, int64_t part) {
    const tide__cpu_kernel *kernel = w->last && part + 1 == w->parts ? w->last : w->kernel;
    uint64_t offsets[MAX_STAGED + 1];
    tide__call own = *call;
    place(w, call, part, offsets);
    own.offsets = offsets;
    for (uint32_t i = 0; i < kernel->n_reads; i++)
        if (w->roles[i] == STAGED)
            tide__bf16_widen_all((const uint16_t *)(const void *)stored_at(w, call, i, part), floats_of(kernel, i),
                                 tide__floats(&own, i));
    TIDE_TRY(kernel->run(kernel, &own));
    for (uint32_t i = kernel->n_reads; i < kernel->operands.count; i++) {
        const tide__pointwise sum = {.a = tide__floats(&own, i), .out = tide__floats(call, i)};
        if (w->roles[i] == STAGED)
            tide__bf16_round_all(sum.a, floats_of(kernel, i), (uint16_t *)(void *)stored_at(w, call, i, part));
        else if (w->roles[i] == SUM && part > 0)
            tide__for_ranges(floats_of(kernel, i), add_range, &sum);
    }
    return TIDE_OK;
}

static tide_status run_widened(const tide__cpu_kernel *k, const tide__call *call) {
    for (int64_t part = 0; part < k->widened->parts; part++) TIDE_TRY(run_part(k->widened, call, part));
    return TIDE_OK;
}

tide_status tide__build_widened(tide__cpu_kernel *k, const tide_op_desc *source) {
    tide__widened *w = k->widened = calloc(1, sizeof *w);
    const bool cut = is_cut(source->kind);
    if (!w) return tide__fail_memory();
    w->parts = 1;
    TIDE_TRY(create(k, source, cut ? rows_together(source) : source->x.n, &w->kernel));
    if (cut) TIDE_TRY(create_parts(k, source, w));
    for (uint32_t i = 0; i < w->kernel->operands.count; i++) {
        w->roles[i] = role_of(w->kernel, i);
        TIDE_TRY(declare(k, w->kernel, i, w->roles[i]));
    }
    k->run = run_widened;
    return lay_out(k, w);
}
