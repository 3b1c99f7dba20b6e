/* Events: each record is a mark of its own, so that an event may be recorded again while others still wait for the record
 * before. A mark is *issued* when its queue's thread has put it into the stream; it is complete when the GPU has passed it.
 *
 * Invariant: a mark's references are its event (as the latest record) and every command that names it; without any it is
 * free, and is used again. Waits name marks that were issued before them or will be without their help, so whoever waits
 * for one to be issued does not wait for ever. After a failure of the driver marks count as complete: nobody hangs. */
#include <stdlib.h>

#include "device/cuda/cuda.h"

struct tide__cuda_mark {
    tide__cuda_mark *next; /* while it is free */
    CUevent event;
    uint32_t references;
    bool issued, failed;
};

typedef struct tide__cuda_event {
    tide_event base;
    tide__cuda_mark *latest; /* NULL: never recorded */
    const tide_queue *queue; /* of the latest record; only compared, never followed */
} tide__cuda_event;

static tide__cuda *device_of(const tide_event *event) { return (tide__cuda *)event->device; }

/* ---- marks ---- */

static void free_mark(tide__cuda *cuda, tide__cuda_mark *mark) {
    mark->next = cuda->free_marks;
    cuda->free_marks = mark;
}

/* With the lock; NULL is fine. */
static void release(tide__cuda *cuda, tide__cuda_mark *mark) {
    if (mark && --mark->references == 0) free_mark(cuda, mark);
}

static void release_mark(tide__cuda *cuda, tide__cuda_mark *mark) {
    pthread_mutex_lock(&cuda->marks_lock);
    release(cuda, mark);
    pthread_mutex_unlock(&cuda->marks_lock);
}

/* The device is current in this thread afterwards as before. */
static tide_status create_mark(tide__cuda *cuda, tide__cuda_mark **out) {
    tide__cuda_mark *mark = calloc(1, sizeof *mark);
    if (!mark) return tide__fail_memory();
    tide_status status = tide__cuda_enter(cuda);
    if (status == TIDE_OK) {
        status = tide__cuda_after(cuda, cuda->cu.EventCreate(&mark->event, CU_EVENT_BLOCKING_SYNC), "create an event");
        tide__cuda_leave(cuda);
    }
    if (status != TIDE_OK) {
        free(mark);
        return status;
    }
    *out = mark;
    return TIDE_OK;
}

/* One with two references: the event's and the command's. */
static tide_status take_mark(tide__cuda *cuda, tide__cuda_mark **out) {
    pthread_mutex_lock(&cuda->marks_lock);
    tide__cuda_mark *mark = cuda->free_marks;
    if (mark) cuda->free_marks = mark->next;
    pthread_mutex_unlock(&cuda->marks_lock);
    if (!mark) TIDE_TRY(create_mark(cuda, &mark));
    mark->references = 2;
    mark->issued = mark->failed = false;
    *out = mark;
    return TIDE_OK;
}

/* When the device closes, with its context current. */
void tide__cuda_marks_free(tide__cuda *cuda) {
    while (cuda->free_marks) {
        tide__cuda_mark *mark = cuda->free_marks;
        cuda->free_marks = mark->next;
        if (!cuda->is_gone) cuda->cu.EventDestroy(mark->event);
        free(mark);
    }
}

/* Until it is in its stream; false: it never will be, as the driver failed. */
static bool await_issue(tide__cuda *cuda, const tide__cuda_mark *mark) {
    pthread_mutex_lock(&cuda->marks_lock);
    while (!mark->issued) pthread_cond_wait(&cuda->marked, &cuda->marks_lock);
    const bool there = !mark->failed;
    pthread_mutex_unlock(&cuda->marks_lock);
    return there;
}

/* ---- on a queue's thread ---- */

/* Without its events the work of a device has no order: it takes no more of it, whatever the failure is. */
static bool is_done(tide__cuda *cuda, CUresult result, const char *doing) {
    if (result != CUDA_SUCCESS) tide__cuda_lose(cuda, result, doing);
    return result == CUDA_SUCCESS;
}

static void issue(tide__cuda *cuda, tide__cuda_queue *queue, tide__cuda_mark *mark) {
    queue->in_flight = true;
    const bool failed = atomic_load(&cuda->is_lost) ||
                        !is_done(cuda, cuda->cu.EventRecord(mark->event, queue->stream), "record an event");
    pthread_mutex_lock(&cuda->marks_lock);
    mark->issued = true;
    mark->failed = failed;
    release(cuda, mark);
    pthread_cond_broadcast(&cuda->marked);
    pthread_mutex_unlock(&cuda->marks_lock);
}

/* What fails here is reported by the work that follows: the device takes none. */
static void await(tide__cuda *cuda, tide__cuda_queue *queue, tide__cuda_mark *mark) {
    if (await_issue(cuda, mark) && !atomic_load(&cuda->is_lost)) {
        const CUresult result = queue->host.base.kind == TIDE_QUEUE_COMPUTE
                                    ? cuda->cu.StreamWaitEvent(queue->stream, mark->event, CU_EVENT_WAIT_DEFAULT)
                                    : cuda->cu.EventSynchronize(mark->event);
        (void)is_done(cuda, result, "wait for an event");
    }
    release_mark(cuda, mark);
}

void tide__cuda_run_mark(tide__host_queue *base, const tide__command *command) {
    tide__cuda *cuda = (tide__cuda *)base->base.device;
    tide__cuda_queue *queue = (tide__cuda_queue *)base;
    if (command->mark.wait)
        await(cuda, queue, command->mark.mark);
    else
        issue(cuda, queue, command->mark.mark);
}

/* ---- the host's side ---- */

tide_status tide__cuda_event_create(tide_device *device, tide_event **out) {
    tide__cuda_event *event = calloc(1, sizeof *event);
    if (!event) return tide__fail_memory();
    event->base.device = device;
    *out = &event->base;
    return TIDE_OK;
}

void tide__cuda_event_destroy(tide_event *base) {
    tide__cuda_event *event = (tide__cuda_event *)base;
    release_mark(device_of(base), event->latest);
    free(event);
}

static tide_status enqueue(tide_queue *queue, tide__cuda_mark *mark, bool wait) {
    const tide__command command = {.kind = TIDE__COMMAND_MARK, .mark = {mark, wait}};
    return tide__host_enqueue((tide__host_queue *)queue, &command, NULL, 0);
}

tide_status tide__cuda_event_record(tide_event *base, tide_queue *queue) {
    tide__cuda_event *event = (tide__cuda_event *)base;
    tide__cuda *cuda = device_of(base);
    tide__cuda_mark *mark = NULL;
    TIDE_TRY(take_mark(cuda, &mark));
    tide_status status = enqueue(queue, mark, false);
    pthread_mutex_lock(&cuda->marks_lock);
    if (status == TIDE_OK) {
        release(cuda, event->latest);
        event->latest = mark;
        event->queue = queue;
    } else {
        free_mark(cuda, mark);
    }
    pthread_mutex_unlock(&cuda->marks_lock);
    return status;
}

/* The latest record with a reference for the caller; NULL: never recorded, or on queue `but`, whose own order is enough. */
static tide__cuda_mark *latest_of(tide__cuda_event *event, const tide_queue *but) {
    tide__cuda *cuda = device_of(&event->base);
    pthread_mutex_lock(&cuda->marks_lock);
    tide__cuda_mark *mark = but && event->queue == but ? NULL : event->latest;
    if (mark) mark->references++;
    pthread_mutex_unlock(&cuda->marks_lock);
    return mark;
}

tide_status tide__cuda_event_wait(tide_event *base, tide_queue *queue) {
    tide__cuda_mark *mark = latest_of((tide__cuda_event *)base, queue);
    if (!mark) return TIDE_OK;
    tide_status status = enqueue(queue, mark, true);
    if (status != TIDE_OK) release_mark(device_of(base), mark);
    return status;
}

/* Of a mark in its stream: has the GPU passed it? */
static bool has_passed(const tide__cuda *cuda, const tide__cuda_mark *mark) {
    if (tide__cuda_enter(cuda) != TIDE_OK) return true;
    const CUresult result = cuda->cu.EventQuery(mark->event);
    tide__cuda_leave(cuda);
    return result != CUDA_ERROR_NOT_READY;
}

static bool is_complete(tide__cuda *cuda, const tide__cuda_mark *mark) {
    pthread_mutex_lock(&cuda->marks_lock);
    const bool issued = mark->issued, failed = mark->failed;
    pthread_mutex_unlock(&cuda->marks_lock);
    return issued && (failed || has_passed(cuda, mark));
}

tide_status tide__cuda_event_query(tide_event *base, bool *complete) {
    tide__cuda *cuda = device_of(base);
    tide__cuda_mark *mark = latest_of((tide__cuda_event *)base, NULL);
    *complete = !mark || is_complete(cuda, mark);
    release_mark(cuda, mark);
    return TIDE_OK;
}

tide_status tide__cuda_event_sync(tide_event *base) {
    tide__cuda *cuda = device_of(base);
    tide__cuda_mark *mark = latest_of((tide__cuda_event *)base, NULL);
    atomic_fetch_add(&cuda->gpu.host_waits, 1);
    if (mark && await_issue(cuda, mark) && tide__cuda_enter(cuda) == TIDE_OK) {
        (void)cuda->cu.EventSynchronize(mark->event);
        tide__cuda_leave(cuda);
    }
    release_mark(cuda, mark);
    return TIDE_OK;
}

/* ---- time ---- */

static tide_status check_complete(tide__cuda *cuda, const tide__cuda_mark *mark, const char *which) {
    if (!mark) return tide__fail(TIDE_E_ARGUMENT, "the %s event was never recorded", which);
    if (!is_complete(cuda, mark)) return tide__fail(TIDE_E_ARGUMENT, "the %s event is not complete", which);
    return mark->failed ? tide__cuda_before(cuda) : TIDE_OK; /* it is complete by now: nobody writes to it */
}

static tide_status measure(const tide__cuda *cuda, const tide__cuda_mark *from, const tide__cuda_mark *to,
                           uint64_t *ns) {
    float ms = 0;
    TIDE_TRY(tide__cuda_enter(cuda));
    CUresult result = cuda->cu.EventElapsedTime(&ms, from->event, to->event);
    tide__cuda_leave(cuda);
    TIDE_TRY(tide__cu_check(&cuda->cu, result, "measure time"));
    *ns = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
    return TIDE_OK;
}

tide_status tide__cuda_event_elapsed(tide_event *from, tide_event *to, uint64_t *ns) {
    tide__cuda *cuda = device_of(from);
    tide__cuda_mark *first = latest_of((tide__cuda_event *)from, NULL),
                    *second = latest_of((tide__cuda_event *)to, NULL);
    tide_status status = check_complete(cuda, first, "first");
    if (status == TIDE_OK) status = check_complete(cuda, second, "second");
    if (status == TIDE_OK) status = measure(cuda, first, second, ns);
    release_mark(cuda, first);
    release_mark(cuda, second);
    return status;
}
