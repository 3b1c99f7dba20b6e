/* See zeros.h. Eight words at a time where the processor has AVX2: a compare gives eight bits of the mask, a shuffle by a
 * table of 256 orders brings the words together, or apart again. */
#include "tier/zeros.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#include <pthread.h>
#endif

typedef struct head {
    uint32_t n_words, n_kept;
} head;

/* ---- one word after the other ---- */

static size_t pack_plain(const char *raw, size_t n_words, uint8_t *mask, char *kept) {
    size_t n = 0;
    memset(mask, 0, n_words / 8);
    for (size_t i = 0; i < n_words; i++) {
        uint32_t word;
        memcpy(&word, raw + 4 * i, sizeof word);
        memcpy(kept + 4 * n, &word, sizeof word);
        mask[i / 8] = (uint8_t)(mask[i / 8] | (unsigned)(word != 0) << i % 8);
        n += word != 0;
    }
    return n;
}

static void unpack_plain(const uint8_t *mask, const char *kept, char *raw, size_t n_words) {
    for (size_t i = 0; i < n_words; i++) {
        uint32_t word = 0;
        if (mask[i / 8] >> i % 8 & 1) {
            memcpy(&word, kept, sizeof word);
            kept += sizeof word;
        }
        memcpy(raw + 4 * i, &word, sizeof word);
    }
}

/* ---- eight at a time ---- */

#if defined(__x86_64__)
/* Per mask: which word comes to lane i; and which of the kept words lane i gets, negative for none. */
static int8_t together[256][8], apart[256][8];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_orders(void) {
    for (int m = 0; m < 256; m++) {
        int8_t n = 0;
        for (int8_t i = 0; i < 8; i++) {
            bool is_kept = m >> i & 1;
            apart[m][i] = is_kept ? n : -1;
            if (is_kept) together[m][n++] = i;
        }
    }
}

__attribute__((target("avx2"))) static inline __m256i order(const int8_t lanes[8]) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)lanes));
}

__attribute__((target("avx2,popcnt"))) static size_t pack_wide(const char *raw, size_t n_words, uint8_t *mask,
                                                               char *kept) {
    const char *begin = kept;
    for (size_t i = 0; i < n_words; i += 8) {
        __m256i words = _mm256_loadu_si256((const __m256i *)(const void *)(raw + 4 * i));
        __m256i is_zero = _mm256_cmpeq_epi32(words, _mm256_setzero_si256());
        unsigned m = ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(is_zero)) & 0xff;
        mask[i / 8] = (uint8_t)m;
        _mm256_storeu_si256((__m256i *)(void *)kept, _mm256_permutevar8x32_epi32(words, order(together[m])));
        kept += 4 * __builtin_popcount(m);
    }
    return (size_t)(kept - begin) / 4;
}

/* As far as eight of the kept words are there to be loaded. */
__attribute__((target("avx2,popcnt"))) static size_t unpack_wide(const uint8_t *mask, const char **kept,
                                                                 const char *end, char *raw, size_t n_words) {
    const char *next = *kept;
    size_t i = 0;
    for (; i < n_words && end - next >= 32; i += 8) {
        unsigned m = mask[i / 8];
        __m256i lanes = order(apart[m]), words = _mm256_loadu_si256((const __m256i *)(const void *)next);
        words = _mm256_andnot_si256(_mm256_srai_epi32(lanes, 31), _mm256_permutevar8x32_epi32(words, lanes));
        _mm256_storeu_si256((__m256i *)(void *)(raw + 4 * i), words);
        next += 4 * __builtin_popcount(m);
    }
    *kept = next;
    return i;
}

bool tide__zeros_is_wide(void) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("popcnt")) return false;
    pthread_once(&made, make_orders);
    return true;
}
#else
#define pack_wide pack_plain
static size_t unpack_wide(const uint8_t *mask, const char **kept, const char *end, char *raw, size_t n_words) {
    return 0;
}
bool tide__zeros_is_wide(void) { return false; }
#endif

/* ---- both ---- */

bool tide__zeros_pay(const void *raw, size_t size) {
    enum { EVERY = 1024, LINE = 64 };
    size_t zeros = 0, seen = 0;
    for (size_t at = 0; at + LINE <= size; at += EVERY) {
        uint32_t words[LINE / 4];
        memcpy(words, (const char *)raw + at, sizeof words);
        for (size_t i = 0; i < LINE / 4; i++) zeros += words[i] == 0;
        seen += LINE / 4;
    }
    return seen > 0 && zeros >= seen / 8;
}

size_t tide__zeros_pack(const void *raw, size_t size, void *packed, bool wide) {
    head h = {.n_words = (uint32_t)(size / 4)};
    uint8_t *mask = (uint8_t *)packed + sizeof h;
    char *kept = (char *)packed + sizeof h + h.n_words / 8;
    h.n_kept = (uint32_t)(wide ? pack_wide : pack_plain)(raw, h.n_words, mask, kept);
    memcpy(packed, &h, sizeof h);
    size_t took = sizeof h + h.n_words / 8 + 4 * (size_t)h.n_kept;
    size_t gap = (TIDE__ZEROS_BLOCK - took % TIDE__ZEROS_BLOCK) % TIDE__ZEROS_BLOCK;
    memmove(kept + gap, kept, 4 * (size_t)h.n_kept);
    memset(kept, 0, gap);
    return took + gap;
}

static size_t count_bits(const uint8_t *mask, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t bits;
        memcpy(&bits, mask + i, sizeof bits);
        n += (size_t)__builtin_popcountll(bits);
    }
    return n;
}

bool tide__zeros_unpack(const void *packed, size_t packed_bytes, void *raw, size_t size, bool wide) {
    head h;
    uint8_t mask[TIDE__ZEROS_MOST / 32]; /* apart: raw may lie over it */
    if (size > TIDE__ZEROS_MOST || size % TIDE__ZEROS_BLOCK != 0 || packed_bytes < sizeof h + size / 32) return false;
    memcpy(&h, packed, sizeof h);
    memcpy(mask, (const char *)packed + sizeof h, size / 32);
    if (h.n_words != size / 4 || packed_bytes - sizeof h - size / 32 < 4 * (size_t)h.n_kept) return false;
    if (count_bits(mask, size / 32) != h.n_kept) return false;
    const char *end = (const char *)packed + packed_bytes, *kept = end - 4 * (size_t)h.n_kept;
    size_t done = wide ? unpack_wide(mask, &kept, end, raw, h.n_words) : 0;
    unpack_plain(mask + done / 8, kept, (char *)raw + 4 * done, h.n_words - done);
    return true;
}
