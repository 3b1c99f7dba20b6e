/* Least-significant-byte radix sort. Bytes in which all keys agree take no pass; few keys are sorted by insertion,
 * which is quicker than clearing the counters. */
#include "plan/place/radix.h"

#include <string.h>

enum { FEW_KEYS = 48 };

static void insert_each(uint64_t *keys, size_t n) {
    for (size_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        size_t k = i;
        for (; k > 0 && keys[k - 1] > key; k--) keys[k] = keys[k - 1];
        keys[k] = key;
    }
}

static void sort_by_byte(const uint64_t *from, uint64_t *to, size_t n, unsigned shift) {
    size_t at[257] = {0};
    for (size_t i = 0; i < n; i++) at[((from[i] >> shift) & 0xff) + 1]++;
    for (size_t b = 0; b < 256; b++) at[b + 1] += at[b];
    for (size_t i = 0; i < n; i++) to[at[(from[i] >> shift) & 0xff]++] = from[i];
}

void tide__place_radix_sort(uint64_t *keys, uint64_t *scratch, size_t n) {
    uint64_t *from = keys, *to = scratch, differ = 0;
    if (n <= FEW_KEYS) {
        insert_each(keys, n);
        return;
    }
    for (size_t i = 1; i < n; i++) differ |= keys[i] ^ keys[0];
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (!(differ >> shift & 0xff)) continue;
        sort_by_byte(from, to, n, shift);
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, n * sizeof *keys);
}
