/* See tiers.h. */
#include "plan/decide/swaps/tiers.h"

#include "base/size.h"
#include "plan/plan_data.h"

static bool has_channels(const tide_machine *m, uint32_t tier) {
    return tide_machine_queue(m, tier, true) != TIDE_NONE && tide_machine_queue(m, tier, false) != TIDE_NONE;
}

tide__tiers tide__tiers_of(const tide_machine *m) {
    static const tide_tier_kind kinds[] = {TIDE_TIER_RAM, TIDE_TIER_LENT, TIDE_TIER_DISK};
    tide__tiers found = {0};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t t = 0; t < m->n_tiers; t++)
            if (m->tier[t].kind == kinds[k] && has_channels(m, t)) found.tier[found.n++] = t;
    return found;
}

static uint64_t limit_of(const tide__policy_input *in, uint32_t tier) {
    return tide__tier_limit(in->machine, &in->options->budgets, tier);
}

uint64_t tide__tier_room(const tide__policy_input *in, uint32_t tier) {
    uint64_t limit = limit_of(in, tier);
    return limit - tide__min_u64(limit, in->tier_missed_bytes[tier]);
}

tide__tiers tide__tiers_with_room(const tide__policy_input *in) {
    tide__tiers all = tide__tiers_of(in->machine), found = {0};
    for (uint32_t i = 0; i < all.n; i++)
        if (tide__tier_room(in, all.tier[i]) > 0) found.tier[found.n++] = all.tier[i];
    return found;
}

bool tide__tiers_allow_moves(const tide__policy_input *in) {
    uint32_t client = tide_machine_find_tier(in->machine, TIDE_TIER_CLIENT);
    if (tide__tiers_with_room(in).n > 0) return true;
    if (client == TIDE_NONE || tide_machine_queue(in->machine, client, false) == TIDE_NONE) return false;
    for (tide_id t = 0; t < tide_program_tensor_count(in->program); t++)
        if (tide_program_tensor(in->program, t)->start == TIDE_START_CLIENT) return true;
    return false;
}

bool tide__tiers_hold(const tide__policy_input *in, const uint64_t *tier_bytes) {
    for (uint32_t t = 0; t < in->machine->n_tiers; t++)
        if (tier_bytes[t] > limit_of(in, t)) return false;
    return true;
}

bool tide__tiers_shrink(tide__policy_input *in, const uint64_t *tier_bytes) {
    bool missed = false;
    for (uint32_t t = 0; t < in->machine->n_tiers; t++) {
        uint64_t limit = limit_of(in, t);
        if (in->machine->tier[t].kind == TIDE_TIER_CLIENT || tier_bytes[t] <= limit) continue;
        in->tier_missed_bytes[t] = tide__add_capped(in->tier_missed_bytes[t], tier_bytes[t] - limit);
        missed = true;
    }
    return missed;
}
