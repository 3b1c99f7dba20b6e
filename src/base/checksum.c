/* See checksum.h. Four chains of multiplications side by side; each step is a bijection of its chain. */
#include "base/checksum.h"

#include <string.h>

#include "base/hash.h"

uint64_t tide__checksum(const void *data, size_t size) {
    const char *p = size ? data : ""; /* nothing may be at NULL */
    uint64_t chain[4] = {1, 2, 3, 4}, all = 0;
    size_t at = 0;
    for (; at + sizeof chain <= size; at += sizeof chain) {
        uint64_t word[4];
        memcpy(word, p + at, sizeof word);
        for (size_t k = 0; k < 4; k++) chain[k] = (chain[k] ^ word[k]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    for (size_t k = 0; k < 4; k++) all = tide__hash_word(all, chain[k]);
    return tide__hash_bytes(all, p + at, size - at);
}
