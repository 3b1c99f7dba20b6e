/* Machines as data: the neutral default, the rules a machine obeys, and the few questions planners ask of it.
 * Invariant: whoever holds a validated machine may index its tiers and channels without further checks. Reading and
 * writing profiles is machine_file.c. */
#include <tidemark/machine.h>

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/size.h"
#include "plan/plan_data.h"

void tide_machine_init_default(tide_machine *m) {
    *m = (tide_machine){
        .name = "default",
        .source = "neutral default",
        .memory_bytes = UINT64_C(1) << 40,
        .align_bytes = 1,
        .flops_per_s = 1e12,
        .bytes_per_s = 1e11,
        .matrix_efficiency = 1,
        .vector_efficiency = 1,
        .n_tiers = 2,
        .n_channels = 3,
        .tier = {{.name = "ram", .kind = TIDE_TIER_RAM, .capacity_bytes = UINT64_MAX, .block_bytes = 1},
                 {.name = "client", .kind = TIDE_TIER_CLIENT, .capacity_bytes = UINT64_MAX, .block_bytes = 1}},
        .channel = {{.tier = 0, .out = true, .bytes_per_s = UINT64_C(12000000000)},
                    {.tier = 0, .out = false, .bytes_per_s = UINT64_C(12000000000)},
                    {.tier = 1, .out = false, .bytes_per_s = UINT64_C(12000000000)}},
    };
}

/* ---- validation ---- */

static bool is_text(const char *s) { return s[0] != '\0' && memchr(s, '\0', TIDE_MACHINE_NAME_BYTES) != NULL; }

static bool is_positive(double x) { return isfinite(x) && x > 0; }

static bool is_efficiency(double x) { return is_positive(x) && x <= 1; }

static tide_status check_device(const tide_machine *m) {
    if (!is_text(m->name)) return tide__fail(TIDE_E_ARGUMENT, "machine: name is empty or too long");
    if (!is_text(m->source)) return tide__fail(TIDE_E_ARGUMENT, "machine: source is empty or too long");
    if (m->memory_bytes == 0) return tide__fail(TIDE_E_ARGUMENT, "machine: memory_bytes is 0");
    if (m->reserve_bytes >= m->memory_bytes)
        return tide__fail(TIDE_E_ARGUMENT, "machine: reserve_bytes leaves nothing of memory_bytes");
    if (!tide__is_power_of_two(m->align_bytes))
        return tide__fail(TIDE_E_ARGUMENT, "machine: align_bytes is not a power of two");
    if (!is_positive(m->flops_per_s)) return tide__fail(TIDE_E_ARGUMENT, "machine: flops_per_s is not positive");
    if (!is_positive(m->bytes_per_s)) return tide__fail(TIDE_E_ARGUMENT, "machine: bytes_per_s is not positive");
    if (!is_efficiency(m->matrix_efficiency))
        return tide__fail(TIDE_E_ARGUMENT, "machine: matrix_efficiency is outside (0, 1]");
    if (!is_efficiency(m->vector_efficiency))
        return tide__fail(TIDE_E_ARGUMENT, "machine: vector_efficiency is outside (0, 1]");
    if (m->half_flops_per_s != 0 && !is_positive(m->half_flops_per_s))
        return tide__fail(TIDE_E_ARGUMENT, "machine: half_flops_per_s is neither a positive number nor 0");
    return TIDE_OK;
}

static tide_status check_tier(const tide_machine *m, uint32_t i) {
    const tide_machine_tier *t = &m->tier[i];
    if (!is_text(t->name)) return tide__fail(TIDE_E_ARGUMENT, "machine: tiers[%u]: name is empty or too long", i);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(m->tier[k].name, t->name) == 0)
            return tide__fail(TIDE_E_ARGUMENT, "machine: two tiers named \"%s\"", t->name);
    if ((unsigned)t->kind > TIDE_TIER_LENT) return tide__fail(TIDE_E_ARGUMENT, "machine: tiers[%u]: bad kind", i);
    if (t->kind == TIDE_TIER_PEER && (t->capacity_bytes != 0 || t->block_bytes != 1))
        return tide__fail(TIDE_E_ARGUMENT, "machine: tiers[%u]: no bytes stay with a peer, and they need no blocks", i);
    if (!tide__is_power_of_two(t->block_bytes))
        return tide__fail(TIDE_E_ARGUMENT, "machine: tiers[%u]: block_bytes is not a power of two", i);
    return TIDE_OK;
}

static tide_status check_channel(const tide_machine *m, uint32_t i) {
    const tide_machine_channel *c = &m->channel[i];
    if (c->tier >= m->n_tiers) return tide__fail(TIDE_E_ARGUMENT, "machine: channels[%u]: no such tier", i);
    if (c->bytes_per_s == 0) return tide__fail(TIDE_E_ARGUMENT, "machine: channels[%u]: bytes_per_s is 0", i);
    if (c->drag_percent > 90) return tide__fail(TIDE_E_ARGUMENT, "machine: channels[%u]: drag_percent above 90", i);
    if (c->out && m->tier[c->tier].kind == TIDE_TIER_CLIENT)
        return tide__fail(TIDE_E_ARGUMENT, "machine: channels[%u]: a client tier is read-only", i);
    for (uint32_t k = 0; k < i; k++)
        if (m->channel[k].tier == c->tier && m->channel[k].out == c->out)
            return tide__fail(TIDE_E_ARGUMENT, "machine: channels[%u]: a second channel %s tier \"%s\"", i,
                              c->out ? "out to" : "in from", m->tier[c->tier].name);
    return TIDE_OK;
}

static tide_status check(const tide_machine *m, uint32_t max_tiers, uint32_t max_channels) {
    TIDE_TRY(check_device(m));
    if (m->n_tiers > max_tiers) return tide__fail(TIDE_E_ARGUMENT, "machine: more than %u tiers", max_tiers);
    if (m->n_channels > max_channels)
        return tide__fail(TIDE_E_ARGUMENT, "machine: more than %u channels", max_channels);
    for (uint32_t i = 0; i < m->n_tiers; i++) TIDE_TRY(check_tier(m, i));
    for (uint32_t i = 0; i < m->n_channels; i++) TIDE_TRY(check_channel(m, i));
    return TIDE_OK;
}

tide_status tide_machine_validate(const tide_machine *m) {
    TIDE_NEED(m);
    return check(m, TIDE_MACHINE_MAX_TIERS - 1, TIDE_MACHINE_MAX_CHANNELS - 2);
}

tide_status tide__machine_check(const tide_machine *m) {
    return check(m, TIDE_MACHINE_MAX_TIERS, TIDE_MACHINE_MAX_CHANNELS);
}

/* ---- questions ---- */

static uint64_t hash_double(uint64_t hash, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return tide__hash_word(hash, bits);
}

static uint64_t hash_device(uint64_t h, const tide_machine *m) {
    h = tide__hash_word(h, m->memory_bytes);
    h = tide__hash_word(h, m->reserve_bytes);
    h = tide__hash_word(h, m->align_bytes);
    h = hash_double(h, m->flops_per_s);
    h = hash_double(h, m->bytes_per_s);
    h = tide__hash_word(h, m->launch_ns);
    h = hash_double(h, m->matrix_efficiency);
    h = hash_double(h, m->vector_efficiency);
    if (m->half_flops_per_s != 0) h = hash_double(h, m->half_flops_per_s);
    h = tide__hash_word(h, m->n_tiers);
    return tide__hash_word(h, m->n_channels);
}

uint64_t tide_machine_fingerprint(const tide_machine *m) {
    uint64_t h = hash_device(0, m);
    for (uint32_t i = 0; i < m->n_tiers; i++) {
        h = tide__hash_word(h, (uint64_t)m->tier[i].kind);
        h = tide__hash_word(h, m->tier[i].capacity_bytes);
        h = tide__hash_word(h, m->tier[i].block_bytes);
    }
    for (uint32_t i = 0; i < m->n_channels; i++) {
        h = tide__hash_word(h, m->channel[i].tier);
        h = tide__hash_word(h, m->channel[i].out);
        h = tide__hash_word(h, m->channel[i].bytes_per_s);
        h = tide__hash_word(h, m->channel[i].latency_ns);
        h = tide__hash_word(h, m->channel[i].share | (uint64_t)m->channel[i].drag_percent << 32);
    }
    return h;
}

uint32_t tide_machine_queue(const tide_machine *m, uint32_t tier, bool out) {
    for (uint32_t i = 0; i < m->n_channels; i++)
        if (m->channel[i].tier == tier && m->channel[i].out == out) return i + 1;
    return TIDE_NONE;
}

uint64_t tide_machine_transfer_ns(const tide_machine *m, uint32_t channel, uint64_t bytes) {
    __extension__ typedef unsigned __int128 u128;
    const tide_machine_channel *c = &m->channel[channel];
    u128 scaled = (u128)bytes * UINT64_C(1000000000);
    u128 total = (scaled + c->bytes_per_s - 1) / c->bytes_per_s + c->latency_ns;
    return total > UINT64_MAX ? UINT64_MAX : (uint64_t)total;
}

uint64_t tide_machine_relocate_ns(const tide_machine *m, uint64_t bytes, uint64_t distance_bytes) {
    if (bytes == 0 || distance_bytes == 0) return 0;
    uint64_t pieces = bytes / distance_bytes + (bytes % distance_bytes != 0);
    double ns =
        ceil(2e9 * (double)bytes / (m->bytes_per_s * m->vector_efficiency)) + (double)pieces * (double)m->launch_ns;
    return ns < 0x1p63 ? (uint64_t)ns : UINT64_MAX;
}

uint32_t tide_machine_find_tier(const tide_machine *m, tide_tier_kind kind) {
    for (uint32_t i = 0; i < m->n_tiers; i++)
        if (m->tier[i].kind == kind) return i;
    return TIDE_NONE;
}

/* The first number of two that no channel shares by: out and in. */
static uint32_t free_share(const tide_machine *m) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < m->n_channels; i++)
        if (m->channel[i].share > most) most = m->channel[i].share;
    return most < UINT32_MAX - 2 ? most + 1 : 0;
}

/* rates, shares: in, out. What goes to other ranks shares the network with what goes to their memory. */
static tide_status add_remote(tide_machine *m, tide_machine_tier tier, const uint64_t rates[2], uint64_t latency_ns) {
    tide_machine more = *m;
    uint32_t other = tide_machine_find_tier(m, tier.kind == TIDE_TIER_PEER ? TIDE_TIER_LENT : TIDE_TIER_PEER);
    uint32_t share = tier.kind == TIDE_TIER_LENT ? free_share(m) : 0;
    if (more.n_tiers >= TIDE_MACHINE_MAX_TIERS - 1 || more.n_channels + 2 > TIDE_MACHINE_MAX_CHANNELS - 2)
        return tide__fail(TIDE_E_ARGUMENT, "machine: no room for another tier");
    for (uint32_t out = 0; out < 2; out++) {
        uint32_t twin = other == TIDE_NONE ? TIDE_NONE : tide_machine_queue(m, other, out);
        tide_machine_channel *c = &more.channel[more.n_channels++];
        *c = (tide_machine_channel){.tier = more.n_tiers, .out = out, .bytes_per_s = rates[out]};
        c->latency_ns = latency_ns;
        c->share = share ? share + out : 0;
        if (twin == TIDE_NONE) continue;
        if (m->channel[twin - 1].share == 0) more.channel[twin - 1].share = c->share;
        c->share = more.channel[twin - 1].share;
    }
    more.tier[more.n_tiers++] = tier;
    TIDE_TRY(tide_machine_validate(&more));
    *m = more;
    return TIDE_OK;
}

tide_status tide_machine_add_peers(tide_machine *m, uint64_t bytes_per_s, uint64_t latency_ns) {
    TIDE_NEED(m);
    if (tide_machine_find_tier(m, TIDE_TIER_PEER) != TIDE_NONE) return TIDE_OK;
    return add_remote(m, (tide_machine_tier){.name = "peers", .kind = TIDE_TIER_PEER, .block_bytes = 1},
                      (const uint64_t[]){bytes_per_s, bytes_per_s}, latency_ns);
}

tide_status tide_machine_add_lent(tide_machine *m, uint64_t capacity_bytes, uint64_t out_bytes_per_s,
                                  uint64_t in_bytes_per_s, uint64_t latency_ns) {
    TIDE_NEED(m);
    const tide_machine_tier tier = {
        .name = "lent", .kind = TIDE_TIER_LENT, .capacity_bytes = capacity_bytes, .block_bytes = 1};
    return add_remote(m, tier, (const uint64_t[]){in_bytes_per_s, out_bytes_per_s}, latency_ns);
}

void tide_machine_without(const tide_machine *m, tide_tier_kind kind, tide_machine *out) {
    tide_machine left = *m;
    uint32_t now[TIDE_MACHINE_MAX_TIERS]; /* the new index of a tier that stays */
    left.n_tiers = left.n_channels = 0;
    for (uint32_t t = 0; t < m->n_tiers; t++) {
        now[t] = left.n_tiers;
        if (m->tier[t].kind != kind) left.tier[left.n_tiers++] = m->tier[t];
    }
    for (uint32_t c = 0; c < m->n_channels; c++) {
        if (m->tier[m->channel[c].tier].kind == kind) continue;
        left.channel[left.n_channels] = m->channel[c];
        left.channel[left.n_channels++].tier = now[m->channel[c].tier];
    }
    *out = left;
}
