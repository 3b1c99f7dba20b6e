/* The ranks of a job: processes on one or more machines that train together, and the messages between them.
 *
 *      tide_net_open                      joins the job that mpirun or Slurm started
 *      tide_net_send, tide_net_receive    post a message from any thread; they return at once
 *      tide_net_wait                      until a posted message is complete
 *      tide_net_close
 *
 * A message has a sender, a receiver, a tag and a size that both sides know. A receive takes the oldest message with its
 * sender and tag; messages of one sender with one tag arrive in the order in which they were sent. The bytes of a message
 * leave when its receive is posted, so nothing is buffered but messages of at most TIDE_NET_SMALL bytes. Every message has
 * a checksum. One service thread per rank carries all messages out, also while every other thread computes.
 *
 * A rank that was killed, stopped or cut off, or sends other bytes than it meant to, is a *fault*. There is one for the
 * whole job: the rank that sees it tells the others, every message that is not complete fails with TIDE_E_PEER, and so does
 * every later call. tide_net_fault says which rank on which host it was, and the last step it was in. A process whose job
 * has a fault should end: nothing heals.
 *
 * All functions may be called from several threads at once, but for open and close. */
#ifndef TIDEMARK_NET_H
#define TIDEMARK_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tidemark/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_net tide_net;

enum {
    TIDE_NET_SMALL = 4096, /* bytes of a message that may wait at its receiver */
    TIDE_NET_HOST = 64,    /* room for the name of a host, with its 0 */
    TIDE_NET_WHY = 256     /* room for the text of a fault, with its 0 */
};

typedef struct tide_net_options {
    size_t size;          /* sizeof(tide_net_options) */
    const char *plugin;   /* file with the MPI plug-in; NULL: $TIDE_NET_PLUGIN, else beside the library */
    uint32_t beat_ms;     /* a rank tells its neighbours this often that it lives [250] */
    uint32_t silence_ms;  /* one that says nothing for so long is lost [5000] */
    uint32_t deadline_ms; /* a posted message that is not complete by then is a fault; 0: there is no deadline [0] */
} tide_net_options;
TIDE_API void tide_net_options_init(tide_net_options *options);

/* How many ranks the job has that started this process, by the environment that mpirun, mpiexec or srun made: 1 without.
 * Loads nothing. */
TIDE_API uint32_t tide_net_job_ranks(void);

/* Joins the job; all ranks call it. A job of one rank has messages to itself only and needs no plug-in.
 * TIDE_E_UNSUPPORTED: the job has several ranks and the plug-in is not there, or does not fit the MPI that started it. */
TIDE_API tide_status tide_net_open(const tide_net_options *options, tide_net **out);
/* Leaves the job when every other rank does, too, and what was posted is complete; after a fault at once. NULL is fine. */
TIDE_API void tide_net_close(tide_net *net);

TIDE_API uint32_t tide_net_rank(const tide_net *net); /* of this process, from 0 */
TIDE_API uint32_t tide_net_count(const tide_net *net);
TIDE_API const char *tide_net_host(const tide_net *net, uint32_t rank); /* its host's name; "" for no such rank */

/* ---- messages ---- */

/* Called once for a posted message, on the service thread: it must not wait, and may post. */
typedef void tide_net_done_fn(void *context, tide_status status);

/* What a posted message is waited by; each is given to tide_net_wait once. */
typedef struct tide_net_ticket {
    struct tide__net_post *post;
} tide_net_ticket;

/* Tags below 2^63 are the caller's. `data` holds still until the message is complete. With `done` its end is told there
 * and ticket is NULL; with done NULL it is waited for by *ticket. Sender and receiver may be the same rank. */
TIDE_API tide_status tide_net_send(tide_net *net, uint32_t to, uint64_t tag, const void *data, uint64_t size_bytes,
                                   tide_net_done_fn *done, void *context, tide_net_ticket *ticket);
TIDE_API tide_status tide_net_receive(tide_net *net, uint32_t from, uint64_t tag, void *data, uint64_t size_bytes,
                                      tide_net_done_fn *done, void *context, tide_net_ticket *ticket);
TIDE_API tide_status tide_net_wait(tide_net *net, tide_net_ticket ticket);

/* ---- for setting up: all ranks call them in the same order, one thread each; they return when they are complete ---- */

/* From now on only the first `count` ranks call them: the others do something else. All ranks call this. */
TIDE_API tide_status tide_net_among(tide_net *net, uint32_t count);

TIDE_API tide_status tide_net_barrier(tide_net *net);
/* `data` of rank `root` in everybody's. */
TIDE_API tide_status tide_net_broadcast(tide_net *net, uint32_t root, void *data, uint64_t size_bytes);
/* all[r * size_bytes]: what rank r gave; room for the bytes of all ranks. */
TIDE_API tide_status tide_net_allgather(tide_net *net, const void *mine, uint64_t size_bytes, void *all);

/* ---- memory of other ranks: what a tier of kind TIDE_TIER_LENT stands on ---- */

/* Where such a tier has its bytes. */
typedef struct tide_loan {
    tide_net *net;
    uint32_t from; /* the rank that lends */
} tide_loan;

typedef struct tide_lender tide_lender;
/* From now on every rank r may keep up to budget_bytes[r] in the memory of this one; 0: it does not. Nothing is taken
 * before it is used. The service thread does the work. */
TIDE_API tide_status tide_lender_open(tide_net *net, const uint64_t *budget_bytes, tide_lender **out);
/* Until all of them have returned it, or the job has a fault; then frees it. */
TIDE_API tide_status tide_lender_close(tide_lender *lender);
/* This rank, which has no tier there any more, needs nothing further. */
TIDE_API tide_status tide_loan_return(const tide_loan *loan);

/* ---- faults ---- */

/* From now on this rank is in this step: what others report as its last one. */
TIDE_API void tide_net_set_step(tide_net *net, uint64_t step);

typedef struct tide_net_fault_info {
    tide_status status; /* TIDE_OK: there is none; TIDE_E_PEER, or what the rank itself failed with */
    uint32_t rank;      /* whose fault it is */
    uint64_t step;      /* the last it was known to be in */
    char host[TIDE_NET_HOST];
    char why[TIDE_NET_WHY];
} tide_net_fault_info;
TIDE_API tide_net_fault_info tide_net_fault(const tide_net *net);

/* This rank cannot go on: it failed with `status`, for a reason that is told to all. The job has a fault from then on, unless it has one.
 * Returns when every other rank knows, or the silence that makes a rank lost has passed. */
TIDE_API void tide_net_fail(tide_net *net, tide_status status, const char *why);

#ifdef __cplusplus
}
#endif
#endif
