/* The reader of placement problems: columns in any order, and everything that is no problem refused with its place. */
#include "plan/place/csv.h"

#include <unistd.h>

#include "base/rng.h"
#include "support/test.h"

static tide_status parse(const char *text, tide__place_table *table) {
    return tide__place_csv_parse(text, strlen(text), "in.csv", table);
}

static void assert_item(const tide__place_table *t, size_t i, const char *id, uint64_t size, uint32_t begin,
                        uint32_t end) {
    assert_string_equal(t->ids[i], id);
    assert_int_equal(t->items[i].size, size);
    assert_int_equal(t->items[i].begin, begin);
    assert_int_equal(t->items[i].end, end);
    assert_int_equal(t->items[i].begin2, t->items[i].end2);
}

static void test_columns_in_the_usual_order(void **state) {
    tide__place_table t;
    assert_ok(parse("id,lower,upper,size\na,0,3,100\nb,3,9,18446744073709551615\n", &t));
    assert_int_equal(t.n, 2);
    assert_item(&t, 0, "a", 100, 0, 3);
    assert_item(&t, 1, "b", UINT64_MAX, 3, 9);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(t.items[i].align, 1);
        assert_int_equal(t.items[i].fixed, TIDE__PLACE_FREE);
    }
    tide__place_table_free(&t);
    assert_int_equal(t.n, 0);
}

/* All orders of the six columns read the same. */
static void test_columns_in_any_order(void **state) {
    static const char *const names[] = {"id", "lower", "upper", "size", "alignment", "offset"};
    static const char *const values[] = {"x", "4", "7", "96", "32", "64"};
    size_t n_orders = 0;
    for (unsigned code = 0; code < 6 * 6 * 6 * 6 * 6 * 6; code++) {
        unsigned order[6], rest = code, seen = 0;
        for (int k = 0; k < 6; k++, rest /= 6) seen |= 1u << (order[k] = rest % 6);
        if (seen != 63) continue;
        char text[200] = "";
        for (int k = 0; k < 6; k++) strcat(strcat(text, names[order[k]]), k < 5 ? "," : "\n");
        for (int k = 0; k < 6; k++) strcat(strcat(text, values[order[k]]), k < 5 ? "," : "\n");
        tide__place_table t;
        assert_ok(parse(text, &t));
        assert_int_equal(t.n, 1);
        assert_item(&t, 0, "x", 96, 4, 7);
        assert_int_equal(t.items[0].align, 32);
        assert_int_equal(t.items[0].fixed, 64);
        tide__place_table_free(&t);
        n_orders++;
    }
    assert_int_equal(n_orders, 720);
}

static void test_spaces_blank_lines_and_empty_fields(void **state) {
    tide__place_table t;
    assert_ok(parse("\r\n id ,size,\tupper, lower,offset,alignment\r\n\n a b , 5,2 ,1,,\r\n\n\nc,0,0,0,8,8", &t));
    assert_int_equal(t.n, 2);
    assert_item(&t, 0, "a b", 5, 1, 2);
    assert_int_equal(t.items[0].align, 1);
    assert_int_equal(t.items[0].fixed, TIDE__PLACE_FREE);
    assert_item(&t, 1, "c", 0, 0, 0);
    assert_int_equal(t.items[1].fixed, 8);
    tide__place_table_free(&t);
    assert_ok(parse("id,lower,upper,size\n", &t));
    assert_int_equal(t.n, 0);
    tide__place_table_free(&t);
}

#define HEADER "id,lower,upper,size,alignment,offset\n"

static void test_refusals_name_file_and_line(void **state) {
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "in.csv: no header line"},
        {"\n \n\r\n", "in.csv: no header line"},
        {"a,0,1,5\n", "in.csv:1: unknown column \"a\""},
        {"id,lower,upper\na,0,1\n", "in.csv:1: column \"size\" is missing"},
        {"\nlower,upper,size\n", "in.csv:2: column \"id\" is missing"},
        {"id,lower,upper,size,size\n", "in.csv:1: column \"size\" comes twice"},
        {"id,lower,upper,size,colour\n", "in.csv:1: unknown column \"colour\""},
        {"id,lower,upper,size,\n", "in.csv:1: unknown column \"\""},
        {"ID,lower,upper,size\n", "in.csv:1: unknown column \"ID\""},
        {HEADER "a,0,1,5\n", "in.csv:2: 4 fields where the header has 6"},
        {HEADER "a,0,1,5,1,0,9\n", "in.csv:2: more than the header's 6 fields"},
        {HEADER "\na,0,1,-5,,\n", "in.csv:3: size \"-5\" is not a whole number"},
        {HEADER "a,0,1,,,\n", "in.csv:2: size \"\" is not a whole number"},
        {HEADER "a,0,1,0x10,,\n", "in.csv:2: size \"0x10\""},
        {HEADER "a,0,1,1e3,,\n", "in.csv:2: size \"1e3\""},
        {HEADER "a,0,1,1.5,,\n", "in.csv:2: size \"1.5\""},
        {HEADER "a,0,1,+5,,\n", "in.csv:2: size \"+5\""},
        {HEADER "a,0,1,1 000,,\n", "in.csv:2: size \"1 000\""},
        {HEADER "a,0,1,18446744073709551616,,\n", "in.csv:2: size \"18446744073709551616\""},
        {HEADER "a,0,4294967296,5,,\n", "in.csv:2: upper \"4294967296\" is not a whole number up to 4294967295"},
        {HEADER "a,-1,1,5,,\n", "in.csv:2: lower \"-1\""},
        {HEADER "a,0,1,5,,\nb,3,2,5,,\n", "in.csv:3: upper is below lower"},
        {HEADER "a,0,1,5,0,\n", "in.csv:2: alignment is not a power of two"},
        {HEADER "a,0,1,5,3,\n", "in.csv:2: alignment is not a power of two"},
        {HEADER "a,0,1,5,8,4\n", "in.csv:2: offset is not a multiple of the alignment"},
        {HEADER "a,0,1,5,,18446744073709551615\n", "in.csv:2: offset"},
        {HEADER "a,0,1,5,,18446744073709551614\n", "in.csv:2: offset + size does not fit in 64 bits"},
        {HEADER ",0,1,5,,\n", "in.csv:2: id is empty"},
        {HEADER "a,0,1,5,,\nb,0,1,5,,\n\na,7,9,5,,\n", "in.csv:5: id \"a\" was already on line 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tide__place_table t = {.n = 77};
        assert_status(parse(cases[i].text, &t), TIDE_E_FORMAT);
        assert_error_has(cases[i].error);
        assert_int_equal(t.n, 77); /* untouched */
    }
}

static void test_zero_bytes_and_long_fields(void **state) {
    static const char zero[] = "id,lower,upper,size\na\0b,0,1,5\n";
    tide__place_table t;
    assert_status(tide__place_csv_parse(zero, sizeof zero - 1, "in.csv", &t), TIDE_E_FORMAT);
    assert_error_has("in.csv:2: id holds a zero byte");
    static char text[100000];
    memset(text, '9', sizeof text - 1);
    memcpy(text, "id,lower,upper,size\na,0,1,", 26);
    assert_status(parse(text, &t), TIDE_E_FORMAT);
    assert_error_has("in.csv:2: size \"9999999999");
    assert_true(strlen(tide_last_error()) < 300);
    memset(text + 20, 'n', sizeof text - 21); /* an id of 10^5 bytes is fine */
    memcpy(text + sizeof text - 9, ",0,1,5\n", 8);
    assert_ok(parse(text, &t));
    assert_int_equal(t.n, 1);
    assert_true(strlen(t.ids[0]) > 90000);
    tide__place_table_free(&t);
}

/* Broken copies of a good file are read or refused, never more. */
static void test_random_damage(void **state) {
    static const char good[] = HEADER "a,0,10,100,4,\nb,5,12,2000,,64\nc,10,12,77,8,8\nd,0,2,1,,\n";
    size_t n_read = 0;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        for (uint64_t k = 0; k <= seed % 3; k++)
            text[tide__random_u64(seed, 0, k) % (sizeof good - 1)] =
                ",\n0918-x\r \0\t"[tide__random_u64(seed, 1, k) % 12];
        size_t size = seed % 5 ? sizeof good - 1 : (size_t)(tide__random_u64(seed, 2, 0) % sizeof good);
        tide__place_table t;
        tide_status status = tide__place_csv_parse(text, size, "in.csv", &t);
        if (status == TIDE_OK) {
            n_read++;
            tide__place_table_free(&t);
        } else {
            assert_status(status, TIDE_E_FORMAT);
            assert_error_has("in.csv:");
        }
    }
    assert_true(n_read > 1000 && n_read < 19000);
}

static void test_files(void **state) {
    char path[] = "/tmp/tide_csv_XXXXXX";
    tide__place_table t;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "id,lower,upper,size\nq,1,2,3\n", 28), 28);
    close(fd);
    assert_ok(tide__place_csv_read(path, &t));
    assert_item(&t, 0, "q", 3, 1, 2);
    tide__place_table_free(&t);
    unlink(path);
    assert_status(tide__place_csv_read(path, &t), TIDE_E_IO);
    assert_error_has(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_in_the_usual_order),
        cmocka_unit_test(test_columns_in_any_order),
        cmocka_unit_test(test_spaces_blank_lines_and_empty_fields),
        cmocka_unit_test(test_refusals_name_file_and_line),
        cmocka_unit_test(test_zero_bytes_and_long_fields),
        cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
