/* Times ops on a device while a step runs: an event before and after each. Kept apart from the network, whose ordinary
 * steps record nothing. */
#ifndef TIDE_NN_OP_TIMER_H
#define TIDE_NN_OP_TIMER_H

#include <tidemark/device.h>
#include <tidemark/program.h>

#include "base/vec.h"

typedef struct tide__op_timer {
    tide_device *device;
    TIDE_VEC(tide_id) ops;         /* one per run of an op, in order; re-runs are runs */
    TIDE_VEC(tide_event *) events; /* two per run */
} tide__op_timer;

tide_status tide__op_timer_begin(tide__op_timer *timer, tide_queue *queue, tide_id op);
tide_status tide__op_timer_end(tide__op_timer *timer, tide_queue *queue);

/* After the step: first_ns[op], the time of its first run (ops that did not run are left alone), and the sum of all. */
tide_status tide__op_timer_read(const tide__op_timer *timer, uint64_t *first_ns, uint64_t *sum_ns);
void tide__op_timer_free(tide__op_timer *timer);

#endif
