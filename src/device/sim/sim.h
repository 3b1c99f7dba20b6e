/* The sim device: real bytes, virtual time. Work is done at once, on the caller's thread, when it is enqueued (legal,
 * because waits point backwards only); what it would have cost on the machine is charged to the virtual clock.
 *
 * The host's time is the clock's `now`. It moves when the host waits (queue_sync, event_sync) or asks for times: then
 * everything enqueued so far runs to its end (settle), and the clock starts over with an empty history, so a long run
 * does not grow. Times of events are absolute: `epoch_ns` is where the current clock's zero lies. */
#ifndef TIDE_DEVICE_SIM_SIM_H
#define TIDE_DEVICE_SIM_SIM_H

#include "base/vclock.h"
#include "base/vec.h"
#include "device/device_vtable.h"

#define TIDE__SIM_MAX_QUEUES 64

typedef struct tide__sim_queue {
    tide_queue base;
    uint32_t index;           /* of the clock's queue */
    TIDE_VEC(uint32_t) waits; /* jobs that the next job waits for */
    tide_status failure;      /* the first one; sticky */
    char failure_text[1024];
} tide__sim_queue;

typedef struct tide__sim_event {
    tide_event base;
    bool recorded, pending; /* pending: `job` belongs to the current clock; else t_ns holds */
    uint32_t job;
    uint64_t t_ns;
} tide__sim_event;

typedef struct tide__sim {
    tide_device base;
    tide_machine machine;
    uint64_t memory_bytes; /* what an arena may take */
    tide__vclock *clock;
    uint64_t epoch_ns;
    tide__sim_queue *queues[TIDE__SIM_MAX_QUEUES];
    TIDE_VEC(tide__sim_event *) pending;
} tide__sim;

/* time.c */
/* Charges a job to the queue's virtual time, after everything the queue was told to wait for. */
tide_status tide__sim_charge(tide__sim_queue *queue, tide__vjob job, uint32_t *id);
tide_status tide__sim_settle(tide__sim *sim);
tide_status tide__sim_event_create(tide_device *device, tide_event **out);
void tide__sim_event_destroy(tide_event *event);
tide_status tide__sim_event_record(tide_event *event, tide_queue *queue);
tide_status tide__sim_event_wait(tide_event *event, tide_queue *queue);
tide_status tide__sim_event_query(tide_event *event, bool *complete);
tide_status tide__sim_event_sync(tide_event *event);
tide_status tide__sim_event_elapsed(tide_event *from, tide_event *to, uint64_t *ns);

/* queue.c */
tide_status tide__sim_queue_create(tide_device *device, tide_queue_kind kind, tide_queue **out);
void tide__sim_queue_destroy(tide_queue *queue);
tide_status tide__sim_queue_sync(tide_queue *queue);
tide_status tide__sim_launch(tide_queue *queue, tide_host_fn fn, void *context, uint64_t cost_ns);
tide_status tide__sim_copy_within(tide_queue *queue, tide_arena *arena, uint64_t from, uint64_t to,
                                  uint64_t size_bytes);
tide_status tide__sim_copy(tide_queue *queue, tide_arena *arena, uint64_t offset, uint64_t size_bytes, tide_io io,
                           bool out);

#endif
