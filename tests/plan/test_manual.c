/* Decisions files: what they may say, how they are refused, and that a long one is read as quickly as it should. */
#include "support/test.h"

#include "plan/decide/policies/policies.h"
#include "support/hand_made.h"

/* n ops, each of which reads a tensor and writes the next; names "op0", "t0" and so on, but the last two tensors are
 * both called "twin". */
static tide_program *chain(uint32_t n) {
    tide_program_builder *b;
    tide_program *p;
    char name[32];
    const tide_variant variants[2] = {{.cost_ns = 1}, {.cost_ns = 2}};
    assert_ok(tide_program_builder_create("chain", false, &b));
    for (uint32_t i = 0; i <= n; i++) {
        snprintf(name, sizeof name, i + 2 > n ? "twin" : "t%u", i);
        tide_tensor t = {.name = name, .size_bytes = 64, .start = i ? TIDE_START_ABSENT : TIDE_START_PRESENT};
        assert_ok(tide_program_builder_tensor(b, &t, NULL));
    }
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "op%u", i);
        tide_op op = {.name = name,
                      .rerunnable = true,
                      .n_reads = 1,
                      .reads = &i,
                      .n_writes = 1,
                      .writes = &(tide_id){i + 1},
                      .n_variants = 2,
                      .variants = variants};
        assert_ok(tide_program_builder_op(b, &op, NULL));
    }
    assert_ok(tide_program_builder_finish(b, &p));
    return p;
}

#define HEADER "{\"tidemark\":\"decisions\",\"version\":1}\n"

static tide_status read_text(const char *text, const tide_program *p, tide__decisions *d) {
    tide_machine m = machine_with_disk();
    return tide__decisions_read(text, strlen(text), "file", p, &m, d);
}

static void test_all_kinds(void **state) {
    (void)state;
    tide_program *p = chain(8);
    tide__decisions d = {0};
    assert_ok(read_text(HEADER "{\"swap\":\"t1\",\"tier\":\"ram\",\"after\":\"op1\",\"before\":\"op4\"}\n\n"
                               "{\"swap\":7,\"tier\":\"disk\",\"after\":7}\n"
                               "{\"swap\":\"t0\",\"tier\":\"disk\",\"before\":0}\n"
                               "{\"swap\":\"t0\",\"tier\":\"disk\"}\n"
                               "{\"rerun\":\"op2\",\"before\":5}\n"
                               "{\"op\":\"op3\",\"variant\":1}\n",
                        p, &d));
    const tide__swap want[] = {
        {1, RAM, 2, 4}, {7, DISK, 8, TIDE_NONE}, {0, DISK, TIDE_NONE, 0}, {0, DISK, TIDE_NONE, TIDE_NONE}};
    assert_int_equal(d.swaps.count, 4);
    assert_memory_equal(d.swaps.data, want, sizeof want);
    assert_int_equal(d.reruns.count, 1);
    assert_true(d.reruns.data[0].op == 2 && d.reruns.data[0].slot == 5);
    assert_int_equal(d.variants.count, 8);
    assert_int_equal(d.variants.data[3], 1);
    tide__decisions_free(&d);
    tide_program_destroy(p);
}

static void refuse(const char *text, const char *why) {
    tide_program *p = chain(8);
    tide__decisions d = {0};
    assert_status(read_text(text, p, &d), TIDE_E_FORMAT);
    assert_error_has(why);
    tide__decisions_free(&d);
    tide_program_destroy(p);
}

static void test_refusals(void **state) {
    (void)state;
    refuse("", "not a decisions file");
    refuse("{\"tidemark\":\"plan\",\"version\":1}", "file:1: not a decisions file");
    refuse("{\"tidemark\":\"decisions\",\"version\":2}", "file:1: version 2");
    refuse(HEADER "{\"swap\":\"t\",\"tier\":\"ram\"}", "file:2: swap: the program has no tensor");
    refuse(HEADER "{\"swap\":\"op1\",\"tier\":\"ram\"}", "file:2: swap: the program has no tensor");
    refuse(HEADER "{\"swap\":\"\",\"tier\":\"ram\"}", "file:2: swap: the program has no tensor");
    refuse(HEADER "{\"swap\":[],\"tier\":\"ram\"}", "file:2: swap: the program has no tensor");
    refuse(HEADER "{\"swap\":\"twin\",\"tier\":\"ram\"}", "file:2: swap: 7 and 8 are both called \"twin\"");
    refuse(HEADER "{\"swap\":9,\"tier\":\"ram\"}", "file:2: swap must be");
    refuse(HEADER "{\"swap\":1,\"tier\":\"tape\"}", "file:2: machine \"default\" has no tier \"tape\"");
    refuse(HEADER "{\"swap\":1}", "file:2: tier is missing");
    refuse(HEADER "{\"swap\":1,\"tier\":\"ram\",\"after\":\"t1\"}", "file:2: after: the program has no op \"t1\"");
    refuse(HEADER "{\"rerun\":3,\"before\":3}", "file:2: the re-run is not after");
    refuse(HEADER "{\"op\":1,\"variant\":2}", "file:2: variant must be");
    refuse(HEADER "{\"swap\":1,\"tier\":\"ram\",\"color\":1}", "file:2: unknown key \"color\"");
    refuse(HEADER "{\"keep\":1}", "file:2: neither a swap");
}

/* As many lines as names: minutes if each line walked all names. */
static void test_long_file(void **state) {
    (void)state;
    enum { N = 100000 };
    tide_program *p = chain(N);
    char *text = malloc((size_t)N * 64 + sizeof HEADER);
    assert_non_null(text);
    int at = sprintf(text, "%s", HEADER);
    for (uint32_t i = 0; i + 2 < N; i++)
        at += sprintf(text + at, "{\"rerun\":\"op%u\",\"before\":\"op%d\"}\n", i, N - 1);
    tide__decisions d = {0};
    assert_ok(read_text(text, p, &d));
    assert_int_equal(d.reruns.count, N - 2);
    for (uint32_t i = 0; i + 2 < N; i++) assert_true(d.reruns.data[i].op == i && d.reruns.data[i].slot == N - 1);
    free(text);
    tide__decisions_free(&d);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_kinds),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_long_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
