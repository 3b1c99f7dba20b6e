/* The arena: one buffer. Where host and device share memory it lies in a mapping of ours, which the driver uses in
 * place; that it does is checked, because copies and host functions count on it. */
#include <stdlib.h>

#include "device/opencl/opencl.h"

static tide_status check_size(const tide__opencl *opencl, uint64_t size_bytes) {
    if (size_bytes <= opencl->max_arena_bytes) return TIDE_OK;
    return tide__fail(
        TIDE_E_MEMORY,
        "%s: an arena of %llu bytes (%.1f MiB) is more than the %.1f MiB that this OpenCL device allocates "
        "at once",
        opencl->gpu.name, (unsigned long long)size_bytes, (double)size_bytes / 0x1p20,
        (double)opencl->max_arena_bytes / 0x1p20);
}

/* The driver's pointer to the buffer must be ours. */
static tide_status check_in_place(const tide__opencl *opencl, const tide__opencl_arena *arena) {
    const tide__cl *cl = &opencl->cl;
    cl_int error = CL_SUCCESS;
    cl_command_queue queue = cl->CreateCommandQueue(opencl->context, opencl->id, 0, &error);
    TIDE_TRY(tide__cl_check(error, "create a queue"));
    void *mapped =
        cl->EnqueueMapBuffer(queue, arena->buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 1, 0, NULL, NULL, &error);
    if (mapped) cl->EnqueueUnmapMemObject(queue, arena->buffer, mapped, 0, NULL, NULL);
    cl->Finish(queue);
    cl->ReleaseCommandQueue(queue);
    TIDE_TRY(tide__cl_check(error, "map the arena"));
    if (mapped == arena->host.bytes) return TIDE_OK;
    return tide__fail(TIDE_E_DEVICE, "%s: the driver keeps a copy of memory that it says it shares with the host",
                      opencl->gpu.name);
}

static tide_status create_shared(tide_device *device, uint64_t size_bytes, tide_arena **out) {
    tide__opencl *opencl = (tide__opencl *)device;
    cl_int error = CL_SUCCESS;
    tide_arena *host = NULL;
    TIDE_TRY(tide__host_arena_create(device, size_bytes, &host));
    tide__opencl_arena *arena = calloc(1, sizeof *arena);
    tide_status status = arena ? TIDE_OK : tide__fail_memory();
    if (arena) {
        arena->host = *(tide__host_arena *)host;
        arena->buffer = opencl->cl.CreateBuffer(opencl->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size_bytes,
                                                arena->host.bytes, &error);
        status = tide__cl_check(error, "create the buffer of an arena");
        if (status == TIDE_OK) status = check_in_place(opencl, arena);
    }
    if (status != TIDE_OK) {
        if (arena && arena->buffer) opencl->cl.ReleaseMemObject(arena->buffer);
        free(arena);
        tide__host_arena_destroy(host);
        return status;
    }
    free(host); /* its mapping is ours now */
    *out = &arena->host.base;
    return TIDE_OK;
}

static tide_status create_remote(tide_device *device, uint64_t size_bytes, tide_arena **out) {
    tide__opencl *opencl = (tide__opencl *)device;
    cl_int error = CL_SUCCESS;
    tide__opencl_arena *arena = calloc(1, sizeof *arena);
    if (!arena) return tide__fail_memory();
    arena->host.base = (tide_arena){.device = device, .size_bytes = size_bytes};
    arena->buffer = opencl->cl.CreateBuffer(opencl->context, CL_MEM_READ_WRITE, size_bytes, NULL, &error);
    if (error != CL_SUCCESS) {
        free(arena);
        return tide__cl_check(error, "create the buffer of an arena");
    }
    *out = &arena->host.base;
    return TIDE_OK;
}

tide_status tide__opencl_arena_create(tide_device *device, uint64_t size_bytes, tide_arena **out) {
    const tide__opencl *opencl = (tide__opencl *)device;
    TIDE_TRY(check_size(opencl, size_bytes));
    return opencl->host_visible ? create_shared(device, size_bytes, out) : create_remote(device, size_bytes, out);
}

void tide__opencl_arena_destroy(tide_arena *base) {
    tide__opencl_arena *arena = (tide__opencl_arena *)base;
    tide__opencl *opencl = (tide__opencl *)base->device;
    opencl->cl.ReleaseMemObject(arena->buffer);
    if (opencl->host_visible)
        tide__host_arena_destroy(base);
    else
        free(arena);
}

void *tide__opencl_arena_host(tide_arena *base) { return ((tide__opencl_arena *)base)->host.bytes; }
