/* What encoding is made of: tokens of one part of a text at a time, so that a text of any length takes no memory. */
#ifndef TIDE_NN_BPE_H
#define TIDE_NN_BPE_H

#include <tidemark/tokens.h>

/* From the texts of the two files; either may be anything. */
tide_status tide__bpe_read(const char *vocabulary, size_t vocabulary_bytes, const char *merges, size_t merges_bytes,
                           tide_tokenizer **out);

typedef tide_status (*tide__tokens_fn)(void *context, const uint32_t *tokens, size_t n);

/* Hands over the tokens of the text, part by part (bpe_split.h). */
tide_status tide__bpe_encode(const tide_tokenizer *tokenizer, const char *text, size_t size, tide__tokens_fn fn,
                             void *context);

#endif
