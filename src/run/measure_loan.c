/* Rates of memory that another rank lends: as for the tiers of a host, a small transfer gives the latency, large ones, less
 * that, the rate. Measured at the start of every job, since links and neighbours differ from one to the next. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/size.h"
#include "run/measure.h"
#include "tier/tier.h"

#define LARGE_BYTES (UINT64_C(16) << 20)
enum { SMALL_BYTES = 64, ROUNDS = 3 };

/* The quickest of a few: others may use the link at the same time. */
static tide_status time_transfer(tide__tier_slot *slot, bool out, void *data, uint64_t size_bytes, uint64_t *ns) {
    *ns = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t begin = tide__now_ns();
        TIDE_TRY(out ? tide__tier_save(slot, 0, data, size_bytes) : tide__tier_load(slot, 0, data, size_bytes));
        *ns = tide__min_u64(*ns, tide__now_ns() - begin);
    }
    return TIDE_OK;
}

static tide_status measure(tide__tier *tier, void *data, uint64_t size_bytes, uint64_t rate[2], uint64_t *latency_ns) {
    tide__tier_slot slot = {.tier = tier};
    uint64_t ns[2], latency[2];
    for (int out = 1; out >= 0; out--) {
        TIDE_TRY(time_transfer(&slot, out, data, SMALL_BYTES, &latency[out]));
        TIDE_TRY(time_transfer(&slot, out, data, size_bytes, &ns[out]));
        uint64_t moving_ns = ns[out] > latency[out] ? ns[out] - latency[out] : 1;
        rate[out] = (uint64_t)tide__bench_round((double)size_bytes * 1e9 / (double)moving_ns);
    }
    *latency_ns = (uint64_t)tide__bench_round((double)tide__max_u64(latency[0], latency[1]));
    return TIDE_OK;
}

tide_status tide_machine_measure_loan(const tide_loan *loan, uint64_t capacity_bytes, tide_machine *machine) {
    TIDE_NEED(loan, machine);
    uint64_t size_bytes = tide__min_u64(LARGE_BYTES, capacity_bytes), rate[2], latency_ns;
    const tide__tier_options options = {
        .kind = TIDE_TIER_LENT, .capacity_bytes = size_bytes, .block_bytes = 1, .loan = loan};
    tide__tier *tier;
    if (size_bytes < SMALL_BYTES)
        return tide__fail(TIDE_E_ARGUMENT, "rank %u lends %llu bytes to rank %u: fewer than %d are of no use",
                          loan->from, (unsigned long long)capacity_bytes, tide_net_rank(loan->net), (int)SMALL_BYTES);
    TIDE_TRY(tide__tier_open(&options, &tier));
    void *data = calloc(1, size_bytes);
    tide_status status = data ? measure(tier, data, size_bytes, rate, &latency_ns) : tide__fail_memory();
    free(data);
    tide__tier_destroy(tier);
    return status == TIDE_OK ? tide_machine_add_lent(machine, capacity_bytes, rate[1], rate[0], latency_ns) : status;
}
