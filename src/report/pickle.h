/* Python's pickle, protocol 2, as far as plain data goes: dicts, lists, whole numbers, texts. Texts that come again are
 * written once (the memo), so that the keys of many small dicts cost two bytes each.
 *
 *   pickle_open(&p, stream);
 *   dict_begin; key "a"; u64 1; dict_end        -> {'a': 1}
 *
 * Errors stay in the stream. */
#ifndef TIDE_REPORT_PICKLE_H
#define TIDE_REPORT_PICKLE_H

#include <stdint.h>
#include <stdio.h>

enum { TIDE__PICKLE_WORDS = 64 };

typedef struct tide__pickle {
    FILE *f;
    const char *words[TIDE__PICKLE_WORDS]; /* static texts in the memo, by their address */
    uint8_t n_words;
} tide__pickle;

void tide__pickle_open(tide__pickle *p, FILE *f);
void tide__pickle_close(tide__pickle *p); /* ends the data; the stream stays open */
/* Between begin and end of a dict: keys and values in turn; of a list: items. */
void tide__pickle_dict_begin(tide__pickle *p);
void tide__pickle_dict_end(tide__pickle *p);
void tide__pickle_list_begin(tide__pickle *p);
void tide__pickle_list_end(tide__pickle *p);
void tide__pickle_u64(tide__pickle *p, uint64_t value);
/* A text from outside; bytes that are not UTF-8 become '?'. */
void tide__pickle_text(tide__pickle *p, const char *text);
/* A string literal: a key, or a word that comes often; at most TIDE__PICKLE_WORDS different ones are remembered. */
void tide__pickle_word(tide__pickle *p, const char *word);

#endif
