/* An arena in host memory: one private mapping, aligned to huge pages, touched by whoever writes first, returned as a
 * whole. Shared by the devices whose memory is the host's; the functions are slots of their vtables. */
#ifndef TIDE_DEVICE_HOST_ARENA_H
#define TIDE_DEVICE_HOST_ARENA_H

#include "device/device_vtable.h"

typedef struct tide__host_arena {
    tide_arena base;
    char *bytes;
} tide__host_arena;

tide_status tide__host_arena_create(tide_device *device, uint64_t size_bytes, tide_arena **out);
void tide__host_arena_destroy(tide_arena *arena);
void *tide__host_arena_host(tide_arena *arena);
void tide__host_arena_discard(tide_arena *arena, uint64_t offset, uint64_t size_bytes);

#endif
