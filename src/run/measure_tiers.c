/* Rates of copies between the arena and the host's tiers: a small copy gives the latency, a large one, less that, the
 * rate. Inputs come from host memory, so the client tier loads like the RAM tier.
 *
 * Channels that compete for the same memory or the same disk share their bandwidth: all of RAM and client in one group,
 * both directions of the disk in another. That is stated, not measured. */
#include <stdio.h>

#include "base/size.h"
#include "run/measure.h"

#define RAM_BYTES (UINT64_C(64) << 20)
enum { DISK_BLOCK = 4096, SHARE_MEMORY = 1, SHARE_DISK = 2 };

tide_status tide__bench_enqueue_copy(void *context, tide_queue *queue) {
    tide__bench_copy *c = context;
    tide_io io = {.fn = c->out ? tide__tier_save : tide__tier_load, .context = &c->slot, .channel = TIDE_NONE};
    return c->out ? tide_copy_out(queue, c->arena, 0, c->size_bytes, io)
                  : tide_copy_in(queue, c->arena, 0, c->size_bytes, io);
}

static tide_status time_copy(const tide__bench *b, tide__tier *tier, bool out, uint64_t size_bytes, uint64_t *ns) {
    tide__bench_copy c = {.arena = b->arena, .slot = {.tier = tier}, .size_bytes = size_bytes, .out = out};
    tide__timing t;
    TIDE_TRY(tide__bench_time(b, b->copy, tide__bench_enqueue_copy, &c, &t));
    *ns = t.median_ns;
    return TIDE_OK;
}

/* The last tier of `m` gets a channel in this direction. */
static tide_status measure_channel(const tide__bench *b, tide__tier *tier, bool out, uint64_t large_bytes,
                                   uint32_t share, tide_machine *m) {
    uint64_t small_bytes = m->tier[m->n_tiers - 1].block_bytes, latency, ns;
    TIDE_TRY(time_copy(b, tier, out, small_bytes, &latency));
    TIDE_TRY(time_copy(b, tier, out, large_bytes, &ns));
    ns = ns > latency ? ns - latency : 1;
    double rate = tide__bench_round((double)large_bytes * 1e9 / (double)ns);
    uint64_t half_bytes = tide__min_u64(large_bytes, b->options->arena_bytes / 2) & ~(small_bytes - 1);
    tide__bench_copy copy = {.arena = b->arena, .slot = {.tier = tier}, .size_bytes = half_bytes, .out = out};
    uint32_t drag_percent;
    TIDE_TRY(tide__measure_drag(b, &copy, &drag_percent));
    m->channel[m->n_channels++] = (tide_machine_channel){.tier = m->n_tiers - 1,
                                                         .out = out,
                                                         .bytes_per_s = (uint64_t)rate,
                                                         .latency_ns = (uint64_t)tide__bench_round((double)latency),
                                                         .share = share,
                                                         .drag_percent = drag_percent};
    return TIDE_OK;
}

static void add_tier(tide_machine *m, tide_tier_kind kind, const char *name, uint32_t block_bytes) {
    tide_machine_tier *t = &m->tier[m->n_tiers++];
    *t = (tide_machine_tier){.kind = kind, .capacity_bytes = UINT64_MAX, .block_bytes = block_bytes};
    snprintf(t->name, sizeof t->name, "%s", name);
}

static tide_status measure_tier(const tide__bench *b, tide_tier_kind kind, uint64_t size_bytes, uint32_t share,
                                tide_machine *m) {
    const tide__tier_options as_in_runs = {.kind = kind,
                                           .capacity_bytes = size_bytes,
                                           .block_bytes = m->tier[m->n_tiers - 1].block_bytes,
                                           .path = b->options->disk_path,
                                           .checksums = true};
    tide__tier *tier;
    TIDE_TRY(tide__tier_open(&as_in_runs, &tier));
    tide_status status = measure_channel(b, tier, true, size_bytes, share, m);
    if (status == TIDE_OK) status = measure_channel(b, tier, false, size_bytes, share, m);
    if (kind == TIDE_TIER_DISK && !tide__tier_get_stats(tier).direct)
        tide__bench_say(b, "no direct access to this disk: its rates are those of the page cache");
    tide__tier_destroy(tier);
    return status;
}

tide_status tide__measure_tiers(const tide__bench *b, tide_machine *m) {
    uint64_t disk_bytes = tide__min_u64(b->options->disk_bytes, b->options->arena_bytes) & ~UINT64_C(4095);
    uint64_t ram_bytes = tide__min_u64(RAM_BYTES, b->options->arena_bytes / 2);
    tide__bench_say(b, "copies to RAM");
    add_tier(m, TIDE_TIER_RAM, "ram", 1);
    TIDE_TRY(measure_tier(b, TIDE_TIER_RAM, ram_bytes, SHARE_MEMORY, m));
    tide_machine_channel from_host = m->channel[m->n_channels - 1];
    if (disk_bytes) {
        tide__bench_say(b, "copies to disk");
        add_tier(m, TIDE_TIER_DISK, "disk", DISK_BLOCK);
        TIDE_TRY(measure_tier(b, TIDE_TIER_DISK, disk_bytes, SHARE_DISK, m));
    }
    add_tier(m, TIDE_TIER_CLIENT, "client", 1);
    from_host.tier = m->n_tiers - 1;
    m->channel[m->n_channels++] = from_host;
    return TIDE_OK;
}
