/* Finds the iteration while the stream runs, in constant time per event.
 *
 * One candidate period is followed at a time: as long as the newest event equals the one a period earlier, the run
 * grows; when it breaks, the earlier places with the same last 8 symbols (a hash chain, as in LZ77 compressors) are
 * compared backwards and the one that agrees longest, among equals the nearest, gives the next candidate.
 *
 *      ... A B C D E A B C D E     period 5, run 5: the last two stretches of 5 are equal
 *
 * A loop inside the iteration makes a short candidate that breaks where the loop ends; there the last symbols have
 * occurred an iteration ago and nowhere nearer, which gives the right one. Its run is then also extended backwards,
 * once, when it has grown to a quarter of the period: so what the loop hid is not lost, and the work stays paid for by
 * the events seen. */
#ifndef TIDE_POOL_REPEAT_H
#define TIDE_POOL_REPEAT_H

#include "pool/history.h"

typedef struct tide__repeat {
    uint64_t max_period;
    uint64_t *head;   /* per bucket: 1 + the latest event whose gram falls into it; 0: none */
    uint32_t *before; /* per place of the ring: distance to the previous event of the bucket; 0: none remembered */
    uint64_t n_buckets;
    uint64_t fed;   /* events before this one have been looked at */
    uint64_t begin; /* of what no plan explains */
    uint64_t gram;
    uint64_t period; /* the candidate; 0: none */
    uint64_t run;    /* the last `run` events equal those a period earlier */
    uint64_t due;    /* the run at which to judge */
    bool extended;
} tide__repeat;

tide_status tide__repeat_init(tide__repeat *repeat, const tide__history *history, uint64_t max_period);
void tide__repeat_deinit(tide__repeat *repeat);

/* Looks at the next event, number `fed`. true when it is time to judge: the run reached `period`, twice, four times,
 * ... of it. */
bool tide__repeat_feed(tide__repeat *repeat, const tide__history *history);

/* The stream has left a plan that it followed: from event `begin` on nothing explains it. Of the events before that,
 * which were not looked at, those before `from` are left out. */
void tide__repeat_resume(tide__repeat *repeat, uint64_t from, uint64_t begin);

#endif
