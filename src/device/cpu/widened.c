/* bf16 kernels that leave the work to a kernel of float32: some samples at a time are widened into the workspace, the
 * kernel of that many samples runs there, and what it wrote is rounded to where it belongs. Products stay oneDNN's fast float32
 * ones, and whatever the batch, the workspace has a few samples.
 *
 * Where samples are small, each thread is a hand of its own: it takes parts from end to end with a kernel of one thread, in a space that its own
 * cache holds, and the threads meet once per op. Where they are large, or fewer than threads, there is one hand: all threads share each part.
 *
 * Sums over samples (gradients of weights) are float32. A hand adds those of its later parts to those of its first, in order; then
 * those of later hands are added to the first one's, in order. How samples are cut depends on shapes and the number of threads, so bits
 * depend on nothing else.
 *
 * In the workspace, for each hand: what is widened, sums, the workspace of the kernel of float32. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/cpu/bf16.h"

/* Bytes to widen at once, unless one sample has more: an eighth of all, but no less than parts are worth, and no more than a
 * product wants and a cache has. */
#define LEAST_BYTES (UINT64_C(128) << 10)
#define MOST_BYTES (UINT64_C(4) << 20)
#define HAND_BYTES (UINT64_C(1) << 20) /* of a hand, where threads are hands: they fit into the cache of a core */
#define MAX_STAGED 8                   /* operands of a kernel that is widened */

typedef enum role {
    WHOLE,
    ROWS,
    STAGED,
    SUM
} role; /* ROWS: numbers per sample that are stored as the kernel wants them */

typedef struct hand {
    tide__cpu_kernel *kernel; /* of float32 */
    dnnl_stream_t stream;
} hand;

struct tide__widened {
    tide__cpu single; /* the device as a hand sees it that is one thread */
    hand *hands;
    uint32_t n_hands;
    tide__cpu_kernel *last; /* of fewer samples, for the last part; NULL: as many */
    int64_t parts;          /* runs of a kernel */
    role roles[MAX_STAGED];
    /* In the space of a hand: what is widened, or the sums of a later part; the last one: the kernel's workspace. own_at: the sums of
     * a later hand. */
    uint64_t at[MAX_STAGED + 1], own_at[MAX_STAGED], hand_bytes;
};

bool tide__is_widened(const tide_op_desc *d) {
    if (!d->bf16) return false;
    switch (d->kind) {
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

static void forget_kernels(tide__widened *w) {
    for (uint32_t h = 0; h < w->n_hands; h++)
        if (w->hands[h].kernel) tide__cpu_kernel_destroy(&w->hands[h].kernel->base);
    for (uint32_t h = 0; h < w->n_hands; h++) w->hands[h].kernel = NULL;
    if (w->last) tide__cpu_kernel_destroy(&w->last->base);
    w->last = NULL;
}

static void forget_hands(tide__widened *w) {
    forget_kernels(w);
    for (uint32_t h = 0; h < w->n_hands; h++) tide__stream_destroy(w->hands[h].stream);
    free(w->hands);
    w->hands = NULL;
    w->n_hands = 0;
}

void tide__widened_destroy(tide__widened *w) {
    if (w) forget_hands(w);
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

static tide_status create(tide_device *device, const tide_op_desc *source, int64_t rows, tide__cpu_kernel **out) {
    const tide_op_desc d = desc_of(source, rows);
    tide_kernel *kernel = NULL;
    TIDE_TRY(tide__cpu_kernel_create(device, &d, &kernel));
    *out = (tide__cpu_kernel *)kernel;
    if ((*out)->operands.count <= MAX_STAGED) return TIDE_OK;
    return tide__fail(TIDE_E_INTERNAL, "%zu operands to widen", (*out)->operands.count);
}

/* ---- cutting ---- */

/* Of the fewest rows there are. */
typedef struct counted {
    uint64_t staged, sums, whole;
} counted;

static counted count_bytes(const tide__cpu_kernel *one) {
    counted c = {0};
    for (uint32_t i = 0; i < one->operands.count; i++) {
        const role r = role_of(one, i);
        *(r == STAGED ? &c.staged : r == SUM ? &c.sums : &c.whole) += one->operands.data[i].size_bytes;
    }
    return c;
}

/* Rows of a part, so that parts of `units` samples have at most so many bytes and are as even as can be. */
static int64_t even_rows(int64_t units, int64_t together, uint64_t staged, uint64_t bytes) {
    const int64_t most = (int64_t)(bytes / (staged ? staged : 1));
    if (most >= units) return units * together;
    const int64_t parts = most > 0 ? (units + most - 1) / most : units;
    return (units + parts - 1) / parts * together;
}

/* Weights and sums are worth as many widened bytes as they have: each part goes over all of them. */
static int64_t rows_of_part(const tide_op_desc *d, const counted *c, int64_t together) {
    const int64_t units = d->x.n / together;
    uint64_t share = tide__max_u64(c->staged * (uint64_t)units / 8, LEAST_BYTES);
    share = tide__min_u64(tide__max_u64(share, c->whole), MOST_BYTES);
    return even_rows(units, together, c->staged, tide__max_u64(share, c->sums));
}

/* Hands that are threads: their parts are even, and what each goes over stays in its cache. */
static bool has_hands(const tide_op_desc *d, const counted *c, int64_t together, int64_t threads) {
    const int64_t units = d->x.n / together, busiest = (units + threads - 1) / threads;
    const uint64_t bytes = c->staged + 2 * c->sums + c->whole;
    return threads > 1 && busiest * threads * 8 <= units * 9 && bytes <= HAND_BYTES;
}

static int64_t rows_of_hand(const tide_op_desc *d, const counted *c, int64_t together, int64_t threads) {
    const int64_t units = (d->x.n / together + threads - 1) / threads;
    const uint64_t share = tide__max_u64(c->staged * (uint64_t)units / 8, LEAST_BYTES);
    const uint64_t room = HAND_BYTES - 2 * c->sums - c->whole;
    return even_rows(units, together, c->staged, tide__min_u64(tide__max_u64(share, c->sums + c->whole), room));
}

static bool are_alike(const tide__cpu_kernel *a, const tide__cpu_kernel *b) {
    for (uint32_t i = 0; i < a->operands.count; i++)
        if (a->operands.data[i].form == TIDE__FORM_WEIGHTS && a->operands.data[i].layout != b->operands.data[i].layout)
            return false;
    return true;
}

/* A kernel for each hand, and one for the rows that are left. */
static tide_status create_kernels(tide__cpu_kernel *k, const tide_op_desc *source, tide__widened *w, int64_t rows) {
    const int64_t left = source->x.n % rows;
    tide_device *device = w->n_hands > 1 ? &w->single.base : k->base.device;
    forget_kernels(w);
    for (uint32_t h = 0; h < w->n_hands; h++) TIDE_TRY(create(device, source, rows, &w->hands[h].kernel));
    if (left > 0) TIDE_TRY(create(device, source, left, &w->last));
    w->parts = (source->x.n + rows - 1) / rows;
    return TIDE_OK;
}

/* One is the queue's thread with its stream; several have streams of their own. */
static tide_status take_hands(tide__cpu_kernel *k, tide__widened *w, uint32_t n) {
    tide__cpu *cpu = (tide__cpu *)k->base.device;
    forget_hands(w);
    w->hands = calloc(n, sizeof *w->hands);
    if (!w->hands) return tide__fail_memory();
    w->n_hands = n;
    for (uint32_t h = 0; h < n && n > 1; h++) TIDE_TRY(tide__stream_create(cpu->engine, &w->hands[h].stream));
    w->single = *cpu;
    w->single.threads = 1;
    return TIDE_OK;
}

/* Replaces the first hand's kernel, which has the fewest rows there are. */
static tide_status create_parts(tide__cpu_kernel *k, const tide_op_desc *source, tide__widened *w) {
    const uint32_t threads = ((tide__cpu *)k->base.device)->threads;
    const int64_t together = rows_together(source);
    const counted c = count_bytes(w->hands[0].kernel);
    const bool hands = has_hands(source, &c, together, threads);
    if (hands) TIDE_TRY(take_hands(k, w, threads));
    TIDE_TRY(create_kernels(k, source, w,
                            hands ? rows_of_hand(source, &c, together, threads) : rows_of_part(source, &c, together)));
    if (!w->last || are_alike(w->hands[0].kernel, w->last)) return TIDE_OK;
    TIDE_TRY(take_hands(k, w, 1)); /* weights in two layouts at once: all samples together */
    return create_kernels(k, source, w, source->x.n);
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

/* The first hand's first sums go to their place, those of other hands to own_at, those of later parts to at. */
static tide_status lay_out(tide__cpu_kernel *k, tide__widened *w) {
    const tide__cpu_kernel *kernel = w->hands[0].kernel;
    const uint32_t n = (uint32_t)kernel->operands.count;
    uint64_t own = kernel->workspace_bytes;
    if (w->last) own = tide__max_u64(own, w->last->workspace_bytes);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t bytes = kernel->operands.data[i].size_bytes;
        const bool sum = w->roles[i] == SUM;
        if (w->roles[i] == STAGED || (sum && w->parts > w->n_hands)) TIDE_TRY(take(&w->hand_bytes, bytes, &w->at[i]));
        if (sum && w->n_hands > 1) TIDE_TRY(take(&w->hand_bytes, bytes, &w->own_at[i]));
    }
    if (own > 0) TIDE_TRY(take(&w->hand_bytes, own, &w->at[n]));
    if (!tide__align_up(w->hand_bytes, TIDE__CPU_ALIGN, &w->hand_bytes) ||
        !tide__mul(w->hand_bytes, w->n_hands, &k->workspace_bytes))
        return tide__fail(TIDE_E_OVERFLOW, "the workspace is too large");
    return TIDE_OK;
}

/* ---- running ---- */

/* One hand's work. */
typedef struct task {
    const tide__widened *w;
    const tide__call *call;
    uint32_t hand;
    int64_t first, end; /* parts */
    uint64_t space;     /* the hand's, in the arena */
} task;

/* The first part that is not of a hand before this one. Some hands may have none, but not the first: its sums are the result. */
static int64_t first_part(const tide__widened *w, uint32_t h) { return (w->parts * h + w->n_hands - 1) / w->n_hands; }

static task task_of(const tide__widened *w, const tide__call *call, uint32_t h) {
    const uint64_t workspace = call->offsets[w->hands[0].kernel->operands.count];
    return (task){w, call, h, first_part(w, h), first_part(w, h + 1), workspace + h * w->hand_bytes};
}

static uint64_t stored_bytes(const tide__widened *w, uint32_t i) {
    const uint64_t bytes = w->hands[0].kernel->operands.data[i].size_bytes;
    return w->roles[i] == STAGED ? bytes / 2 : bytes;
}

static void *stored_at(const task *t, uint32_t i, int64_t part) {
    return (char *)tide__at(t->call, i) + (uint64_t)part * stored_bytes(t->w, i);
}

/* Where the sums of a hand are, in the arena. */
static uint64_t sums_at(const task *t, uint32_t i) {
    return t->hand > 0 ? t->space + t->w->own_at[i] : t->call->offsets[i];
}

static void place(const task *t, int64_t part, uint64_t *offsets) {
    const tide__widened *w = t->w;
    const uint32_t n = (uint32_t)w->hands[0].kernel->operands.count;
    for (uint32_t i = 0; i < n; i++) {
        offsets[i] = w->roles[i] == SUM ? sums_at(t, i) : t->call->offsets[i];
        if (w->roles[i] == STAGED || (w->roles[i] == SUM && part > t->first)) offsets[i] = t->space + w->at[i];
        if (w->roles[i] == ROWS) offsets[i] += (uint64_t)part * stored_bytes(w, i);
    }
    offsets[n] = t->space + w->at[n];
}

static int64_t floats_of(const tide__cpu_kernel *kernel, uint32_t i) {
    return (int64_t)(kernel->operands.data[i].size_bytes / sizeof(float));
}

static void add_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise *o = context;
    tide__row_add(o->a + begin, end - begin, o->out + begin);
}

static tide_status run_part(const task *t, int64_t part) {
    const tide__widened *w = t->w;
    const tide__cpu_kernel *kernel = w->last && part + 1 == w->parts ? w->last : w->hands[t->hand].kernel;
    uint64_t offsets[MAX_STAGED + 1];
    tide__call own = *t->call;
    place(t, part, offsets);
    own.offsets = offsets;
    if (w->n_hands > 1) own.stream = w->hands[t->hand].stream;
    for (uint32_t i = 0; i < kernel->n_reads; i++)
        if (w->roles[i] == STAGED)
            tide__bf16_widen_all(stored_at(t, i, part), floats_of(kernel, i), tide__floats(&own, i));
    TIDE_TRY(kernel->run(kernel, &own));
    for (uint32_t i = kernel->n_reads; i < kernel->operands.count; i++) {
        const tide__pointwise sum = {.a = tide__floats(&own, i), .out = (float *)(void *)(own.arena + sums_at(t, i))};
        if (w->roles[i] == STAGED)
            tide__bf16_round_all(sum.a, floats_of(kernel, i), stored_at(t, i, part));
        else if (w->roles[i] == SUM && part > t->first)
            tide__for_ranges(floats_of(kernel, i), add_range, &sum);
    }
    return TIDE_OK;
}

static tide_status run_hand(const task *t) {
    for (int64_t part = t->first; part < t->end; part++) TIDE_TRY(run_part(t, part));
    return TIDE_OK;
}

static void add_hands_sums(const tide__widened *w, const tide__call *call) {
    const tide__cpu_kernel *kernel = w->hands[0].kernel;
    for (uint32_t i = kernel->n_reads; i < kernel->operands.count; i++)
        for (uint32_t h = 1; h < w->n_hands && w->roles[i] == SUM; h++) {
            const task t = task_of(w, call, h);
            const tide__pointwise sum = {.a = (float *)(void *)(call->arena + sums_at(&t, i)),
                                         .out = tide__floats(call, i)};
            if (t.first < t.end) tide__for_ranges(floats_of(kernel, i), add_range, &sum);
        }
}

static tide_status run_hands(const tide__widened *w, const tide__call *call) {
    int failed = TIDE_OK;
#pragma omp parallel for schedule(static, 1) reduction(max : failed)
    for (uint32_t h = 0; h < w->n_hands; h++) {
        const int old = tide__set_threads(1); /* of teams inside, whatever the environment says of those */
        const task t = task_of(w, call, h);
        const int status = (int)run_hand(&t);
        failed = status > failed ? status : failed;
        tide__set_threads(old);
    }
    if (failed)
        return tide__fail((tide_status)failed, "a thread could not do its part of \"%s\"",
                          tide_op_kind_name(w->hands[0].kernel->desc.kind));
    add_hands_sums(w, call);
    return TIDE_OK;
}

static tide_status run_widened(const tide__cpu_kernel *k, const tide__call *call) {
    const task all = task_of(k->widened, call, 0);
    return k->widened->n_hands > 1 ? run_hands(k->widened, call) : run_hand(&all);
}

tide_status tide__build_widened(tide__cpu_kernel *k, const tide_op_desc *source) {
    tide__widened *w = k->widened = calloc(1, sizeof *w);
    const bool cut = is_cut(source->kind);
    if (!w) return tide__fail_memory();
    TIDE_TRY(take_hands(k, w, 1));
    TIDE_TRY(create_kernels(k, source, w, cut ? rows_together(source) : source->x.n));
    if (cut) TIDE_TRY(create_parts(k, source, w));
    const tide__cpu_kernel *kernel = w->hands[0].kernel;
    for (uint32_t i = 0; i < kernel->operands.count; i++) {
        w->roles[i] = role_of(kernel, i);
        TIDE_TRY(declare(k, kernel, i, w->roles[i]));
    }
    k->run = run_widened;
    return lay_out(k, w);
}
