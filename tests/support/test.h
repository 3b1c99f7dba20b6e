/* What every test program includes: cmocka with the headers it wants before it, checks for tide_status that print the
 * error text, and how many rounds a test does under a sanitizer. */
#ifndef TIDE_TESTS_TEST_H
#define TIDE_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tidemark/status.h>

/* ---- sanitizers ---- */

/* SANITIZER_SHARE: of its random rounds a sanitized build does one in so many; a plain build does all.
 * MAX_THREADS: threads that compute, at most. ThreadSanitizer takes those of an OpenMP library that was built without it
 * for races, so it sees one, beside those of queues and channels.
 * QUICK_POLICY: how sessions plan that are not about plans; NULL, the default, takes minutes under ThreadSanitizer. */
#if defined(__has_feature)
#define HAS_SANITIZER(name) __has_feature(name)
#else
#define HAS_SANITIZER(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || HAS_SANITIZER(thread_sanitizer)
enum { SANITIZER_SHARE = 8, MAX_THREADS = 1 };
#define QUICK_POLICY "cache"
#elif defined(__SANITIZE_ADDRESS__) || HAS_SANITIZER(address_sanitizer) || HAS_SANITIZER(memory_sanitizer)
enum { SANITIZER_SHARE = 4, MAX_THREADS = 2 };
#define QUICK_POLICY NULL
#else
enum { SANITIZER_SHARE = 1, MAX_THREADS = 2 };
#define QUICK_POLICY NULL
#endif

/* TIDE_TEST_SHARE=n: `make check` runs one in n rounds of its long tests, `make check-full` all (CMakeLists.txt). */
static inline uint32_t quick_share(void) {
    const char *text = getenv("TIDE_TEST_SHARE");
    long n = text ? strtol(text, NULL, 10) : 1;
    return n > 1 ? (uint32_t)n : 1;
}

/* One in so many rounds runs here. */
static inline uint32_t round_share(void) { return quick_share() > SANITIZER_SHARE ? quick_share() : SANITIZER_SHARE; }

/* Of n random rounds, those that run here: all, or the first of them where a sanitizer makes each several times as slow or
 * time is short. What the rounds must find at least scales alike. */
static inline uint32_t rounds(uint32_t n) { return (n + round_share() - 1) / round_share(); }

/* ---- assertions ---- */

#define assert_ok(expression)                                                                         \
    do {                                                                                              \
        tide_status assert_status_ = (expression);                                                    \
        if (assert_status_ != TIDE_OK)                                                                \
            fail_msg("%s: %s: %s", #expression, tide_status_name(assert_status_), tide_last_error()); \
    } while (0)

#define assert_status(expression, expected) \
    assert_string_equal(tide_status_name(expression), tide_status_name(expected))

/* The last error contains this text. */
#define assert_error_has(text)                                                          \
    do {                                                                                \
        if (!strstr(tide_last_error(), (text)))                                         \
            fail_msg("expected \"%s\" in the error \"%s\"", (text), tide_last_error()); \
    } while (0)

#endif
