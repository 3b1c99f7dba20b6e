/* Allocations, pinned memory, copies and sets. A copy that is not asynchronous is one on the default stream that the host
 * waits for; only it may use pageable memory. */
#include "standin.h"

/* ---- allocations ---- */

CUresult CUDAAPI cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    call c = call_begin(__func__, NEEDS_CONTEXT);
    if (call_has(&c, free_bytes) && call_has(&c, total_bytes)) {
        *total_bytes = the_standin.settings.memory_bytes;
        *free_bytes = the_standin.settings.memory_bytes - c.context->used_bytes;
    }
    return call_end(&c);
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    range *r = NULL;
    if (call_has(&c, out)) c.result = memory_alloc(c.context, bytes, &r);
    if (r) *out = r->base;
    return call_end(&c);
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr at) {
    call c = call_begin(__func__, NEEDS_CONTEXT | CLEANS_UP);
    if (c.result == CUDA_SUCCESS) c.result = memory_free(at);
    return call_end(&c);
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at) {
    call c = call_begin(__func__, NEEDS_CONTEXT);
    range *r = NULL;
    if (c.result == CUDA_SUCCESS) c.result = memory_device_operand(c.context, at, 0, &r);
    if (r && base) *base = r->base;
    if (r && bytes) *bytes = r->size;
    return call_end(&c);
}

static CUresult pin(call *c, void *at, size_t bytes, unsigned flags, void **out) {
    if (c->result == CUDA_SUCCESS && flags > 15)
        c->result = misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "unknown flags %#x", flags);
    if (c->result == CUDA_SUCCESS) c->result = memory_pin(c->context, at, bytes, flags, out);
    return call_end(c);
}

CUresult CUDAAPI cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    call_has(&c, out);
    return pin(&c, NULL, bytes, flags, out);
}

CUresult CUDAAPI cuMemAllocHost_v2(void **out, size_t bytes) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    call_has(&c, out);
    return pin(&c, NULL, bytes, 0, out);
}

CUresult CUDAAPI cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    void *same = NULL;
    call_has(&c, at);
    return pin(&c, at, bytes, flags, &same);
}

CUresult CUDAAPI cuMemFreeHost(void *at) {
    call c = call_begin(__func__, NEEDS_CONTEXT | CLEANS_UP);
    if (call_has(&c, at)) c.result = memory_unpin(at, false);
    return call_end(&c);
}

CUresult CUDAAPI cuMemHostUnregister(void *at) {
    call c = call_begin(__func__, NEEDS_CONTEXT | CLEANS_UP);
    if (call_has(&c, at)) c.result = memory_unpin(at, true);
    return call_end(&c);
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *at, unsigned flags) {
    call c = call_begin(__func__, NEEDS_CONTEXT);
    range *r = call_has(&c, out) ? memory_find_pinned((uint64_t)(uintptr_t)at) : NULL;
    if (c.result == CUDA_SUCCESS && (!r || r->freed || flags))
        c.result = misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "%p is not pinned", at);
    if (c.result == CUDA_SUCCESS) *out = (CUdeviceptr)(uintptr_t)at;
    return call_end(&c);
}

/* ---- copies ---- */

static CUresult device_place(context *c, CUdeviceptr at, size_t bytes, place *out) {
    range *r = NULL;
    const CUresult result = memory_device_operand(c, at, bytes, &r);
    if (result == CUDA_SUCCESS) *out = (place){r, at, r->bytes + (at - r->base)};
    return result;
}

/* Host memory of an asynchronous copy is pinned as a whole. */
static CUresult host_place(unsigned char *at, size_t bytes, bool asynchronous, place *out) {
    const uint64_t address = (uint64_t)(uintptr_t)at;
    range *r = memory_find_pinned(address);
    if (r && r->freed && asynchronous)
        return misuse(MISUSE_AFTER_FREE, CUDA_ERROR_INVALID_VALUE, "%p is not pinned any more", (void *)at);
    const bool inside = r && !r->freed && bytes <= r->size - (address - r->base);
    if (asynchronous && !inside)
        return misuse(MISUSE_UNPINNED, CUDA_ERROR_INVALID_VALUE, "%zu bytes at %p are not pinned, or not all of them",
                      bytes, (void *)at);
    *out = (place){inside ? r : NULL, address, at};
    return CUDA_SUCCESS;
}

/* Issues a copy or set of a call, and waits where the call does. */
static CUresult issue(call *c, CUstream handle, operation o, bool waits) {
    stream *s = NULL;
    if (c->result == CUDA_SUCCESS) c->result = stream_of(c->context, handle, &s);
    if (c->result == CUDA_SUCCESS && o.size) c->result = stream_issue(s, o);
    if (c->result == CUDA_SUCCESS && waits) stream_wait(s);
    return call_end(c);
}

/* Bytes that the host does not get to write to: the copy only reads them. */
static unsigned char *readable(const void *p) { return (unsigned char *)(uintptr_t)p; }

static CUresult to_device(call *c, CUdeviceptr to, const void *from, size_t bytes, CUstream on, bool waits) {
    operation o = {.kind = OP_COPY, .name = "copy to device", .size = bytes};
    if (call_has(c, from) && bytes) c->result = device_place(c->context, to, bytes, &o.to);
    if (c->result == CUDA_SUCCESS && bytes) c->result = host_place(readable(from), bytes, !waits, &o.from);
    return issue(c, on, o, waits);
}

static CUresult to_host(call *c, void *to, CUdeviceptr from, size_t bytes, CUstream on, bool waits) {
    operation o = {.kind = OP_COPY, .name = "copy to host", .size = bytes};
    if (call_has(c, to) && bytes) c->result = device_place(c->context, from, bytes, &o.from);
    if (c->result == CUDA_SUCCESS && bytes) c->result = host_place(to, bytes, !waits, &o.to);
    return issue(c, on, o, waits);
}

static CUresult within(call *c, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on, bool waits) {
    operation o = {.kind = OP_COPY, .name = "copy within", .size = bytes};
    if (c->result == CUDA_SUCCESS && bytes) c->result = device_place(c->context, from, bytes, &o.from);
    if (c->result == CUDA_SUCCESS && bytes) c->result = device_place(c->context, to, bytes, &o.to);
    if (c->result == CUDA_SUCCESS && from < to + bytes && to < from + bytes)
        c->result =
            misuse(MISUSE_COPY_OVERLAP, CUDA_ERROR_INVALID_VALUE, "%zu bytes from %#llx to %#llx", bytes, from, to);
    return issue(c, on, o, waits);
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return to_device(&c, to, from, bytes, NULL, true);
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream on) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return to_device(&c, to, from, bytes, on, false);
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return to_host(&c, to, from, bytes, NULL, true);
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream on) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return to_host(&c, to, from, bytes, on, false);
}

/* The host does not wait for copies within the device, as documented. */
CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return within(&c, to, from, bytes, NULL, false);
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream on) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return within(&c, to, from, bytes, on, false);
}

/* ---- sets: asynchronous to the host, all of them ---- */

static CUresult set(call *c, CUdeviceptr at, uint32_t value, uint32_t unit, size_t n, CUstream on) {
    operation o = {.kind = OP_SET, .name = "set", .value = value, .unit = unit};
    if (c->result == CUDA_SUCCESS && n > UINT64_MAX / unit)
        c->result = misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "%zu elements", n);
    o.size = (uint64_t)n * unit;
    if (c->result == CUDA_SUCCESS && n && at % unit)
        c->result = misuse(MISUSE_MEMSET_ALIGNMENT, CUDA_ERROR_INVALID_VALUE, "%#llx is not aligned to %u", at, unit);
    if (c->result == CUDA_SUCCESS && n) c->result = device_place(c->context, at, o.size, &o.to);
    return issue(c, on, o, false);
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr at, unsigned char value, size_t n) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return set(&c, at, value, 1, n, NULL);
}

CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr at, unsigned value, size_t n) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return set(&c, at, value, 4, n, NULL);
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t n, CUstream on) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return set(&c, at, value, 1, n, on);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t n, CUstream on) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return set(&c, at, value, 4, n, on);
}
