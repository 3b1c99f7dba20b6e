/* Offline placements of a recorded stream's iteration, to compare the pool with: SmartPool's heuristic as it was
 * published, and this project's placement engine.
 *
 *      two slots     blocks that outlive the iteration get two places for the whole of it, used in turn; the others
 *                    are placed by their lifetimes
 *      two turns     two iterations (more, if a block lives longer) are placed on a circle, every block by its lifetime
 *      engine        the same circle, by plan/place
 *
 * Blocks that the stream keeps through all iterations (weights) belong to no iteration: their bytes are added to each. */
#ifndef TIDE_POOL_OFFLINE_H
#define TIDE_POOL_OFFLINE_H

#include "pool/online/requests.h"

typedef struct tide__offline_result {
    uint32_t period_events, n_blocks; /* of one iteration */
    size_t end_event;                 /* request where the iterations end */
    uint64_t resident_bytes;          /* of the blocks that belong to no iteration */
    uint64_t load_bytes;              /* most that is live at once in an iteration, with the residents; likewise: */
    uint64_t bound_bytes;             /* no placement on the circle is lower */
    uint64_t two_slots_bytes;         /* SmartPool as published; 0: the iteration is too large for it */
    uint64_t two_turns_bytes;         /* its variant; likewise */
    uint64_t engine_bytes;
    bool engine_optimal;          /* no placement on the circle is lower */
    const char *engine_algorithm; /* what found it: a static string */
} tide__offline_result;

/* TIDE_E_REPEAT if the stream has no iteration. `alignment` of every block; `seconds` for the engine's search. */
tide_status tide__offline_place(const tide__requests *requests, uint64_t alignment, double seconds,
                                tide__offline_result *result);

#endif
