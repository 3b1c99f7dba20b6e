/* Bytes into words, little-endian, length last: the same hash on every machine. */
#include "base/hash.h"

#include <string.h>

uint64_t tide__hash_bytes(uint64_t hash, const void *data, size_t size) {
    const unsigned char *p = data;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word = 0;
        for (int k = 7; k >= 0; k--) word = word << 8 | p[i + (size_t)k];
        hash = tide__hash_word(hash, word);
    }
    uint64_t tail = 0;
    for (size_t i = size & ~(size_t)7; i < size; i++) tail = tail << 8 | p[i];
    return tide__hash_word(tide__hash_word(hash, tail), size);
}
