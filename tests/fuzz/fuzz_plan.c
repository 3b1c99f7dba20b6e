/* Fuzzes the reader of plan files. A fingerprint stands at the end of a file, which no mutation hits by chance: so the
 * text is read twice, as it is and with the fingerprint of what it says. What is accepted must survive the round
 * trip, and whatever it says, the verifier must answer. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/plan_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two ops, a weight and an input. */
static tide_program *small_program(void) {
    tide_program_builder *b;
    tide_program *p;
    tide_id x = 0, w = 0, y = 0, w2 = 0;
    static const tide_variant variant = {.workspace_bytes = 16, .cost_ns = 5};
    static const tide_inplace pair = {0, 0, true};
    if (tide_program_builder_create("p", true, &b) != TIDE_OK) abort();
    tide_tensor tensors[] = {{.name = "x", .size_bytes = 32, .start = TIDE_START_CLIENT},
                             {.name = "w", .size_bytes = 64, .start = TIDE_START_PRESENT},
                             {.name = "y", .size_bytes = 32},
                             {.name = "w2", .size_bytes = 64, .keep = true}};
    tide_id *ids[] = {&x, &w, &y, &w2};
    for (int i = 0; i < 4; i++)
        if (tide_program_builder_tensor(b, &tensors[i], ids[i]) != TIDE_OK) abort();
    tide_id forward[] = {x, w}, update[] = {w, y}, id;
    tide_op ops[] = {{.name = "f",
                      .rerunnable = true,
                      .reads = forward,
                      .n_reads = 2,
                      .writes = &y,
                      .n_writes = 1,
                      .variants = &variant,
                      .n_variants = 1},
                     {.name = "u",
                      .reads = update,
                      .n_reads = 2,
                      .writes = &w2,
                      .n_writes = 1,
                      .variants = &variant,
                      .n_variants = 1,
                      .inplace = &pair,
                      .n_inplace = 1}};
    for (int i = 0; i < 2; i++)
        if (tide_program_builder_op(b, &ops[i], &id) != TIDE_OK) abort();
    if (tide_program_builder_carry(b, (tide_carry){w2, w}) != TIDE_OK) abort();
    if (tide_program_builder_finish(b, &p) != TIDE_OK) abort();
    return p;
}

static void check_round_trip(const tide_plan *plan) {
    char path[] = "/tmp/tidemark-fuzz-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) abort();
    close(fd);
    tide_plan *again;
    if (tide_plan_write(plan, path) != TIDE_OK || tide_plan_read(path, &again) != TIDE_OK) abort();
    if (tide_plan_fingerprint(plan) != tide_plan_fingerprint(again)) abort();
    tide_plan_destroy(again);
    unlink(path);
}

static void check_verdict(tide_plan *plan) {
    tide_program *p = small_program();
    tide_machine m;
    tide_verdict verdict;
    tide_machine_init_default(&m);
    plan->signature = tide_program_signature(p);
    tide_status status = tide_plan_verify(plan, p, &m, NULL, &verdict);
    if (status != TIDE_OK && status != TIDE_E_PLAN && status != TIDE_E_MEMORY) abort();
    tide_timeline *timeline;
    if (status == TIDE_OK && tide_plan_simulate(plan, p, &m, &timeline) == TIDE_OK) tide_timeline_destroy(timeline);
    tide_program_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide_plan *plan;
    if (tide__plan_read_unchecked((const char *)data, size, "fuzz", &plan) == TIDE_OK) {
        check_round_trip(plan);
        check_verdict(plan);
        tide_plan_destroy(plan);
    }
    if (tide_plan_read_memory(data, size, "fuzz", &plan) == TIDE_OK) tide_plan_destroy(plan);
    return 0;
}
