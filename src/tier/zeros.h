/* Words of zero bits left out: a mask with a bit per word, then the words that are not zero. Only words with all bits
 * zero are dropped (+0.0), so every value comes back bit for bit: -0.0, NaN and denormals are kept. Values behind a ReLU
 * become 1.3 to 2 times smaller, others not at all.
 *
 *      | n_words | n_kept | mask, n_words / 8 bytes | up to a block of nothing | n_kept words |
 *
 * The words that are kept end where the packed bytes end. So packed bytes that lie at the end of the room of the raw ones
 * can be unpacked in place: the next word is never written before it was read. */
#ifndef TIDE_TIER_ZEROS_H
#define TIDE_TIER_ZEROS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TIDE__ZEROS_BLOCK = 4096,                        /* what is packed, and what it packs to, are multiples */
    TIDE__ZEROS_MOST = 31 * TIDE__ZEROS_BLOCK,       /* what is packed at once: so much has a mask of one block */
    TIDE__ZEROS_BUFFER = 32 * TIDE__ZEROS_BLOCK + 32 /* what packing that may touch */
};

/* From a sample, about one line in sixteen: are at least an eighth of the words zero? */
bool tide__zeros_pay(const void *raw, size_t size);

/* Does the processor do eight words at a time? Packed bytes are the same either way. */
bool tide__zeros_is_wide(void);

/* To `packed`, a buffer of TIDE__ZEROS_BUFFER bytes; returns how many it took, which may be more than `size`. */
size_t tide__zeros_pack(const void *raw, size_t size, void *packed, bool wide);

/* Back to `size` bytes; `packed` may be the end of `raw`. False, with nothing written: these packed_bytes are not what so
 * many bytes were packed to. */
bool tide__zeros_unpack(const void *packed, size_t packed_bytes, void *raw, size_t size, bool wide);

#endif
