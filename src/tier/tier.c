/* The part all tiers share: creation by kind, the budget, the counters. */
#include "base/size.h"
#include "tier/tier_kind.h"

static tide_status open_kind(const tide__tier_options *o, tide__tier **out) {
    switch (o->kind) {
    case TIDE_TIER_RAM: return tide__tier_ram_create(o->capacity_bytes, out);
    case TIDE_TIER_DISK: return tide__tier_disk_create(o, out);
    case TIDE_TIER_LENT: return tide__tier_peer_create(o->loan, o->capacity_bytes, out);
    case TIDE_TIER_PEER:
    case TIDE_TIER_CLIENT: break;
    }
    return tide__fail(TIDE_E_ARGUMENT, "a tier of kind %d cannot be created", (int)o->kind);
}

tide_status tide__tier_open(const tide__tier_options *o, tide__tier **out) {
    tide__tier *tier = NULL;
    if (!tide__is_power_of_two(o->block_bytes))
        return tide__fail(TIDE_E_ARGUMENT, "a tier's block of %u bytes is not a power of two", o->block_bytes);
    TIDE_TRY(open_kind(o, &tier));
    tier->capacity_bytes = o->capacity_bytes;
    tier->block_bytes = o->block_bytes;
    atomic_init(&tier->saved_bytes, 0);
    atomic_init(&tier->loaded_bytes, 0);
    atomic_init(&tier->written_bytes, 0);
    atomic_init(&tier->read_bytes, 0);
    atomic_init(&tier->staging_bytes, 0);
    *out = tier;
    return TIDE_OK;
}

tide_status tide__tier_create(tide_tier_kind kind, uint64_t capacity_bytes, uint32_t block_bytes, const char *path,
                              tide__tier **out) {
    const tide__tier_options options = {
        .kind = kind, .capacity_bytes = capacity_bytes, .block_bytes = block_bytes, .path = path};
    return tide__tier_open(&options, out);
}

void tide__tier_destroy(tide__tier *tier) {
    if (tier) tier->v->destroy(tier);
}

static tide_status resize(tide__tier *tier, uint64_t capacity_bytes) {
    TIDE_TRY(tier->v->resize(tier, capacity_bytes));
    tier->capacity_bytes = capacity_bytes;
    return TIDE_OK;
}

tide_status tide__tier_grow(tide__tier *tier, uint64_t capacity_bytes) {
    return capacity_bytes > tier->capacity_bytes ? resize(tier, capacity_bytes) : TIDE_OK;
}

void tide__tier_shrink(tide__tier *tier, uint64_t capacity_bytes) {
    if (capacity_bytes > 0 && capacity_bytes < tier->capacity_bytes) (void)resize(tier, capacity_bytes);
}

static tide_status check_range(const tide__tier_slot *slot, uint64_t position, uint64_t size_bytes, uint64_t *start) {
    const tide__tier *tier = slot->tier;
    uint64_t end;
    if (slot->offset & (tier->block_bytes - 1))
        return tide__fail(TIDE_E_ARGUMENT, "tier slot at %llu is not a multiple of %u bytes",
                          (unsigned long long)slot->offset, tier->block_bytes);
    if (!tide__add(slot->offset, position, start) || !tide__add(*start, size_bytes, &end) || end > tier->capacity_bytes)
        return tide__fail(TIDE_E_TIER_FULL, "tier slot at %llu: %llu bytes at %llu exceed the tier's %llu bytes",
                          (unsigned long long)slot->offset, (unsigned long long)size_bytes,
                          (unsigned long long)position, (unsigned long long)tier->capacity_bytes);
    return TIDE_OK;
}

tide_status tide__tier_save(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    const tide__tier_slot *slot = context;
    uint64_t start;
    TIDE_TRY(check_range(slot, position, size_bytes, &start));
    TIDE_TRY(slot->tier->v->save(slot->tier, start, data, size_bytes));
    atomic_fetch_add_explicit(&slot->tier->saved_bytes, size_bytes, memory_order_relaxed);
    return TIDE_OK;
}

tide_status tide__tier_load(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    const tide__tier_slot *slot = context;
    uint64_t start;
    TIDE_TRY(check_range(slot, position, size_bytes, &start));
    TIDE_TRY(slot->tier->v->load(slot->tier, start, data, size_bytes));
    atomic_fetch_add_explicit(&slot->tier->loaded_bytes, size_bytes, memory_order_relaxed);
    return TIDE_OK;
}

tide__tier_stats tide__tier_get_stats(const tide__tier *tier) {
    return (tide__tier_stats){.capacity_bytes = tier->capacity_bytes,
                              .saved_bytes = atomic_load(&tier->saved_bytes),
                              .loaded_bytes = atomic_load(&tier->loaded_bytes),
                              .written_bytes = atomic_load(&tier->written_bytes),
                              .read_bytes = atomic_load(&tier->read_bytes),
                              .staging_bytes = atomic_load(&tier->staging_bytes),
                              .direct = tier->direct,
                              .engine = tier->engine};
}
