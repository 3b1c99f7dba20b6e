/* One transfer between memory and a file, cut into pieces that are in flight together. */
#ifndef TIDE_TIER_DISK_TRANSFER_H
#define TIDE_TIER_DISK_TRANSFER_H

#include <stddef.h>

#include "tier/disk_io.h"
#include "tier/zeros.h"

#define TIDE__DISK_BLOCK UINT64_C(4096) /* what O_DIRECT moves, and what a checksum covers */

/* How a block of the file is stored: as it is, or as part of an extent whose zeros are left out (zeros.h). An extent has
 * the room of its raw bytes and uses the first `stored` blocks of it. */
typedef struct tide__disk_form {
    uint8_t place;  /* 0: as it is; else 1 + how many blocks of the extent come before this one */
    uint8_t blocks; /* of the whole extent */
    uint8_t stored; /* of it: those that are used */
} tide__disk_form;
#define TIDE__DISK_EXTENT ((uint64_t)TIDE__ZEROS_MOST) /* the most bytes of one */
/* Of a block that was lost beside a write: an extent of one block that is stored in more, so reading it is EBADMSG. */
#define TIDE__DISK_LOST ((tide__disk_form){.place = 1, .blocks = 1, .stored = UINT8_MAX})

typedef struct tide__disk_lane {
    const tide__disk_engine *engine;
    void *lane;
    char *staging;        /* what is packed to be written, and one extent that is not; NULL until it is needed */
    uint64_t moved_bytes; /* to and from the file, all together */
    bool lost; /* waiting goes on failing: nobody knows what is still in flight, so the lane is not used again */
} tide__disk_lane;

int tide__disk_lane_open(tide__disk_lane *lane, const tide__disk_engine *engine, int fd);
void tide__disk_lane_close(tide__disk_lane *lane); /* harmless on one that is all zeros */

/* Room for one extent in the lane's staging; ENOMEM if there is none. */
#define TIDE__DISK_STAGING_BYTES (UINT64_C(9) * 33 * TIDE__DISK_BLOCK)
int tide__disk_lane_extent(tide__disk_lane *lane, char **extent);

typedef struct tide__disk_transfer {
    bool write, whole_blocks; /* whole_blocks: only whole blocks move; offset and size are multiples of a block */
    char *data;
    uint64_t offset, size_bytes;
    uint32_t *sums;         /* of every block of the file, 0: not known; NULL: no checksums. Only with whole_blocks. */
    tide__disk_form *forms; /* of every block of the file; NULL: all are as they are. Only with whole_blocks; no extent
                               lies across an end of the transfer. */
    bool packs;             /* with forms, writing: leaves zeros out where that pays */
} tide__disk_transfer;

/* 0, or the first errno and the offset where it happened; then nothing of the transfer is in flight any more,
 * unless the lane is lost. A read
 * beyond the end is EIO, a write that moves nothing ENOSPC, a wrong checksum EBADMSG. Interrupted and short requests
 * are taken up again; one that gets nowhere for a hundred tries fails. */
int tide__disk_run(tide__disk_lane *lane, const tide__disk_transfer *transfer, uint64_t *failed_at);

#endif
