/* See checksum.h. 32 chains side by side, in four vectors that stay in registers. Each step is a bijection of its chain, and
 * so is bringing the vectors together. The multiplication carries a change to higher bits, the shift to lower ones. */
#include "base/checksum.h"

#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

typedef uint32_t vector __attribute__((vector_size(32)));

/* By pointers: how a vector is passed depends on the processor. */
__attribute__((always_inline)) static inline void take(vector *chain, const void *words) {
    vector word;
    memcpy(&word, words, sizeof word);
    *chain = (*chain ^ word) * UINT32_C(0x9e3779b1);
    *chain ^= *chain >> 15;
}

/* Turned, so that the same change in both does not cancel. */
__attribute__((always_inline)) static inline void join(vector *chain, const vector *other) {
    vector turned = *other << 7 | *other >> 25;
    take(chain, &turned);
}

__attribute__((always_inline)) static inline uint64_t sum(const char *p, size_t size) {
    vector a = {1, 2, 3, 4, 5, 6, 7, 8}, b = ~a, c = a << 8, d = ~c;
    const char *end = p + size;
    for (; (size_t)(end - p) >= 4 * sizeof a; p += 4 * sizeof a) {
        take(&a, p);
        take(&b, p + sizeof a);
        take(&c, p + 2 * sizeof a);
        take(&d, p + 3 * sizeof a);
    }
    join(&a, &b);
    join(&c, &d);
    join(&a, &c);
    uint64_t words[sizeof a / sizeof(uint64_t)], all = size;
    memcpy(words, &a, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) all = tide__hash_word(all, words[i]);
    return tide__hash_bytes(all, p, (size_t)(end - p));
}

static uint64_t sum_plain(const char *p, size_t size) { return sum(p, size); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t sum_wide(const char *p, size_t size) { return sum(p, size); }
static bool is_wide(void) { return __builtin_cpu_supports("avx2"); }
#else
#define sum_wide sum_plain
static bool is_wide(void) { return false; }
#endif

uint64_t tide__checksum(const void *data, size_t size) {
    const char *p = size ? data : ""; /* nothing may be at NULL */
    return is_wide() ? sum_wide(p, size) : sum_plain(p, size);
}
