/* Events between host queues: numbered records and a condition variable.
 *
 * Invariant: a record's number is in `pending` from the call that made it until its queue reached it. An event lives
 * until its handle is destroyed and no enqueued command names it, so destroying one early is safe. */
#include <stdlib.h>

#include "base/clock.h"
#include "device/host_queue.h"

tide_status tide__host_event_create(tide_device *device, tide_event **out) {
    tide__host_event *event = calloc(1, sizeof *event);
    if (!event) return tide__fail_memory();
    event->base.device = device;
    event->references = 1;
    pthread_mutex_init(&event->lock, NULL); /* neither fails with default attributes on Linux */
    pthread_cond_init(&event->changed, NULL);
    *out = &event->base;
    return TIDE_OK;
}

/* Unlocks; frees with the last reference. */
static void release_and_unlock(tide__host_event *event) {
    bool last = --event->references == 0;
    pthread_mutex_unlock(&event->lock);
    if (!last) return;
    pthread_mutex_destroy(&event->lock);
    pthread_cond_destroy(&event->changed);
    tide__vec_free(&event->pending);
    free(event);
}

void tide__host_event_destroy(tide_event *base) {
    tide__host_event *event = (tide__host_event *)base;
    pthread_mutex_lock(&event->lock);
    release_and_unlock(event);
}

static bool is_pending(const tide__host_event *event, uint64_t record) {
    for (size_t i = 0; i < event->pending.count; i++)
        if (event->pending.data[i] == record) return true;
    return false;
}

static void forget_pending(tide__host_event *event, uint64_t record) {
    for (size_t i = 0; i < event->pending.count; i++) {
        if (event->pending.data[i] != record) continue;
        event->pending.data[i] = event->pending.data[--event->pending.count];
        return;
    }
}

/* The event's lock is taken before the queue's here, and nowhere both the other way round. */
tide_status tide__host_event_record(tide_event *base, tide_queue *queue) {
    tide__host_event *event = (tide__host_event *)base;
    tide__command command = {.kind = TIDE__COMMAND_RECORD, .event = {event, 0}};
    tide_status status;
    pthread_mutex_lock(&event->lock);
    command.event.record = event->records + 1;
    TIDE_TRY_GOTO(tide__vec_push(&event->pending, command.event.record), unlock);
    status = tide__host_enqueue((tide__host_queue *)queue, &command, NULL, 0);
    if (status != TIDE_OK) {
        event->pending.count--;
        goto unlock;
    }
    event->records++;
    event->latest = queue;
    event->references++;
unlock:
    pthread_mutex_unlock(&event->lock);
    return status;
}

tide_status tide__host_event_wait(tide_event *base, tide_queue *queue) {
    tide__host_event *event = (tide__host_event *)base;
    tide__command command = {.kind = TIDE__COMMAND_WAIT, .event = {event, 0}};
    tide_status status = TIDE_OK;
    pthread_mutex_lock(&event->lock);
    command.event.record = event->records;
    if (is_pending(event, event->records) && event->latest != queue) { /* its own order a queue keeps anyway */
        status = tide__host_enqueue((tide__host_queue *)queue, &command, NULL, 0);
        if (status == TIDE_OK) event->references++;
    }
    pthread_mutex_unlock(&event->lock);
    return status;
}

tide_status tide__host_event_query(tide_event *base, bool *complete) {
    tide__host_event *event = (tide__host_event *)base;
    pthread_mutex_lock(&event->lock);
    *complete = !is_pending(event, event->records);
    pthread_mutex_unlock(&event->lock);
    return TIDE_OK;
}

tide_status tide__host_event_sync(tide_event *base) {
    tide__host_event *event = (tide__host_event *)base;
    pthread_mutex_lock(&event->lock);
    uint64_t record = event->records;
    while (is_pending(event, record)) pthread_cond_wait(&event->changed, &event->lock);
    pthread_mutex_unlock(&event->lock);
    return TIDE_OK;
}

static tide_status completion_time(tide__host_event *event, const char *which, uint64_t *t_ns) {
    tide_status status = TIDE_OK;
    pthread_mutex_lock(&event->lock);
    if (event->records == 0)
        status = tide__fail(TIDE_E_ARGUMENT, "the %s event was never recorded", which);
    else if (is_pending(event, event->records))
        status = tide__fail(TIDE_E_ARGUMENT, "the %s event is not complete", which);
    else
        *t_ns = event->t_ns;
    pthread_mutex_unlock(&event->lock);
    return status;
}

tide_status tide__host_event_elapsed(tide_event *from, tide_event *to, uint64_t *ns) {
    uint64_t start = 0, end = 0;
    TIDE_TRY(completion_time((tide__host_event *)from, "first", &start));
    TIDE_TRY(completion_time((tide__host_event *)to, "second", &end));
    *ns = end > start ? end - start : 0;
    return TIDE_OK;
}

void tide__host_event_complete(tide__host_event *event, uint64_t record) {
    pthread_mutex_lock(&event->lock);
    forget_pending(event, record);
    if (record == event->records) event->t_ns = tide__now_ns();
    pthread_cond_broadcast(&event->changed);
    release_and_unlock(event);
}

void tide__host_event_await(tide__host_event *event, uint64_t record) {
    pthread_mutex_lock(&event->lock);
    while (is_pending(event, record)) pthread_cond_wait(&event->changed, &event->lock);
    release_and_unlock(event);
}
