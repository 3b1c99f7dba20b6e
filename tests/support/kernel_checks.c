/* See kernel_checks.h. */
#include "support/kernel_checks.h"

#include <math.h>

#include "support/test.h"

static const rig_options plainly = {.in_place_read = -1};

/* Under ThreadSanitizer, which is interested in the queue behind a kernel and not in its loops, some of each kind. */
typedef struct thinning {
    visit_fn check;
    kernel_rig *rig;
    uint32_t seen[TIDE_OP_KIND_COUNT];
} thinning;

static void check_some(const tide_op_desc *d, void *context) {
    thinning *t = context;
#ifdef __SANITIZE_THREAD__
    if (t->seen[d->kind]++ % SANITIZER_SHARE) return;
#endif
    t->check(d, t->rig);
}

void check_all_on(const rig_config *config, visit_all_fn visit_all, visit_fn check) {
    kernel_rig rig;
    thinning t = {.check = check, .rig = &rig};
    rig_open(&rig, config);
    visit_all(check_some, &t);
    rig_close(&rig);
}

void check_all_threads(visit_all_fn visit_all) {
    rig_pair rigs;
    rig_open(&rigs.one, &(rig_config){.device = "cpu", .threads = 1});
    rig_open(&rigs.two, &(rig_config){.device = "cpu", .threads = 2});
    visit_all(check_threads, &rigs);
    rig_close(&rigs.one);
    rig_close(&rigs.two);
}

tide_kernel_info info_of(kernel_rig *rig, const tide_op_desc *d) {
    tide_kernel *kernel = NULL;
    tide_kernel_info info;
    assert_ok(tide_kernel_create(rig->device, d, &kernel));
    assert_ok(tide_kernel_get_info(kernel, &info));
    tide_kernel_destroy(kernel);
    return info;
}

void refuse(kernel_rig *rig, tide_op_desc d, tide_status expected) {
    tide_kernel *kernel = NULL;
    assert_status(tide_kernel_create(rig->device, &d, &kernel), expected);
    assert_null(kernel);
}

void check_reference(const tide_op_desc *d, void *context) {
    rig_case c;
    rig_case_init(&c, d, 1);
    uint32_t n = rig_variants(context, &c);
    for (uint32_t i = 0; i < n; i++) {
        rig_run(context, &c, &(rig_options){.in_place_read = -1, .variant = i});
        rig_compare(&c);
    }
    rig_case_deinit(&c);
}

void check_repeat(const tide_op_desc *d, void *context) {
    rig_case c;
    rig_case_init(&c, d, 2);
    uint32_t n = rig_variants(context, &c);
    for (uint32_t i = 0; i < n; i++) {
        rig_options here = {.in_place_read = -1, .variant = i}, moved = here;
        moved.shift = 4096 * 193;
        uint64_t first = rig_run(context, &c, &here), again = rig_run(context, &c, &here),
                 elsewhere = rig_run(context, &c, &moved);
        if (first != again || first != elsewhere)
            fail_msg("%s gives other bits when it runs again or elsewhere", tide_op_kind_name(d->kind));
    }
    rig_case_deinit(&c);
}

static bool is_by_onednn(tide_op_kind kind) {
    return kind <= TIDE_OP_FC_BWD_WEIGHTS || (kind >= TIDE_OP_UPCONV_FWD && kind <= TIDE_OP_UPCONV_BWD_WEIGHTS) ||
           kind == TIDE_OP_LSTM_FWD || kind == TIDE_OP_LSTM_BWD_WEIGHTS || kind == TIDE_OP_LSTM_BWD_DATA ||
           kind == TIDE_OP_HEAD_LOSS || kind == TIDE_OP_HEAD_SCORE;
}

void check_threads(const tide_op_desc *d, void *context) {
    rig_pair *rigs = context;
    rig_case c;
    if (is_by_onednn(d->kind)) return;
    rig_case_init(&c, d, 3);
    uint64_t one = rig_run(&rigs->one, &c, &plainly), two = rig_run(&rigs->two, &c, &plainly);
    if (one != two) fail_msg("%s gives other bits on two threads", tide_op_kind_name(d->kind));
    rig_case_deinit(&c);
}

/* Which read write 0 may take the place of; -1 none. */
static int in_place_read(tide_op_kind kind) {
    switch (kind) {
    case TIDE_OP_RELU_FWD:
    case TIDE_OP_ADD:
    case TIDE_OP_SOFTMAX_LOSS_BWD:
    case TIDE_OP_DROPOUT_FWD:
    case TIDE_OP_DROPOUT_BWD:
    case TIDE_OP_GELU_FWD:
    case TIDE_OP_LSTM_BWD_GATES:
    case TIDE_OP_ACCUMULATE: return 0;
    case TIDE_OP_BN_BWD:
    case TIDE_OP_RELU_BWD:
    case TIDE_OP_LAYERNORM_BWD:
    case TIDE_OP_GELU_BWD: return 1;
    default: return -1;
    }
}

void check_in_place(const tide_op_desc *d, void *context) {
    bool update = d->kind >= TIDE_OP_SGD && d->kind <= TIDE_OP_ADAMW;
    rig_options there = {.in_place_read = in_place_read(d->kind), .all_in_place = update};
    rig_case c;
    if (there.in_place_read < 0 && !update) return;
    rig_case_init(&c, d, 4);
    uint64_t apart = rig_run(context, &c, &plainly), together = rig_run(context, &c, &there);
    if (apart != together) fail_msg("%s gives other bits in place", tide_op_kind_name(d->kind));
    there.in_place_read = d->kind == TIDE_OP_ADD ? 1 : there.in_place_read;
    if (rig_run(context, &c, &there) != apart) fail_msg("%s gives other bits in place", tide_op_kind_name(d->kind));
    rig_case_deinit(&c);
}

/* ---- bf16 ---- */

float nearest_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static const tide_operand_info *operand_of(const tide_kernel_info *info, uint32_t i) {
    return i < info->n_reads ? &info->read[i] : &info->write[i - info->n_reads];
}

/* Products of other sizes may have another order: then a sum differs in its last digits, before it is rounded. */
static void compare_rounded(const tide_op_desc *d, uint32_t operand, const float *wide, const float *half, uint64_t n,
                            bool is_half) {
    float largest = 0;
    for (uint64_t k = 0; k < n; k++) largest = fmaxf(largest, fabsf(wide[k]));
    for (uint64_t k = 0; k < n; k++) {
        const float bound = 1e-5f * (1 + largest) + (is_half ? fabsf(wide[k]) / 256 : 0);
        if (!(fabsf(half[k] - wide[k]) <= bound) || (is_half && half[k] != nearest_bf16(half[k])))
            fail_msg("%s of bf16, operand %u, element %llu: %.9g, in float32 %.9g", tide_op_kind_name(d->kind), operand,
                     (unsigned long long)k, (double)half[k], (double)wide[k]);
    }
}

static bool is_short(const tide_kernel_info *wide, const tide_kernel_info *half, uint32_t i) {
    return operand_of(half, i)->size_bytes < operand_of(wide, i)->size_bytes;
}

static void check_rounded(const tide_op_desc *d, const tide_op_desc *short_one, kernel_rig *rig) {
    const tide_kernel_info wide = info_of(rig, d), half = info_of(rig, short_one);
    rig_case a, b;
    rig_case_init(&a, d, 5);
    rig_case_init(&b, short_one, 5);
    for (uint32_t i = 0; i < a.spec.n_reads; i++)
        for (uint64_t k = 0; is_short(&wide, &half, i) && k < a.spec.elements[i]; k++)
            a.plain[i][k] = b.plain[i][k] = nearest_bf16(a.plain[i][k]);
    rig_run(rig, &a, &plainly);
    rig_run(rig, &b, &plainly);
    for (uint32_t i = a.spec.n_reads; i < a.spec.n_reads + a.spec.n_writes; i++)
        compare_rounded(d, i, a.plain[i], b.plain[i], a.spec.elements[i], is_short(&wide, &half, i));
    rig_case_deinit(&a);
    rig_case_deinit(&b);
}

static void check_bf16(const tide_op_desc *d, void *context) {
    tide_op_desc short_one = *d;
    if (d->kind == TIDE_OP_REORDER || d->elements || d->n_grads) return;
    short_one.bf16 = 1;
    check_rounded(d, &short_one, context);
    check_repeat(&short_one, context);
    if (d->kind != TIDE_OP_SOFTMAX_LOSS_BWD) check_in_place(&short_one, context); /* prob is float32 */
}

void check_all_bf16(const rig_config *config, visit_all_fn visit_all) { check_all_on(config, visit_all, check_bf16); }

/* ---- finite differences ---- */

static double weighted_sum(const gradient_case *g, const rig_case *c, double *const *v, const float *weight) {
    uint32_t write = c->spec.n_reads + g->write;
    double sum = 0;
    ref_run(&c->desc, &c->args, v);
    for (uint64_t k = 0; k < c->spec.elements[write]; k++) sum += v[write][k] * (weight ? (double)weight[k] : 1);
    return sum;
}

static void compare_slopes(const gradient_case *g, const rig_case *forward, double *const *v,
                           const rig_case *backward) {
    const double h = 1e-5;
    const float *weight = g->dy >= 0 ? backward->plain[g->dy] : NULL,
                *result = backward->plain[backward->spec.n_reads + g->result];
    for (uint64_t k = 0; k < forward->spec.elements[g->read]; k++) {
        double saved = v[g->read][k];
        v[g->read][k] = saved + h;
        double up = weighted_sum(g, forward, v, weight);
        v[g->read][k] = saved - h;
        double down = weighted_sum(g, forward, v, weight);
        v[g->read][k] = saved;
        double slope = (up - down) / (2 * h);
        if (fabs((double)result[k] - slope) <= 1e-3 * (fabs(slope) + 0.1)) continue;
        fail_msg("%s: element %llu: %.9g, finite difference %.9g", tide_op_kind_name(g->backward),
                 (unsigned long long)k, (double)result[k], slope);
    }
}

void check_gradient(kernel_rig *rig, const gradient_case *g, const tide_op_desc *forward_desc,
                    const tide_op_desc *backward_desc) {
    rig_case forward, backward;
    double *v[REF_MAX_OPERANDS];
    rig_case_init(&forward, forward_desc, 5);
    rig_case_init(&backward, backward_desc, 6);
    backward.args = forward.args; /* the same draws */
    if (g->zeroed) memset(backward.plain[g->zeroed], 0, backward.spec.elements[g->zeroed] * sizeof(float));
    rig_run(rig, &forward, &plainly);
    for (int i = 0; g->shared[i][0] >= 0; i++)
        memcpy(backward.plain[g->shared[i][0]], forward.plain[g->shared[i][1]],
               forward.spec.elements[g->shared[i][1]] * sizeof(float));
    rig_run(rig, &backward, &plainly);
    uint32_t n = forward.spec.n_reads + forward.spec.n_writes;
    for (uint32_t i = 0; i < n; i++) {
        v[i] = calloc(forward.spec.elements[i], sizeof(double));
        for (uint64_t k = 0; k < forward.spec.elements[i]; k++) v[i][k] = (double)forward.plain[i][k];
    }
    compare_slopes(g, &forward, v, &backward);
    for (uint32_t i = 0; i < n; i++) free(v[i]);
    rig_case_deinit(&forward);
    rig_case_deinit(&backward);
}
