/* A small, fast, seedable 64-bit hash for signatures and fingerprints. Not for hostile hash tables. The values are
 * part of file formats: never change them. */
#ifndef TIDE_BASE_HASH_H
#define TIDE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The finaliser of splitmix64: a bijection that mixes all bits. */
static inline uint64_t tide__mix(uint64_t x) {
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Folds one word into a running hash; order matters. */
static inline uint64_t tide__hash_word(uint64_t hash, uint64_t word) {
    return tide__mix(hash * UINT64_C(0x9e3779b97f4a7c15) + word + 1);
}

uint64_t tide__hash_bytes(uint64_t hash, const void *data, size_t size);

/* The same in parts: all whole words of one part after the other, whose sizes but for the last are multiples of 8; then
 * the end, with what follows the last whole word. */
uint64_t tide__hash_words(uint64_t hash, const void *part, size_t size);
uint64_t tide__hash_end(uint64_t hash, const void *rest, size_t size_of_all);

#endif
