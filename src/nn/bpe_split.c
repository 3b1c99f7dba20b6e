/* See bpe_split.h. */
#include "nn/bpe_split.h"

#include <stdbool.h>
#include <string.h>

#include "nn/letters.h"

typedef enum kind { LETTER, DIGIT, SPACE, SIGN } kind;

typedef struct character {
    kind kind;
    size_t size; /* bytes */
} character;

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool is_in(const tide__code_range *table, size_t n, uint32_t code) {
    while (n > 0) {
        size_t middle = n / 2;
        if (code < table[middle].first) {
            n = middle;
        } else if (code > table[middle].last) {
            table += middle + 1;
            n -= middle + 1;
        } else {
            return true;
        }
    }
    return false;
}

static bool is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

static kind kind_of(uint32_t code) {
    if (is_space(code)) return SPACE;
    if (is_in(tide__letters, COUNT(tide__letters), code)) return LETTER;
    return is_in(tide__digits, COUNT(tide__digits), code) ? DIGIT : SIGN;
}

/* One code point of at least one byte; a byte that begins none is a sign. */
static character look(const char *text, size_t size) {
    const unsigned char *b = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = b[0] < 0x80 ? 1 : b[0] >> 5 == 6 ? 2 : b[0] >> 4 == 14 ? 3 : b[0] >> 3 == 30 ? 4 : 0;
    if (n == 0 || n > size) return (character){SIGN, 1};
    uint32_t code = n == 1 ? b[0] : b[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (b[i] >> 6 != 2) return (character){SIGN, 1};
        code = code << 6 | (b[i] & 0x3f);
    }
    if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return (character){SIGN, 1};
    return (character){kind_of(code), n};
}

static size_t contraction(const char *text, size_t size) {
    static const char *const ends[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < COUNT(ends); i++) {
        size_t length = strlen(ends[i]);
        if (length <= size && memcmp(text, ends[i], length) == 0) return length;
    }
    return 0;
}

/* Characters of one kind; *last: bytes of the last of them. */
static size_t run_of(kind wanted, const char *text, size_t size, size_t *last) {
    size_t at = 0;
    while (at < size) {
        character c = look(text + at, size - at);
        if (c.kind != wanted) break;
        at += c.size;
        *last = c.size;
    }
    return at;
}

/* All of them at the end of the text; before anything else the last belongs to what follows, unless it is alone. */
static size_t spaces(const char *text, size_t size) {
    size_t last = 0, run = run_of(SPACE, text, size, &last);
    return run == size || run == last ? run : run - last;
}

size_t tide__bpe_split(const char *text, size_t size) {
    size_t last, short_end = size ? contraction(text, size) : 0;
    if (size == 0 || short_end) return short_end;
    size_t space = text[0] == ' ' && size > 1; /* one may go before anything but spaces */
    kind first = look(text + space, size - space).kind;
    if (first == SPACE) return spaces(text, size);
    return space + run_of(first, text + space, size - space, &last);
}
