/* Virtual time of the sim device: charging jobs, settling, events. Invariant: sim->pending lists exactly the events
 * whose latest record is a job of the current clock. */
#include <stdlib.h>

#include "device/sim/sim.h"

tide_status tide__sim_charge(tide__sim_queue *queue, tide__vjob job, uint32_t *id) {
    tide__sim *sim = (tide__sim *)queue->base.device;
    job.queue = queue->index;
    job.waits = queue->waits.data;
    job.n_waits = queue->waits.count;
    TIDE_TRY(tide__vclock_submit(sim->clock, &job, id));
    queue->waits.count = 0;
    return TIDE_OK;
}

tide_status tide__sim_settle(tide__sim *sim) {
    tide__vclock *fresh = NULL;
    TIDE_TRY(tide__vclock_create(TIDE__SIM_MAX_QUEUES, &fresh));
    tide_status status = tide__vclock_run(sim->clock);
    if (status != TIDE_OK) {
        tide__vclock_destroy(fresh);
        return status;
    }
    for (size_t i = 0; i < sim->pending.count; i++) {
        tide__sim_event *event = sim->pending.data[i];
        event->t_ns = sim->epoch_ns + tide__vclock_end(sim->clock, event->job);
        event->pending = false;
    }
    sim->pending.count = 0;
    for (int i = 0; i < TIDE__SIM_MAX_QUEUES; i++)
        if (sim->queues[i]) sim->queues[i]->waits.count = 0; /* what they waited for is over */
    sim->epoch_ns += tide__vclock_now(sim->clock);
    tide__vclock_destroy(sim->clock);
    sim->clock = fresh;
    return TIDE_OK;
}

/* ---- events ---- */

tide_status tide__sim_event_create(tide_device *device, tide_event **out) {
    tide__sim_event *event = calloc(1, sizeof *event);
    if (!event) return tide__fail_memory();
    event->base.device = device;
    *out = &event->base;
    return TIDE_OK;
}

void tide__sim_event_destroy(tide_event *base) {
    tide__sim *sim = (tide__sim *)base->device;
    for (size_t i = 0; i < sim->pending.count; i++)
        if (&sim->pending.data[i]->base == base) {
            sim->pending.data[i] = sim->pending.data[--sim->pending.count];
            break;
        }
    free(base);
}

tide_status tide__sim_event_record(tide_event *base, tide_queue *queue) {
    tide__sim *sim = (tide__sim *)base->device;
    tide__sim_event *event = (tide__sim_event *)base;
    uint32_t job;
    TIDE_TRY(tide__vec_reserve(&sim->pending, 1));
    TIDE_TRY(tide__sim_charge((tide__sim_queue *)queue, (tide__vjob){0}, &job));
    if (!event->pending) sim->pending.data[sim->pending.count++] = event;
    event->recorded = event->pending = true;
    event->job = job;
    return TIDE_OK;
}

tide_status tide__sim_event_wait(tide_event *base, tide_queue *queue) {
    tide__sim_event *event = (tide__sim_event *)base;
    if (!event->pending) return TIDE_OK; /* over before the host's `now` */
    return tide__vec_push(&((tide__sim_queue *)queue)->waits, event->job);
}

/* The work before a record was done when it was enqueued. */
tide_status tide__sim_event_query(tide_event *base, bool *complete) {
    *complete = true;
    return TIDE_OK;
}

tide_status tide__sim_event_sync(tide_event *base) {
    return ((tide__sim_event *)base)->pending ? tide__sim_settle((tide__sim *)base->device) : TIDE_OK;
}

tide_status tide__sim_event_elapsed(tide_event *from, tide_event *to, uint64_t *ns) {
    const tide__sim_event *a = (tide__sim_event *)from, *b = (tide__sim_event *)to;
    if (!a->recorded || !b->recorded)
        return tide__fail(TIDE_E_ARGUMENT, "the %s event was never recorded", a->recorded ? "second" : "first");
    TIDE_TRY(tide__sim_event_sync(from));
    TIDE_TRY(tide__sim_event_sync(to));
    *ns = b->t_ns > a->t_ns ? b->t_ns - a->t_ns : 0;
    return TIDE_OK;
}
