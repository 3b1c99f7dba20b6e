/* Where a text is cut before pairs of bytes are merged: words, numbers, signs and spaces, as GPT-2's pattern says:
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * Bytes that are no UTF-8 count as signs. */
#ifndef TIDE_NN_BPE_SPLIT_H
#define TIDE_NN_BPE_SPLIT_H

#include <stddef.h>

/* How many bytes the first part has; 0: the text is empty. */
size_t tide__bpe_split(const char *text, size_t size);

#endif
