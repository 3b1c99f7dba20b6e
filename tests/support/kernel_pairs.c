/* See kernel_pairs.h. */
#include "support/kernel_pairs.h"

#include "support/test.h"

typedef struct finding {
    uint32_t runs, different; /* variants of descriptors */
} finding;

typedef struct pairing {
    rig_pair rigs;
    finding found[TIDE_OP_KIND_COUNT];
} pairing;

static bool equal(const rig_case *one, const rig_case *two) {
    for (uint32_t i = one->spec.n_reads; i < one->spec.n_reads + one->spec.n_writes; i++)
        if (memcmp(one->plain[i], two->plain[i], one->spec.elements[i] * sizeof(float)) != 0) return false;
    return true;
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
        p->found[d->kind].runs++;
        p->found[d->kind].different += !equal(&one, &two);
    }
    rig_case_deinit(&one);
    rig_case_deinit(&two);
}

static void print_finding(tide_op_kind kind, const finding *f) {
    if (f->different > 0)
        printf("%-20s %4u runs: %u differ  FAILED\n", tide_op_kind_name(kind), f->runs, f->different);
    else if (f->runs > 0)
        printf("%-20s %4u runs: the same bits\n", tide_op_kind_name(kind), f->runs);
}

int check_pairs(visit_all_fn visit_all) {
    static pairing p;
    int failed = 0;
    rig_open(&p.rigs.one, &(rig_config){.device = "cuda"});
    rig_open(&p.rigs.two, &(rig_config){.device = "opencl", .products = "own", .lanes = "256"});
    visit_all(check_pair, &p);
    rig_close(&p.rigs.one);
    rig_close(&p.rigs.two);
    for (tide_op_kind kind = 0; kind < TIDE_OP_KIND_COUNT; kind++) {
        print_finding(kind, &p.found[kind]);
        failed += p.found[kind].different > 0;
    }
    return failed;
}
