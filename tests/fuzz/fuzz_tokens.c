/* Tokens: a vocabulary, a zero byte, merges, a zero byte, and a text that is encoded with what the two say. Tokens give back the text. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nn/bpe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t until_zero(const uint8_t *data, size_t size) {
    const uint8_t *end = memchr(data, 0, size);
    return end ? (size_t)(end - data) : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *at = (const char *)data;
    size_t vocabulary = until_zero(data, size), after = vocabulary + (vocabulary < size);
    size_t merges = until_zero(data + after, size - after), text = after + merges + (after + merges < size);
    tide_tokenizer *t;
    uint32_t *tokens;
    size_t n, length = 0;
    if (tide__bpe_read(at, vocabulary, at + after, merges, &t) != TIDE_OK) return 0;
    if (tide_tokenizer_encode(t, at + text, size - text, &tokens, &n) != TIDE_OK) abort();
    for (size_t i = 0; i < n; i++) {
        size_t bytes;
        const char *token = tide_tokenizer_bytes(t, tokens[i], &bytes);
        if (!token || length + bytes > size - text || memcmp(token, at + text + length, bytes) != 0) abort();
        length += bytes;
    }
    if (length != size - text) abort();
    free(tokens);
    tide_tokenizer_close(t);
    return 0;
}
