/* Offline placements of a stream's iteration: small ones worked out by hand, and what no placement may undercut. */
#include "pool/offline.h"

#include <inttypes.h>

#include "base/rng.h"
#include "pool/compare.h"
#include "support/test.h"

enum { MOST_TEXT = 1 << 18 };

typedef struct text {
    char bytes[MOST_TEXT];
    size_t n, time;
} text;

static void add_line(text *t, const char *line, int n) {
    assert_true(n > 0 && t->n + (size_t)n < sizeof t->bytes);
    memcpy(t->bytes + t->n, line, (size_t)n);
    t->n += (size_t)n;
}

static void add_malloc(text *t, const char *name, size_t turn, uint64_t size) {
    char line[120];
    add_line(t, line, snprintf(line, sizeof line, "Malloc %s%zu %" PRIu64 " %zu\n", name, turn, size, t->time++));
}

static void add_free(text *t, const char *name, size_t turn) {
    char line[120];
    add_line(t, line, snprintf(line, sizeof line, "Free %s%zu %zu\n", name, turn, t->time++));
}

static tide_replay_others compare(const text *t, uint64_t alignment) {
    tide__import in = {.text = t->bytes, .size = t->n, .name = "text"};
    tide__stream stream;
    tide_replay_others c;
    assert_ok(tide__import_stream(&in, &stream));
    assert_ok(tide__compare(&stream, alignment, 0, 0.05, &c));
    tide__stream_deinit(&stream);
    return c;
}

/* m is alive for a moment at the border only, where the least is: two slots keep room for it twice, all the time.
 *
 *      p      ██████████████  ██████████████        50
 *      a         ██████          ██████             10
 *      m      ████        ██████        ███          8
 */
static void test_two_slots_cost_what_a_circle_does_not(void **state) {
    static text t;
    t = (text){0};
    add_malloc(&t, "w", 0, 100);
    for (size_t i = 0; i < 10; i++) {
        add_malloc(&t, "p", i, 50);
        add_malloc(&t, "a", i, 10);
        if (i > 0) add_free(&t, "m", i - 1);
        if (i == 0) { /* the same shape from the start on */
            add_malloc(&t, "x", 0, 8);
            add_free(&t, "x", 0);
        }
        add_free(&t, "a", i);
        add_malloc(&t, "m", i, 8);
        add_free(&t, "p", i);
    }
    tide_replay_others c = compare(&t, 1);
    assert_true(c.repeats);
    assert_int_equal(c.offline.period_events, 6);
    assert_int_equal(c.offline.n_blocks, 3);
    assert_int_equal(c.offline.resident_bytes, 100);
    assert_int_equal(c.offline.load_bytes, 168);
    assert_int_equal(c.offline.two_slots_bytes, 176);
    assert_int_equal(c.offline.two_turns_bytes, 168);
    assert_int_equal(c.offline.engine_bytes, 168);
    assert_int_equal(c.offline.bound_bytes, 168);
}

/* m lives longer than a period: two of it are alive at once. */
static void test_lives_longer_than_a_period(void **state) {
    static text t;
    t = (text){0};
    for (size_t i = 0; i < 12; i++) {
        add_malloc(&t, "m", i, 5);
        add_malloc(&t, "a", i, 10);
        if (i > 0) add_free(&t, "m", i - 1);
        add_free(&t, "a", i);
    }
    tide_replay_others c = compare(&t, 1);
    assert_true(c.repeats);
    assert_int_equal(c.offline.period_events, 4);
    assert_int_equal(c.offline.resident_bytes, 0);
    assert_int_equal(c.offline.load_bytes, 20);
    assert_int_equal(c.offline.two_slots_bytes, 20);
    assert_int_equal(c.offline.two_turns_bytes, 20);
    assert_int_equal(c.offline.engine_bytes, 20);
    assert_int_equal(compare(&t, 8).offline.engine_bytes, 8 + 8 + 10);
}

static void test_no_iteration(void **state) {
    static text t;
    t = (text){0};
    for (size_t i = 0; i < 20; i++) add_malloc(&t, "b", i, 100 + i * i);
    tide_replay_others c = compare(&t, 1);
    assert_false(c.repeats);
    assert_int_equal(c.load_bytes, 20 * 100 + 19 * 20 * 39 / 6);
    for (int k = 0; k < 2; k++) assert_int_equal(c.online[k].peak_held_bytes, c.load_bytes);
}

static void test_more_than_there_are_addresses(void **state) {
    static const char lines[] = "Malloc a 4611686018427387900 1\nMalloc b 4611686018427387900 2\nFree a 3\nFree b 4\n";
    tide__import in = {.text = lines, .size = sizeof lines - 1, .name = "text"};
    tide__stream stream;
    tide_replay_others c;
    assert_ok(tide__import_stream(&in, &stream));
    assert_status(tide__compare(&stream, 256, 0, 0, &c), TIDE_E_OVERFLOW);
    assert_error_has("2^62");
    tide__stream_deinit(&stream);
}

static void test_recorded_addresses(void **state) {
    static const struct {
        const char *lines;
        uint64_t bytes;
    } cases[] = {
        {"Malloc 0x1000 512 1\nMalloc 0x2000 1 2\n", 1024},
        {"Malloc 0x1000 512 1\nFree 0x1000 2\nMalloc 0x1000 600 3\n", 1024},
        {"Malloc 0x1000 4096 1\nFree 0x1000 2\nMalloc 0x1200 512 3\nMalloc 0x1e00 1024 3\n", 4608},
        {"Malloc 0x1000 512 1\nMalloc b 1 2\n", 0},
        {"Malloc 0xa 512 1\nMalloc 0xb 512 2\n", 0}, /* overlap */
        {"Malloc 0x 512 1\n", 0},
        {"Malloc 0x12345678123456789 512 1\n", 0},
        {"Malloc 0xfffffffffffffff0 512 1\n", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static text t;
        t = (text){.n = strlen(cases[i].lines)};
        memcpy(t.bytes, cases[i].lines, t.n);
        assert_int_equal(compare(&t, 1).recorded_bytes, cases[i].bytes);
    }
}

/* Stacks and queues of random blocks, repeated. */
static void test_nobody_is_below_the_load(void **state) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        static text t;
        t = (text){0};
        size_t n = 2 + (size_t)(tide__random_u64(seed, 0, 0) % 20);
        for (size_t i = 0; i < 12; i++) {
            for (size_t k = 0; k < n; k++) {
                char name[32];
                snprintf(name, sizeof name, "b%zu_", k);
                add_malloc(&t, name, i, 1 + tide__random_u64(seed, 1, k) % 5000);
                size_t lives = (size_t)(tide__random_u64(seed, 2, k) % 3);
                if (lives == 0) add_free(&t, name, i);
                if (lives == 1 && i > 0) add_free(&t, name, i - 1);
            }
            for (size_t k = 0; k < n; k++) {
                char name[32];
                snprintf(name, sizeof name, "b%zu_", k);
                if (tide__random_u64(seed, 2, k) % 3 == 2) add_free(&t, name, i);
            }
        }
        tide_replay_others c = compare(&t, 64);
        assert_true(c.repeats);
        const tide_replay_offline *o = &c.offline;
        assert_true(o->load_bytes <= c.load_bytes && o->load_bytes <= o->bound_bytes);
        assert_true(o->bound_bytes <= o->engine_bytes);
        assert_true(o->engine_bytes <= o->two_turns_bytes);
        assert_true(o->load_bytes <= o->two_slots_bytes);
        for (int k = 0; k < TIDE_REPLAY_N_ONLINE; k++) assert_true(c.online[k].peak_held_bytes >= c.load_bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_slots_cost_what_a_circle_does_not),
        cmocka_unit_test(test_lives_longer_than_a_period),
        cmocka_unit_test(test_no_iteration),
        cmocka_unit_test(test_more_than_there_are_addresses),
        cmocka_unit_test(test_recorded_addresses),
        cmocka_unit_test(test_nobody_is_below_the_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
