/* A recorded stream, run through a pool over addresses without memory: what the pool would have done for that program.
 * Deviations can be added, to see how it bears them. */
#ifndef TIDE_POOL_REPLAY_H
#define TIDE_POOL_REPLAY_H

#include <tidemark/pool.h>

#include "program/import/stream.h"

typedef struct tide__replay_options {
    tide_pool_options pool; /* its backing is replaced */
    uint32_t deviate_every; /* iterations, about: a malloc is added or left out; 0: never */
    uint64_t seed;          /* of the deviations */
} tide__replay_options;

typedef struct tide__replay_result {
    tide_pool_stats stats; /* after the last event, blocks that the stream never frees still live */
    uint64_t n_extra, n_missing;
    /* While learning: up to the first iteration of which a plan answered a malloc. */
    uint64_t learn_events, learn_peak_held_bytes;
    /* Steady: the iterations after that one. */
    uint64_t n_iterations, n_watched, n_planned;
    uint64_t peak_live_bytes, peak_held_bytes;
    uint64_t longest_off_events;
    double worst_share; /* planned / watched of the worst of them; 1 if there are none */
} tide__replay_result;

tide_status tide__pool_replay(const tide__stream *stream, const tide__replay_options *options,
                              tide__replay_result *result);

#endif
