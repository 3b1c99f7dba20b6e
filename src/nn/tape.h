/* The tape: what is known while a graph is unrolled into a step. forward.c, backward.c and update.c each append
 * their ops; step.c says in which order.
 *
 * Invariant: `nodes` describes the micro-batch being unrolled, `states` the whole step. */
#ifndef TIDE_NN_TAPE_H
#define TIDE_NN_TAPE_H

#include "nn/emit.h"
#include "nn/graph.h"

/* Values of one layer in the current micro-batch; TIDE_NONE until they exist. */
typedef struct tide__node {
    tide_id y;
    tide_id aux[2];  /* bn: mean, inv_std; maxpool: index; dropout: mask; loss: the loss; lstm: c, gates;
                     * qkv of attention: in backward dv, on its way into dqkv */
    tide_id dy;      /* gradient of y, the sum over the consumers seen so far */
    uint32_t n_sums; /* ops that made it, beyond the first contribution */
    tide_id dc;      /* lstm: gradient of c, from the next step */
} tide__node;

/* One parameter of the graph, in the course of the step. */
typedef struct tide__weight {
    tide_id start;  /* its value at the start */
    tide_id now;    /* its newest value: another one after an update or new running statistics */
    tide_id grad;   /* sum over the micro-batches so far */
    uint32_t state; /* its entry in `states` */
} tide__weight;

/* Per micro-batch. */
typedef struct tide__micro {
    tide_id input, label, loss, prob;
} tide__micro;

typedef struct tide__tape {
    const tide__graph *graph;
    const tide_step_options *options;
    uint32_t n_micros;
    tide__emitter emit;
    tide__node *nodes;     /* per layer */
    tide__weight *weights; /* per parameter */
    tide__micro *micros;
    TIDE_VEC(tide_id) reads;     /* scratch: of the op being made */
    tide_id clip_scale;          /* TIDE_NONE without clipping */
    TIDE_VEC(tide_state) states; /* names and ops are filled in by step.c */
} tide__tape;

/* Forward ops of one micro-batch; fills nodes and micros. */
tide_status tide__tape_forward(tide__tape *tape);
/* Backward ops of one micro-batch: adds to the gradients of all parameters. With fused updates the last micro-batch
 * updates each layer as soon as its gradients are complete and its old weights are no longer needed. */
tide_status tide__tape_backward(tide__tape *tape);
/* Clipping, then the updates of all parameters. */
tide_status tide__tape_update(tide__tape *tape);

/* Update of the trainable parameters of one layer, not of those it shares with an earlier one. */
tide_status tide__tape_update_layer(tide__tape *tape, uint32_t layer);

/* The parameter's tensor, created on first use as operand `operand` of `desc`. */
tide_status tide__tape_param(tide__tape *tape, uint32_t param, const tide_op_desc *desc, uint32_t operand,
                             tide_id *out);

bool tide__tape_is_last_micro(const tide__tape *tape);

#endif
