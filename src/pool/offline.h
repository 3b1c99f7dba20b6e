/* Offline placements of a recorded stream's iteration, to compare the pool with; <tidemark/replay.h> says which. */
#ifndef TIDE_POOL_OFFLINE_H
#define TIDE_POOL_OFFLINE_H

#include <tidemark/replay.h>

#include "pool/online/requests.h"

/* TIDE_E_REPEAT if the stream has no iteration. `alignment` of every block; `seconds` for the engine's search. */
tide_status tide__offline_place(const tide__requests *requests, uint64_t alignment, double seconds,
                                tide_replay_offline *result);

#endif
