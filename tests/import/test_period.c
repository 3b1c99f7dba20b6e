/* The period finder: known shapes, refusals with their place, random streams against a search of all pairs, and time
 * that grows linearly. */
#include "support/test.h"

#include <stdbool.h>

#include "base/rng.h"
#include "program/period.h"
#include "support/cpu_time.h"

/* Letters as symbols. */
static tide_status find(const char *text, tide__period *out, size_t *stops_at) {
    uint64_t symbols[512];
    size_t n = strlen(text);
    assert_true(n <= sizeof symbols / sizeof *symbols);
    for (size_t i = 0; i < n; i++) symbols[i] = (unsigned char)text[i];
    return tide__period_find(symbols, n, out, stops_at);
}

static void accept(const char *text, size_t begin, size_t end, size_t length) {
    tide__period p = {0};
    size_t stops_at = 12345;
    assert_ok(find(text, &p, &stops_at));
    assert_int_equal(p.begin, begin);
    assert_int_equal(p.end, end);
    assert_int_equal(p.length, length);
    assert_int_equal(stops_at, 12345);
}

static void refuse(const char *text, size_t expected) {
    tide__period p = {.begin = 7, .end = 8, .length = 9};
    size_t stops_at = 12345;
    assert_status(find(text, &p, &stops_at), TIDE_E_REPEAT);
    assert_int_equal(stops_at, expected);
    assert_int_equal(p.begin + p.end + p.length, 24);
}

static void shapes(void **state) {
    accept("aa", 0, 2, 1);
    accept("abab", 0, 4, 2);
    accept("ababa", 0, 5, 2);
    accept("xyabcabcabc", 2, 11, 3);          /* warm-up */
    accept("abcabcabcz", 0, 9, 3);            /* ragged end, shorter than an iteration */
    accept("wvwabcdabcdabcdabz", 3, 17, 4);   /* both, and a truncated last iteration */
    accept("aabaabaab", 0, 9, 3);             /* aa inside is not the iteration */
    accept("stuvwxyzabcabcab", 8, 16, 3);     /* begins after the middle */
    accept("qabbabbabbabbabbabb", 1, 19, 3);  /* smallest period, not 6 or 9 */
    accept("ababcababcababcababd", 0, 19, 5); /* ab repeats inside, but less */
    accept("xabcaabcaabcay", 1, 13, 4);       /* begins and ends with the same symbol */
    accept("mnopqrstuvabcdabcdabcd", 10, 22, 4);
}

static void places(void **state) {
    refuse("", 0);
    refuse("a", 0);
    refuse("abcdefgh", 0);
    refuse("abcabcabcabcXabcabcabcabcabc", 12); /* interrupted: an iteration was whole before */
    refuse("abcabcabcabcabcabcXabcabcabc", 18); /* broke off: an iteration and more follows */
    refuse("abcabcabcabcabcabcdefghijklm", 18);
    refuse("abcdefghijklmnopqrstuvwxyzaa", 0); /* a few equal symbols are no iteration */
    refuse("abcdefghijklmnopqrstuvxx", 0);
}

/* ---- random streams against the obvious method ---- */

typedef struct stretch {
    size_t begin, end, length, ties; /* ties: other stretches as long, at another place */
} stretch;

/* Every stretch in which s[i] == s[i + p], for every p. */
static stretch search_all(const uint64_t *s, size_t n) {
    stretch best = {0};
    for (size_t p = 1; p * 2 <= n; p++)
        for (size_t i = 0, streak = 0; i + p < n; i++) {
            streak = s[i] == s[i + p] ? streak + 1 : 0;
            bool ends = i + p + 1 == n || s[i + 1] != s[i + p + 1];
            if (!ends || streak < p) continue;
            stretch found = {.begin = i + 1 - streak, .end = i + p + 1, .length = p};
            size_t span = streak + p, known = best.end - best.begin;
            if (span > known)
                best = found;
            else if (span == known && found.begin != best.begin)
                best.ties++;
        }
    return best;
}

static bool occurs_before(const uint64_t *s, const stretch *found) {
    for (size_t i = 0; i + found->length <= found->begin; i++)
        if (memcmp(s + i, s + found->begin, found->length * sizeof *s) == 0) return true;
    return false;
}

/* True if the stream was accepted. */
static bool check_random(const uint64_t *s, size_t n) {
    tide__period p;
    size_t stops_at = SIZE_MAX;
    stretch best = search_all(s, n);
    size_t span = best.end - best.begin;
    tide_status status = tide__period_find(s, n, &p, &stops_at);
    if (status != TIDE_OK) assert_status(status, TIDE_E_REPEAT);
    if (status != TIDE_OK) assert_true(stops_at <= n);
    if (span <= n / 4) assert_status(status, TIDE_E_REPEAT);
    if (span <= n / 4 || best.ties > 0) return status == TIDE_OK;
    bool broken = n - best.end >= best.length || occurs_before(s, &best);
    assert_status(status, broken ? TIDE_E_REPEAT : TIDE_OK);
    if (broken) return false;
    assert_int_equal(p.begin, best.begin);
    assert_int_equal(p.end, best.end);
    assert_int_equal(p.length, best.length);
    return true;
}

static void random_streams_agree_with_a_search_of_all_pairs(void **state) {
    uint64_t s[128];
    size_t accepted = 0;
    for (uint64_t run = 0; run < 20000; run++) {
        size_t n = tide__random_u64(1, run, 0) % 120, length = 1 + tide__random_u64(1, run, 1) % 20;
        size_t warm = tide__random_u64(1, run, 2) % 30, tail = tide__random_u64(1, run, 3) % 12;
        uint64_t letters = 1 + tide__random_u64(1, run, 4) % 6;
        for (size_t i = 0; i < n; i++) {
            bool repeats = i >= warm + length && i + tail < n;
            s[i] = repeats ? s[i - length] : tide__random_u64(2, run, i) % letters;
        }
        if (n > 0 && run % 4 == 0) s[tide__random_u64(1, run, 5) % n] = 99; /* one deviation */
        accepted += check_random(s, n);
    }
    assert_in_range(accepted, 20000 / 5, 20000 * 4 / 5);
}

/* ---- time ---- */

/* Long near-matches at every distance: comparing all pairs would take minutes here, a linear search takes a fraction
 * of a second. */
static void time_is_linear(void **state) {
    enum { N = 600000, LENGTH = 100003 };
    uint64_t *s = malloc(N * sizeof *s);
    assert_non_null(s);
    for (size_t i = 0; i < N; i++) s[i] = i % LENGTH % 1000 == 0 ? i % LENGTH : 1;
    tide__period p;
    size_t stops_at;
    uint64_t before = cpu_ns();
    assert_ok(tide__period_find(s, N, &p, &stops_at));
    assert_true(cpu_ns() - before < UINT64_C(10000000000));
    assert_int_equal(p.length, LENGTH);
    free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(places),
        cmocka_unit_test(random_streams_agree_with_a_search_of_all_pairs),
        cmocka_unit_test(time_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
