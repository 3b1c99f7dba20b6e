/* Bytes into words, little-endian, length last: the same hash on every machine. */
#include "base/hash.h"

#include <string.h>

uint64_t tide__hash_words(uint64_t hash, const void *part, size_t size) {
    const unsigned char *p = part;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word = 0;
        for (int k = 7; k >= 0; k--) word = word << 8 | p[i + (size_t)k];
        hash = tide__hash_word(hash, word);
    }
    return hash;
}

uint64_t tide__hash_end(uint64_t hash, const void *rest, size_t size_of_all) {
    const unsigned char *p = rest;
    uint64_t tail = 0;
    for (size_t i = 0; i < size_of_all % 8; i++) tail = tail << 8 | p[i];
    return tide__hash_word(tide__hash_word(hash, tail), size_of_all);
}

uint64_t tide__hash_bytes(uint64_t hash, const void *data, size_t size) {
    const char *p = size ? data : ""; /* nothing may be at NULL */
    return tide__hash_end(tide__hash_words(hash, p, size), p + (size - size % 8), size);
}
