/* See floor.h. */
#include "plan/decide/bounds/floor.h"

#include <string.h>

typedef struct stretch {
    uint64_t cost, left_over, offset;
    bool found;
} stretch;

/* Blocks [from, to), which a stretch overlaps: their sum as the stretch slides. */
typedef struct overlap {
    size_t from, to;
    uint64_t cost;
    uint32_t n_staying;
} overlap;

static uint64_t end_of(const tide__floor_block *b) { return b->offset + b->size; }

static void take_in(const tide__floor *f, overlap *o) {
    const tide__floor_block *b = &f->blocks.data[o->to++];
    o->cost += b->cost;
    o->n_staying += b->stays;
}

static void leave_out(const tide__floor *f, overlap *o) {
    const tide__floor_block *b = &f->blocks.data[o->from++];
    o->cost -= b->cost;
    o->n_staying -= b->stays;
}

/* Offsets only grow from call to call. */
static void slide(const tide__floor *f, uint64_t offset, uint64_t size, overlap *o) {
    while (o->to < f->blocks.count && f->blocks.data[o->to].offset < offset + size) take_in(f, o);
    while (o->from < o->to && end_of(&f->blocks.data[o->from]) <= offset) leave_out(f, o);
}

static void consider(const tide__floor *f, uint64_t offset, uint64_t size, overlap *o, stretch *best) {
    if (size > f->capacity || offset > f->capacity - size) return;
    slide(f, offset, size, o);
    if (o->n_staying) return;
    uint64_t above = o->to < f->blocks.count ? f->blocks.data[o->to].offset : f->capacity;
    uint64_t below = o->from > 0 ? end_of(&f->blocks.data[o->from - 1]) : 0;
    stretch s = {.cost = o->cost, .left_over = above - below - size, .offset = offset, .found = true};
    bool is_better = s.cost != best->cost ? s.cost < best->cost : s.left_over < best->left_over;
    if (!best->found || is_better) *best = s;
}

bool tide__floor_find(const tide__floor *f, uint64_t size, uint64_t *offset) {
    stretch best = {0};
    overlap o = {0};
    consider(f, 0, size, &o, &best);
    for (size_t i = 0; i < f->blocks.count; i++) consider(f, end_of(&f->blocks.data[i]), size, &o, &best);
    o = (overlap){0};
    for (size_t i = 0; i < f->blocks.count; i++)
        if (f->blocks.data[i].offset >= size) consider(f, f->blocks.data[i].offset - size, size, &o, &best);
    if (f->capacity >= size) consider(f, f->capacity - size, size, &o, &best);
    if (best.found) *offset = best.offset;
    return best.found;
}

size_t tide__floor_at(const tide__floor *f, uint64_t offset) {
    size_t low = 0, high = f->blocks.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (end_of(&f->blocks.data[middle]) <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

tide_status tide__floor_insert(tide__floor *f, tide__floor_block block) {
    TIDE_TRY(tide__vec_reserve(&f->blocks, 1));
    size_t at = tide__floor_at(f, block.offset);
    tide__floor_block *place = f->blocks.data + at;
    memmove(place + 1, place, (f->blocks.count - at) * sizeof *place);
    *place = block;
    f->blocks.count++;
    return TIDE_OK;
}

void tide__floor_clear(tide__floor *f, uint64_t offset, uint64_t size) {
    size_t from = tide__floor_at(f, offset), to = from;
    while (to < f->blocks.count && f->blocks.data[to].offset < offset + size) to++;
    if (to == from) return;
    memmove(f->blocks.data + from, f->blocks.data + to, (f->blocks.count - to) * sizeof *f->blocks.data);
    f->blocks.count -= to - from;
}
