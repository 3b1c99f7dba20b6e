/* Device memory and pinned memory. Device addresses are numbers that no processor maps, so a host that follows one
 * crashes; they are given out once, with a gap behind each allocation, so that what was freed is never mistaken for
 * something new. Every range has a shadow of cells (cells.c) unless checks are off. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "standin.h"

#define DEVICE_BASE UINT64_C(0x00d0000000000000)
#define DEVICE_SHIFT 44
enum { GRAIN_BYTES = 512, GAP_BYTES = 1 << 21, FRESH_BYTE = 0xa5, MOST_FRESH_BYTES = 1 << 23 };

typedef struct range_list {
    range **data;
    uint32_t count;
    uint64_t next;
} range_list;

static range_list device_ranges[MAX_DEVICES]; /* ascending bases */
static range_list pinned_ranges;

static void append(range_list *l, range *r) {
    l->data = array_grow(l->data, l->count, sizeof *l->data);
    l->data[l->count++] = r;
}

static void *map_bytes(uint64_t size) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* New memory is not zero, as on a device; what lies beyond a few MiB is, so that large arenas cost nothing. */
static void fill_fresh(void *bytes, uint64_t size) {
    memset(bytes, FRESH_BYTE, size < MOST_FRESH_BYTES ? size : MOST_FRESH_BYTES);
}

static uint64_t cells_bytes(const range *r) { return (r->size + 3) / 4 * sizeof(lane_cell); }

static range *create_range(context *c, uint64_t size) {
    range *r = calloc(1, sizeof *r);
    if (!r) abort();
    r->size = size;
    r->owner = (owner){c, c->generation};
    if (the_standin.settings.checks) r->cells = map_bytes(cells_bytes(r));
    return r;
}

/* The bytes go, the range stays: later uses are recognised. */
static void drop_bytes(range *r) {
    if (r->bytes && !r->registered) munmap(r->bytes, r->size);
    if (r->cells) munmap(r->cells, cells_bytes(r));
    r->bytes = NULL, r->cells = NULL;
    r->freed = true;
}

/* ---- device memory ---- */

CUresult memory_alloc(context *c, uint64_t size, range **out) {
    range_list *l = &device_ranges[c->device];
    const uint64_t total = the_standin.settings.memory_bytes;
    if (size == 0) return misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "an allocation of no bytes");
    if (size > total) return CUDA_ERROR_OUT_OF_MEMORY;
    const uint64_t taken = (size + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
    if (taken > total - c->used_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    range *r = create_range(c, size);
    if (l->next == 0) l->next = DEVICE_BASE | (uint64_t)c->device << DEVICE_SHIFT;
    r->base = l->next;
    r->bytes = map_bytes(size);
    if (!r->bytes) abort();
    fill_fresh(r->bytes, size);
    l->next += (taken + 2 * GAP_BYTES - 1) / GAP_BYTES * GAP_BYTES;
    c->used_bytes += taken;
    append(l, r);
    *out = r;
    return CUDA_SUCCESS;
}

static range *find_device(uint64_t at) {
    for (uint32_t d = 0; d < MAX_DEVICES; d++) {
        const range_list *l = &device_ranges[d];
        uint32_t low = 0, high = l->count;
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            if (l->data[middle]->base <= at)
                low = middle + 1;
            else
                high = middle;
        }
        if (low && at - l->data[low - 1]->base < l->data[low - 1]->size) return l->data[low - 1];
    }
    return NULL;
}

static void release_device(range *r) {
    r->owner.context->used_bytes -= (r->size + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
    drop_bytes(r);
}

/* Waits for the device, as drivers do: whatever still runs may use the memory. */
CUresult memory_free(uint64_t at) {
    if (at == 0) return CUDA_SUCCESS;
    range *r = find_device(at);
    if (!r)
        return misuse(MISUSE_BAD_FREE, CUDA_ERROR_INVALID_VALUE, "%#llx is no device memory", (unsigned long long)at);
    if (r->base != at)
        return misuse(MISUSE_BAD_FREE, CUDA_ERROR_INVALID_VALUE, "%#llx lies inside of an allocation",
                      (unsigned long long)at);
    if (r->freed) return misuse(MISUSE_DOUBLE_FREE, CUDA_ERROR_INVALID_VALUE, "%#llx", (unsigned long long)at);
    stream_wait_context(r->owner.context);
    release_device(r);
    return CUDA_SUCCESS;
}

CUresult memory_device_operand(context *c, uint64_t at, uint64_t size, range **out) {
    const unsigned long long shown = at;
    range *r = find_device(at);
    if (!r) r = memory_find_pinned(at); /* one address space: pinned memory has the host's addresses */
    if (!r) return misuse(MISUSE_ADDRESS, CUDA_ERROR_INVALID_VALUE, "%#llx is no device memory", shown);
    if (r->freed) return misuse(MISUSE_AFTER_FREE, CUDA_ERROR_INVALID_VALUE, "%#llx was freed", shown);
    if (!owner_is(r->owner, c))
        return misuse(MISUSE_WRONG_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, "%#llx belongs to another context", shown);
    if (size > r->size - (at - r->base))
        return misuse(MISUSE_COPY_BOUNDS, CUDA_ERROR_INVALID_VALUE, "%llu bytes at %#llx, of %llu from there on",
                      (unsigned long long)size, shown, (unsigned long long)(r->size - (at - r->base)));
    *out = r;
    return CUDA_SUCCESS;
}

/* ---- pinned memory ---- */

static bool overlaps(const range *r, uint64_t at, uint64_t size) {
    return at < r->base + r->size && r->base < at + size;
}

range *memory_find_pinned(uint64_t at) {
    range *dead = NULL;
    for (uint32_t i = 0; i < pinned_ranges.count; i++) {
        range *r = pinned_ranges.data[i];
        if (at - r->base >= r->size) continue;
        if (!r->freed) return r;
        dead = r;
    }
    return dead;
}

range *memory_find(uint64_t at) {
    range *r = find_device(at);
    return r ? r : memory_find_pinned(at);
}

/* What was freed and whose addresses come back is forgotten. False: something there is pinned already. */
static bool make_way(uint64_t at, uint64_t size) {
    for (uint32_t i = 0; i < pinned_ranges.count; i++)
        if (overlaps(pinned_ranges.data[i], at, size) && !pinned_ranges.data[i]->freed) return false;
    for (uint32_t i = 0; i < pinned_ranges.count; i++)
        if (overlaps(pinned_ranges.data[i], at, size)) pinned_ranges.data[i]->size = 0; /* found by no address */
    return true;
}

CUresult memory_pin(context *c, void *at, uint64_t size, uint32_t flags, void **out) {
    if (size == 0) return misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "no bytes to pin");
    void *bytes = at ? at : map_bytes(size);
    if (!bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!make_way((uint64_t)(uintptr_t)bytes, size))
        return misuse(MISUSE_REGISTRATION, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "%p is pinned already", bytes);
    range *r = create_range(c, size);
    r->base = (uint64_t)(uintptr_t)bytes;
    r->bytes = bytes;
    r->pinned = true;
    r->registered = at != NULL;
    r->flags = flags;
    if (!at) fill_fresh(bytes, size);
    append(&pinned_ranges, r);
    *out = bytes;
    return CUDA_SUCCESS;
}

static bool host_knows(const clocks *c) {
    for (uint32_t i = 0; i < MAX_STREAMS; i++)
        if (c->at[i] > the_standin.host.at[i]) return false;
    return true;
}

CUresult memory_unpin(void *at, bool registered) {
    range *r = memory_find_pinned((uint64_t)(uintptr_t)at);
    const standin_misuse kind = registered ? MISUSE_REGISTRATION : MISUSE_BAD_FREE;
    const CUresult error = registered ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE;
    if (!r) return misuse(kind, error, "%p is not pinned", at);
    if (r->freed) return misuse(registered ? kind : MISUSE_DOUBLE_FREE, error, "%p is not pinned any more", at);
    if (r->base != (uint64_t)(uintptr_t)at || r->registered != registered)
        return misuse(kind, error, "%p was not given out or registered so", at);
    if (!host_knows(&r->used))
        return misuse(MISUSE_BUSY_MEMORY, CUDA_ERROR_INVALID_VALUE, "nothing says that the copies of %p are done", at);
    drop_bytes(r);
    return CUDA_SUCCESS;
}

/* ---- the end ---- */

void memory_release_context(const context *c) {
    for (uint32_t i = 0; i < device_ranges[c->device].count; i++) {
        range *r = device_ranges[c->device].data[i];
        if (!r->freed && owner_is(r->owner, c)) release_device(r);
    }
    for (uint32_t i = 0; i < pinned_ranges.count; i++) {
        range *r = pinned_ranges.data[i];
        if (!r->freed && owner_is(r->owner, c)) drop_bytes(r);
    }
}

static void report_range(const range *r, const context *c) {
    if (r->freed || !owner_is_or_any(r->owner, c)) return;
    misuse(MISUSE_LEAK, CUDA_SUCCESS, "%llu bytes of %s memory", (unsigned long long)r->size,
           r->pinned ? "pinned" : "device");
}

void memory_report_leaks(const context *c) {
    for (uint32_t d = 0; d < MAX_DEVICES; d++)
        for (uint32_t i = 0; i < device_ranges[d].count; i++) report_range(device_ranges[d].data[i], c);
    for (uint32_t i = 0; i < pinned_ranges.count; i++) report_range(pinned_ranges.data[i], c);
}

static void reset_list(range_list *l) {
    for (uint32_t i = 0; i < l->count; i++) {
        if (!l->data[i]->freed) drop_bytes(l->data[i]);
        free(l->data[i]);
    }
    free(l->data);
    *l = (range_list){.data = NULL};
}

void memory_reset(void) {
    for (uint32_t d = 0; d < MAX_DEVICES; d++) reset_list(&device_ranges[d]);
    reset_list(&pinned_ranges);
}
