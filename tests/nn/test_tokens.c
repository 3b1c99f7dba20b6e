/* Tokens of GPT-2: which bytes become which, where a text is cut, texts of any length in no time, and files that make no sense.
 * Hugging Face's own tokenizer is compared with in python/tests/test_tokens.py. */
#include "support/test.h"

#include <unistd.h>

#include "nn/bpe.h"
#include "nn/bpe_split.h"
#include "support/cpu_time.h"

/* Each byte is its own number; then "th", "the", " the", "aa", "aaaa". */
static const char merges[] = "#version: 0.2\nt h\nth e\n\u0120 the\na a\naa aa\n";

static void write_code(char **at, unsigned code) {
    if (code >= 0x80) *(*at)++ = (char)(0xc0 | code >> 6);
    *(*at)++ = (char)(code >= 0x80 ? 0x80 | (code & 0x3f) : code);
}

/* In the characters that stand for bytes. */
static void write_vocabulary(char *at, int without) {
    static const char *const more[] = {"th", "the", "\u0120the", "aa", "aaaa"};
    unsigned next = 256;
    at += sprintf(at, "{");
    for (unsigned byte = 0; byte < 256; byte++) {
        bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
        unsigned code = itself ? byte : next++;
        if ((int)byte == without) continue;
        at += sprintf(at, "\"");
        if (byte == '"' || byte == '\\') *at++ = '\\';
        write_code(&at, code);
        at += sprintf(at, "\":%u,", byte);
    }
    for (unsigned i = 0; i < 5; i++) at += sprintf(at, "\"%s\":%u%s", more[i], 256 + i, i < 4 ? "," : "}");
}

static tide_tokenizer *make(void) {
    char vocabulary[8192];
    tide_tokenizer *t;
    write_vocabulary(vocabulary, -1);
    assert_ok(tide__bpe_read(vocabulary, strlen(vocabulary), merges, strlen(merges), &t));
    return t;
}

static void expect(const tide_tokenizer *t, const char *text, size_t n, const uint32_t *tokens) {
    uint32_t *out;
    size_t n_out;
    assert_ok(tide_tokenizer_encode(t, text, strlen(text), &out, &n_out));
    assert_int_equal(n_out, n);
    assert_memory_equal(out, tokens, n * sizeof *tokens);
    free(out);
}
#define EXPECT(t, text, ...) \
    expect(t, text, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

static void test_merges(void **state) {
    (void)state;
    tide_tokenizer *t = make();
    assert_int_equal(tide_tokenizer_size(t), 261);
    EXPECT(t, "the the", 257, 258);
    EXPECT(t, "thin", 256, 'i', 'n');
    EXPECT(t, "aaaaaaa", 260, 259, 'a'); /* from the left */
    EXPECT(t, "\xff\n", 0xff, '\n');
    expect(t, "", 0, (uint32_t[]){0});
    size_t size;
    assert_memory_equal(tide_tokenizer_bytes(t, 258, &size), " the", 4);
    assert_int_equal(size, 4);
    assert_null(tide_tokenizer_bytes(t, 261, &size));
    assert_int_equal(size, 0);
    tide_tokenizer_close(t);
    tide_tokenizer_close(NULL);
}

/* Parts in brackets. */
static void cut(const char *text, const char *parts) {
    char out[256] = "";
    for (size_t at = 0, size = strlen(text), n; at < size; at += n) {
        n = tide__bpe_split(text + at, size - at);
        assert_true(n > 0);
        snprintf(out + strlen(out), sizeof out - strlen(out), "[%.*s]", (int)n, text + at);
    }
    assert_string_equal(out, parts);
}

static void test_parts(void **state) {
    (void)state;
    cut("they'll say: it's 3pm", "[they]['ll][ say][:][ it]['s][ 3][pm]");
    cut("a  b   c ", "[a][ ][ b][  ][ c][ ]");
    cut("a\n\nb", "[a][\n][\n][b]");
    cut(" 'x", "[ '][x]");
    cut("\xc3\xa9t\xc3\xa9 \xc2\xbd\xd0\x96", "[\xc3\xa9t\xc3\xa9][ \xc2\xbd][\xd0\x96]");
    cut("a\xc2\xa0\xc2\xa0"
        "b",
        "[a][\xc2\xa0][\xc2\xa0][b]");
    cut("a\xff\xc3", "[a][\xff\xc3]");
}

/* A word of a million letters takes a second at most, where pairs looked for one by one would take hours. */
static void test_long(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    tide_tokenizer *t = make();
    char *text = malloc(N);
    uint32_t *tokens;
    size_t n;
    assert_non_null(text);
    memset(text, 'a', N);
    uint64_t begin = cpu_ns();
    assert_ok(tide_tokenizer_encode(t, text, N, &tokens, &n));
    assert_true(cpu_ns() - begin < UINT64_C(10000000000));
    assert_int_equal(n, N / 4);
    free(tokens);
    free(text);
    tide_tokenizer_close(t);
}

static void refuse(const char *vocabulary, const char *pairs, const char *text) {
    tide_tokenizer *t;
    assert_status(tide__bpe_read(vocabulary, strlen(vocabulary), pairs, strlen(pairs), &t), TIDE_E_FORMAT);
    assert_error_has(text);
}

static void test_hostile(void **state) {
    (void)state;
    char whole[8192], lacking[8192];
    write_vocabulary(whole, -1);
    write_vocabulary(lacking, 'x');
    refuse("[]", "", "vocab.json: expected an object");
    refuse("{\"a\":1", "", "vocab.json: byte");
    refuse("{\"a\":0,\"b\":0}", "", "vocab.json: two tokens have the number 0");
    refuse("{\"a\":-1}", "", "vocab.json: the number of a token");
    refuse("{\"a\":1048576}", "", "vocab.json: the number of a token");
    refuse("{\"a b\":0}", "", "vocab.json: token 0 is not written in");
    refuse("{\"\":0}", "", "vocab.json: token 0");
    refuse("{\"\u4e00\":0}", "", "vocab.json: token 0");
    refuse(lacking, "", "vocab.json: byte 120 has no token");
    refuse(whole, "t h\nth", "merges.txt: line 2: not two tokens");
    refuse(whole, "t h\n\nx y\n", "merges.txt: line 3: the two, or what they make, are not in vocab.json");
    refuse(whole, "t h extra\n", "merges.txt: line 1");
    refuse(whole, "t \xc1\xa8\n", "merges.txt: line 1: not two tokens"); /* an h in two bytes */
    refuse(whole, "t \xc5\x28\n", "merges.txt: line 1: not two tokens");
    tide_tokenizer *t;
    assert_status(tide_tokenizer_open("/nonexistent", &t), TIDE_E_IO);
    assert_error_has("/nonexistent/vocab.json");
    assert_status(tide_tokenizer_open(NULL, &t), TIDE_E_ARGUMENT);
}

/* A file of text as samples of tokens. */
static void test_data(void **state) {
    (void)state;
    char path[] = "/tmp/tidemark-tokens-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (int i = 0; i < 100; i++) assert_int_equal(write(fd, " the", 4), 4);
    close(fd);
    tide_tokenizer *t = make();
    tide_data_files *files;
    assert_ok(tide_data_files_open_tokens(path, t, 4, 1, &files));
    tide_tokenizer_close(t); /* not needed any more */
    const tide_data *d = tide_data_files_train(files);
    float tokens[4];
    int32_t labels[4];
    assert_int_equal(d->classes, 261);
    assert_int_equal(d->n_samples, 90 / 4);
    assert_ok(d->sample(d->context, 3, tokens, labels));
    for (int i = 0; i < 4; i++) assert_true((int)tokens[i] == 258 && labels[i] == 258);
    tide_data_files_close(files);
    t = make();
    assert_status(tide_data_files_open_tokens(path, t, 40, 1, &files), TIDE_E_FORMAT);
    assert_error_has("a text of 100 tokens");
    tide_tokenizer_close(t);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges),  cmocka_unit_test(test_parts), cmocka_unit_test(test_long),
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
