/* See kernel_pairs.h. */
#include "support/kernel_pairs.h"

#include <math.h>

#include "support/test.h"

/* Units in the last place of the largest number of an operand. The gradient of attention is a sum over keys of products with
 * differences of such numbers. */
static double most_ulps_of(tide_op_kind kind) { return kind == TIDE_OP_ATTENTION_BWD ? 4 : 2; }

/* Kinds that may differ, and why. Everything else is sums, products, quotients and roots, which IEEE 754 defines to the
 * last bit, in an order that the kernels fix. */
static const char *reason_of(tide_op_kind kind) {
    switch (kind) {
    case TIDE_OP_GELU_FWD:
    case TIDE_OP_GELU_BWD:
    case TIDE_OP_SOFTMAX_LOSS_FWD:
    case TIDE_OP_ATTENTION_FWD:
    case TIDE_OP_ATTENTION_BWD:
    case TIDE_OP_HEAD_LOSS:
    case TIDE_OP_HEAD_SCORE: return "exp: CUDA's is within 1 unit, PoCL's has its own last bit";
    case TIDE_OP_LSTM_FWD:
    case TIDE_OP_LSTM_BWD_GATES: return "exp and tanh: likewise";
    default: return NULL;
    }
}

typedef struct finding {
    uint32_t runs, different; /* variants of descriptors */
    double most_ulps;
} finding;

typedef struct pairing {
    rig_pair rigs;
    finding found[TIDE_OP_KIND_COUNT];
} pairing;

/* Of one operand; infinite where one is no number and the other is. */
static double distance(const float *a, const float *b, uint64_t n) {
    double largest = 0, apart = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (isnan(a[i]) != isnan(b[i])) return INFINITY;
        if (isnan(a[i]) || a[i] == b[i]) continue;
        apart = fmax(apart, fabs((double)a[i] - (double)b[i]));
    }
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(b[i])) largest = fmax(largest, fabs((double)b[i]));
    return apart == 0 ? 0 : apart / (nextafterf((float)largest, INFINITY) - (float)largest);
}

static void compare(const rig_case *one, const rig_case *two, finding *f) {
    bool same = true;
    for (uint32_t i = one->spec.n_reads; i < one->spec.n_reads + one->spec.n_writes; i++) {
        const uint64_t n = one->spec.elements[i];
        if (memcmp(one->plain[i], two->plain[i], n * sizeof(float)) == 0) continue;
        same = false;
        f->most_ulps = fmax(f->most_ulps, distance(one->plain[i], two->plain[i], n));
    }
    f->runs++;
    f->different += !same;
}

static void check_pair(const tide_op_desc *d, void *context) {
    pairing *p = context;
    rig_case one, two;
    rig_case_init(&one, d, 7);
    rig_case_init(&two, d, 7);
    const uint32_t n = rig_variants(&p->rigs.one, &one);
    assert_int_equal(n, rig_variants(&p->rigs.two, &two));
    for (uint32_t i = 0; i < n; i++) {
        const rig_options options = {.in_place_read = -1, .variant = i};
        rig_run(&p->rigs.one, &one, &options);
        rig_run(&p->rigs.two, &two, &options);
        compare(&one, &two, &p->found[d->kind]);
    }
    rig_case_deinit(&one);
    rig_case_deinit(&two);
}

static bool print_finding(tide_op_kind kind, const finding *f) {
    const char *reason = reason_of(kind);
    const bool right = f->different == 0 || (reason && f->most_ulps <= most_ulps_of(kind));
    if (f->runs == 0) return true;
    if (f->different == 0)
        printf("%-20s %4u runs: the same bits\n", tide_op_kind_name(kind), f->runs);
    else
        printf("%-20s %4u runs: %u differ, by %.2f units at most: %s%s\n", tide_op_kind_name(kind), f->runs,
               f->different, f->most_ulps, reason ? reason : "nothing that explains it", right ? "" : "  FAILED");
    return right;
}

int check_pairs(visit_all_fn visit_all) {
    static pairing p;
    int failed = 0;
    rig_open(&p.rigs.one, &(rig_config){.device = "cuda"});
    rig_open(&p.rigs.two, &(rig_config){.device = "opencl", .products = "own", .lanes = "256"});
    visit_all(check_pair, &p);
    rig_close(&p.rigs.one);
    rig_close(&p.rigs.two);
    for (tide_op_kind kind = 0; kind < TIDE_OP_KIND_COUNT; kind++) failed += !print_finding(kind, &p.found[kind]);
    return failed;
}
