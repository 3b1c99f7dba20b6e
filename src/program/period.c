/* See period.h. A repetition that covers more than a quarter of the stream contains one of the points n/4, n/2, 3n/4,
 * so looking at the repetitions through these three is enough, and each look is linear:
 *
 *      with v = s[c..] and u = s[..c), a repetition of period p through c keeps either s[c-p] aligned with s[c] or s[c]
 *      with s[c+p]; how far the alignment holds to both sides is a common prefix with v and a common suffix with u. */
#include "program/period.h"

#include <stdbool.h>
#include <stdlib.h>

/* The arrays of one search over n symbols. */
typedef struct search {
    const uint64_t *s;
    uint64_t *reversed;
    size_t n;
    size_t *z;        /* scratch of match() */
    size_t *forward;  /* [i]: longest common prefix of s[c..] and s[i..] */
    size_t *backward; /* [i]: longest common prefix of reversed s[..c) and reversed[i..] */
} search;

static void search_free(search *q) {
    free(q->reversed);
    free(q->z);
    free(q->forward);
    free(q->backward);
}

static tide_status search_init(search *q, const uint64_t *s, size_t n) {
    *q = (search){.s = s, .n = n};
    q->reversed = calloc(n, sizeof *q->reversed);
    q->z = calloc(n, sizeof *q->z);
    q->forward = calloc(n, sizeof *q->forward);
    q->backward = calloc(n, sizeof *q->backward);
    if (!q->reversed || !q->z || !q->forward || !q->backward) {
        search_free(q);
        return tide__fail_memory();
    }
    for (size_t i = 0; i < n; i++) q->reversed[i] = s[n - 1 - i];
    return TIDE_OK;
}

/* z[i] = longest common prefix of a and a[i..]. */
static void self_match(const uint64_t *a, size_t n, size_t *z) {
    size_t from = 0, to = 0; /* a[from..to) is the match seen so far that reaches furthest */
    z[0] = n;
    for (size_t i = 1; i < n; i++) {
        size_t k = i < to ? z[i - from] : 0;
        if (i < to && k > to - i) k = to - i;
        while (i + k < n && a[k] == a[i + k]) k++;
        z[i] = k;
        if (i + k > to) from = i, to = i + k;
    }
}

/* out[i] = longest common prefix of the pattern and text[i..]; z has room for the pattern's own matches. */
static void match(const uint64_t *pattern, size_t n_pattern, const uint64_t *text, size_t n_text, size_t *z,
                  size_t *out) {
    size_t from = 0, to = 0; /* text[from..to) equals the pattern's beginning and reaches furthest */
    self_match(pattern, n_pattern, z);
    for (size_t i = 0; i < n_text; i++) {
        size_t k = i < to ? z[i - from] : 0;
        if (i < to && k > to - i) k = to - i;
        while (k < n_pattern && i + k < n_text && pattern[k] == text[i + k]) k++;
        out[i] = k;
        if (i + k > to) from = i, to = i + k;
    }
}

/* Keeps the longer of the two; among equals the one that came first, which has the smaller period. */
static void offer(tide__period *best, size_t begin, size_t end, size_t length) {
    if (end - begin < 2 * length || end - begin <= best->end - best->begin) return;
    *best = (tide__period){.begin = begin, .end = end, .length = length};
}

/* Repetitions through `c`, 0 < c < n. */
static void look_at(search *q, size_t c, tide__period *best) {
    size_t n = q->n;
    match(q->s + c, n - c, q->s, n, q->z, q->forward);
    match(q->reversed + (n - c), c, q->reversed, n, q->z, q->backward);
    for (size_t p = 1; p < n; p++) {
        if (p <= c) {
            size_t left = p < c ? q->backward[n - c + p] : 0;
            offer(best, c - p - left, c + q->forward[c - p], p);
        }
        if (p <= n - c) {
            size_t right = p < n - c ? q->forward[c + p] : 0;
            offer(best, c - q->backward[n - c - p], c + p + right, p);
        }
    }
}

/* A copy of the whole iteration before the repetition, not connected to it: *at = the symbol where that copy breaks. */
static bool is_interrupted(search *q, const tide__period *found, size_t *at) {
    match(q->s + found->begin, found->end - found->begin, q->s, found->begin, q->z, q->forward);
    for (size_t i = found->begin; i-- > 0;) {
        if (q->forward[i] < found->length) continue;
        *at = i + q->forward[i];
        return true;
    }
    return false;
}

static tide_status judge(search *q, const tide__period *found, size_t *stops_at) {
    if (found->length == 0) {
        *stops_at = 0;
        return tide__fail(TIDE_E_REPEAT, "the stream does not repeat: no stretch over a quarter of it does");
    }
    if (q->n - found->end >= found->length) {
        *stops_at = found->end;
        return tide__fail(TIDE_E_REPEAT,
                          "op %zu: the stream stops repeating here; from op %zu on it had a period of %zu", found->end,
                          found->begin, found->length);
    }
    if (found->end - found->begin <= q->n / 4) {
        *stops_at = found->begin;
        return tide__fail(TIDE_E_REPEAT, "op %zu: the stream repeats only from here on, in a quarter of it or less",
                          found->begin);
    }
    if (is_interrupted(q, found, stops_at))
        return tide__fail(TIDE_E_REPEAT, "op %zu: the stream stops repeating here, with a period of %zu, until op %zu",
                          *stops_at, found->length, found->begin);
    return TIDE_OK;
}

tide_status tide__period_find(const uint64_t *symbols, size_t n, tide__period *out, size_t *stops_at) {
    tide__period best = {0};
    search q = {.n = n};
    if (n < 2) return judge(&q, &best, stops_at);
    TIDE_TRY(search_init(&q, symbols, n));
    for (size_t k = 1; k <= 3; k++) {
        size_t c = n / 4 * k + n % 4 * k / 4;
        if (c > 0) look_at(&q, c, &best);
    }
    tide_status status = judge(&q, &best, stops_at);
    search_free(&q);
    if (status == TIDE_OK) *out = best;
    return status;
}
