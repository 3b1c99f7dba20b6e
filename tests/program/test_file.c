/* Program files: the round trip, and every kind of damage with the line it is reported at. */
#include "support/test.h"

#include <unistd.h>

#include "base/file.h"
#include "support/program_equal.h"
#include "support/random_program.h"

static tide_status read_text(const char *text, tide_program **out) {
    return tide_program_read_memory(text, strlen(text), "f", out);
}

static tide_program *read_ok(const char *text) {
    tide_program *p = NULL;
    assert_ok(read_text(text, &p));
    return p;
}

/* The output stays untouched, and the text begins with the place. */
static void refuse_as(const char *text, const char *place, const char *why, tide_status expected) {
    tide_program *p = NULL;
    assert_status(read_text(text, &p), expected);
    assert_null(p);
    if (strncmp(tide_last_error(), place, strlen(place)) != 0)
        fail_msg("expected \"%s\" at the beginning of \"%s\"", place, tide_last_error());
    assert_error_has(why);
}

static void refuse(const char *text, const char *place, const char *why) { refuse_as(text, place, why, TIDE_E_FORMAT); }

#define HEAD "{\"tidemark\":\"program\",\"version\":1,\"name\":\"p\",\"kind\":\"one-shot\"}\n"
#define AGAIN "{\"tidemark\":\"program\",\"version\":1,\"kind\":\"repeating\"}\n"
#define END(t, o, c) "{\"end\":{\"tensors\":" #t ",\"ops\":" #o ",\"carries\":" #c "}}\n"
#define W "{\"tensor\":0,\"bytes\":8,\"start\":\"present\"}\n"
#define T1 "{\"tensor\":1,\"bytes\":8}\n"
#define OP "{\"op\":0,\"phase\":\"forward\",\"reads\":[0],\"writes\":[1],\"cost\":5}\n"

static void test_read(void **state) {
    (void)state;
    tide_program *p = read_ok(
        "{\"tidemark\":\"program\",\"version\":1,\"name\":\"net\",\"kind\":\"repeating\"}\n"
        "\n"
        "{\"tensor\":0,\"name\":\"w\",\"bytes\":16,\"dtype\":\"i32\",\"class\":\"weight\",\"start\":\"present\"}\r\n"
        "{\"bytes\":8,\"tensor\":1}\n"
        "{\"op\":0,\"name\":\"f\",\"phase\":\"forward\",\"writes\":[1],"
        "\"variants\":[{\"cost\":9},{\"workspace\":3,\"bits\":2,\"cost\":4}],\"rerun\":false,\"random\":7}\n"
        "  {\"tensor\":2,\"bytes\":16,\"keep\":true}\n"
        "{\"op\":1,\"phase\":\"update\",\"reads\":[1,0],\"writes\":[2],\"inplace\":[[1,0,\"must\"]],\"cost\":2}\n"
        "{\"carry\":[2,0]}\n" END(3, 2, 1));
    assert_string_equal(tide_program_name(p), "net");
    assert_true(tide_program_is_repeating(p));
    const tide_tensor *w = tide_program_tensor(p, 0), *y = tide_program_tensor(p, 1);
    assert_string_equal(w->name, "w");
    assert_true(w->size_bytes == 16 && w->dtype == TIDE_I32 && w->cls == TIDE_CLASS_WEIGHT);
    assert_true(w->start == TIDE_START_PRESENT && !w->keep);
    assert_string_equal(y->name, "");
    assert_true(y->dtype == TIDE_F32 && y->cls == TIDE_CLASS_OTHER && y->start == TIDE_START_ABSENT);
    const tide_op *f = tide_program_op(p, 0), *u = tide_program_op(p, 1);
    assert_true(f->n_reads == 0 && f->n_writes == 1 && f->n_inplace == 0 && f->n_variants == 2);
    assert_true(f->variants[0].cost_ns == 9 && f->variants[0].workspace_bytes == 0);
    assert_true(f->variants[1].workspace_bytes == 3 && f->variants[1].bits_class == 2);
    assert_true(!f->rerunnable && f->random && f->counter == 7);
    assert_true(u->rerunnable && !u->random && u->phase == TIDE_UPDATE && u->reads[1] == 0);
    assert_true(u->inplace[0].read == 1 && u->inplace[0].write == 0 && u->inplace[0].must);
    tide_program_destroy(p);
}

static void test_truncated(void **state) {
    (void)state;
    refuse("", "f:1: ", "cut short");
    refuse("\n\n", "f:2: ", "cut short");
    refuse(HEAD, "f:1: ", "cut short");
    refuse(HEAD W T1 OP, "f:4: ", "cut short");
    refuse(HEAD W "{\"tensor\":1,\"by", "f:3: ", "byte 16: unfinished string");
    refuse(HEAD W T1 OP END(2, 1, 0) W, "f:6: ", "a line after the end line");
    refuse(HEAD W T1 OP END(2, 1, 0) END(2, 1, 0), "f:6: ", "a line after the end line");
    refuse(HEAD W OP, "f:3: ", "writes tensor 1, which is not defined");
    const char *whole = HEAD W T1 OP END(2, 1, 0);
    size_t size = strlen(whole) - 1; /* without its last newline it is whole too */
    for (size_t n = 0; n < size; n++) {
        tide_program *p = NULL;
        assert_status(tide_program_read_memory(whole, n, "f", &p), TIDE_E_FORMAT);
        assert_error_has("f:");
    }
    tide_program *p = NULL;
    assert_ok(tide_program_read_memory(whole, size, "f", &p));
    tide_program_destroy(p);
}

static void test_header(void **state) {
    (void)state;
    refuse(W, "f:1: ", "not a program file");
    refuse("{\"tidemark\":\"plan\",\"version\":1}", "f:1: ", "not a program file");
    refuse("{\"tidemark\":\"program\",\"kind\":\"one-shot\"}", "f:1: ", "version is missing");
    refuse("{\"tidemark\":\"program\",\"version\":2,\"new\":0}", "f:1: ", "version 2; this library reads version 1");
    refuse("{\"tidemark\":\"program\",\"version\":0}", "f:1: ", "version 0;");
    refuse("{\"tidemark\":\"program\",\"version\":\"1\"}", "f:1: ", "version must be a whole number");
    refuse("{\"tidemark\":\"program\",\"version\":1}", "f:1: ", "kind is missing");
    refuse("{\"tidemark\":\"program\",\"version\":1,\"kind\":\"x\"}", "f:1: ", "kind must be one of: one-shot, rep");
    refuse("{\"tidemark\":\"program\",\"version\":1,\"kind\":\"one-shot\",\"name\":3}", "f:1: ", "name must be a str");
    refuse("{\"tidemark\":\"program\",\"version\":1,\"kind\":\"one-shot\",\"x\":3}", "f:1: ", "unknown key \"x\"");
    refuse(HEAD HEAD, "f:2: ", "neither a tensor, nor an op");
    refuse("[1]", "f:1: ", "not an object");
    refuse("\xef\xbb\xbf" HEAD, "f:1: ", "byte 1: not a JSON value");
}

static void test_json(void **state) {
    (void)state;
    char deep[200] = HEAD "{\"tensor\":";
    memset(deep + strlen(deep), '[', 60);
    refuse(deep, "f:2: ", "nested too deeply");
    refuse(HEAD "{\"tensor\":0,\"bytes\":NaN}", "f:2: ", "not a JSON value");
    refuse(HEAD "{\"tensor\":0,\"bytes\":Infinity}", "f:2: ", "not a JSON value");
    refuse(HEAD "{\"tensor\":0,\"bytes\":1,\"bytes\":1}", "f:2: ", "duplicate key \"bytes\"");
    refuse(HEAD "{\"tensor\":0,\"name\":\"\xff\",\"bytes\":1}", "f:2: ", "invalid UTF-8");
    refuse(HEAD "{\"tensor\":0,\"name\":\"\\u0000\",\"bytes\":1}", "f:2: ", "NUL in a string");
    refuse(HEAD "{\"tensor\":0,\"a\\u001b[2J\\n\":1}", "f:2: ", "unknown key \"a?[2J?\"");
    refuse(HEAD W "\n{}", "f:4: ", "neither a tensor");
    refuse(HEAD W "null", "f:3: ", "not an object");
}

/* Lines that a hostile file could make expensive. */
static void test_long_lines(void **state) {
    (void)state;
    size_t size = (4 << 20) + 1000, head = strlen(HEAD);
    char *text = malloc(size + 1);
    memcpy(text, HEAD, head);
    memset(text + head, ' ', size - head);
    text[size] = '\0';
    refuse(text, "f:2: ", "a line over 4 MiB");
    size_t at = head + (size_t)sprintf(text + head, "{\"op\":0,\"phase\":\"forward\",\"cost\":1,\"reads\":[");
    for (size_t i = 0; i < 1000000; i++) memcpy(text + at + 2 * i, "0,", 2);
    memcpy(text + at + 2000000, "0]}", 4);
    refuse(text, "f:2: ", "reads tensor 0, which is not defined");
    free(text);
}

static void test_tensors(void **state) {
    (void)state;
    refuse(HEAD "{\"tensor\":0}", "f:2: ", "bytes is missing");
    refuse(HEAD "{\"tensor\":-1,\"bytes\":1}", "f:2: ", "tensor must be a whole number");
    refuse(HEAD "{\"tensor\":\"0\",\"bytes\":1}", "f:2: ", "tensor must be a whole number");
    refuse(HEAD "{\"tensor\":0,\"bytes\":-1}", "f:2: ", "bytes must be a whole number");
    refuse(HEAD "{\"tensor\":0,\"bytes\":1.5}", "f:2: ", "bytes must be a whole number");
    refuse(HEAD "{\"tensor\":0,\"bytes\":1e3}", "f:2: ", "bytes must be a whole number");
    refuse(HEAD "{\"tensor\":0,\"bytes\":18446744073709551616}", "f:2: ", "bytes must be a whole number");
    refuse(HEAD "{\"tensor\":0,\"bytes\":[1]}", "f:2: ", "bytes must be a whole number");
    refuse(HEAD "{\"tensor\":4294967296,\"bytes\":1}", "f:2: ", "from 0 to 4294967295");
    refuse(HEAD W W, "f:3: ", "tensor 0 is defined twice");
    refuse(HEAD T1, "f:2: ", "tensor 1 comes before tensor 0");
    refuse(HEAD "{\"tensor\":0,\"bytes\":1,\"size\":1}", "f:2: ", "unknown key \"size\"");
    refuse(HEAD "{\"tensor\":0,\"bytes\":1,\"op\":0}", "f:2: ", "unknown key \"op\"");
    refuse(HEAD "{\"tensor\":0,\"bytes\":1,\"dtype\":\"f12\"}",
           "f:2: ", "dtype must be one of: f32, u8, i32, bytes, bf16, f16");
    refuse(HEAD "{\"tensor\":0,\"bytes\":1,\"class\":7}", "f:2: ", "class must be one of: input,");
    refuse(HEAD "{\"tensor\":0,\"bytes\":1,\"start\":null}", "f:2: ", "start must be one of: absent, present, client");
    refuse(HEAD "{\"tensor\":0,\"bytes\":1,\"keep\":1}", "f:2: ", "keep must be true or false");
    refuse(HEAD "{\"tensor\":0,\"bytes\":1,\"name\":null}", "f:2: ", "name must be a string");
    refuse_as(HEAD "{\"tensor\":0,\"bytes\":18446744073709551615}", "f:2: ", "add up to 2^62", TIDE_E_OVERFLOW);
    refuse_as(HEAD "{\"tensor\":0,\"bytes\":4000000000000000000}\n{\"tensor\":1,\"bytes\":4000000000000000000}",
              "f:3: ", "add up to 2^62", TIDE_E_OVERFLOW);
    refuse(HEAD "{\"tensor\":0,\"bytes\":1,\"keep\":true}\n" END(1, 0, 0), "f:3: ", "tensor 0 is needed at the end");
}

/* An op line in place of %, after two tensors. */
static void refuse_op(const char *fields, const char *why) {
    char text[1024];
    snprintf(text, sizeof text, HEAD W T1 "{\"op\":0,%s}\n" END(2, 1, 0), fields);
    refuse(text, "f:4: ", why);
}

static void test_ops(void **state) {
    (void)state;
    refuse_op("\"cost\":1", "phase is missing");
    refuse_op("\"phase\":\"forward\"", "cost is missing");
    refuse_op("\"phase\":\"sideways\",\"cost\":1", "phase must be one of: forward, backward, update");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"variants\":[{\"cost\":1}]", "either cost or variants");
    refuse_op("\"phase\":\"forward\",\"variants\":[]", "no variant");
    refuse_op("\"phase\":\"forward\",\"variants\":{}", "variants must be an array");
    refuse_op("\"phase\":\"forward\",\"variants\":[{\"cost\":1},{}]", "variant 1: cost is missing");
    refuse_op("\"phase\":\"forward\",\"variants\":[3]", "variant 0: must be an object");
    refuse_op("\"phase\":\"forward\",\"variants\":[{\"cost\":1,\"x\":1}]", "variant 0: unknown key \"x\"");
    refuse_op("\"phase\":\"forward\",\"variants\":[{\"cost\":1,\"bits\":4294967296}]", "bits must be a whole number");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"reads\":0", "reads must be an array");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"reads\":[[0]]", "reads must be a whole number");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"reads\":[4294967296]", "reads must be a whole number");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"reads\":[2]", "reads tensor 2, which is not defined");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"reads\":[1]", "tensor 1 is read before it is written");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"reads\":[0,0]", "lists tensor 0 twice");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"writes\":[0]", "exists at the start");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"writes\":[1,1]", "lists tensor 1 twice");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"rerun\":0", "rerun must be true or false");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"random\":true", "random must be a whole number");
    refuse_op("\"phase\":\"forward\",\"cost\":1,\"extra\":true", "unknown key \"extra\"");
    refuse(HEAD W T1 OP OP, "f:5: ", "op 0 is defined twice");
    refuse(HEAD W T1 "{\"op\":1,\"phase\":\"forward\",\"cost\":5}", "f:4: ", "op 1 comes before op 0");
    refuse(HEAD W T1 OP "{\"op\":1,\"phase\":\"forward\",\"writes\":[1],\"cost\":5}", "f:5: ", "op 0 has written");
}

static void test_pairs(void **state) {
    (void)state;
#define PAIR(p) "\"phase\":\"forward\",\"cost\":1,\"reads\":[0],\"writes\":[1],\"inplace\":" p
    refuse_op(PAIR("7"), "inplace must be an array");
    refuse_op(PAIR("[7]"), "inplace must hold");
    refuse_op(PAIR("[[0,0]]"), "inplace must hold");
    refuse_op(PAIR("[[0,0,\"may\",1]]"), "inplace must hold");
    refuse_op(PAIR("[[0,0,\"can\"]]"), "\"may\" or \"must\"");
    refuse_op(PAIR("[[0,0,true]]"), "\"may\" or \"must\"");
    refuse_op(PAIR("[[-1,0,\"may\"]]"), "position of the read");
    refuse_op(PAIR("[[[0],0,\"may\"]]"), "position of the read");
    refuse_op(PAIR("[[0,1,\"may\"]]"), "out of range");
    refuse_op(PAIR("[[0,0,\"may\"],[0,0,\"may\"]]"), "in two in-place pairs");
}

static void test_carries_and_end(void **state) {
    (void)state;
    refuse(HEAD W "{\"carry\":[0,0]}", "f:3: ", "one-shot program has no carries");
    refuse(AGAIN W "{\"carry\":[0]}", "f:3: ", "carry must be [from, to]");
    refuse(AGAIN W "{\"carry\":0}", "f:3: ", "carry must be an array");
    refuse(AGAIN W "{\"carry\":[0,9]}", "f:3: ", "tensor 9 is not defined");
    refuse(AGAIN W "{\"carry\":[0,0],\"x\":1}", "f:3: ", "unknown key \"x\"");
    refuse(AGAIN W "{\"carry\":[0,0]}\n" END(1, 0, 1), "f:4: ", "tensor 0 is not kept");
    refuse(AGAIN W END(1, 0, 0), "f:3: ", "no carry gives it a value");
    refuse(HEAD W END(2, 0, 0), "f:3: ", "the end line counts 2 tensors, the file has 1");
    refuse(HEAD W END(1, 18446744073709551615, 0), "f:3: ", "counts 18446744073709551615 ops");
    refuse(HEAD W END(1, 0, 1), "f:3: ", "counts 1 carries");
    refuse(HEAD W "{\"end\":{\"tensors\":1,\"ops\":0}}", "f:3: ", "carries is missing");
    refuse(HEAD W "{\"end\":true}", "f:3: ", "end: must be an object");
    refuse(HEAD W "{\"end\":{},\"x\":1}", "f:3: ", "unknown key \"x\"");
}

/* ---- round trips ---- */

static void round_trip(const tide_program *p) {
    char path[] = "/tmp/tide-program-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    tide_program *q = NULL;
    assert_ok(tide_program_write(p, path));
    assert_ok(tide_program_read(path, &q));
    unlink(path);
    assert_programs_equal(p, q);
    tide_program_destroy(q);
}

static void test_round_trip(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        random_program_options o = random_program_varied(seed);
        tide_program *p = random_program(&o);
        round_trip(p);
        tide_program_destroy(p);
    }
}

static void test_odd_values(void **state) {
    (void)state;
    static const char *const names[] = {"", "a \"b\" \\ / c", "tab\tnewline\nescape\x1b", "größe 张量 😀", "\x7f"};
    tide_program_builder *b = NULL;
    tide_program *p = NULL;
    assert_ok(tide_program_builder_create("q\"\\\n", false, &b));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tide_tensor t = {names[i], UINT64_C(1) << 59, TIDE_BYTES, (tide_class)i, TIDE_START_CLIENT, i % 2};
        tide_op op = {.name = names[i], .random = true, .counter = UINT64_MAX - i, .phase = TIDE_BACKWARD};
        op.n_variants = 1;
        op.variants = &(tide_variant){.bits_class = UINT32_MAX, .cost_ns = UINT64_C(1) << 59};
        assert_ok(tide_program_builder_tensor(b, &t, NULL));
        assert_ok(tide_program_builder_op(b, &op, NULL));
    }
    assert_ok(tide_program_builder_finish(b, &p));
    round_trip(p);
    tide_program_destroy(p);
}

/* The example that people copy from the documentation is a program. */
static void test_documented_example(void **state) {
    (void)state;
    tide__file file;
    tide_program *p = NULL;
    assert_ok(tide__file_open(TIDE_SOURCE_DIR "/docs/formats.md", &file));
    const char *text = memmem(file.text, file.size, "## Program files", 16);
    assert_non_null(text);
    text = memmem(text, file.size - (size_t)(text - file.text), "\n{", 2);
    const char *end = memmem(text, file.size - (size_t)(text - file.text), "```", 3);
    assert_ok(tide_program_read_memory(text, (size_t)(end - text), "docs", &p));
    assert_int_equal(tide_program_op_count(p), 3);
    tide_program_destroy(p);
    tide__file_close(&file);
}

static void test_io(void **state) {
    (void)state;
    tide_program *p = NULL;
    assert_status(tide_program_read("/dev/null/file", &p), TIDE_E_IO);
    assert_error_has("/dev/null/file");
    assert_status(tide_program_read("/tmp", &p), TIDE_E_IO);
    p = read_ok(HEAD END(0, 0, 0));
    assert_status(tide_program_write(p, "/dev/null/file"), TIDE_E_IO);
    tide_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_carries_and_end),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_odd_values),
        cmocka_unit_test(test_io),
        cmocka_unit_test(test_documented_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
