/* Streams, events and host functions. */
#include "standin.h"

static CUresult create_stream(call *c, CUstream *out, unsigned flags) {
    stream *s = NULL;
    if (call_has(c, out)) c->result = stream_create(c->context, flags, &s);
    if (c->result == CUDA_SUCCESS) *out = stream_handle(s);
    return call_end(c);
}

CUresult CUDAAPI cuStreamCreate(CUstream *out, unsigned flags) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return create_stream(&c, out, flags);
}

/* Priorities are hints; threads have none. */
CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    return create_stream(&c, out, flags);
}

/* The call begins, and its stream is looked up. */
static call with_stream(const char *name, uint32_t needs, CUstream handle, stream **out) {
    call c = call_begin(name, NEEDS_CONTEXT | needs);
    if (c.result == CUDA_SUCCESS) c.result = stream_of(c.context, handle, out);
    return c;
}

CUresult CUDAAPI cuStreamDestroy_v2(CUstream handle) {
    stream *s = NULL;
    call c = with_stream(__func__, CLEANS_UP, handle, &s);
    if (c.result == CUDA_SUCCESS && s == c.context->default_stream)
        c.result = misuse(MISUSE_BAD_HANDLE, CUDA_ERROR_INVALID_HANDLE, "the default stream cannot be destroyed");
    if (c.result == CUDA_SUCCESS) c.result = stream_destroy(s);
    return call_end(&c);
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
    stream *s = NULL;
    call c = with_stream(__func__, 0, handle, &s);
    if (c.result == CUDA_SUCCESS && !stream_is_done(s)) c.result = CUDA_ERROR_NOT_READY;
    return call_end(&c);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
    stream *s = NULL;
    call c = with_stream(__func__, 0, handle, &s);
    if (c.result == CUDA_SUCCESS) stream_wait(s);
    return call_end(&c);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
    stream *s = NULL;
    event *e = NULL;
    call c = with_stream(__func__, NEW_WORK, handle, &s);
    if (c.result == CUDA_SUCCESS && flags)
        c.result = misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "unknown flags");
    if (c.result == CUDA_SUCCESS) c.result = event_of(c.context, event_handle, &e);
    if (c.result == CUDA_SUCCESS) c.result = event_wait_for(e, s);
    return call_end(&c);
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn host, void *data) {
    stream *s = NULL;
    call c = with_stream(__func__, NEW_WORK, handle, &s);
    if (c.result == CUDA_SUCCESS && !host) c.result = misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "no function");
    if (c.result == CUDA_SUCCESS)
        c.result = stream_issue(s, (operation){.kind = OP_HOST, .name = "host function", .host = host, .data = data});
    return call_end(&c);
}

/* ---- events ---- */

CUresult CUDAAPI cuEventCreate(CUevent *out, unsigned flags) {
    call c = call_begin(__func__, NEEDS_CONTEXT | NEW_WORK);
    if (call_has(&c, out)) c.result = event_create(c.context, flags, out);
    return call_end(&c);
}

static call with_event(const char *name, uint32_t needs, CUevent handle, event **out) {
    call c = call_begin(name, NEEDS_CONTEXT | needs);
    if (c.result == CUDA_SUCCESS) c.result = event_of(c.context, handle, out);
    return c;
}

CUresult CUDAAPI cuEventRecord(CUevent event_handle, CUstream handle) {
    stream *s = NULL;
    event *e = NULL;
    call c = with_event(__func__, NEW_WORK, event_handle, &e);
    if (c.result == CUDA_SUCCESS) c.result = stream_of(c.context, handle, &s);
    if (c.result == CUDA_SUCCESS) c.result = event_record(e, s);
    return call_end(&c);
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
    event *e = NULL;
    call c = with_event(__func__, 0, handle, &e);
    if (c.result == CUDA_SUCCESS && !event_is_done(e)) c.result = CUDA_ERROR_NOT_READY;
    return call_end(&c);
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
    event *e = NULL;
    call c = with_event(__func__, 0, handle, &e);
    if (c.result == CUDA_SUCCESS) event_wait(e);
    return call_end(&c);
}

CUresult CUDAAPI cuEventElapsedTime_v2(float *milliseconds, CUevent begin, CUevent end) {
    event *first = NULL, *last = NULL;
    call c = with_event(__func__, 0, begin, &first);
    if (call_has(&c, milliseconds)) c.result = event_of(c.context, end, &last);
    if (c.result == CUDA_SUCCESS) c.result = event_elapsed(first, last, milliseconds);
    return call_end(&c);
}

/* What was recorded still happens. */
CUresult CUDAAPI cuEventDestroy_v2(CUevent handle) {
    event *e = NULL;
    call c = with_event(__func__, CLEANS_UP, handle, &e);
    if (c.result == CUDA_SUCCESS) e->destroyed = true;
    return call_end(&c);
}
