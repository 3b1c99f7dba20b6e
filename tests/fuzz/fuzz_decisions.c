/* Fuzzes the reader of decisions files; what it accepts must be scheduled into a valid plan, or refused as impossible. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "plan/decide/policies/policies.h"
#include "plan/schedule/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A chain of three ops and back: a -> b -> c, then each output is read again. */
static tide_program *chain(void) {
    tide_program_builder *b;
    tide_program *p;
    tide_id ids[7], op;
    static const char *const names[] = {"a", "b", "c", "db", "da", "dx", "x"};
    static const tide_variant variants[] = {{.cost_ns = 5}, {.workspace_bytes = 64, .cost_ns = 3}};
    if (tide_program_builder_create("p", false, &b) != TIDE_OK) abort();
    for (int i = 0; i < 7; i++) {
        tide_tensor t = {.name = names[i], .size_bytes = 64, .keep = i == 5};
        if (i == 6) t.start = TIDE_START_CLIENT;
        if (tide_program_builder_tensor(b, &t, &ids[i]) != TIDE_OK) abort();
    }
    const tide_id reads[6][2] = {{ids[6], 0},      {ids[0], 0},      {ids[1], 0},
                                 {ids[2], ids[1]}, {ids[3], ids[0]}, {ids[4], ids[6]}};
    for (int i = 0; i < 6; i++) {
        tide_op o = {.name = names[i],
                     .rerunnable = true,
                     .reads = reads[i],
                     .n_reads = i < 3 ? 1 : 2,
                     .writes = &ids[i],
                     .n_writes = 1,
                     .variants = variants,
                     .n_variants = 2};
        if (tide_program_builder_op(b, &o, &op) != TIDE_OK) abort();
    }
    if (tide_program_builder_finish(b, &p) != TIDE_OK) abort();
    return p;
}

static void carry_out(const tide_program *p, const tide_machine *m, const tide__decisions *d) {
    tide_plan *plan;
    tide_verdict verdict;
    if (tide__plan_new(&plan) != TIDE_OK) return;
    plan->signature = tide_program_signature(p);
    plan->n_queues = 1 + m->n_channels;
    plan->n_tiers = m->n_tiers;
    tide_status status = tide__schedule(p, m, d, plan);
    if (status == TIDE_OK) status = tide__place_plan(p, m, false, NULL, plan);
    if (status == TIDE_OK) status = tide__sync(plan);
    if (status == TIDE_OK && tide_plan_verify(plan, p, m, NULL, &verdict) == TIDE_E_PLAN) abort();
    tide_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide_program *p = chain();
    tide_machine m;
    tide__decisions d = {0};
    tide_machine_init_default(&m);
    if (tide__decisions_read((const char *)data, size, "fuzz", p, &m, &d) == TIDE_OK && d.swaps.count < 64 &&
        d.reruns.count < 64)
        carry_out(p, &m, &d);
    tide__decisions_free(&d);
    tide_program_destroy(p);
    return 0;
}
