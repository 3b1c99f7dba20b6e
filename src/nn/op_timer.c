/* See op_timer.h. */
#include "nn/op_timer.h"

#include <stdlib.h>

static tide_status record(tide__op_timer *timer, tide_queue *queue) {
    tide_event *event;
    TIDE_TRY(tide_event_create(timer->device, &event));
    tide_status status = tide__vec_push(&timer->events, event);
    if (status != TIDE_OK) {
        tide_event_destroy(event);
        return status;
    }
    return tide_event_record(event, queue);
}

tide_status tide__op_timer_begin(tide__op_timer *timer, tide_queue *queue, tide_id op) {
    TIDE_TRY(tide__vec_push(&timer->ops, op));
    return record(timer, queue);
}

tide_status tide__op_timer_end(tide__op_timer *timer, tide_queue *queue) { return record(timer, queue); }

tide_status tide__op_timer_read(const tide__op_timer *timer, uint64_t *first_ns, uint64_t *sum_ns) {
    uint64_t sum = 0;
    for (size_t i = timer->ops.count; i-- > 0;) { /* backwards: the first run has the last word */
        TIDE_TRY(tide_event_elapsed(timer->events.data[2 * i], timer->events.data[2 * i + 1],
                                    &first_ns[timer->ops.data[i]]));
        sum += first_ns[timer->ops.data[i]];
    }
    *sum_ns = sum;
    return TIDE_OK;
}

void tide__op_timer_free(tide__op_timer *timer) {
    for (size_t i = 0; i < timer->events.count; i++) tide_event_destroy(timer->events.data[i]);
    tide__vec_free(&timer->events);
    tide__vec_free(&timer->ops);
}
