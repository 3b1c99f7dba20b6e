/* One transfer between memory and a file, cut into pieces that are in flight together. */
#ifndef TIDE_TIER_DISK_TRANSFER_H
#define TIDE_TIER_DISK_TRANSFER_H

#include <stddef.h>

#include "tier/disk_io.h"

#define TIDE__DISK_BLOCK UINT64_C(4096) /* what O_DIRECT moves, and what a checksum covers */

typedef struct tide__disk_lane {
    const tide__disk_engine *engine;
    void *lane;
    bool lost; /* waiting goes on failing: nobody knows what is still in flight, so the lane is not used again */
} tide__disk_lane;

int tide__disk_lane_open(tide__disk_lane *lane, const tide__disk_engine *engine, int fd);
void tide__disk_lane_close(tide__disk_lane *lane); /* harmless on one that is all zeros */

typedef struct tide__disk_transfer {
    bool write, whole_blocks; /* whole_blocks: only whole blocks move; offset and size are multiples of a block */
    char *data;
    uint64_t offset, size_bytes;
    uint32_t *sums; /* of every block of the file, 0: not known; NULL: no checksums. Only with whole_blocks. */
} tide__disk_transfer;

/* 0, or the first errno and the offset where it happened; then nothing of the transfer is in flight any more,
 * unless the lane is lost. A read
 * beyond the end is EIO, a write that moves nothing ENOSPC, a wrong checksum EBADMSG. Interrupted and short requests
 * are taken up again; one that gets nowhere for a hundred tries fails. */
int tide__disk_run(tide__disk_lane *lane, const tide__disk_transfer *transfer, uint64_t *failed_at);

#endif
