/* Trainings of a network that changes: each step trains one of several parts of the model, drawn by seed and step. Ops go
 * one by one through a session (dynamic.h), which plans what comes up again. */
#ifndef TIDE_NN_PARTS_H
#define TIDE_NN_PARTS_H

#include "nn/trainer.h"

tide_status tide__parts_check(const tide_trainer_options *options);
/* Fills trainer->parts and binds trainer->network, whose states are then all of the model's. */
tide_status tide__parts_open(tide_trainer *t);
void tide__parts_close(tide_trainer *t); /* fine if there are none */
tide_status tide__parts_step(tide_trainer *t, const tide_step_args *args, float *loss, tide_step_report *report);

/* A batch of `data` through the whole model, forward only; *network and *labels hold until the next call. */
tide_status tide__parts_look(tide_trainer *t, const tide_data *data, tide__order_fn order, const void *context,
                             const tide_step_args *args, tide__network **network, const int32_t **labels);

/* What the parts are, in a number: equal parts, equal numbers. 0: there are none. */
uint64_t tide__parts_fingerprint(const tide_trainer_options *options);

#endif
