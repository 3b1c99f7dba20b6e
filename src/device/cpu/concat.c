/* CONCAT along channels and its gradient: copies between a whole and its parts.
 *
 * Where a part fills whole groups of lanes of the whole its planes are copied as they are; channels that begin in the
 * middle of a group, or that are stored plain in the part and in blocks in the whole, are copied one by one. */
#include <string.h>

#include "device/cpu/view.h"

/* Channels [first, first + part.channels) of the whole are the part's. */
typedef struct seam {
    tide__view whole, part;
    int64_t first;
    char *whole_at, *part_at;
    int64_t unit; /* bytes of a number */
    bool join;    /* from the part into the whole; else the other way */
} seam;

/* Padding lanes of the last group come along: they are zero on both sides. */
static bool is_aligned(const seam *s) {
    bool complete = s->part.channels % s->part.lanes == 0 || s->first + s->part.channels == s->whole.channels;
    return s->whole.lanes == s->part.lanes && s->first % s->whole.lanes == 0 && complete;
}

static void copy_group(const seam *s, int64_t n, int64_t g) {
    char *whole = s->whole_at + tide__view_at(&s->whole, n, s->first / s->whole.lanes + g) * s->unit;
    char *part = s->part_at + tide__view_at(&s->part, n, g) * s->unit;
    size_t bytes = (size_t)(s->part.pixels * s->part.lanes * s->unit);
    if (s->join)
        memcpy(whole, part, bytes);
    else
        memcpy(part, whole, bytes);
}

/* The pixels of a channel, from lanes to lanes; of 4 bytes or of 2 each. */
static void copy_pixels(const seam *s, const char *from, int from_lanes, char *to, int to_lanes) {
    const int64_t n = s->part.pixels;
    if (s->unit == 4)
        for (int64_t p = 0; p < n; p++) memcpy(to + p * to_lanes * 4, from + p * from_lanes * 4, 4);
    else
        for (int64_t p = 0; p < n; p++) memcpy(to + p * to_lanes * 2, from + p * from_lanes * 2, 2);
}

static void copy_channel(const seam *s, int64_t n, int64_t c) {
    char *whole = s->whole_at + tide__view_channel(&s->whole, n, s->first + c) * s->unit;
    char *part = s->part_at + tide__view_channel(&s->part, n, c) * s->unit;
    if (s->join)
        copy_pixels(s, part, s->part.lanes, whole, s->whole.lanes);
    else
        copy_pixels(s, whole, s->whole.lanes, part, s->part.lanes);
}

static void zero_padding(const tide__view *v, char *to, int64_t unit, int64_t n) {
    for (int64_t c = v->channels; c < v->groups * v->lanes; c++)
        for (int64_t p = 0; p < v->pixels; p++)
            memset(to + (tide__view_channel(v, n, c) + p * v->lanes) * unit, 0, (size_t)unit);
}

static void copy_seam(const seam *s) {
    const bool aligned = is_aligned(s);
    const int64_t pieces = aligned ? s->part.groups : s->part.channels;
    const tide__view *target = s->join ? &s->whole : &s->part;
    bool parallel = tide__view_size(&s->part) > TIDE__PARALLEL_FLOATS;
#pragma omp parallel for collapse(2) schedule(static) if (parallel)
    for (int64_t n = 0; n < s->part.n; n++)
        for (int64_t i = 0; i < pieces; i++) {
            if (aligned)
                copy_group(s, n, i);
            else
                copy_channel(s, n, i);
        }
    if (aligned || (s->join && s->first + s->part.channels < s->whole.channels)) return;
    for (int64_t n = 0; n < s->part.n; n++) zero_padding(target, s->join ? s->whole_at : s->part_at, s->unit, n);
}

/* Parts are all reads (forward) or all writes (backward); the whole is the one operand of the other kind. */
static tide_status run_concat(const tide__cpu_kernel *k, const tide__call *call) {
    const bool join = k->desc.kind == TIDE_OP_CONCAT_FWD;
    const uint32_t n_parts = k->desc.n_parts, whole = join ? n_parts : 0, first_part = join ? 0 : 1;
    seam s = {.whole = tide__view_of(&k->desc.y), .whole_at = tide__at(call, whole), .join = join};
    s.unit = k->desc.bf16 ? 2 : 4;
    for (uint32_t i = 0; i < n_parts; i++) {
        s.part = tide__view_of(&k->operands.data[first_part + i].shape);
        s.part_at = tide__at(call, first_part + i);
        copy_seam(&s);
        s.first += s.part.channels;
    }
    return TIDE_OK;
}

tide_status tide__build_concat(tide__cpu_kernel *k, const tide_op_desc *source) {
    const bool join = source->kind == TIDE_OP_CONCAT_FWD;
    k->run = run_concat;
    if (!join) TIDE_TRY(tide__add_activation(k, TIDE__READ, source->y));
    for (uint32_t i = 0; i < source->n_parts; i++) {
        tide_shape part = source->y;
        part.c = source->part_channels[i];
        TIDE_TRY(tide__add_activation(k, join ? TIDE__READ : TIDE__WRITE, part));
    }
    return join ? tide__add_activation(k, TIDE__WRITE, source->y) : TIDE_OK;
}
