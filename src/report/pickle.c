/* See pickle.h. The opcodes are those of Python's pickletools documentation. */
#include "report/pickle.h"

#include <stdbool.h>
#include <string.h>

enum {
    OP_PROTO = 0x80,
    OP_STOP = '.',
    OP_MARK = '(',
    OP_EMPTY_DICT = '}',
    OP_SETITEMS = 'u',
    OP_EMPTY_LIST = ']',
    OP_APPENDS = 'e',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_LONG1 = 0x8a,
    OP_BINUNICODE = 'X',
    OP_BINPUT = 'q',
    OP_BINGET = 'h',
};

static void little(FILE *f, uint64_t value, int n_bytes) {
    for (int i = 0; i < n_bytes; i++) fputc((int)(value >> 8 * i & 0xff), f);
}

void tide__pickle_open(tide__pickle *p, FILE *f) {
    *p = (tide__pickle){.f = f};
    fputc(OP_PROTO, f);
    fputc(2, f);
}

void tide__pickle_close(tide__pickle *p) { fputc(OP_STOP, p->f); }

void tide__pickle_dict_begin(tide__pickle *p) {
    fputc(OP_EMPTY_DICT, p->f);
    fputc(OP_MARK, p->f);
}

void tide__pickle_dict_end(tide__pickle *p) { fputc(OP_SETITEMS, p->f); }

void tide__pickle_list_begin(tide__pickle *p) {
    fputc(OP_EMPTY_LIST, p->f);
    fputc(OP_MARK, p->f);
}

void tide__pickle_list_end(tide__pickle *p) { fputc(OP_APPENDS, p->f); }

/* LONG1 is signed, so a number with its top bit set needs one byte more. */
static int long_bytes(uint64_t value) {
    int n = 1;
    while (n < 9 && value >> (8 * n - 1)) n++;
    return n;
}

void tide__pickle_u64(tide__pickle *p, uint64_t value) {
    if (value < 256) {
        fputc(OP_BININT1, p->f);
        little(p->f, value, 1);
    } else if (value <= INT32_MAX) {
        fputc(OP_BININT, p->f);
        little(p->f, value, 4);
    } else {
        int n = long_bytes(value);
        fputc(OP_LONG1, p->f);
        fputc(n, p->f);
        little(p->f, value, n < 8 ? n : 8);
        if (n == 9) fputc(0, p->f);
    }
}

/* Bytes of the UTF-8 sequence at c; 0 if it is none. */
static size_t sequence(const unsigned char *c) {
    size_t n = *c < 0x80                 ? 1
               : *c >= 0xc2 && *c < 0xe0 ? 2
               : *c >= 0xe0 && *c < 0xf0 ? 3
               : *c >= 0xf0 && *c < 0xf5 ? 4
                                         : 0;
    for (size_t i = 1; i < n; i++)
        if (c[i] < 0x80 || c[i] >= 0xc0) return 0;
    if (n == 3 && ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] >= 0xa0))) return 0; /* too long; surrogates */
    if (n == 4 && ((*c == 0xf0 && c[1] < 0x90) || (*c == 0xf4 && c[1] >= 0x90))) return 0;
    return n;
}

void tide__pickle_text(tide__pickle *p, const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    fputc(OP_BINUNICODE, p->f);
    little(p->f, strlen(text), 4);
    while (*c) {
        size_t n = sequence(c);
        if (n)
            fwrite(c, 1, n, p->f);
        else
            fputc('?', p->f);
        c += n ? n : 1;
    }
}

void tide__pickle_word(tide__pickle *p, const char *word) {
    for (uint8_t i = 0; i < p->n_words; i++) {
        if (p->words[i] != word) continue;
        fputc(OP_BINGET, p->f);
        fputc(i, p->f);
        return;
    }
    tide__pickle_text(p, word);
    if (p->n_words == TIDE__PICKLE_WORDS) return;
    fputc(OP_BINPUT, p->f);
    fputc(p->n_words, p->f);
    p->words[p->n_words++] = word;
}
