/* The virtual clock: in-order queues, waits between their jobs, and links whose bandwidth active jobs share. The
 * only model of time in the project: plan/simulate and the sim device both stand on it.
 *
 * A job starts when the previous job of its queue and all its waits are complete, and not before `now` at its
 * submission. It then takes fixed_ns, followed by work / rate, where jobs of the same share group (0 = none) that
 * are in that second part at the same time each progress at rate / (number of them). While jobs with a drag are in that
 * part, the fixed part of `dragged` ones is slower by the sum of the drags, at most 90 %. Deterministic; integer
 * ns. Time ends at UINT64_MAX: whatever would take longer is complete then. */
#ifndef TIDE_BASE_VCLOCK_H
#define TIDE_BASE_VCLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct tide__vclock tide__vclock;

typedef struct tide__vjob {
    uint32_t queue;
    uint32_t share;        /* 0: alone */
    uint32_t drag_percent; /* taken from the dragged while its work is done */
    bool dragged;
    uint64_t fixed_ns;
    uint64_t work;         /* e.g. bytes */
    uint64_t rate_per_s;   /* of work; ignored when work is 0 */
    const uint32_t *waits; /* ids of earlier jobs */
    size_t n_waits;
} tide__vjob;

tide_status tide__vclock_create(uint32_t n_queues, tide__vclock **out);
void tide__vclock_destroy(tide__vclock *clock);
/* Ids count from 0 in order of submission. */
tide_status tide__vclock_submit(tide__vclock *clock, const tide__vjob *spec, uint32_t *id);
/* Runs everything submitted so far to completion; `now` becomes the end of the last. */
tide_status tide__vclock_run(tide__vclock *clock);
uint64_t tide__vclock_now(const tide__vclock *clock);
uint64_t tide__vclock_start(const tide__vclock *clock, uint32_t id); /* after run */
uint64_t tide__vclock_end(const tide__vclock *clock, uint32_t id);

#endif
