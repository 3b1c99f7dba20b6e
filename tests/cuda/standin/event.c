/* Events: a record is an operation; whoever waits takes over the clocks of the latest record at that moment, so recording
 * again changes nothing for earlier waiters. An event that was never recorded counts as complete, as documented. */
#include <stdlib.h>

#include "standin.h"

#define EVENT_TAG UINT64_C(0x0052000000000000)

static struct {
    event **data;
    uint32_t count;
} table;

static CUevent handle_of(const event *e) { return (CUevent)(uintptr_t)(EVENT_TAG | (uint64_t)e->handle << 4); }

CUresult event_create(context *c, uint32_t flags, CUevent *out) {
    if (flags & ~(uint32_t)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
        return misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "unknown flags %#x of an event", flags);
    event *e = calloc(1, sizeof *e);
    if (!e) abort();
    table.data = array_grow(table.data, table.count, sizeof *table.data);
    *e = (event){.handle = table.count, .owner = {c, c->generation}, .flags = flags};
    table.data[table.count++] = e;
    *out = handle_of(e);
    return CUDA_SUCCESS;
}

CUresult event_of(context *c, CUevent handle, event **out) {
    const uint64_t bits = (uint64_t)(uintptr_t)handle, number = (bits & ~EVENT_TAG) >> 4;
    if ((bits & EVENT_TAG) != EVENT_TAG || number >= table.count || handle_of(table.data[number]) != handle)
        return misuse(MISUSE_BAD_HANDLE, CUDA_ERROR_INVALID_HANDLE, "%p is no event", (void *)handle);
    event *e = table.data[number];
    if (e->destroyed) return misuse(MISUSE_DESTROYED, CUDA_ERROR_INVALID_HANDLE, "the event was destroyed");
    if (!owner_is(e->owner, c))
        return misuse(MISUSE_WRONG_CONTEXT, CUDA_ERROR_INVALID_HANDLE, "an event of another context");
    *out = e;
    return CUDA_SUCCESS;
}

CUresult event_record(event *e, stream *s) {
    operation o = {.kind = OP_RECORD, .name = "record", .event = e, .record = e->records + 1};
    CUresult result = stream_issue(s, o);
    if (result != CUDA_SUCCESS) return result;
    e->records++;
    e->known = s->known;
    e->stream = s->index;
    e->clock = s->issued;
    return CUDA_SUCCESS;
}

CUresult event_wait_for(event *e, stream *s) {
    if (e->records == 0) return CUDA_SUCCESS;
    operation o = {.kind = OP_NOTHING, .name = "wait", .before = e->known};
    return stream_issue(s, o);
}

bool event_is_done(event *e) {
    if (e->records == 0) return true;
    if (the_standin.completed[e->stream] < e->clock) return false;
    clocks_join(&the_standin.host, &e->known);
    return true;
}

void event_wait(event *e) {
    while (!event_is_done(e)) pthread_cond_wait(&the_standin.changed, &the_standin.lock);
}

CUresult event_elapsed(const event *begin, const event *end, float *milliseconds) {
    if ((begin->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
        return misuse(MISUSE_EVENT_TIMING, CUDA_ERROR_INVALID_HANDLE, "an event without timing");
    if (begin->records == 0 || end->records == 0)
        return misuse(MISUSE_EVENT_TIMING, CUDA_ERROR_INVALID_HANDLE, "an event that was never recorded");
    if (begin->completed < begin->records || end->completed < end->records) return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((double)(int64_t)(end->t_ns - begin->t_ns) / 1e6);
    return CUDA_SUCCESS;
}

void event_release_context(const context *c) {
    for (uint32_t i = 0; i < table.count; i++)
        if (owner_is(table.data[i]->owner, c)) table.data[i]->destroyed = true;
}

void event_report_leaks(const context *c) {
    for (uint32_t i = 0; i < table.count; i++)
        if (!table.data[i]->destroyed && owner_is_or_any(table.data[i]->owner, c))
            misuse(MISUSE_LEAK, CUDA_SUCCESS, "an event");
}

void event_reset(void) {
    for (uint32_t i = 0; i < table.count; i++) free(table.data[i]);
    free(table.data);
    table.data = NULL, table.count = 0;
}
