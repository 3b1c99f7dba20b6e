/* One iteration, read off the history: which Malloc each Free ends, and how long blocks live.
 *
 * It is cut where the fewest bytes are live: the natural border between two steps. The cut depends on the cyclic
 * sequence of symbols only, not on where the repetition was noticed, so the same iteration always reads the same. */
#ifndef TIDE_POOL_ITERATION_H
#define TIDE_POOL_ITERATION_H

#include "pool/history.h"

#define TIDE__NO_ITEM UINT32_MAX

/* A block may live this many periods; one that lives longer is not planned. */
enum { TIDE__MAX_COPIES = 4 };

typedef struct tide__iteration {
    uint32_t period;       /* events */
    uint32_t n_items;      /* Mallocs */
    uint32_t next;         /* index of the event that the stream brings next */
    tide__symbol *symbols; /* per event */
    uint32_t *item;        /* per event: the item a Malloc starts or a Free ends; TIDE__NO_ITEM: a Free of no item */
    uint32_t *life;        /* per item: events from Malloc to Free, never a multiple of the period; 0: not known */
    uint64_t signature;    /* of the cyclic sequence of symbols */
} tide__iteration;

/* Reads the last `period` events; the `period` events before them must be equal. Where both show a lifetime the longer
 * one counts. *steady = false when the stretch is not what an iteration looks like: strictly, every Malloc must have
 * its Free and vice versa; tolerantly, Mallocs of an eighth of the bytes may go without. */
tide_status tide__iteration_read(const tide__history *history, uint32_t period, bool strictly, tide__iteration *out,
                                 bool *steady);
void tide__iteration_deinit(tide__iteration *iteration);

#endif
