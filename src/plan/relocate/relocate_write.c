/* See relocate_write.h. */
#include "plan/relocate/relocate_write.h"

#include <stdlib.h>

#include "base/size.h"

/* A plan that gets the moves of a layout. */
typedef struct writer {
    const tide__relocate_blocks *blocks;
    const tide_plan *old;
    tide_plan *plan;    /* the new one */
    uint32_t *where;    /* per old action: its new index */
    tide_id *current;   /* per old residency: what stands for it now */
    uint64_t *offset;   /* per block, now */
    uint32_t n_actions; /* of the new plan */
} writer;

static void map_actions(writer *w, const tide__layout *layout) {
    size_t n = w->old->actions.count, m = 0;
    for (size_t i = 0; i < n; i++) {
        while (m < layout->moves.count && layout->moves.data[m].before <= i) m++;
        w->where[i] = (uint32_t)(i + m);
    }
    w->n_actions = (uint32_t)(n + layout->moves.count);
}

static uint32_t new_begin(const writer *w, uint32_t begin, bool at_start) { return at_start ? 0 : w->where[begin]; }

static uint32_t new_end(const writer *w, uint32_t end, bool at_end) {
    if (at_end) return w->n_actions;
    return end ? w->where[end - 1] + 1 : 0;
}

static void map_intervals(writer *w) {
    for (size_t i = 0; i < w->old->residencies.count; i++) {
        tide_residency *r = &w->plan->residencies.data[i];
        r->begin = new_begin(w, r->begin, r->at_start);
        r->end = new_end(w, r->end, r->at_end);
    }
    for (size_t i = 0; i < w->old->copies.count; i++) {
        tide_copy *c = &w->plan->copies.data[i];
        c->begin = new_begin(w, c->begin, c->at_start);
        c->end = new_end(w, c->end, c->at_end);
    }
}

static void put(writer *w, tide_id residency) {
    uint32_t block = w->blocks->block_of[residency];
    if (block != TIDE_NONE) w->plan->residencies.data[residency].offset_bytes = w->offset[block];
}

/* The residency that has the block's bytes ends here, and a new one takes its place. */
static tide_status write_move(writer *w, const tide__relocation *m) {
    tide_id old = tide__relocate_blocks_member(w->blocks, w->old, m->block, m->before), from = w->current[old];
    tide_id to = (tide_id)w->plan->residencies.count;
    uint32_t now = (uint32_t)w->plan->actions.count;
    tide_residency moved = w->plan->residencies.data[from];
    moved.begin = now;
    moved.at_start = false;
    moved.offset_bytes = w->offset[m->block] = m->offset;
    w->plan->residencies.data[from].end = now + 1;
    w->plan->residencies.data[from].at_end = false;
    TIDE_TRY(tide__vec_push(&w->plan->residencies, moved));
    w->current[old] = to;
    tide__action a = {
        .kind = TIDE_RELOCATE, .op = TIDE_NONE, .copy = TIDE_NONE, .n_uses = 2, .uses = w->plan->uses.count};
    TIDE_TRY(tide__vec_push(&w->plan->uses, from));
    TIDE_TRY(tide__vec_push(&w->plan->uses, to));
    return tide__vec_push(&w->plan->actions, a);
}

static tide_status write_action(writer *w, uint32_t i) {
    tide__action a = w->old->actions.data[i];
    const tide_id *uses = w->old->uses.data + a.uses;
    a.uses = w->plan->uses.count;
    a.waits = a.n_waits = 0;
    for (uint32_t k = 0; k < a.n_uses; k++) {
        const tide_residency *r = &w->old->residencies.data[uses[k]];
        if (!r->at_start && r->begin == i) put(w, uses[k]);
        TIDE_TRY(tide__vec_push(&w->plan->uses, w->current[uses[k]]));
    }
    return tide__vec_push(&w->plan->actions, a);
}

static tide_status write_actions(writer *w, const tide__layout *layout) {
    size_t m = 0;
    for (tide_id i = 0; i < w->old->residencies.count; i++) {
        w->current[i] = i;
        if (w->old->residencies.data[i].at_start) put(w, i);
    }
    for (uint32_t i = 0; i <= w->old->actions.count; i++) {
        for (; m < layout->moves.count && layout->moves.data[m].before == i; m++)
            TIDE_TRY(write_move(w, &layout->moves.data[m]));
        if (i < w->old->actions.count) TIDE_TRY(write_action(w, i));
    }
    return TIDE_OK;
}

static void measure_arena(tide_plan *plan) {
    plan->arena_bytes = 0;
    for (size_t i = 0; i < plan->residencies.count; i++) {
        const tide_residency *r = &plan->residencies.data[i];
        plan->arena_bytes = tide__max_u64(plan->arena_bytes, r->offset_bytes + r->size_bytes);
    }
}

tide_status tide__relocate_write(const tide__relocate_blocks *blocks, const tide__layout *layout, const tide_plan *old,
                                 tide_plan *plan) {
    writer w = {.blocks = blocks, .old = old, .plan = plan, .offset = layout->offsets};
    w.where = malloc((old->actions.count + 1) * sizeof *w.where);
    w.current = malloc((old->residencies.count + 1) * sizeof *w.current);
    tide_status status = w.where && w.current ? TIDE_OK : tide__fail_memory();
    plan->actions.count = plan->uses.count = plan->waits.count = 0;
    if (status == TIDE_OK) {
        map_actions(&w, layout);
        map_intervals(&w);
        status = write_actions(&w, layout);
        measure_arena(plan);
    }
    free(w.where);
    free(w.current);
    return status;
}
