/* See piece.h. Invariant: the piece of a position and of its own size is the piece itself. */
#include "device/piece.h"

#include <math.h>

#include "base/error.h"
#include "base/size.h"

/* The tiles of a layout, the dimension that changes slowest first. */
typedef struct tiling {
    uint32_t dim[4];   /* which one it is */
    uint64_t count[4]; /* tiles along it */
    uint64_t at[4];    /* of the tile at the position */
    uint64_t below[4]; /* tiles of one step along it: those of all faster ones */
    uint64_t tile_bytes;
} tiling;

void tide__operand_layout_plain(uint64_t elements, uint32_t element_bytes, tide__operand_layout *out) {
    *out = (tide__operand_layout){
        .n_dims = 1, .element_bytes = element_bytes, .dims = {elements}, .tile = {1}, .stride = {1}};
}

int64_t tide__round_into(float value, float low, float high) {
    if (isnan(value)) return 0;
    value = value < low ? low : value;
    return llroundf(value > high ? high : value);
}

static uint64_t tiles_along(const tide__operand_layout *l, uint32_t dim) {
    return l->dims[dim] / l->tile[dim] + (l->dims[dim] % l->tile[dim] != 0);
}

/* A dimension of one tile may claim any stride: it goes first, where it is in nobody's way. */
static bool is_slower(const tide__operand_layout *l, uint32_t a, uint32_t b) {
    bool one_a = tiles_along(l, a) == 1, one_b = tiles_along(l, b) == 1;
    return one_a != one_b ? one_a : l->stride[a] > l->stride[b];
}

static void sort_dims(const tide__operand_layout *l, tiling *t) {
    for (uint32_t i = 0; i < l->n_dims; i++) {
        uint32_t k = i;
        for (; k > 0 && is_slower(l, i, t->dim[k - 1]); k--) t->dim[k] = t->dim[k - 1];
        t->dim[k] = i;
    }
}

/* Tiles without gaps between them: then the order alone says where each one is. */
static tide_status make_tiling(const tide__operand_layout *l, tiling *t) {
    uint64_t below = 1, tile = 1;
    *t = (tiling){0};
    for (uint32_t i = 0; i < l->n_dims; i++) tile *= l->tile[i];
    t->tile_bytes = tile * l->element_bytes;
    sort_dims(l, t);
    for (uint32_t i = l->n_dims; i-- > 0;) {
        t->count[i] = tiles_along(l, t->dim[i]);
        t->below[i] = below;
        if (t->count[i] > 1 && l->stride[t->dim[i]] != below * tile)
            return tide__fail(TIDE_E_UNSUPPORTED, "the layout of an operand has gaps");
        below *= t->count[i];
    }
    return TIDE_OK;
}

static tide_status find_tile(tiling *t, uint32_t n_dims, uint64_t position_bytes) {
    uint64_t index = position_bytes / t->tile_bytes;
    if (position_bytes % t->tile_bytes || index >= t->count[0] * t->below[0])
        return tide__fail(TIDE_E_ARGUMENT, "no piece of an operand begins at %llu", (unsigned long long)position_bytes);
    for (uint32_t i = 0; i < n_dims; i++) {
        t->at[i] = index / t->below[i];
        index %= t->below[i];
    }
    return TIDE_OK;
}

/* The slowest dimension along which a piece can go: the tile is the first of all faster ones, and they fit. */
static uint32_t find_direction(const tiling *t, uint32_t n_dims, uint64_t max_bytes) {
    uint32_t dim = n_dims - 1;
    while (dim > 0 && t->at[dim] == 0 && t->below[dim - 1] <= max_bytes / t->tile_bytes) dim--;
    return dim;
}

tide_status tide__operand_layout_piece(const tide__operand_layout *l, uint64_t position_bytes, uint64_t max_bytes,
                                       tide_piece *out) {
    tiling t;
    TIDE_TRY(make_tiling(l, &t));
    TIDE_TRY(find_tile(&t, l->n_dims, position_bytes));
    uint32_t along = find_direction(&t, l->n_dims, max_bytes);
    uint64_t fit = tide__max_u64(max_bytes / t.tile_bytes / t.below[along], 1);
    uint64_t tiles = tide__min_u64(fit, t.count[along] - t.at[along]);
    *out = (tide_piece){.position_bytes = position_bytes,
                        .size_bytes = tiles * t.below[along] * t.tile_bytes,
                        .dims = {1, 1, 1, 1},
                        .to = {1, 1, 1, 1}};
    for (uint32_t i = 0; i < l->n_dims; i++) {
        uint32_t dim = t.dim[i];
        uint64_t length = i < along ? 1 : i == along ? tiles : t.count[i];
        out->dims[dim] = l->dims[dim];
        out->from[dim] = t.at[i] * l->tile[dim];
        out->to[dim] = tide__min_u64((t.at[i] + length) * l->tile[dim], l->dims[dim]);
    }
    return TIDE_OK;
}
