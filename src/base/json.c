/* See json.h. One pass, an explicit stack of open containers, strings without escapes pointing into the text. */
#include "base/json.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 32, MAX_LINE = 4 << 20, SMALL = 256 /* members of an object */ };

typedef struct parser {
    tide__json *doc;
    const char *text;
    size_t size, at;
} parser;

static tide_status fail(parser *p, const char *what) {
    p->doc->error_at = p->at;
    return tide__fail(TIDE_E_FORMAT, "byte %zu: %s", p->at + 1, what);
}

static void skip_space(parser *p) {
    while (p->at < p->size) {
        char c = p->text[p->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return;
        p->at++;
    }
}

static tide_status add_node(parser *p, tide__json_type type, uint32_t *out) {
    if (p->doc->nodes.count >= UINT32_MAX - 1) return fail(p, "too many values");
    *out = (uint32_t)p->doc->nodes.count;
    tide__json_node node = {.type = type, .next = *out + 1};
    return tide__vec_push(&p->doc->nodes, node);
}

/* ---- strings ---- */

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static bool read_hex4(parser *p, uint32_t *out) {
    if (p->size - p->at < 4) return false;
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p->text[p->at++]);
        if (digit < 0) return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

static void put_utf8(parser *p, uint32_t c) {
    char bytes[4];
    size_t n = 0;
    if (c < 0x80) {
        bytes[n++] = (char)c;
    } else if (c < 0x800) {
        bytes[n++] = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        bytes[n++] = (char)(0xe0 | c >> 12);
        bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        bytes[n++] = (char)(0xf0 | c >> 18);
        bytes[n++] = (char)(0x80 | (c >> 12 & 0x3f));
        bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80) bytes[n++] = (char)(0x80 | (c & 0x3f));
    memcpy(p->doc->scratch.data + p->doc->scratch.count, bytes, n);
    p->doc->scratch.count += n;
}

static tide_status read_escape(parser *p) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (p->at == p->size) return fail(p, "unfinished escape");
    char c = p->text[p->at++];
    const char *found = c ? strchr(from, c) : NULL;
    if (found) {
        put_utf8(p, (unsigned char)to[found - from]);
        return TIDE_OK;
    }
    uint32_t code, low;
    if (c != 'u' || !read_hex4(p, &code)) return fail(p, "bad escape");
    if (code >= 0xd800 && code < 0xdc00) {
        bool pair = p->size - p->at >= 6 && p->text[p->at] == '\\' && p->text[p->at + 1] == 'u';
        if (pair) p->at += 2;
        if (!pair || !read_hex4(p, &low) || low < 0xdc00 || low > 0xdfff) return fail(p, "unpaired surrogate");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        return fail(p, "unpaired surrogate");
    }
    if (code == 0) return fail(p, "NUL in a string");
    put_utf8(p, code);
    return TIDE_OK;
}

/* Length of the UTF-8 sequence at s (1 to 4), 0 if it is not valid. */
static size_t utf8_length(const unsigned char *s, size_t room) {
    unsigned char c = s[0];
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (n == 0 || n > room) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (c == 0xe0 && s[1] < 0xa0) return 0;
    if (c == 0xed && s[1] > 0x9f) return 0;
    if (c == 0xf0 && s[1] < 0x90) return 0;
    if (c == 0xf4 && s[1] > 0x8f) return 0;
    return n;
}

/* How many bytes from s on are plain: no quote, backslash, control or multi-byte character. Most of every string. */
static size_t plain_length(const char *s, size_t room) {
    size_t n = 0;
    while (n < room && (unsigned char)s[n] >= 0x20 && (unsigned char)s[n] < 0x80 && s[n] != '"' && s[n] != '\\') n++;
    return n;
}

static void copy_to_scratch(parser *p, const char *text, size_t n) {
    memcpy(p->doc->scratch.data + p->doc->scratch.count, text, n); /* it holds the whole text's size, so this fits */
    p->doc->scratch.count += n;
}

/* p->at is after the opening quote; stops after the closing one. */
static tide_status read_string(parser *p, uint32_t index) {
    size_t begin = p->at, scratch_begin = p->doc->scratch.count;
    bool escaped = false;
    for (;;) {
        size_t n = plain_length(p->text + p->at, p->size - p->at);
        if (escaped) copy_to_scratch(p, p->text + p->at, n);
        p->at += n;
        if (p->at == p->size) return fail(p, "unfinished string");
        unsigned char c = (unsigned char)p->text[p->at];
        if (c == '"') break;
        if (c < 0x20) return fail(p, "control character in a string");
        if (c == '\\') {
            if (!escaped) copy_to_scratch(p, p->text + begin, p->at - begin);
            escaped = true;
            p->at++;
            TIDE_TRY(read_escape(p));
            continue;
        }
        n = utf8_length((const unsigned char *)p->text + p->at, p->size - p->at);
        if (n == 0) return fail(p, "invalid UTF-8");
        if (escaped) copy_to_scratch(p, p->text + p->at, n);
        p->at += n;
    }
    tide__json_node *node = &p->doc->nodes.data[index];
    node->text = escaped ? p->doc->scratch.data + scratch_begin : p->text + begin;
    node->length = (uint32_t)(escaped ? p->doc->scratch.count - scratch_begin : p->at - begin);
    p->at++;
    return TIDE_OK;
}

/* ---- numbers and words ---- */

static bool is_digit(parser *p) { return p->at < p->size && p->text[p->at] >= '0' && p->text[p->at] <= '9'; }

static bool skip_digits(parser *p) {
    if (!is_digit(p)) return false;
    while (is_digit(p)) p->at++;
    return true;
}

static tide_status read_number(parser *p, uint32_t index) {
    size_t begin = p->at;
    if (p->text[p->at] == '-') p->at++;
    if (p->at < p->size && p->text[p->at] == '0')
        p->at++;
    else if (!skip_digits(p))
        return fail(p, "not a JSON value");
    if (p->at < p->size && p->text[p->at] == '.') {
        p->at++;
        if (!skip_digits(p)) return fail(p, "bad number");
    }
    if (p->at < p->size && (p->text[p->at] == 'e' || p->text[p->at] == 'E')) {
        p->at++;
        if (p->at < p->size && (p->text[p->at] == '+' || p->text[p->at] == '-')) p->at++;
        if (!skip_digits(p)) return fail(p, "bad number");
    }
    p->doc->nodes.data[index].text = p->text + begin;
    p->doc->nodes.data[index].length = (uint32_t)(p->at - begin);
    return TIDE_OK;
}

static bool take_word(parser *p, const char *word) {
    size_t n = strlen(word);
    if (p->size - p->at < n || memcmp(p->text + p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

static tide_status read_scalar(parser *p) {
    uint32_t index;
    char c = p->text[p->at];
    if (c == '"') {
        p->at++;
        TIDE_TRY(add_node(p, TIDE__JSON_STRING, &index));
        return read_string(p, index);
    }
    if (take_word(p, "true")) return add_node(p, TIDE__JSON_TRUE, &index);
    if (take_word(p, "false")) return add_node(p, TIDE__JSON_FALSE, &index);
    if (take_word(p, "null")) return add_node(p, TIDE__JSON_NULL, &index);
    TIDE_TRY(add_node(p, TIDE__JSON_NUMBER, &index));
    return read_number(p, index);
}

/* ---- containers ---- */

static tide_status fail_duplicate(parser *p, const char *key, uint32_t length) {
    p->doc->error_at = p->at;
    return tide__fail(TIDE_E_FORMAT, "byte %zu: duplicate key \"%.*s\"", p->at + 1, length > 64 ? 64 : (int)length,
                      key);
}

/* Most objects in our files are small, and for them the quadratic check is the fast one. Those of more than SMALL members,
 * such as the arrays of a checkpoint, are looked through when they are complete. */
static tide_status check_key(parser *p, uint32_t object, uint32_t key) {
    const tide__json_node *nodes = p->doc->nodes.data;
    if (nodes[object].count > SMALL) return TIDE_OK;
    for (uint32_t k = object + 1; k < key; k = nodes[k + 1].next)
        if (nodes[k].length == nodes[key].length && memcmp(nodes[k].text, nodes[key].text, nodes[k].length) == 0)
            return fail_duplicate(p, nodes[key].text, nodes[key].length);
    return TIDE_OK;
}

typedef struct spelling {
    const char *text;
    uint32_t length;
} spelling;

static int by_text(const void *a, const void *b) {
    const spelling *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return memcmp(x->text, y->text, x->length);
}

static tide_status check_all_keys(parser *p, uint32_t object) {
    const tide__json_node *nodes = p->doc->nodes.data;
    uint32_t n = nodes[object].count;
    spelling *keys = malloc(n * sizeof *keys);
    if (!keys) return tide__fail_memory();
    for (uint32_t i = 0, k = object + 1; i < n; i++, k = nodes[k + 1].next)
        keys[i] = (spelling){nodes[k].text, nodes[k].length};
    qsort(keys, n, sizeof *keys, by_text);
    tide_status status = TIDE_OK;
    for (uint32_t i = 1; i < n && status == TIDE_OK; i++)
        if (by_text(&keys[i - 1], &keys[i]) == 0) status = fail_duplicate(p, keys[i].text, keys[i].length);
    free(keys);
    return status;
}

static tide_status read_key(parser *p, uint32_t object) {
    uint32_t key;
    skip_space(p);
    if (p->at == p->size || p->text[p->at] != '"') return fail(p, "expected a key");
    p->at++;
    TIDE_TRY(add_node(p, TIDE__JSON_STRING, &key));
    TIDE_TRY(read_string(p, key));
    TIDE_TRY(check_key(p, object, key));
    skip_space(p);
    if (p->at == p->size || p->text[p->at] != ':') return fail(p, "expected ':'");
    p->at++;
    return TIDE_OK;
}

static char closer_of(tide__json_type type) { return type == TIDE__JSON_OBJECT ? '}' : ']'; }

/* After a value: ',' goes on in the innermost container, a closer ends it and then looks again. */
static tide_status after_value(parser *p, uint32_t *stack, size_t *depth) {
    while (*depth > 0) {
        tide__json_node *top = &p->doc->nodes.data[stack[*depth - 1]];
        skip_space(p);
        if (p->at == p->size) return fail(p, "unfinished object or array");
        char c = p->text[p->at];
        if (c == ',') {
            p->at++;
            if (top->type == TIDE__JSON_OBJECT) TIDE_TRY(read_key(p, stack[*depth - 1]));
            p->doc->nodes.data[stack[*depth - 1]].count++;
            return TIDE_OK;
        }
        if (c != closer_of(top->type)) return fail(p, "expected ',' or the end of the object or array");
        if (top->type == TIDE__JSON_OBJECT && top->count > SMALL) TIDE_TRY(check_all_keys(p, stack[*depth - 1]));
        p->at++;
        top->next = (uint32_t)p->doc->nodes.count;
        (*depth)--;
    }
    return TIDE_OK;
}

/* Opens the container at p->at; *empty says that it was closed at once. */
static tide_status open_container(parser *p, uint32_t *stack, size_t *depth, bool *empty) {
    tide__json_type type = p->text[p->at] == '{' ? TIDE__JSON_OBJECT : TIDE__JSON_ARRAY;
    if (*depth == MAX_DEPTH) return fail(p, "nested too deeply");
    uint32_t index;
    p->at++;
    TIDE_TRY(add_node(p, type, &index));
    skip_space(p);
    *empty = p->at < p->size && p->text[p->at] == closer_of(type);
    if (*empty) {
        p->at++;
        return TIDE_OK;
    }
    stack[(*depth)++] = index;
    if (type == TIDE__JSON_OBJECT) TIDE_TRY(read_key(p, index));
    p->doc->nodes.data[index].count++;
    return TIDE_OK;
}

static tide_status parse(parser *p) {
    uint32_t stack[MAX_DEPTH];
    size_t depth = 0;
    do {
        bool complete = true;
        skip_space(p);
        if (p->at == p->size) return fail(p, "unexpected end");
        char c = p->text[p->at];
        if (c == '{' || c == '[')
            TIDE_TRY(open_container(p, stack, &depth, &complete));
        else
            TIDE_TRY(read_scalar(p));
        if (complete) TIDE_TRY(after_value(p, stack, &depth));
    } while (depth > 0);
    skip_space(p);
    return p->at == p->size ? TIDE_OK : fail(p, "text after the end");
}

tide_status tide__json_parse(tide__json *doc, const char *text, size_t size) {
    doc->nodes.count = doc->scratch.count = 0;
    parser p = {.doc = doc, .text = text, .size = size};
    if (size > UINT32_MAX) return fail(&p, "a text over 4 GiB");
    TIDE_TRY(tide__vec_reserve(&doc->scratch, size + 1));
    return parse(&p);
}

void tide__json_free(tide__json *doc) {
    tide__vec_free(&doc->nodes);
    tide__vec_free(&doc->scratch);
}

/* ---- reading the nodes ---- */

uint32_t tide__json_get(const tide__json *doc, uint32_t object, const char *key) {
    const tide__json_node *nodes = doc->nodes.data;
    if (nodes[object].type != TIDE__JSON_OBJECT) return 0;
    for (uint32_t k = object + 1; k < nodes[object].next; k = nodes[k + 1].next)
        if (tide__json_is(doc, k, key)) return k + 1;
    return 0;
}

bool tide__json_is(const tide__json *doc, uint32_t node, const char *string) {
    const tide__json_node *n = &doc->nodes.data[node];
    return n->type == TIDE__JSON_STRING && strlen(string) == n->length && memcmp(n->text, string, n->length) == 0;
}

bool tide__parse_u64(const char *text, size_t length, uint64_t max, uint64_t *out) {
    uint64_t value = 0;
    if (length == 0) return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        if (__builtin_mul_overflow(value, UINT64_C(10), &value)) return false;
        if (__builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value)) return false;
    }
    if (value > max) return false;
    *out = value;
    return true;
}

tide_status tide__json_u64(const tide__json *doc, uint32_t node, const char *what, uint64_t max, uint64_t *out) {
    if (node == 0) return tide__fail(TIDE_E_FORMAT, "%s is missing", what);
    const tide__json_node *n = &doc->nodes.data[node];
    if (n->type == TIDE__JSON_NUMBER && tide__parse_u64(n->text, n->length, max, out)) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "%s must be a whole number from 0 to %llu", what, (unsigned long long)max);
}

tide_status tide__json_double(const tide__json *doc, uint32_t node, const char *what, double *out) {
    if (node == 0) return tide__fail(TIDE_E_FORMAT, "%s is missing", what);
    const tide__json_node *n = &doc->nodes.data[node];
    char buffer[64];
    if (n->type == TIDE__JSON_NUMBER && n->length < sizeof buffer) {
        memcpy(buffer, n->text, n->length);
        buffer[n->length] = '\0';
        double value = strtod(buffer, NULL);
        if (value - value == 0) { /* neither infinite nor NaN */
            *out = value;
            return TIDE_OK;
        }
    }
    return tide__fail(TIDE_E_FORMAT, "%s must be a finite number", what);
}

tide_status tide__json_bool(const tide__json *doc, uint32_t node, const char *what, bool *out) {
    if (node == 0) return tide__fail(TIDE_E_FORMAT, "%s is missing", what);
    tide__json_type type = doc->nodes.data[node].type;
    if (type != TIDE__JSON_TRUE && type != TIDE__JSON_FALSE)
        return tide__fail(TIDE_E_FORMAT, "%s must be true or false", what);
    *out = type == TIDE__JSON_TRUE;
    return TIDE_OK;
}

tide_status tide__json_only(const tide__json *doc, uint32_t object, const char *const *keys) {
    const tide__json_node *nodes = doc->nodes.data;
    for (uint32_t k = object + 1; k < nodes[object].next; k = nodes[k + 1].next) {
        bool known = false;
        for (const char *const *key = keys; *key && !known; key++) known = tide__json_is(doc, k, *key);
        if (!known) {
            int shown = nodes[k].length > 64 ? 64 : (int)nodes[k].length;
            return tide__fail(TIDE_E_FORMAT, "unknown key \"%.*s\"", shown, nodes[k].text);
        }
    }
    return TIDE_OK;
}

/* The character at text, which is not plain; its length. */
static size_t write_special(FILE *stream, const char *text, size_t room) {
    unsigned char c = (unsigned char)*text;
    size_t n = utf8_length((const unsigned char *)text, room);
    if (n == 0)
        fputs("\\ufffd", stream);
    else if (c == '"' || c == '\\')
        fprintf(stream, "\\%c", c);
    else if (c < 0x20)
        fprintf(stream, "\\u%04x", c);
    else
        fwrite(text, 1, n, stream);
    return n ? n : 1;
}

void tide__json_write_string(FILE *stream, const char *text) {
    size_t size = strlen(text);
    fputc('"', stream);
    for (size_t i = 0; i < size;) {
        size_t n = plain_length(text + i, size - i);
        if (n > 0) fwrite(text + i, 1, n, stream);
        i += n > 0 ? n : write_special(stream, text + i, size - i);
    }
    fputc('"', stream);
}

/* ---- lines ---- */

void tide__lines_init(tide__lines *lines, const char *text, size_t size, const char *name) {
    *lines = (tide__lines){.text = text, .size = size, .name = name};
}

void tide__lines_free(tide__lines *lines) { tide__json_free(&lines->doc); }

tide_status tide__lines_check(const tide__lines *lines, tide_status status) {
    if (status == TIDE_OK) return TIDE_OK;
    return tide__fail_in(status, "%s:%zu", lines->name, lines->line);
}

void tide__lines_error(const tide__lines *lines, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tide__error_set("%s:%zu: %s", lines->name, lines->line, text);
}

static bool is_blank(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') return false;
    return true;
}

tide_status tide__lines_next(tide__lines *lines, bool *more) {
    while (lines->at < lines->size) {
        const char *begin = lines->text + lines->at;
        const char *newline = memchr(begin, '\n', lines->size - lines->at);
        size_t length = newline ? (size_t)(newline - begin) : lines->size - lines->at;
        lines->at += length + (newline != NULL);
        lines->line++;
        if (length > MAX_LINE) return tide__lines_fail(lines, "a line over 4 MiB");
        if (is_blank(begin, length)) continue;
        TIDE_TRY(tide__lines_check(lines, tide__json_parse(&lines->doc, begin, length)));
        if (lines->doc.nodes.data[0].type != TIDE__JSON_OBJECT) return tide__lines_fail(lines, "not an object");
        *more = true;
        return TIDE_OK;
    }
    *more = false;
    return TIDE_OK;
}
