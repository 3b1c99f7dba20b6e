/* Replaying a stream through the pool: planned early, served to the last malloc, and with mallocs added and left out
 * every few iterations back on the plan within one iteration each time. */
#include "pool/replay.h"

#include "support/test.h"

enum { LAYERS = 40, ITERATIONS = 40 };

typedef struct recording {
    char *text;
    tide__import in;
    tide__stream stream;
    uint32_t period;
} recording;

/* A training step: outputs wait for their backward, workspaces come and go, gradients replace each other. With
 * `momenta` some blocks live longer than an iteration. */
static void record(recording *r, bool momenta) {
    size_t size;
    unsigned t = 0;
    FILE *f = open_memstream(&r->text, &size);
    assert_non_null(f);
    for (unsigned i = 0; i < LAYERS; i++) fprintf(f, "Malloc w%u %u %u\n", i, 4000 + 8 * i, t++);
    for (unsigned turn = 0; turn < ITERATIONS; turn++) {
        for (unsigned i = 0; i < LAYERS; i++) {
            fprintf(f, "Malloc y%u %u %u\n", i, 5000 * (1 + i * 7 % 23), t++);
            fprintf(f, "Malloc s %u %u\nFree s %u\n", 700 * (1 + i * 5 % 31), t, t);
        }
        for (unsigned i = LAYERS; i-- > 0;) {
            fprintf(f, "Malloc g%u %u %u\n", i, 5000 * (1 + i * 7 % 23), t++);
            if (i + 1 < LAYERS) fprintf(f, "Free g%u %u\n", i + 1, t);
            if (momenta) fprintf(f, "Malloc m%u_%u %u %u\n", i, turn, 4000 + 8 * i, t);
            if (momenta && turn > 0) fprintf(f, "Free m%u_%u %u\n", i, turn - 1, t);
            fprintf(f, "Free y%u %u\n", i, t);
        }
        fprintf(f, "Free g0 %u\n", t++);
    }
    assert_int_equal(fclose(f), 0);
    r->in = (tide__import){.text = r->text, .size = size, .name = "made"};
    r->period = LAYERS * (momenta ? 8 : 6);
    assert_ok(tide__import_stream(&r->in, &r->stream));
}

static void forget(recording *r) {
    tide__stream_deinit(&r->stream);
    free(r->text);
}

static tide_replay_options default_options(void) {
    tide_replay_options o = {0};
    tide_pool_options_init(&o.pool);
    o.pool.plan_seconds = 0;
    return o;
}

static void test_is_planned_early_and_served(void **state) {
    for (int momenta = 0; momenta < 2; momenta++) {
        recording rec;
        tide_replay_options o = default_options();
        tide_replay_result r;
        record(&rec, momenta);
        assert_ok(tide__pool_replay(&rec.stream, &o, &r));
        assert_int_equal(r.stats.period_events, rec.period);
        assert_true(r.stats.first_plan_event <= 4 * rec.period);
        assert_true(r.n_iterations >= ITERATIONS - 6);
        assert_int_equal(r.n_planned, r.n_watched);
        assert_true(r.worst_share == 1);
        assert_int_equal(r.n_extra + r.n_missing, 0);
        assert_int_equal(r.stats.n_deviations, 0);
        assert_true((double)r.peak_held_bytes <= 1.05 * (double)r.peak_live_bytes);
        forget(&rec);
    }
}

static void test_is_back_within_one_iteration_each_time(void **state) {
    for (int momenta = 0; momenta < 2; momenta++) {
        recording rec;
        tide_replay_options o = default_options();
        uint64_t n_deviations[5] = {0};
        record(&rec, momenta);
        for (o.deviate_every = 1; o.deviate_every <= 4; o.deviate_every++)
            for (o.seed = 0; o.seed < 25; o.seed++) {
                tide_replay_result r;
                assert_ok(tide__pool_replay(&rec.stream, &o, &r));
                n_deviations[o.deviate_every] += r.n_extra + r.n_missing;
                assert_true(r.longest_off_events <= rec.period);
                assert_true((double)r.n_planned >= 0.97 * (double)r.n_watched);
                assert_true(r.n_iterations >= ITERATIONS / 2);
            }
        for (uint64_t every = 1; every <= 4; every++) { /* about 25 * 37 iterations */
            assert_true(n_deviations[every] > 600 / every);
            assert_true(n_deviations[every] < 1200 / every);
        }
        forget(&rec);
    }
}

static void test_the_same_seed_deviates_the_same(void **state) {
    recording rec;
    tide_replay_options o = default_options();
    tide_replay_result a, b;
    record(&rec, true);
    o.deviate_every = 2;
    o.seed = 5;
    assert_ok(tide__pool_replay(&rec.stream, &o, &a));
    assert_ok(tide__pool_replay(&rec.stream, &o, &b));
    assert_int_equal(a.n_extra, b.n_extra);
    assert_int_equal(a.n_missing, b.n_missing);
    assert_int_equal(a.n_planned, b.n_planned);
    assert_int_equal(a.peak_held_bytes, b.peak_held_bytes);
    forget(&rec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_planned_early_and_served),
        cmocka_unit_test(test_is_back_within_one_iteration_each_time),
        cmocka_unit_test(test_the_same_seed_deviates_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
