/* Tokens of PTX, and the words for types. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx_scan.h"

_Noreturn void scan_fail(scanner *s, const char *format, ...) {
    va_list arguments;
    int n = snprintf(s->error, PTX_ERROR_SIZE, "line %u: ", s->line);
    va_start(arguments, format);
    vsnprintf(s->error + n, PTX_ERROR_SIZE - (size_t)n, format, arguments);
    va_end(arguments);
    longjmp(s->failed, 1);
}

static void skip_space(scanner *s) {
    for (;;) {
        if (*s->at == '\n') s->line++;
        if (isspace((unsigned char)*s->at)) {
            s->at++;
        } else if (s->at[0] == '/' && s->at[1] == '/') {
            while (*s->at && *s->at != '\n') s->at++;
        } else if (s->at[0] == '/' && s->at[1] == '*') {
            const char *end = strstr(s->at + 2, "*/");
            if (!end) scan_fail(s, "a comment does not end");
            for (; s->at < end + 2; s->at++) s->line += *s->at == '\n';
        } else {
            return;
        }
    }
}

bool scan_is_part(char c) { return isalnum((unsigned char)c) || strchr("_$%.", c); }

void scan_next(scanner *s) {
    skip_space(s);
    const char *begin = s->at;
    if (*begin && scan_is_part(*begin)) {
        while (*s->at && scan_is_part(*s->at)) s->at++;
    } else if (*begin == '"') {
        for (s->at++; *s->at && *s->at != '"' && *s->at != '\n'; s->at++) {
        }
        if (*s->at != '"') scan_fail(s, "a string does not end");
        s->at++;
    } else if (*begin) {
        s->at++;
    }
    s->token = (ptx_text){begin, (size_t)(s->at - begin)};
}

bool ptx_is(ptx_text t, const char *word) { return strlen(word) == t.length && memcmp(t.at, word, t.length) == 0; }
bool scan_is(const scanner *s, const char *word) { return ptx_is(s->token, word); }

bool scan_take(scanner *s, const char *word) {
    if (!scan_is(s, word)) return false;
    scan_next(s);
    return true;
}

void scan_expect(scanner *s, const char *word) {
    if (!scan_take(s, word)) scan_fail(s, "\"%s\" expected before \"%.*s\"", word, (int)s->token.length, s->token.at);
}

ptx_text scan_word(scanner *s) {
    ptx_text t = s->token;
    if (t.length == 0 || !scan_is_part(t.at[0])) scan_fail(s, "a name expected before \"%.*s\"", (int)t.length, t.at);
    scan_next(s);
    return t;
}

uint64_t scan_number(scanner *s) {
    ptx_text t = scan_word(s);
    char digits[32], *end = NULL;
    if (t.length >= sizeof digits) scan_fail(s, "a number is too long");
    memcpy(digits, t.at, t.length);
    digits[t.length] = 0;
    if (digits[t.length - 1] == 'U') digits[t.length - 1] = 0;
    uint64_t v = strtoull(digits, &end, 0);
    if (end == digits || *end) scan_fail(s, "\"%s\" is no number", digits);
    return v;
}

uint32_t scan_small(scanner *s) {
    uint64_t v = scan_number(s);
    if (v > 1u << 24) scan_fail(s, "%llu is too large here", (unsigned long long)v);
    return (uint32_t)v;
}

void *scan_grow(scanner *s, void *array, uint32_t count, size_t element) {
    if (count & (count - 1)) return array;
    void *larger = realloc(array, (count ? 2 * (size_t)count : 1) * element);
    if (!larger) scan_fail(s, "no memory");
    return larger;
}

/* ---- types ---- */

bool ptx_parse_type(ptx_text word, ptx_type *out) {
    static const struct {
        const char *word;
        ptx_type type;
    } types[] = {{"b8", {PTX_BITS, 8}},       {"b16", {PTX_BITS, 16}},     {"b32", {PTX_BITS, 32}},
                 {"b64", {PTX_BITS, 64}},     {"u8", {PTX_UNSIGNED, 8}},   {"u16", {PTX_UNSIGNED, 16}},
                 {"u32", {PTX_UNSIGNED, 32}}, {"u64", {PTX_UNSIGNED, 64}}, {"s8", {PTX_SIGNED, 8}},
                 {"s16", {PTX_SIGNED, 16}},   {"s32", {PTX_SIGNED, 32}},   {"s64", {PTX_SIGNED, 64}},
                 {"f32", {PTX_FLOAT, 32}},    {"f64", {PTX_FLOAT, 64}},    {"pred", {PTX_PREDICATE, 1}}};
    if (word.length && word.at[0] == '.') word.at++, word.length--;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (!ptx_is(word, types[i].word)) continue;
        *out = types[i].type;
        return true;
    }
    return false;
}

ptx_type scan_type(scanner *s) {
    ptx_type type;
    if (!ptx_parse_type(s->token, &type)) scan_fail(s, "unknown type \"%.*s\"", (int)s->token.length, s->token.at);
    scan_next(s);
    return type;
}
