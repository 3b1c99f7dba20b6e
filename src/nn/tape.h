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
    tide_id aux[2];  /* bn: mean, inv_std; relu: signs; maxpool: index; loss: the loss; lstm: c, gates; attention: lse;
                     * head: dx, dw, which come with the loss */
    tide_id dy;      /* gradient of y, the sum over the consumers seen so far */
    uint32_t n_sums; /* ops that made it, beyond the first contribution */
    tide_id dc;      /* lstm: gradient of c, from the next step */
    uint64_t draw;   /* of a random op: its counter */
} tide__node;

/* One parameter of the graph, in the course of the step. */
typedef struct tide__weight {
    tide_id start;      /* its value at the start */
    tide_id now;        /* its newest value: another one after an update or new running statistics */
    tide_id grad;       /* of the micro-batch at hand, as far as it is there */
    uint32_t state;     /* its entry in `states` */
    uint32_t optimizer; /* the first entry of its optimizer states; TIDE_NONE: none as yet */
    tide_id like;       /* the first of its values here, for the layout of those to come; TIDE_NONE: none as yet */
    uint32_t uses;      /* how often it has gone from its owners to others */
    uint64_t before;    /* elements of trainable parameters before it */
    uint32_t first_stake, n_stakes; /* 0 of them: how it is stored is not known as yet */
} tide__weight;

/* What one rank owns of a trainable parameter: all of it, or some of its floats. */
typedef struct tide__stake {
    uint32_t param, owner;  /* the rank that updates it; TIDE_NONE: every rank does */
    uint64_t first, floats; /* as stored */
    tide_id now;            /* with weights at their owners, here: its newest value */
    tide_id grad;           /* where it is updated: the sum over all micro-batches */
} tide__stake;

/* Per micro-batch. */
typedef struct tide__micro {
    tide_id input, label;
    tide_id prob, score; /* of inference, one of them; TIDE_NONE */
} tide__micro;

/* A sum on its way to and from another rank. */
typedef struct tide__exchange {
    uint32_t stake, level; /* TIDE_NONE: the loss */
    uint64_t size_bytes;
    tide_id own, received; /* TIDE_NONE: the sum is no longer here, or nothing comes */
} tide__exchange;

/* What a micro-batch has for the running statistics of a batch norm. */
typedef struct tide__statistics {
    uint32_t layer, micro;
    tide_id mean, inv_std;
} tide__statistics;

typedef struct tide__tape {
    const tide__graph *graph;
    const tide_step_options *options;
    uint32_t first_micro, n_micros; /* that this step computes */
    uint32_t n_all;                 /* micro-batches of the job */
    uint32_t rank, n_ranks;
    uint32_t head; /* the layer before the loss where one op does both; TIDE_NONE */
    tide__emitter emit;
    tide__node *nodes;     /* per layer */
    tide__weight *weights; /* per parameter */
    uint64_t n_elements;   /* of all trainable parameters */
    TIDE_VEC(tide__stake) stakes;
    tide__micro *micros;
    TIDE_VEC(tide_id) reads; /* scratch: of the op being made */
    tide_id *partials;       /* per slot (a parameter, or behind them the loss): n_levels sums, see tree.c */
    uint32_t n_levels;
    tide_id loss;        /* sum over the micro-batches */
    tide_id clip_scale;  /* TIDE_NONE without clipping */
    uint64_t n_messages; /* of all ranks, so far */
    TIDE_VEC(tide__exchange) pending;
    size_t first_pending;                  /* those before are done */
    uint64_t pending_bytes;                /* of one direction */
    TIDE_VEC(tide__statistics) statistics; /* of several ranks: by micro-batch, then layer */
    TIDE_VEC(tide_state) states;           /* ops, and names of those without owners, are filled in by step.c */
    TIDE_VEC(uint32_t) state_param;        /* per state */
    TIDE_VEC(char *) names;                /* of those with owners */
} tide__tape;

/* A parameter, or what is here of it, at the start of the step. */
tide_tensor tide__tape_weight_leaf(const tide__tape *tape, tide_class cls);

/* Forward ops of one micro-batch; fills nodes and micros. */
tide_status tide__tape_forward(tide__tape *tape);
/* Backward ops of one micro-batch: adds to the gradients of all parameters. With fused updates the last micro-batch
 * updates each layer as soon as its gradients are complete and its old weights are no longer needed. */
tide_status tide__tape_backward(tide__tape *tape);
/* Clipping, then the updates of all parameters. */
tide_status tide__tape_update(tide__tape *tape);

/* Update of what one rank, or every rank, owns of a parameter. */
tide_status tide__tape_update_stake(tide__tape *tape, uint32_t stake);

/* The sum over this rank's micro-batches is there: it becomes the loss or the parameter's gradient, with fused updates an update; with
 * several ranks later, tide__tape_share_rest at the latest. */
tide_status tide__tape_share(tide__tape *tape, uint32_t slot, tide_id own);
tide_status tide__tape_share_rest(tide__tape *tape);
tide_status tide__tape_update_statistics(tide__tape *tape, const tide__statistics *statistics);
/* With several ranks, after all micro-batches. */
tide_status tide__tape_chain_statistics(tide__tape *tape);

/* ---- what lies at its owner; see shard.c ---- */

/* Counts the elements of which each rank owns its share. */
void tide__tape_count_elements(tide__tape *tape);
/* Who owns what of a parameter that is stored as so many floats. */
tide_status tide__tape_deal(tide__tape *tape, uint32_t param, uint64_t floats);
bool tide__tape_has_owners(const tide__tape *tape, uint32_t param);
bool tide__tape_is_gathered(const tide__tape *tape, uint32_t param); /* only its owners have it */
bool tide__tape_is_here(const tide__tape *tape, const tide__stake *stake);
bool tide__tape_is_cut(const tide__tape *tape, const tide__stake *stake); /* it is a part */
/* The name of a parameter, or behind it which part this is. */
void tide__tape_name_stake(const tide__tape *tape, uint32_t stake, char name[TIDE__PARAM_NAME_BYTES]);
/* A state of the step; n_parts of its parts are to be filled in. role: NULL, its name is that of its tensor. */
tide_status tide__tape_add_state(tide__tape *tape, uint32_t param, tide_state state, const char *role,
                                 uint32_t n_parts);
/* With weights at their owners: the parameter's state, and the parts of it that are here, in the layout of operand `operand` of `desc`. */
tide_status tide__tape_add_owned(tide__tape *tape, uint32_t param, tide_state state, const tide_op_desc *desc,
                                 uint32_t operand);
/* With weights at their owners: the value of a parameter for one use, as operand `operand` of `desc`. Owners send it, others get it. */
tide_status tide__tape_gather(tide__tape *tape, uint32_t param, const tide_op_desc *desc, uint32_t operand,
                              tide_id *out);
/* The newest value of what is owned goes from its owner to all, if all have it. */
tide_status tide__tape_spread(tide__tape *tape, uint32_t stake, tide_id value);
/* A value on its way from one rank to another, or to all others (TIDE_NONE). draft.again counts what else goes by this name. */
typedef struct tide__passing {
    tide__draft draft;
    tide__arrival as;
    uint32_t from, to;
} tide__passing;
tide_status tide__tape_pass(tide__tape *tape, const tide__passing *passing, tide_id *value);

/* Something that is summed over the micro-batches. */
typedef struct tide__addend {
    tide_phase phase;
    const char *name; /* of what it is a sum of */
    uint32_t slot;    /* in `partials` */
} tide__addend;

/* left + right, in the layout of left; `again` ends the names if it is not 0. */
tide_status tide__tape_add(tide__tape *tape, const tide__addend *of, uint32_t again, tide_id left, tide_id right,
                           tide_id *out);
/* The value of the micro-batch at hand goes into its sum, which is shared after the last one. */
tide_status tide__tape_sum(tide__tape *tape, const tide__addend *of, tide_id value);

/* The parameter's tensor as operand `operand` of `desc`: created on first use, or gathered for each. */
tide_status tide__tape_param(tide__tape *tape, uint32_t param, const tide_op_desc *desc, uint32_t operand,
                             tide_id *out);

bool tide__tape_is_last_micro(const tide__tape *tape);
tide__micro *tide__tape_micro(const tide__tape *tape); /* the one at hand */

#endif
