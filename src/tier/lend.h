/* What a rank that borrows memory (peer.c) and the one that lends it (lend.c) say to each other. All but the asks is matched by a number
 * that the borrower gives:
 *
 *      borrower                        lender
 *      ask SAVE, and the bytes   ──▶   receives them where they belong
 *                                ◀──   answer: they are there
 *      ask LOAD                  ──▶
 *                                ◀──   the bytes
 *
 * A tier is a region at the lender, opened, resized and closed by asks that are answered, too. RETURN is the last ask of all. */
#ifndef TIDE_TIER_LEND_H
#define TIDE_TIER_LEND_H

#include "net/net_data.h"

enum { TIDE__LEND_REGIONS = 64 }; /* of one borrower, at the same time */

typedef enum tide__lend_kind {
    TIDE__LEND_OPEN = 1, /* a region of size_bytes */
    TIDE__LEND_RESIZE,   /* to size_bytes */
    TIDE__LEND_CLOSE,
    TIDE__LEND_SAVE, /* size_bytes at offset */
    TIDE__LEND_LOAD,
    TIDE__LEND_RETURN
} tide__lend_kind;

typedef struct tide__lend_ask {
    uint32_t kind, region;
    uint64_t offset, size_bytes, number;
} tide__lend_ask;

typedef struct tide__lend_answer {
    uint32_t status, region; /* of OPEN: the new one */
} tide__lend_answer;

#define TIDE__LEND_MAX_NUMBER ((UINT64_C(1) << 61) - 1)        /* so that tags stay apart */
#define TIDE__LEND_ASK (UINT64_C(7) << 61)                     /* the tag of asks */
#define TIDE__LEND_TO(number) (UINT64_C(3) << 62 | (number))   /* of bytes to the lender */
#define TIDE__LEND_FROM(number) (UINT64_C(5) << 61 | (number)) /* of answers and bytes from it */

#endif
