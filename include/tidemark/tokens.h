/* Tokens of GPT-2: pairs of bytes merged again and again, by the two files that Hugging Face has with such a model (vocab.json and
 * merges.txt). With it `gpt2` reads and writes text by its published weights. */
#ifndef TIDEMARK_TOKENS_H
#define TIDEMARK_TOKENS_H

#include <tidemark/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_tokenizer tide_tokenizer;

/* The folder with the two files. A file that breaks the rules is TIDE_E_FORMAT, with the place. Every single byte has a token: any text
 * can be encoded. */
TIDE_API tide_status tide_tokenizer_open(const char *folder, tide_tokenizer **out);
TIDE_API void tide_tokenizer_close(tide_tokenizer *tokenizer); /* NULL is fine */
/* Numbers of tokens are below this. */
TIDE_API uint32_t tide_tokenizer_size(const tide_tokenizer *tokenizer);
/* The bytes of a token, not terminated; NULL, and 0 bytes, for a number that no token has. */
TIDE_API const char *tide_tokenizer_bytes(const tide_tokenizer *tokenizer, uint32_t token, size_t *size);
/* Any bytes become tokens, as GPT2Tokenizer has them; texts such as <|endoftext|> are texts like any other. *out is freed with free(). */
TIDE_API tide_status tide_tokenizer_encode(const tide_tokenizer *tokenizer, const char *text, size_t size,
                                           uint32_t **out, size_t *n_out);

/* tide_data_files_open for a text by tokens; those wait in a file without a name in $TMPDIR, else /tmp. */
TIDE_API tide_status tide_data_files_open_tokens(const char *path, const tide_tokenizer *tokenizer, uint32_t context,
                                                 uint64_t seed, tide_data_files **out);

#ifdef __cplusplus
}
#endif
#endif
