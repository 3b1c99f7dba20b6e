/* See hand_made.h. */
#include "support/hand_made.h"

#include "plan/schedule/schedule.h"
#include "support/test.h"

tide_machine machine_with_disk(void) {
    tide_machine m;
    tide_machine_init_default(&m);
    m.align_bytes = 16;
    m.n_tiers = 3;
    m.n_channels = 5;
    m.tier[RAM] =
        (tide_machine_tier){.name = "ram", .kind = TIDE_TIER_RAM, .capacity_bytes = UINT64_MAX, .block_bytes = 1};
    m.tier[DISK] =
        (tide_machine_tier){.name = "disk", .kind = TIDE_TIER_DISK, .capacity_bytes = UINT64_MAX, .block_bytes = 64};
    m.tier[CLIENT] =
        (tide_machine_tier){.name = "client", .kind = TIDE_TIER_CLIENT, .capacity_bytes = UINT64_MAX, .block_bytes = 1};
    m.channel[0] = (tide_machine_channel){.tier = RAM, .out = true, .bytes_per_s = 2000000000, .latency_ns = 10};
    m.channel[1] = (tide_machine_channel){.tier = RAM, .out = false, .bytes_per_s = 2000000000, .latency_ns = 10};
    m.channel[2] =
        (tide_machine_channel){.tier = DISK, .out = true, .bytes_per_s = 500000000, .latency_ns = 50, .share = 1};
    m.channel[3] =
        (tide_machine_channel){.tier = DISK, .out = false, .bytes_per_s = 700000000, .latency_ns = 50, .share = 1};
    m.channel[4] = (tide_machine_channel){.tier = CLIENT, .out = false, .bytes_per_s = 3000000000, .latency_ns = 5};
    assert_ok(tide_machine_validate(&m));
    return m;
}

static tide_status carry_out(const tide_program *p, const tide_machine *m, const tide__decisions *d, tide_plan *plan) {
    plan->signature = tide_program_signature(p);
    plan->n_queues = 1 + m->n_channels;
    plan->n_tiers = m->n_tiers;
    TIDE_TRY(tide__schedule(p, m, d, plan));
    TIDE_TRY(tide__place_plan(p, m, d->keep_everything, NULL, plan));
    return tide__sync(plan);
}

tide_status plan_from_decisions(const tide_program *p, const tide_machine *m, const tide__decisions *d,
                                tide_plan **out) {
    tide_plan *plan;
    TIDE_TRY(tide__plan_new(&plan));
    tide_status status = carry_out(p, m, d, plan);
    if (status == TIDE_OK)
        *out = plan;
    else
        tide_plan_destroy(plan);
    return status;
}
