/* What others would hold for a recorded stream, beside the pool: the online allocators, the offline placements of its
 * iteration, and the allocator that was in use when it was recorded. */
#ifndef TIDE_POOL_COMPARE_H
#define TIDE_POOL_COMPARE_H

#include "pool/offline.h"
#include "pool/online/requests.h"

typedef struct tide__comparison {
    uint64_t load_bytes; /* most that is live at once in the whole stream */
    struct {
        const char *name;
        uint64_t peak_held_bytes;
        uint64_t n_segments;
        bool fits; /* else there is not enough memory for it, and the rest is 0 */
    } online[TIDE__N_ONLINE];
    bool repeats; /* else `offline` is empty */
    tide__offline_result offline;
    uint64_t recorded_bytes; /* addresses that blocks ever had, in steps of 512; 0: the stream has no addresses */
} tide__comparison;

/* `alignment` of first fit, best fit and the placements; the others have their own. `limit_bytes` is what the online
 * allocators have (0: no limit); `seconds` are for the engine's search. */
tide_status tide__compare(const tide__stream *stream, uint64_t alignment, uint64_t limit_bytes, double seconds,
                          tide__comparison *out);

#endif
