/* See frame.h. */
#include "net/frame.h"

#include "base/checksum.h"
#include "base/hash.h"

static const uint32_t magic = 0x54494e32; /* in the other byte order it is another number */

uint32_t tide__net_frame_seal(tide__net_frame *frame, uint32_t payload_bytes) {
    uint32_t size_bytes = TIDE__NET_HEAD_BYTES + payload_bytes;
    frame->magic = magic;
    frame->check = 0;
    frame->check = tide__checksum(frame, size_bytes);
    return size_bytes;
}

const char *tide__net_frame_check(tide__net_frame *frame, uint32_t size_bytes, uint64_t expected_number) {
    if (size_bytes < TIDE__NET_HEAD_BYTES || size_bytes > sizeof *frame) return "a frame of its has a wrong size";
    if (frame->magic != magic) return "it does not speak as this version does";
    uint64_t check = frame->check;
    frame->check = 0;
    if (tide__checksum(frame, size_bytes) != check) return "a frame of its arrived damaged";
    if (frame->number != expected_number) return "a frame of its was lost, doubled or came out of order";
    if (frame->kind < TIDE__NET_BEAT || frame->kind > TIDE__NET_BYE) return "a frame of its is of no known kind";
    bool carries =
        frame->kind == TIDE__NET_FAULT || (frame->kind == TIDE__NET_OFFER && frame->size_bytes <= TIDE_NET_SMALL);
    if (size_bytes - TIDE__NET_HEAD_BYTES != (carries ? frame->size_bytes : 0))
        return "a frame of its contradicts itself";
    return NULL;
}

uint64_t tide__net_sum_piece(uint64_t sum, const void *piece, size_t size_bytes) {
    return tide__hash_word(sum, tide__checksum(piece, size_bytes));
}

uint64_t tide__net_sum(const void *data, uint64_t size_bytes) {
    uint64_t sum = 0;
    for (uint64_t at = 0; at < size_bytes; at += TIDE__NET_PIECE_BYTES) {
        uint64_t left = size_bytes - at;
        sum = tide__net_sum_piece(sum, (const char *)data + at,
                                  left < TIDE__NET_PIECE_BYTES ? left : TIDE__NET_PIECE_BYTES);
    }
    return sum;
}
