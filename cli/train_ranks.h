/* tidemark train as one of several ranks of a job (mpirun, srun): rank 0 speaks and writes files for all, messages of
 * steps go through net.h, and a fault of the job is reported once, with its own exit code. */
#ifndef TIDE_CLI_TRAIN_RANKS_H
#define TIDE_CLI_TRAIN_RANKS_H

#include "train_options.h"

typedef struct train_ranks {
    tide_net *net; /* NULL: this process is alone */
    tide_peers peers;
    bool saves_weights;                       /* rank 0 does, at the end */
    _Atomic uint64_t sent_bytes, messages_ns; /* of all messages of steps so far */
    int stderr_fd;                            /* what it was */
    int captured_fd;                          /* where the others' messages go; -1: nowhere */
} train_ranks;

/* Joins the job, if there is one, before anything is said. From then on other ranks than 0 are silent. */
tide_status ranks_join(train_ranks *r);
/* Of several ranks: options that only rank 0 follows are dropped elsewhere, threads are shared, and what cannot be done is
 * refused. */
tide_status ranks_fit_options(train_ranks *r, train_options *o);
/* Refuses ranks whose bits would differ: other processors, threads or libraries; and other command lines. */
tide_status ranks_compare(const train_ranks *r, const tide_device *device, int argc, char **argv, bool any_bits);
/* NULL: none. For tide_trainer_options. */
const tide_peers *ranks_peers(train_ranks *r);
/* After a step: what rank 0 wants, everybody does: end here, save. */
tide_status ranks_agree(const train_ranks *r, uint64_t steps_done, bool *stop, bool *save);
/* True if it is on all ranks. */
tide_status ranks_all(const train_ranks *r, bool *is);
/* The messages of the steps so far, one by one on the average. */
void ranks_note(const train_ranks *r, outcome *out);
/* What all ranks used, for rank 0 to show; of one rank nothing. */
tide_status ranks_gather(const train_ranks *r, outcome *out);
/* Leaves the job. A fault is told once, by the lowest rank that is left; returns the exit code of the job. */
int ranks_leave(train_ranks *r, int exit_code);

#endif
