/* See relocate_blocks.h. */
#include "plan/relocate/relocate_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/place_groups.h"

typedef struct member {
    uint32_t group, begin, end;
    tide_id id;
} member;

static int by_group_and_time(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static size_t list_members(const tide_plan *plan, tide__groups *g, member *members) {
    size_t n = 0;
    for (tide_id i = 0; i < plan->residencies.count; i++) {
        const tide_residency *r = &plan->residencies.data[i];
        if (r->size_bytes) members[n++] = (member){tide__groups_find(g, i), r->begin, r->end, i};
    }
    qsort(members, n, sizeof *members, by_group_and_time);
    return n;
}

static tide__relocate_block *open_block(tide__relocate_blocks *b, const tide_machine *machine, const tide_residency *r,
                                        size_t first) {
    tide__relocate_block *block = &b->data[b->count++];
    *block = (tide__relocate_block){.begin = r->begin,
                                    .at_start = r->at_start,
                                    .align = machine->align_bytes,
                                    .guide = r->offset_bytes,
                                    .first = (uint32_t)first,
                                    .home = TIDE_NONE};
    return block;
}

/* Members in order: one follows the other in its block where that handed its bytes over. gave: per residency. */
static void make_blocks(const tide_plan *plan, const tide_machine *machine, const member *members, size_t n,
                        const bool *gave, tide__relocate_blocks *b) {
    tide__relocate_block *block = NULL;
    for (size_t i = 0; i < n; i++) {
        const tide_residency *r = &plan->residencies.data[members[i].id];
        bool follows = block && members[i - 1].group == members[i].group && gave[members[i - 1].id] &&
                       r->begin + 1 == members[i - 1].end;
        if (!follows) block = open_block(b, machine, r, i);
        block->count++;
        block->end = r->end;
        block->at_end = r->at_end;
        block->size = tide__max_u64(block->size, r->size_bytes);
        b->members[i] = members[i].id;
        b->block_of[members[i].id] = b->count - 1;
    }
}

/* Bytes that go to a tier or come from one lie on its blocks. */
static void align_moved(const tide_plan *plan, const tide_machine *machine, tide__relocate_blocks *b) {
    for (size_t i = 0; i < plan->actions.count; i++) {
        const tide__action *a = &plan->actions.data[i];
        if (a->copy == TIDE_NONE) continue;
        uint32_t block = b->block_of[plan->uses.data[a->uses]];
        uint32_t unit = machine->tier[plan->copies.data[a->copy].tier].block_bytes;
        if (block != TIDE_NONE) b->data[block].align = tide__max_u64(b->data[block].align, unit);
    }
}

/* A home suits who comes there at the end. starts: per group, a block of it in the start map. */
static void find_homes(tide__relocate_blocks *b, tide__groups *g, uint32_t *starts) {
    for (uint32_t i = 0; i < b->count; i++)
        if (b->data[i].at_start) starts[tide__groups_find(g, b->members[b->data[i].first])] = i;
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t group = tide__groups_find(g, b->members[b->data[i].first]);
        if (!b->data[i].at_end || !g->carried[group]) continue;
        tide__relocate_block *home = &b->data[starts[group]];
        b->data[i].home = starts[group];
        home->align = tide__max_u64(home->align, b->data[i].align);
    }
}

/* ---- arrivals ---- */

typedef struct arrival {
    uint64_t when, size;
    uint32_t block;
} arrival;

static int by_arrival(const void *a, const void *b) {
    const arrival *x = a, *y = b;
    if (x->when != y->when) return x->when < y->when ? -1 : 1;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

static tide_status list_arrivals(tide__relocate_blocks *b) {
    arrival *list = malloc((b->count + (size_t)1) * sizeof *list);
    b->arrivals = malloc((b->count + (size_t)1) * sizeof *b->arrivals);
    bool all = list && b->arrivals;
    for (uint32_t i = 0; all && i < b->count; i++)
        list[i] = (arrival){tide__relocate_arrival(&b->data[i]), b->data[i].size, i};
    if (all) qsort(list, b->count, sizeof *list, by_arrival);
    for (uint32_t i = 0; all && i < b->count; i++) b->arrivals[i] = list[i].block;
    free(list);
    return all ? TIDE_OK : tide__fail_memory();
}

/* ---- the whole ---- */

tide_status tide__relocate_blocks_init(const tide_program *program, const tide_machine *machine, const tide_plan *plan,
                                       tide__relocate_blocks *out) {
    size_t n = plan->residencies.count;
    tide__groups g;
    *out = (tide__relocate_blocks){.data = calloc(n + 1, sizeof *out->data),
                                   .members = calloc(n + 1, sizeof *out->members),
                                   .block_of = malloc((n + 1) * sizeof *out->block_of)};
    member *members = malloc((n + 1) * sizeof *members);
    uint32_t *starts = malloc((n + 1) * sizeof *starts);
    bool *gave = calloc(n + 1, sizeof *gave);
    tide_status status = tide__groups_init(&g, n);
    bool complete = out->data && out->members && out->block_of && members && starts && gave;
    if (status == TIDE_OK && !complete) status = tide__fail_memory();
    if (status == TIDE_OK) status = tide__join_residencies(program, plan, true, &g, gave);
    if (status == TIDE_OK) {
        memset(out->block_of, 0xff, n * sizeof *out->block_of); /* TIDE_NONE in each */
        memset(starts, 0xff, n * sizeof *starts);
        make_blocks(plan, machine, members, list_members(plan, &g, members), gave, out);
        align_moved(plan, machine, out);
        find_homes(out, &g, starts);
        status = list_arrivals(out);
    }
    tide__groups_deinit(&g);
    free(members);
    free(starts);
    free(gave);
    return status;
}

void tide__relocate_blocks_deinit(tide__relocate_blocks *b) {
    free(b->data);
    free(b->members);
    free(b->block_of);
    free(b->arrivals);
}

tide_id tide__relocate_blocks_member(const tide__relocate_blocks *b, const tide_plan *plan, uint32_t block,
                                     uint32_t i) {
    const tide_id *members = b->members + b->data[block].first;
    uint32_t k = b->data[block].count - 1;
    while (k > 0 && plan->residencies.data[members[k]].begin >= i) k--;
    return members[k];
}
