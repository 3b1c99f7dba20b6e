/* Fuzzes the reader of a run's record: what is accepted has a time per action, a shape per tensor, and no action that ends
 * before it begins. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "report/run_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const tide_record *r) {
    if (r->start_ns.count != tide_plan_action_count(r->plan) || r->end_ns.count != r->start_ns.count) abort();
    if (r->shapes.count != tide_program_tensor_count(r->program)) abort();
    for (size_t i = 0; i < r->start_ns.count; i++)
        if (r->end_ns.data[i] < r->start_ns.data[i]) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide_record *r;
    if (tide_record_read_memory(data, size, "fuzz", &r) != TIDE_OK) return 0;
    for (uint32_t i = 0; i < tide_record_rank_count(r); i++) check(tide_record_of_rank(r, i));
    tide_record_destroy(r);
    return 0;
}
