/* Pieces of operands, to and from plain float32, in loops of our own: oneDNN 3 cannot describe every piece of a layout
 * from its own first byte, and would make code anew for every place.
 *
 * Where an element lies is a sum over the dimensions, so that a table per dimension says it all. A piece goes in boxes whose tables are
 * small enough for the stack: converting allocates nothing, so it cannot fail in the middle of a step. */
#include <string.h>

#include "base/size.h"
#include "device/cpu/bf16.h"

/* Part of a piece: where it begins in the piece, and where its elements lie, from the piece's first tile. */
enum { MAX_BOX = 256 };
typedef struct box {
    uint64_t from[4], size[4];
    uint64_t offset[4][MAX_BOX];
} box;

/* Elements from one step along the outermost of blocks[i...] of a tile to the next: what the later blocks hold. */
static uint64_t elements_within(const tide__md_view *v, int block) {
    uint64_t n = 1;
    for (int i = block + 1; i < v->n_blocks; i++) n *= (uint64_t)v->block_sizes[i];
    return n;
}

/* Of position `at` in a tile along dimension `dim`. */
static uint64_t offset_in_tile(const tide__md_view *v, int dim, uint64_t at) {
    uint64_t offset = 0;
    for (int i = v->n_blocks; i-- > 0;) {
        if (v->block_dims[i] != dim) continue;
        offset += at % (uint64_t)v->block_sizes[i] * elements_within(v, i);
        at /= (uint64_t)v->block_sizes[i];
    }
    return offset;
}

static uint64_t tile_size(const tide__md_view *v, int dim) {
    uint64_t size = 1;
    for (int i = 0; i < v->n_blocks; i++) size *= v->block_dims[i] == dim ? (uint64_t)v->block_sizes[i] : 1;
    return size;
}

/* Dimensions that the layout does not have are of one element. */
static void fill_offsets(const tide__md_view *v, box *b) {
    for (int d = 0; d < 4; d++) {
        const uint64_t tile = d < v->n_dims ? tile_size(v, d) : 1, stride = d < v->n_dims ? (uint64_t)v->strides[d] : 0;
        for (uint64_t i = 0; i < b->size[d]; i++) {
            const uint64_t at = b->from[d] + i;
            b->offset[d][i] = at / tile * stride + (d < v->n_dims ? offset_in_tile(v, d, at % tile) : 0);
        }
    }
}

/* The box after this one in a piece of these sizes; false: there is none. The first begins at 0. */
static bool next_box(const uint64_t *sizes, box *b) {
    for (int d = 3; d >= 0; d--) {
        b->from[d] += MAX_BOX;
        if (b->from[d] < sizes[d]) return true;
        b->from[d] = 0;
    }
    return false;
}

/* ---- one row along the last dimension ---- */

static void pack_row(dnnl_data_type_t type, const uint64_t *offset, uint64_t n, const float *plain, void *stored) {
    switch (type) {
    case dnnl_u8:
        for (uint64_t i = 0; i < n; i++) ((uint8_t *)stored)[offset[i]] = (uint8_t)tide__round_into(plain[i], 0, 255);
        break;
    case dnnl_bf16:
        for (uint64_t i = 0; i < n; i++) ((uint16_t *)stored)[offset[i]] = tide__bf16_of(plain[i]);
        break;
    case dnnl_s32:
        for (uint64_t i = 0; i < n; i++)
            ((int32_t *)stored)[offset[i]] = (int32_t)tide__round_into(plain[i], -2147483648.0f, 2147483520.0f);
        break;
    default:
        for (uint64_t i = 0; i < n; i++) ((float *)stored)[offset[i]] = plain[i];
    }
}

static void unpack_row(dnnl_data_type_t type, const uint64_t *offset, uint64_t n, const void *stored, float *plain) {
    switch (type) {
    case dnnl_u8:
        for (uint64_t i = 0; i < n; i++) plain[i] = ((const uint8_t *)stored)[offset[i]];
        break;
    case dnnl_bf16:
        for (uint64_t i = 0; i < n; i++) plain[i] = tide__float_of(((const uint16_t *)stored)[offset[i]]);
        break;
    case dnnl_s32:
        for (uint64_t i = 0; i < n; i++) plain[i] = (float)((const int32_t *)stored)[offset[i]];
        break;
    default:
        for (uint64_t i = 0; i < n; i++) plain[i] = ((const float *)stored)[offset[i]];
    }
}

/* ---- whole pieces ---- */

static uint32_t bytes_of(dnnl_data_type_t type) { return type == dnnl_u8 ? 1 : type == dnnl_bf16 ? 2 : 4; }

typedef struct direction {
    const float *from; /* packing: the plain elements */
    float *to;         /* unpacking: likewise */
} direction;

static void convert_box(const uint64_t *sizes, const box *b, dnnl_data_type_t type, char *stored, direction d) {
    const uint64_t element_bytes = bytes_of(type);
    for (uint64_t i = 0; i < b->size[0]; i++)
        for (uint64_t j = 0; j < b->size[1]; j++)
            for (uint64_t k = 0; k < b->size[2]; k++) {
                const uint64_t row = ((b->from[0] + i) * sizes[1] + b->from[1] + j) * sizes[2] + b->from[2] + k;
                const uint64_t plain = row * sizes[3] + b->from[3];
                char *to = stored + (b->offset[0][i] + b->offset[1][j] + b->offset[2][k]) * element_bytes;
                if (d.from)
                    pack_row(type, b->offset[3], b->size[3], d.from + plain, to);
                else
                    unpack_row(type, b->offset[3], b->size[3], to, d.to + plain);
            }
}

static void convert_piece(const tide__md_view *v, const tide_piece *piece, dnnl_data_type_t type, char *stored,
                          direction way) {
    uint64_t sizes[4];
    box b = {0};
    for (int d = 0; d < 4; d++) sizes[d] = d < v->n_dims ? piece->to[d] - piece->from[d] : 1;
    do {
        for (int d = 0; d < 4; d++) b.size[d] = tide__min_u64(sizes[d] - b.from[d], MAX_BOX);
        fill_offsets(v, &b);
        convert_box(sizes, &b, type, stored, way);
    } while (next_box(sizes, &b));
}

static tide_status convert(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece, void *stored,
                           direction d) {
    const tide__operand *o = &((const tide__cpu_kernel *)kernel)->operands.data[operand];
    const tide__md_view v = tide__md_look(o->md);
    if (d.from) memset(stored, 0, piece->size_bytes); /* padding is zero */
    convert_piece(&v, piece, o->type, stored, d);
    return TIDE_OK;
}

tide_status tide__cpu_piece_pack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                 const float *plain, void *stored) {
    return convert(kernel, operand, piece, stored, (direction){.from = plain});
}

tide_status tide__cpu_piece_unpack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                   const void *stored, float *plain) {
    void *unchanged; /* unpacking reads only */
    memcpy(&unchanged, &stored, sizeof unchanged);
    return convert(kernel, operand, piece, unchanged, (direction){.to = plain});
}

tide_status tide__cpu_operand_layout(const tide_kernel *kernel, uint32_t operand, tide__operand_layout *out) {
    const tide__operand *o = &((const tide__cpu_kernel *)kernel)->operands.data[operand];
    const tide__md_view v = tide__md_look(o->md);
    *out = (tide__operand_layout){.n_dims = (uint32_t)v.n_dims, .element_bytes = bytes_of(o->type)};
    for (int i = 0; i < v.n_dims; i++) {
        out->dims[i] = (uint64_t)v.dims[i];
        out->stride[i] = (uint64_t)v.strides[i];
        out->tile[i] = tile_size(&v, i);
    }
    return TIDE_OK;
}
