/* A recorded stream, run through a pool over addresses without memory: what the pool would have done for that program.
 * Deviations can be added, to see how it bears them. */
#ifndef TIDE_POOL_REPLAY_H
#define TIDE_POOL_REPLAY_H

#include <tidemark/replay.h>

#include "program/import/stream.h"

tide_status tide__pool_replay(const tide__stream *stream, const tide_replay_options *options,
                              tide_replay_result *result);

#endif
