/* Pieces of operands: a layout as numbers, and its cuts.
 *
 * A layout is tiles in some order of the dimensions; within a tile elements lie as they like. A piece is a run of tiles
 * that is a box as well: complete in the dimensions that change fastest, a stretch of one more, a single tile of the rest. */
#ifndef TIDE_DEVICE_PIECE_H
#define TIDE_DEVICE_PIECE_H

#include <tidemark/device.h>

typedef struct tide__operand_layout {
    uint32_t n_dims, element_bytes;
    uint64_t dims[4], tile[4], stride[4]; /* elements; stride: from one tile to the next along the dimension */
} tide__operand_layout;

/* Plain elements, in one dimension. */
void tide__operand_layout_plain(uint64_t elements, uint32_t element_bytes, tide__operand_layout *out);

/* A float as a whole number of a type's range; NaN becomes 0. */
int64_t tide__round_into(float value, float low, float high);

/* See tide_operand_piece. */
tide_status tide__operand_layout_piece(const tide__operand_layout *layout, uint64_t position_bytes, uint64_t max_bytes,
                                       tide_piece *out);

#endif
