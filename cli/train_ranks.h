/* tidemark train as one of several ranks of a job (mpirun, srun): rank 0 speaks and writes files for all, messages of
 * steps go through net.h, and a fault of the job is reported once, with its own exit code. */
#ifndef TIDE_CLI_TRAIN_RANKS_H
#define TIDE_CLI_TRAIN_RANKS_H

#include "train_options.h"

typedef struct train_ranks {
    tide_net *net;       /* NULL: this process is alone */
    uint32_t n_trainers; /* of its ranks, the first ones; the others lend memory only */
    tide_peers peers;
    tide_lender *lender;                      /* NULL: this rank lends nothing */
    tide_loan loan;                           /* net NULL: it borrows nothing */
    bool saves_weights;                       /* rank 0 does, at the end */
    bool records;                             /* rank 0 writes what all measured */
    _Atomic uint64_t sent_bytes, messages_ns; /* of all messages of steps so far */
    int stderr_fd;                            /* what it was */
    int captured_fd;                          /* where the others' messages go; -1: nowhere */
} train_ranks;

/* Joins the job, if there is one, before anything is said. From then on other ranks than 0 are silent. */
tide_status ranks_join(train_ranks *r);
/* Of several ranks: options that only rank 0 follows are dropped elsewhere, threads are shared, and what cannot be done is
 * refused. */
tide_status ranks_fit_options(train_ranks *r, train_options *o);
/* Refuses ranks with another command line; then those that lend do, and the others have a tier there. Fails on all ranks or on none. */
tide_status ranks_lend(train_ranks *r, const train_options *o, int argc, char **argv, tide_machine *machine);
/* Does this rank lend only? Then it waits until nobody needs it. */
bool ranks_only_lends(const train_ranks *r);
tide_status ranks_wait(train_ranks *r);
/* Refuses ranks whose bits would differ: other processors, threads or libraries. */
tide_status ranks_compare(const train_ranks *r, const tide_device *device, bool any_bits);
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
