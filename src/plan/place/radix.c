/* Least-significant-byte radix sort; bytes that are equal in all keys cost one look only. */
#include "plan/place/radix.h"

#include <string.h>

void tide__radix_sort(uint64_t *keys, uint64_t *scratch, size_t n) {
    uint64_t *from = keys, *to = scratch;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t at[257] = {0};
        for (size_t i = 0; i < n; i++) at[((from[i] >> shift) & 0xff) + 1]++;
        if (n && at[((from[0] >> shift) & 0xff) + 1] == n) continue;
        for (size_t b = 0; b < 256; b++) at[b + 1] += at[b];
        for (size_t i = 0; i < n; i++) to[at[(from[i] >> shift) & 0xff]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, n * sizeof *keys);
}
