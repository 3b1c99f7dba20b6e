/* Working ahead: ops that an online run has enqueued and does not yet know to be complete.
 *
 * Runs are numbered from 1 in the order of the compute queue; those in (n_complete, n_issued] are under way, at most
 * TIDE__AHEAD. Each has two events, so its time is measured without anybody waiting for it. Invariant: an event is
 * recorded again only when the run that had it before is known to be complete. */
#ifndef TIDE_RUN_AHEAD_H
#define TIDE_RUN_AHEAD_H

#include <tidemark/run.h>

/* Far enough that transfers begin long before they are wanted, near enough that costs are measured soon. */
enum { TIDE__AHEAD = 64 };

struct tide__run_online;

typedef struct tide__issued {
    tide_event *begin, *end;
    tide_id op;
    uint32_t action;  /* in the journal */
    uint64_t cost_ns; /* expected, when it was issued */
    uint64_t ends_ns; /* about when; the host's clock */
} tide__issued;

typedef struct tide__ahead {
    tide__issued runs[TIDE__AHEAD]; /* run i is in runs[i % TIDE__AHEAD] */
    uint64_t n_issued, n_complete;
    uint64_t pending_ns; /* what runs under way are expected to take */
} tide__ahead;

void tide__ahead_close(tide__ahead *ahead); /* its queue is idle or gone */

/* An op is enqueued between the two. The first waits if too many are under way. */
tide_status tide__ahead_begin(struct tide__run_online *s, tide_id op);
tide_status tide__ahead_end(struct tide__run_online *s);

/* Takes the times of runs that are complete; waits for none. */
tide_status tide__ahead_collect(struct tide__run_online *s);
/* Everything is known to be complete; after a failure times mean nothing. */
tide_status tide__ahead_settle(struct tide__run_online *s, tide_status status);

/* A copy queue waits for a run; nothing if that is complete. */
tide_status tide__ahead_wait(struct tide__run_online *s, uint64_t number, uint32_t queue);
/* About when a run ends; 0 if it has. */
uint64_t tide__ahead_end_ns(const tide__ahead *ahead, uint64_t number);

#endif
