/* Frames: what ranks tell each other besides the bytes of messages.
 *
 *      BEAT     I live, and am in this step
 *      OFFER    a message (id, tag, size, checksum); a small one lies in the frame
 *      CLEAR    the receive of message `id` is posted: its bytes may come, after those of all messages cleared before
 *      FAULT    the job has a fault
 *      BYE      I leave; nothing follows
 *
 * Frames from one rank to another are numbered without a gap and carry a checksum: one that is lost, doubled, damaged or
 * out of order is a fault of its sender. */
#ifndef TIDE_NET_FRAME_H
#define TIDE_NET_FRAME_H

#include <tidemark/net.h>

#include "base/error.h"
#include "net/transport.h"

typedef enum tide__net_kind {
    TIDE__NET_BEAT = 1,
    TIDE__NET_OFFER,
    TIDE__NET_CLEAR,
    TIDE__NET_FAULT,
    TIDE__NET_BYE
} tide__net_kind;

typedef struct tide__net_frame {
    uint32_t magic, kind;
    uint64_t number; /* of the frames between these two ranks, in this direction */
    uint64_t step;   /* its sender is in */
    uint64_t id, tag, size_bytes, sum;
    uint64_t check; /* of all the rest, taken with check 0 */
    char payload[TIDE_NET_SMALL];
} tide__net_frame;

_Static_assert(sizeof(tide__net_frame) == TIDE__NET_FRAME_BYTES, "a frame is a header and a small message");
enum { TIDE__NET_HEAD_BYTES = TIDE__NET_FRAME_BYTES - TIDE_NET_SMALL };

/* Fills in magic and check; payload_bytes of the payload count. Returns the bytes to send. */
uint32_t tide__net_frame_seal(tide__net_frame *frame, uint32_t payload_bytes);
/* size_bytes arrived. NULL, or what is wrong with it. */
const char *tide__net_frame_check(tide__net_frame *frame, uint32_t size_bytes, uint64_t expected_number);

/* The checksum of a message: of pieces of TIDE__NET_PIECE_BYTES, folded in order. */
enum { TIDE__NET_PIECE_BYTES = 1 << 20 };
uint64_t tide__net_sum_piece(uint64_t sum, const void *piece, size_t size_bytes);
uint64_t tide__net_sum(const void *data, uint64_t size_bytes);

#endif
