/* SINGA streams: small steps with a known iteration, warm-up, end, lifetimes across iterations, and every refusal with
 * its line. The program's liveness must give back the load of the stream. */
#include "support/test.h"

#include <tidemark/program.h>

#include "base/rng.h"
#include "program/import/import.h"

/* A stream under construction, in one of the two formats. */
typedef struct recorder {
    char *text;
    size_t size;
    FILE *file;
    bool accesses; /* the access format; else malloc/free */
    uint64_t index, now_ns;
} recorder;

static recorder begin(bool accesses) {
    recorder r = {.accesses = accesses, .now_ns = 1000000000};
    return r;
}

static void put(recorder *r, const char *op, unsigned block, uint64_t bytes, uint64_t takes_ns) {
    if (!r->file) r->file = open_memstream(&r->text, &r->size);
    assert_non_null(r->file);
    unsigned long long size = bytes, ms = r->now_ns / 1000000, ns = r->now_ns;
    if (r->accesses)
        fprintf(r->file, "%llu %s 0x%x %llu %llu\n", (unsigned long long)r->index, op, block, size, ns);
    else if (strcmp(op, "Malloc") == 0)
        fprintf(r->file, "Malloc 0x%x %llu %llu\n", block, size, ms);
    else if (strcmp(op, "Free") == 0)
        fprintf(r->file, "Free 0x%x %llu\n", block, ms);
    else
        return;
    r->index++;
    r->now_ns += takes_ns;
}

static tide_status finish(recorder *r, const tide_import_options *options, tide_program **out,
                          tide_import_stats *stats) {
    fclose(r->file);
    tide_status status = tide__import_memory(r->text, r->size, "log", options, out, stats);
    free(r->text);
    *r = (recorder){0};
    return status;
}

static tide_program *finish_good(recorder *r, tide_import_stats *stats) {
    tide_program *p = NULL;
    const char *format = r->accesses ? "singa-access" : "singa-malloc";
    tide_import_options once = {.size = sizeof once, .unroll = 1};
    assert_ok(finish(r, &once, &p, stats));
    assert_string_equal(stats->format, format);
    assert_true(tide_program_is_repeating(p));
    assert_int_equal(tide_program_op_count(p), stats->period_events);
    return p;
}

static void check_peak(const tide_program *p, const tide_import_stats *stats, uint64_t expected) {
    tide_liveness *l;
    assert_ok(tide_liveness_create(p, &l));
    assert_int_equal(l->peak_bytes, expected);
    assert_int_equal(stats->release_peak_bytes, expected);
    tide_liveness_destroy(l);
}

static uint32_t count_ops(const tide_program *p, const char *name) {
    uint32_t n = 0;
    for (tide_id i = 0; i < tide_program_op_count(p); i++) n += strcmp(tide_program_op(p, i)->name, name) == 0;
    return n;
}

/* Carries from a value to itself. */
static uint32_t count_self_carries(const tide_program *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < tide_program_carry_count(p); i++)
        n += tide_program_carry(p, i)->from == tide_program_carry(p, i)->to;
    return n;
}

/* One small step over weight 1 (100 bytes): input 2 (10), hidden 3 (20), weight updated. 11 accesses, 4 of them
 * allocator calls. */
static void put_step(recorder *r, unsigned salt) {
    put(r, "Malloc", 0x200 + salt, 10, 1000000);
    put(r, "Mutable", 0x200 + salt, 10, 2000000);
    put(r, "Malloc", 0x300 + salt, 20, 3000000);
    put(r, "Read", 1, 100, 4000000);
    put(r, "Read", 0x200 + salt, 10, 5000000);
    put(r, "Mutable", 0x300 + salt, 20, 6000000);
    put(r, "Layer", 1, 100, 7000000);
    put(r, "Free", 0x200 + salt, 10, 8000000);
    put(r, "Read", 0x300 + salt, 20, 9000000);
    put(r, "Mutable", 1, 100, 10000000);
    put(r, "Free", 0x300 + salt, 20, 11000000);
}

static void put_setup(recorder *r) {
    put(r, "Malloc", 1, 100, 500);
    put(r, "Mutable", 1, 100, 500);
    put(r, "Malloc", 9, 7, 500); /* never used again, never freed */
}

static void a_step_becomes_a_program(void **state) {
    recorder r = begin(true);
    put_setup(&r);
    for (unsigned i = 0; i < 6; i++) put_step(&r, i % 3); /* addresses change, the iteration does not */
    put(&r, "Free", 1, 100, 1);
    tide_import_stats stats;
    tide_program *p = finish_good(&r, &stats);
    assert_int_equal(stats.n_events, 3 + 66 + 1);
    assert_int_equal(stats.period_events, 11);
    assert_int_equal((stats.cut - 3) % 11, 0); /* fewest bytes live between the steps */
    assert_int_equal(stats.repeat_end, 69);
    check_peak(p, &stats, 100 + 7 + 10 + 20);
    assert_int_equal(count_ops(p, "malloc"), 2);
    assert_int_equal(count_ops(p, "free"), 2);
    assert_int_equal(count_ops(p, "read"), 3);
    assert_int_equal(count_ops(p, "mutable"), 3);
    assert_int_equal(count_ops(p, "layer"), 1);
    assert_int_equal(tide_program_carry_count(p), 2); /* the weight and the unused block */
    assert_int_equal(count_self_carries(p), 1);
    for (tide_id i = 0; i < 11; i++) {
        const tide_op *op = tide_program_op(p, i);
        assert_false(op->rerunnable);
        assert_int_equal(op->variants[0].cost_ns, (i + 1) * 1000000);
    }
    const tide_op *update = tide_program_op(p, 9);
    assert_int_equal(update->n_inplace, 1);
    assert_true(update->inplace[0].must);
    const tide_op *free_op = tide_program_op(p, 7); /* the Free reads the value that the Mutable wrote */
    assert_int_equal(free_op->reads[0], tide_program_op(p, 1)->writes[0]);
    assert_int_equal(tide_program_op(p, 1)->reads[0], tide_program_op(p, 0)->writes[0]);
    assert_int_equal(stats.total_ns, 66000000);
    tide_program_destroy(p);
}

static void the_same_step_without_accesses(void **state) {
    recorder r = begin(false);
    put_setup(&r);
    for (unsigned i = 0; i < 4; i++) put_step(&r, i);
    tide_import_stats stats;
    tide_program *p = finish_good(&r, &stats);
    assert_int_equal(stats.period_events, 4);
    assert_int_equal(tide_program_carry_count(p), 2);
    assert_int_equal(count_self_carries(p), 2);
    check_peak(p, &stats, 100 + 7 + 10 + 20);
    tide_program_destroy(p);
}

static void costs_are_medians_or_even(void **state) {
    static const uint64_t takes[] = {50, 1, 90}; /* the median of the first op is 50 */
    recorder r = begin(true);
    for (int i = 0; i < 3; i++) {
        put(&r, "Malloc", 5, 8, takes[i]);
        put(&r, "Mutable", 5, 8, 20);
        put(&r, "Free", 5, 8, 30);
    }
    tide_import_stats stats;
    tide_program *p = finish_good(&r, &stats);
    tide_id at = tide_program_op(p, 0)->n_reads == 0 ? 0 : tide_program_op(p, 1)->n_reads == 0 ? 1 : 2;
    assert_int_equal(tide_program_op(p, at)->variants[0].cost_ns, 50);
    assert_int_equal(stats.total_ns, 100);
    tide_program_destroy(p);

    r = begin(true);
    put_setup(&r);
    for (unsigned i = 0; i < 4; i++) put_step(&r, i);
    tide_import_options options = {.size = sizeof options, .iteration_time_ns = 1000};
    assert_ok(finish(&r, &options, &p, &stats));
    assert_int_equal(stats.total_ns, 1000);
    for (tide_id i = 0; i < 11; i++) assert_in_range(tide_program_op(p, i)->variants[0].cost_ns, 90, 91);
    tide_program_destroy(p);
}

/* A block that is malloced in one iteration and freed `ages` iterations later. */
static void put_long_lived(recorder *r, unsigned i, unsigned ages) {
    put(r, "Malloc", 0x1000 + i, 64, 1000000);
    put(r, "Malloc", 2, 5, 1000000);
    put(r, "Mutable", 0x1000 + i, 64, 1000000);
    put(r, "Free", 2, 5, 1000000);
    if (i >= ages) {
        put(r, "Read", 0x1000 + i - ages, 64, 1000000);
        put(r, "Free", 0x1000 + i - ages, 64, 1000000);
    }
}

static void blocks_may_outlive_their_iteration(void **state) {
    for (unsigned accesses = 0; accesses < 2; accesses++)
        for (unsigned ages = 1; ages <= 4; ages++) {
            recorder r = begin(accesses);
            for (unsigned i = 0; i < 3 * ages + 6; i++) put_long_lived(&r, i, ages);
            tide_import_stats stats;
            tide_program *p = finish_good(&r, &stats);
            assert_int_equal(stats.period_events, accesses ? 6 : 4);
            check_peak(p, &stats, 64 * (ages + 1) + 5);
            assert_int_equal(tide_program_carry_count(p), ages);
            /* One chain of ages: from the new block's last value to age 1, from there to age 2, and so on. A value
             * that only waits is carried on as it is, so `from` is kept and `to` present. */
            for (uint32_t i = 0; i < ages; i++) {
                const tide_carry *carry = tide_program_carry(p, i);
                assert_true(carry->from != carry->to);
                assert_true(tide_program_tensor(p, carry->from)->keep);
                assert_int_equal(tide_program_tensor(p, carry->to)->start, TIDE_START_PRESENT);
                assert_int_equal(tide_program_tensor(p, carry->to)->size_bytes, 64);
            }
            tide_program_destroy(p);
        }
}

/* Two lasting buffers take turns, as in double buffering. */
static tide_program *import_turns(uint64_t bytes_a, uint64_t bytes_b, tide_import_stats *stats) {
    recorder r = begin(true);
    put(&r, "Malloc", 0xa, bytes_a, 1);
    put(&r, "Malloc", 0xb, bytes_b, 1);
    for (unsigned i = 0; i < 12; i++) {
        unsigned turn = i % 2 ? 0xa : 0xb;
        put(&r, "Malloc", 2, 5, 1);
        put(&r, "Mutable", turn, i % 2 ? bytes_a : bytes_b, 1);
        put(&r, "Free", 2, 5, 1);
    }
    return finish_good(&r, stats);
}

static void buffers_that_take_turns_are_carried_to_each_other(void **state) {
    tide_import_stats stats;
    tide_program *p = import_turns(50, 50, &stats);
    assert_int_equal(stats.period_events, 3);
    check_peak(p, &stats, 105);
    assert_int_equal(tide_program_carry_count(p), 2);
    const tide_op *update = tide_program_op(p, 1);
    tide_id used = update->reads[0], waiting = used == 0 ? 1 : 0;
    for (uint32_t i = 0; i < 2; i++) {
        const tide_carry *carry = tide_program_carry(p, i);
        assert_int_equal(carry->to, carry->from == waiting ? used : waiting);
        if (carry->from != waiting) assert_int_equal(carry->from, update->writes[0]);
    }
    tide_program_destroy(p);

    p = import_turns(50, 60, &stats); /* of different sizes: that is another iteration */
    assert_int_equal(stats.period_events, 6);
    check_peak(p, &stats, 115);
    tide_program_destroy(p);
}

static void a_truncated_end_and_a_teardown_are_fine(void **state) {
    recorder r = begin(true);
    put_setup(&r);
    for (unsigned i = 0; i < 4; i++) put_step(&r, i);
    put(&r, "Malloc", 0x299, 10, 1);
    put(&r, "Mutable", 0x299, 10, 1);
    put(&r, "Mutable", 9, 7, 1); /* this is no step any more */
    put(&r, "Free", 1, 100, 1);
    put(&r, "Free", 9, 7, 1);
    tide_import_stats stats;
    tide_program *p = finish_good(&r, &stats);
    assert_int_equal(stats.period_events, 11);
    assert_int_equal(stats.repeat_end, 3 + 44 + 2);
    check_peak(p, &stats, 137);
    tide_program_destroy(p);
}

static void refuse_stream(recorder *r, tide_status expected, const char *place, const char *text) {
    tide_program *p = NULL;
    assert_status(finish(r, NULL, &p, NULL), expected);
    assert_null(p);
    assert_error_has(place);
    assert_error_has(text);
}

static void a_deviation_is_refused_with_its_place(void **state) {
    recorder r = begin(true);
    put_setup(&r);
    for (unsigned i = 0; i < 5; i++) put_step(&r, i);
    put(&r, "Read", 9, 7, 1); /* line 3 + 55 + 1 */
    for (unsigned i = 0; i < 5; i++) put_step(&r, i);
    refuse_stream(&r, TIDE_E_REPEAT, "log:59:", "stops repeating");

    r = begin(false);
    put_setup(&r);
    for (unsigned i = 0; i < 3; i++) put_step(&r, i);
    put(&r, "Malloc", 0x77, 6, 1); /* line 2 + 12 + 1 */
    for (unsigned i = 0; i < 5; i++) put_step(&r, i);
    put(&r, "Free", 0x77, 6, 1);
    refuse_stream(&r, TIDE_E_REPEAT, "log:15:", "stops repeating");

    r = begin(true);
    put_setup(&r);
    put_step(&r, 0);
    refuse_stream(&r, TIDE_E_REPEAT, "log:", "does not repeat");
}

static void growing_memory_is_refused(void **state) {
    recorder r = begin(false);
    for (unsigned i = 0; i < 20; i++) {
        put(&r, "Malloc", 2, 5, 1000000);
        put(&r, "Malloc", 0x1000 + i, 64, 1000000); /* a leak */
        put(&r, "Free", 2, 5, 1000000);
    }
    refuse_stream(&r, TIDE_E_REPEAT, "log:", "memory grows");
}

static void refuse_text(const char *text, const char *place, const char *reason) {
    tide_program *p = NULL;
    assert_status(tide__import_memory(text, strlen(text), "log", NULL, &p, NULL), TIDE_E_FORMAT);
    assert_null(p);
    assert_error_has(place);
    assert_error_has(reason);
}

static void broken_lines_are_refused(void **state) {
    refuse_text("0 Malloc a 8 1\n1 Read b 8 2\n", "log:2:", "b is not live");
    refuse_text("0 Malloc a 8 1\n1 Free a 8 2\n2 Free a 8 3\n", "log:3:", "a is not live");
    refuse_text("0 Malloc a 8 1\n\n1 Malloc a 8 2\n", "log:3:", "live since line 1");
    refuse_text("0 Malloc a 8 1\n1 Read a 9 2\n", "log:2:", "has 8 bytes, not 9");
    refuse_text("0 Malloc a 8 5\n1 Read a 8 4\n", "log:2:", "before");
    refuse_text("0 Malloc a 8 1\n2 Read a 8 2\n", "log:2:", "index 2 where 1 is next");
    refuse_text("0 Malloc a 8 1\n1 Write a 8 2\n", "log:2:", "Write");
    refuse_text("0 Malloc a 8\n", "log:1:", "expected");
    refuse_text("0 Malloc a 8 1 1\n", "log:1:", "expected");
    refuse_text("0 Malloc a 8 1\nx Read a 8 1\n", "log:2:", "index");
    refuse_text("0 Malloc a -8 1\n", "log:1:", "size");
    refuse_text("0 Malloc a 8 1.5\n", "log:1:", "time");
    refuse_text("Malloc a 8 1\nFree b 2\n", "log:2:", "b is not live");
    refuse_text("Malloc a 8 1\nMalloc a 8 1\n", "log:2:", "live since line 1");
    refuse_text("Malloc a 8 1\nFree a 8 2\n", "log:2:", "expected");
    refuse_text("Malloc a 8 1\nRead a 2\n", "log:2:", "expected");
    refuse_text("Malloc a 8 2\nFree a 1\n", "log:2:", "before");
    refuse_text("Malloc a big 2\n", "log:1:", "size");
    refuse_text("Malloc a 8 18446744073709551615\n", "log:1:", "time");
    refuse_text("Free a 1\n", "log:1:", "not live");
}

/* ---- random steps: whatever the iteration is, the program's load is the stream's ---- */

enum { BLOCKS = 12 };

/* A random iteration over BLOCKS temporary blocks, each malloced, used and freed once, and two lasting ones. The same
 * seed gives the same iteration. */
static void put_random_step(recorder *r, uint64_t seed, unsigned salt) {
    int stage[BLOCKS] = {0}; /* 0 not yet, 1 live, 2 gone */
    unsigned gone = 0;
    for (uint64_t k = 0; gone < BLOCKS; k++) {
        uint64_t x = tide__random_u64(seed, 1, k);
        unsigned b = (unsigned)(x % BLOCKS), block = 0x100 * (salt + 1) + b;
        uint64_t bytes = 8 + tide__random_u64(seed, 2, b) % 1000;
        static const char *const uses[] = {"Read", "Mutable", "Layer"};
        const char *use = uses[x / 64 % 3];
        if (x / 16 % 8 == 0) put(r, use, 0x10 + (unsigned)(x % 2), 300 + x % 2, 1000);
        if (stage[b] == 0)
            put(r, "Malloc", block, bytes, 1000);
        else if (stage[b] == 1 && x / 1024 % 3 != 0)
            put(r, use, block, bytes, 1000);
        else if (stage[b] == 1)
            put(r, "Free", block, bytes, 1000);
        if (stage[b] == 0)
            stage[b] = 1;
        else if (stage[b] == 1 && x / 1024 % 3 == 0)
            stage[b] = 2, gone++;
    }
}

static void random_steps_keep_their_load(void **state) {
    for (uint64_t seed = 0; seed < 300; seed++) {
        recorder r = begin(seed % 2);
        put(&r, "Malloc", 0x10, 300, 10);
        put(&r, "Malloc", 0x11, 301, 10);
        put(&r, "Mutable", 0x10, 300, 10);
        put(&r, "Mutable", 0x11, 301, 10);
        put_random_step(&r, seed, 0);
        uint64_t before = r.index;
        put_random_step(&r, seed, 1);
        uint64_t length = r.index - before;
        for (unsigned i = 2; i < 6; i++) put_random_step(&r, seed, i % 3);
        tide_import_stats stats;
        tide_program *p = finish_good(&r, &stats);
        assert_int_equal(stats.period_events, length);
        check_peak(p, &stats, stats.release_peak_bytes);
        assert_int_equal(tide_program_carry_count(p), 2); /* cut where only the lasting blocks are live */
        tide_program_destroy(p);
    }
}

/* A lasting scratch block and one of the step, both written and never read, count only while they are written. */
static void bytes_that_nobody_reads_can_be_dropped(void **state) {
    (void)state;
    for (int drop = 0; drop < 2; drop++) {
        recorder r = begin(true);
        put(&r, "Malloc", 0x1, 100, 10); /* read: stays */
        put(&r, "Malloc", 0x2, 1000, 10);
        for (int i = 0; i < 5; i++) {
            put(&r, "Mutable", 0x2, 1000, 10);
            put(&r, "Malloc", 0x3, 2000, 10);
            put(&r, "Mutable", 0x3, 2000, 10);
            put(&r, "Mutable", 0x1, 100, 10);
            put(&r, "Read", 0x1, 100, 10);
            put(&r, "Free", 0x3, 2000, 10);
        }
        tide_import_options options = {.size = sizeof options, .unroll = 1, .drop_unread = drop};
        tide_import_stats stats;
        tide_program *p = NULL;
        tide_liveness *l;
        assert_ok(finish(&r, &options, &p, &stats));
        assert_ok(tide_liveness_create(p, &l));
        assert_int_equal(l->peak_bytes, drop ? 2100 : 3100);
        assert_int_equal(tide_program_carry_count(p), drop ? 1 : 2);
        tide_liveness_destroy(l);
        tide_program_destroy(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_that_nobody_reads_can_be_dropped),
        cmocka_unit_test(a_step_becomes_a_program),
        cmocka_unit_test(the_same_step_without_accesses),
        cmocka_unit_test(costs_are_medians_or_even),
        cmocka_unit_test(blocks_may_outlive_their_iteration),
        cmocka_unit_test(buffers_that_take_turns_are_carried_to_each_other),
        cmocka_unit_test(a_truncated_end_and_a_teardown_are_fine),
        cmocka_unit_test(a_deviation_is_refused_with_its_place),
        cmocka_unit_test(growing_memory_is_refused),
        cmocka_unit_test(broken_lines_are_refused),
        cmocka_unit_test(random_steps_keep_their_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
