/* The JSON reader: what it takes, what it refuses and where it says so. */
#include "support/test.h"

#include "base/json.h"

static void parse_ok(tide__json *doc, const char *text) { assert_ok(tide__json_parse(doc, text, strlen(text))); }

static void refuse(const char *text, const char *why) {
    tide__json doc = {0};
    assert_status(tide__json_parse(&doc, text, strlen(text)), TIDE_E_FORMAT);
    assert_error_has(why);
    tide__json_free(&doc);
}

static void test_values(void **state) {
    (void)state;
    tide__json doc = {0};
    uint64_t u;
    double d;
    bool b;
    parse_ok(
        &doc,
        " {\"a\":[1,2,{}],\"big\":18446744073709551615,\"x\":-1.5e2,\"t\":true,\"s\":\"q\\u00e9\\n\\ud83d\\ude00\"} ");
    uint32_t a = tide__json_get(&doc, 0, "a");
    assert_int_equal(doc.nodes.data[a].count, 3);
    assert_int_equal(doc.nodes.data[0].count, 5);
    assert_ok(tide__json_u64(&doc, tide__json_get(&doc, 0, "big"), "big", UINT64_MAX, &u));
    assert_true(u == UINT64_MAX);
    assert_ok(tide__json_double(&doc, tide__json_get(&doc, 0, "x"), "x", &d));
    assert_true(d == -150.0);
    assert_ok(tide__json_bool(&doc, tide__json_get(&doc, 0, "t"), "t", &b));
    assert_true(b);
    assert_true(tide__json_is(&doc, tide__json_get(&doc, 0, "s"), "q\xc3\xa9\n\xf0\x9f\x98\x80"));
    assert_int_equal(tide__json_get(&doc, 0, "nothing"), 0);
    assert_status(tide__json_u64(&doc, tide__json_get(&doc, 0, "x"), "x", 10, &u), TIDE_E_FORMAT);
    assert_status(tide__json_u64(&doc, tide__json_get(&doc, 0, "big"), "big", 10, &u), TIDE_E_FORMAT);
    assert_error_has("big must be a whole number from 0 to 10");
    tide__json_free(&doc);
}

/* {"k0":{},"k1":{} ...}; the last key repeats the one before it if asked to. */
static void test_large_objects(void **state) {
    (void)state;
    enum { MEMBERS = 3000, ROOM = 64 * 1024 };
    char *text = malloc(ROOM);
    assert_non_null(text);
    for (int repeated = 0; repeated < 2; repeated++) {
        tide__json doc = {0};
        size_t n = 0;
        for (int i = 0; i < MEMBERS; i++)
            n +=
                (size_t)snprintf(text + n, ROOM - n, "%s\"k%d\":{}", i ? "," : "{", i - (repeated && i == MEMBERS - 1));
        n += (size_t)snprintf(text + n, ROOM - n, "}");
        if (repeated) {
            refuse(text, "duplicate key \"k2998\"");
        } else {
            parse_ok(&doc, text);
            assert_int_equal(doc.nodes.data[0].count, MEMBERS);
            assert_true(tide__json_get(&doc, 0, "k2999") != 0);
        }
        tide__json_free(&doc);
    }
    free(text);
}

static void test_refused(void **state) {
    (void)state;
    refuse("", "unexpected end");
    refuse("{", "expected a key");
    refuse("{\"a\":1,}", "expected a key");
    refuse("[1,]", "not a JSON value");
    refuse("[1 2]", "expected ','");
    refuse("01", "text after the end");
    refuse("NaN", "not a JSON value");
    refuse("-Infinity", "not a JSON value");
    refuse("1.", "bad number");
    refuse("{\"a\":1,\"a\":2}", "duplicate key \"a\"");
    refuse("\"\\ud800\"", "unpaired surrogate");
    refuse("\"\\u0000\"", "NUL");
    refuse("\"\xff\"", "invalid UTF-8");
    refuse("\"a\nb\"", "control character");
    refuse("\"abc", "unfinished string");
    refuse("{\"a\":1", "unfinished object");
    refuse("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "nested too deeply");
}

static void test_lines(void **state) {
    (void)state;
    static const char text[] = "{\"a\":1}\n\n  \r\n{\"b\":2}\n{\"c\":}\n";
    tide__lines lines;
    bool more = false;
    tide__lines_init(&lines, text, sizeof text - 1, "f");
    assert_ok(tide__lines_next(&lines, &more));
    assert_true(more && lines.line == 1);
    assert_ok(tide__lines_next(&lines, &more));
    assert_true(more && lines.line == 4);
    static const char *const keys[] = {"a", NULL};
    assert_status(tide__lines_check(&lines, tide__json_only(&lines.doc, 0, keys)), TIDE_E_FORMAT);
    assert_string_equal(tide_last_error(), "f:4: unknown key \"b\"");
    assert_status(tide__lines_next(&lines, &more), TIDE_E_FORMAT);
    assert_error_has("f:5: byte 6");
    tide__lines_free(&lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_large_objects),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
