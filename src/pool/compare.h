/* What others would hold for a recorded stream, beside the pool: the online allocators, the offline placements of its
 * iteration, and the allocator that was in use when it was recorded. */
#ifndef TIDE_POOL_COMPARE_H
#define TIDE_POOL_COMPARE_H

#include <tidemark/replay.h>

#include "pool/offline.h"
#include "pool/online/requests.h"

/* `alignment` of first fit, best fit and the placements; the others have their own. `limit_bytes` is what the online
 * allocators have (0: no limit); `seconds` are for the engine's search. */
tide_status tide__compare(const tide__stream *stream, uint64_t alignment, uint64_t limit_bytes, double seconds,
                          tide_replay_others *out);

#endif
