/* The device "host": memory of the host as the arena, a thread per queue, and no kernels. For runtimes that compute by
 * themselves (tide_run_pull) and leave bytes and their order to the library. The arena may lie in memory that the client
 * owns: then it is neither touched nor given back here. */
#include <stdlib.h>
#include <unistd.h>

#include "device/host_arena.h"
#include "device/host_queue.h"

#define ALIGN_BYTES 64 /* a cache line, and the vectors of every processor */

typedef struct host_device {
    tide_device base;
    char *memory; /* the client's; NULL: arenas are mapped */
    uint64_t memory_bytes;
} host_device;

static void close_device(tide_device *device) { free(device); }

static tide_status get_info(const tide_device *base, tide_device_info *out) {
    const host_device *host = (const host_device *)base;
    *out = (tide_device_info){.name = "host",
                              .description = "memory of the host, computed on by the client",
                              .threads = 1,
                              .align_bytes = base->align_bytes,
                              .memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
                              .host_visible = true};
    if (host->memory) out->memory_bytes = host->memory_bytes;
    return TIDE_OK;
}

/* ---- the arena ---- */

static tide_status borrow_arena(host_device *host, uint64_t size_bytes, tide_arena **out) {
    if (size_bytes > host->memory_bytes)
        return tide__fail(TIDE_E_MEMORY, "an arena of %llu bytes in the client's %llu", (unsigned long long)size_bytes,
                          (unsigned long long)host->memory_bytes);
    tide__host_arena *arena = malloc(sizeof *arena);
    if (!arena) return tide__fail_memory();
    *arena = (tide__host_arena){.base = {.device = &host->base, .size_bytes = size_bytes}, .bytes = host->memory};
    *out = &arena->base;
    return TIDE_OK;
}

static tide_status create_arena(tide_device *device, uint64_t size_bytes, tide_arena **out) {
    host_device *host = (host_device *)device;
    return host->memory ? borrow_arena(host, size_bytes, out) : tide__host_arena_create(device, size_bytes, out);
}

static void destroy_arena(tide_arena *arena) {
    if (((host_device *)arena->device)->memory)
        free(arena);
    else
        tide__host_arena_destroy(arena);
}

/* ---- queues ---- */

static const tide__queue_hooks hooks = {0}; /* copies as every host makes them; kernels never come */

static tide_status create_queue(tide_device *device, tide_queue_kind kind, tide_queue **out) {
    tide__host_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return tide__fail_memory();
    tide_status status = tide__host_queue_start(queue, device, kind, &hooks);
    if (status == TIDE_OK)
        *out = &queue->base;
    else
        free(queue);
    return status;
}

static void destroy_queue(tide_queue *queue) {
    tide__host_queue_stop((tide__host_queue *)queue);
    free(queue);
}

static const tide__device_vtable vtable = {
    .close = close_device,
    .get_info = get_info,
    .arena_create = create_arena,
    .arena_destroy = destroy_arena,
    .arena_host = tide__host_arena_host,
    .queue_create = create_queue,
    .queue_destroy = destroy_queue,
    .queue_sync = tide__host_queue_sync,
    .queue_check = tide__host_queue_check,
    .event_create = tide__host_event_create,
    .event_destroy = tide__host_event_destroy,
    .event_record = tide__host_event_record,
    .event_wait = tide__host_event_wait,
    .event_query = tide__host_event_query,
    .event_sync = tide__host_event_sync,
    .event_elapsed = tide__host_event_elapsed,
    .launch = tide__host_launch,
    .copy = tide__host_copy,
    .copy_within = tide__host_copy_within,
};

tide_status tide__host_open(const char *which, const tide_device_options *options, tide_device **out) {
    if ((uintptr_t)options->memory % ALIGN_BYTES)
        return tide__fail(TIDE_E_ARGUMENT, "host: the client's memory does not begin at a multiple of %d bytes",
                          ALIGN_BYTES);
    host_device *host = malloc(sizeof *host);
    if (!host) return tide__fail_memory();
    *host = (host_device){.base = {.v = &vtable, .align_bytes = ALIGN_BYTES},
                          .memory = options->memory,
                          .memory_bytes = options->memory_bytes};
    *out = &host->base;
    return TIDE_OK;
}
