/* A network: one step of a model with its kernels, its plan and its run. The trainer has one that learns; an
 * evaluation has another that only looks. */
#ifndef TIDE_NN_NETWORK_H
#define TIDE_NN_NETWORK_H

#include <tidemark/train.h>

#include "nn/op_timer.h"

/* What one step sees, per micro-batch: pixels as stored on the device, and labels. */
typedef struct tide__batch {
    float **inputs;
    int32_t **labels;
} tide__batch;

typedef struct tide__network {
    tide_step *step; /* with its kernels */
    const tide_program *program;
    tide_machine machine;
    tide_plan *plan; /* NULL: online */
    bool recalled;   /* it comes from a folder */
    tide_run *run;
    tide_session *session;          /* instead of the run, of networks that change: their values are the session's */
    const tide_id *ids;             /* then: per tensor, its id in the session */
    uint32_t first_micro, n_micros; /* that it computes itself */
    tide__batch batch;              /* of the step at hand */
    float *plain;                   /* one micro-batch of pixels, row-major: scratch of tide__network_fill */
    bool borrows;                   /* batch and plain are the host's */
    const struct tide__network *lender; /* parameters are read from this one, step by step; NULL: they are its own */
    tide_id *lent;                      /* then: per tensor, the lender's value that it is, or TIDE_NONE */
    tide__op_timer *timer;              /* borrowed; NULL: ops are not timed */
} tide__network;

/* `step` decides between training and inference. host: the network of the same model whose arena and buffers this one
 * uses, NULL: its own. options->plan.budgets are in bytes afterwards. On failure *network is empty. */
tide_status tide__network_open(tide_trainer_options *options, const tide_step_options *step, tide__network *host,
                               tide_fit_report *fit, tide__network *network);
void tide__network_close(tide__network *network);
/* options->plan.budgets in bytes, of this program on *machine: the one in options, aligned as the device is. *plan (may be NULL): as
 * tide__budget_settle has it. */
tide_status tide__network_set_budgets(tide_trainer_options *options, const tide_program *program, tide_machine *machine,
                                      tide_plan **plan);

/* Which samples a step sees: order(context, i, &draw) is the index of its i-th sample. draw: how many a training saw before it;
 * untouched where nothing is learned. */
typedef uint64_t (*tide__order_fn)(const void *context, uint64_t i, uint64_t *draw);
/* That sample, as the order wants it. */
tide_status tide__data_sample(const tide_data *data, tide__order_fn order, const void *context, uint64_t i,
                              float *pixels, int32_t *labels);
tide_status tide__network_fill(const tide__network *network, const tide__batch *batch, const tide_data *data,
                               tide__order_fn order, const void *context);

/* Another batch of the same size. On failure *batch is empty. */
tide_status tide__batch_open(const tide__network *network, tide__batch *batch);
void tide__batch_close(const tide__network *network, tide__batch *batch);

/* Between steps: a value of the start or of the end. */
tide_status tide__network_read(const tide__network *network, tide_id tensor, void *data, uint64_t size_bytes);
/* The same for a part of it. */
tide_status tide__network_read_part(const tide__network *network, tide_id tensor, uint64_t position_bytes, void *data,
                                    uint64_t size_bytes);
tide_status tide__network_write_part(const tide__network *network, tide_id tensor, uint64_t position_bytes,
                                     const void *data, uint64_t size_bytes);

/* The operand that reads an input gives the layout: from row-major pixels or tokens to what the device stores. */
tide_status tide__network_pack_input(const tide__network *network, uint32_t micro, const float *plain, float *stored);
/* Looks on from *index, round to where it began: steps of one model list their states in the same order, so finding
 * one after the other is one pass. */
bool tide__step_find_state(const tide_step *step, const char *name, uint32_t *index);
/* What evaluations have: forward only. */
void tide__step_for_inference(tide_step_options *step);
/* Of a shape that the graph has checked. */
uint64_t tide__elements(tide_shape s);

#endif
