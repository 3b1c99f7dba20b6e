/* See relocate_walk.h: blocks settle as they come; at the end those that are carried go home. */
#include <stdlib.h>
#include <string.h>

#include "plan/relocate/relocate_state.h"

void tide__layout_deinit(tide__layout *l) {
    free(l->offsets);
    tide__vec_free(&l->moves);
}

static tide_status settle(tide__walk *w, uint32_t block) {
    uint64_t offset = 0;
    w->fresh[block] = true;
    if (!tide__walk_find_hole(w, block, &offset)) TIDE_TRY(tide__walk_make_room(w, block, &offset));
    if (w->failed) return TIDE_OK;
    w->out.offsets[block] = offset;
    tide__walk_insert(w, block, offset);
    return TIDE_OK;
}

/* ---- the way home ---- */

static uint64_t home_of(const tide__walk *w, uint32_t block) { return w->out.offsets[w->blocks[block].home]; }

static bool is_abroad(const tide__walk *w, uint32_t block) {
    return w->blocks[block].home != TIDE_NONE && w->offset[block] != home_of(w, block);
}

/* One block that can go home does; *moved: there was one. */
static tide_status go_home(tide__walk *w, bool *moved) {
    *moved = false;
    for (uint32_t i = 0; i < w->n_resting && !*moved; i++) {
        uint32_t block = w->resting[i];
        uint64_t old = w->offset[block];
        if (!is_abroad(w, block)) continue;
        tide__walk_take_out(w, block);
        *moved = tide__walk_is_free(w, home_of(w, block), w->blocks[block].size);
        tide__walk_insert(w, block, old);
        if (*moved) TIDE_TRY(tide__walk_relocate(w, block, home_of(w, block)));
    }
    return TIDE_OK;
}

/* Is the stretch free, and nobody's home who is still abroad? */
static bool is_nobodys(tide__walk *w, uint64_t offset, uint64_t size) {
    if (!tide__walk_is_free(w, offset, size)) return false;
    for (uint32_t i = 0; i < w->n_resting; i++) {
        uint32_t block = w->resting[i];
        uint64_t home = is_abroad(w, block) ? home_of(w, block) : 0;
        if (is_abroad(w, block) && home < offset + size && offset < home + w->blocks[block].size) return false;
    }
    tide__walk_count(w, w->n_resting);
    return true;
}

/* Above somebody, or somebody's home; where nobody will come home to, if there is such a place. */
static bool find_refuge(tide__walk *w, const tide__relocate_block *b, uint64_t *offset) {
    for (uint32_t i = 0; i < 2 * w->n_resting; i++) {
        uint32_t block = w->resting[i / 2];
        bool home = i % 2 && is_abroad(w, block);
        uint64_t end = home ? home_of(w, block) + w->blocks[block].size : tide__walk_end_of(w, block);
        if (tide__align_up(end, b->align, offset) && is_nobodys(w, *offset, b->size)) return true;
    }
    return tide__walk_find_tightest(w, b, offset);
}

/* Somebody who rests in another's home makes way. */
static tide_status step_aside(tide__walk *w, bool *moved) {
    *moved = false;
    for (uint32_t i = 0; i < w->n_resting; i++) {
        uint64_t offset;
        if (!is_abroad(w, w->resting[i])) continue;
        tide__walk_way y = tide__walk_window(w, home_of(w, w->resting[i]), w->blocks[w->resting[i]].size);
        for (uint32_t k = y.first; k < y.last; k++) {
            uint32_t block = w->resting[k];
            if (k == i || !find_refuge(w, &w->blocks[block], &offset)) continue;
            *moved = true;
            return tide__walk_relocate(w, block, offset);
        }
    }
    return TIDE_OK;
}

/* Every carried value ends where the next step expects it. */
static tide_status bring_home(tide__walk *w) {
    bool abroad = true, moved;
    for (uint32_t tries = 0; abroad && !w->failed; tries++) {
        tide__walk_count(w, w->n_resting + 1);
        abroad = false;
        for (uint32_t i = 0; i < w->n_resting; i++) abroad |= is_abroad(w, w->resting[i]);
        if (!abroad) break;
        TIDE_TRY(go_home(w, &moved));
        if (!moved) TIDE_TRY(step_aside(w, &moved));
        if (!moved || tries > 4 * w->n_resting) w->failed = true;
    }
    return TIDE_OK;
}

/* ---- the walk ---- */

static void drop_dead(tide__walk *w) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->n_resting; i++)
        if (w->blocks[w->resting[i]].end > w->now) w->resting[kept++] = w->resting[i];
    w->n_resting = kept;
}

/* A LOAD is over when a RUN has used what it brought; of a SAVE nobody can tell. */
static void note_transfers(tide__walk *w, const tide__action *a) {
    for (uint32_t k = 0; k < a->n_uses; k++) {
        uint32_t block = w->table->block_of[w->plan->uses.data[a->uses + k]];
        if (block == TIDE_NONE) continue;
        bool moves = a->copy != TIDE_NONE;
        w->busy_ns[block] = moves ? tide_machine_transfer_ns(w->machine, a->queue - 1, w->blocks[block].size) : 0;
    }
}

/* From before the first action to after the last, in one place. */
static bool stays_always(const tide__relocate_block *b) { return b->at_start && b->at_end; }

static void lay_base(tide__walk *w) {
    for (uint32_t i = 0; i < w->table->count && !w->failed; i++) {
        const tide__relocate_block *b = &w->blocks[i];
        tide__hole rest = {w->base, w->o.capacity - w->base};
        if (!stays_always(b)) continue;
        w->failed = !tide__hole_fit_low(rest, b, &w->out.offsets[i]);
        w->base = w->out.offsets[i] + b->size;
    }
}

static tide_status settle_all(tide__walk *w, uint64_t when, uint32_t *at) {
    const uint32_t *list = w->table->arrivals;
    uint32_t first = *at;
    for (; *at < w->table->count && tide__relocate_arrival(&w->blocks[list[*at]]) == when && !w->failed; (*at)++)
        if (!stays_always(&w->blocks[list[*at]])) TIDE_TRY(settle(w, list[*at]));
    for (uint32_t i = first; i < *at; i++) w->fresh[list[i]] = false;
    return TIDE_OK;
}

static void keep_for_end(tide__walk *w) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->n_resting; i++)
        if (w->blocks[w->resting[i]].at_end) w->resting[kept++] = w->resting[i];
    w->n_resting = kept;
}

static void list_homing(tide__walk *w) {
    for (uint32_t i = 0; i < w->table->count; i++)
        if (w->blocks[i].home != TIDE_NONE && w->blocks[i].home != i) w->homing[w->n_homing++] = i;
}

static tide_status run(tide__walk *w) {
    uint32_t at = 0, n = (uint32_t)w->plan->actions.count;
    list_homing(w);
    lay_base(w);
    TIDE_TRY(settle_all(w, 0, &at));
    for (; w->now < n && !w->failed; w->now++) {
        drop_dead(w);
        tide__walk_count(w, w->n_resting);
        TIDE_TRY(settle_all(w, (uint64_t)w->now + 1, &at));
        note_transfers(w, &w->plan->actions.data[w->now]);
    }
    keep_for_end(w);
    return bring_home(w);
}

static tide_status allocate(tide__walk *w, size_t n) {
    w->resting = malloc((n + 2) * sizeof *w->resting);
    w->evicted = malloc((n + 2) * sizeof *w->evicted);
    w->targets = malloc((n + 2) * sizeof *w->targets);
    w->homing = malloc((n + 2) * sizeof *w->homing);
    w->kept = malloc((n + 2) * sizeof *w->kept);
    w->holes = malloc((n + 4) * sizeof *w->holes);
    w->offset = calloc(n + 1, sizeof *w->offset);
    w->busy_ns = calloc(n + 1, sizeof *w->busy_ns);
    w->fresh = calloc(n + 1, sizeof *w->fresh);
    w->out.offsets = calloc(n + 1, sizeof *w->out.offsets);
    bool complete = w->resting && w->evicted && w->targets && w->holes && w->offset && w->busy_ns && w->fresh &&
                    w->homing && w->kept;
    return complete && w->out.offsets ? TIDE_OK : tide__fail_memory();
}

static void release(tide__walk *w) {
    free(w->resting);
    free(w->evicted);
    free(w->targets);
    free(w->homing);
    free(w->kept);
    free(w->holes);
    free(w->offset);
    free(w->busy_ns);
    free(w->fresh);
}

tide_status tide__relocate_walk(const tide_plan *plan, const tide_machine *machine, const tide__relocate_blocks *blocks,
                                const tide__walk_options *options, tide__layout *out, bool *fits) {
    tide__walk w = {.plan = plan, .machine = machine, .blocks = blocks->data, .table = blocks, .o = *options};
    tide_status status = allocate(&w, blocks->count);
    if (status == TIDE_OK) status = run(&w);
    release(&w);
    *fits = status == TIDE_OK && !w.failed;
    if (*fits)
        *out = w.out;
    else
        tide__layout_deinit(&w.out);
    return status;
}
