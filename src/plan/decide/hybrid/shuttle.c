/* See shuttle.h. One walk over the ops. For each: who wants to be in the arena (wants), where (settle), who leaves for it,
 * and the moves that this takes (commit).
 *
 * Invariant: a value is in the arena (place), in a tier (tier), or in both; until its last use it is never in neither. */
#include "plan/decide/hybrid/shuttle.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"
#include "plan/evaluate.h"
#include "plan/decide/bounds/floor.h"
#include "plan/decide/hybrid/model.h"
#include "plan/decide/swaps/tiers.h"
#include "plan/decide/policies/workspaces.h"

#define NOWHERE UINT64_MAX
/* Blocks that stay for later ops at most: what an op takes is in proportion. */
enum { MAX_BLOCKS = 512 };

typedef struct want {
    tide_id tensor; /* TIDE_NONE: the workspace */
    uint64_t size, place;
    bool is_read;
    bool is_still; /* it is in the arena and stays where it is */
} want;

typedef struct shuttle {
    const tide__policy_input *in;
    tide__model *m;
    tide__tiers tiers;                     /* that values go to */
    uint64_t room[TIDE_MACHINE_MAX_TIERS]; /* left in them */
    uint64_t unit;                         /* of offsets and sizes in the arena */
    /* Per tensor. */
    uint64_t *size, *place; /* place: in the arena; NOWHERE */
    uint32_t *tier;         /* that has a copy; TIDE_NONE */
    uint32_t *open;         /* the swap that has no LOAD yet; TIDE_NONE */
    uint32_t *next;         /* in m->uses: the first read to come */
    tide_id *successor;     /* the value that it is carried to; TIDE_NONE */
    bool *is_carried_to;    /* its slot in the tier is its predecessor's in the end */
    uint32_t *wanted;       /* slot + 1 in which it was wanted last */
    tide_id *heir;          /* the write that takes its bytes over in this slot; TIDE_NONE */
    tide__floor floor, draft;
    TIDE_VEC(want) wants;
    tide__decisions decisions;
    TIDE_VEC(uint64_t) offsets; /* of residencies, in the order in which they begin */
    uint32_t slot;
    bool is_full;        /* it does not fit */
    tide__arrays arrays; /* owns the arrays above */
} shuttle;

/* ---- uses ---- */

/* The next op that reads it after this slot; n_ops if it is only kept; TIDE_NONE: it is not needed any more. */
static uint32_t next_use(shuttle *s, tide_id t) {
    while (s->next[t] < s->m->use_at[t + 1] && s->m->uses[s->next[t]] <= s->slot) s->next[t]++;
    if (s->next[t] < s->m->use_at[t + 1]) return s->m->uses[s->next[t]];
    return s->m->keep[t] ? s->m->n_ops : TIDE_NONE;
}

/* ---- moves ---- */

static tide_status note(shuttle *s, tide__step_kind kind, uint32_t swap) {
    return tide__vec_push(&s->decisions.sequence, ((tide__step){.slot = s->slot, .kind = kind, .index = swap}));
}

static tide_status open_swap(shuttle *s, tide_id t, uint32_t save_slot) {
    tide__swap swap = {.tensor = t, .tier = s->tier[t], .save_slot = save_slot, .load_slot = TIDE_NONE};
    s->open[t] = (uint32_t)s->decisions.swaps.count;
    return tide__vec_push(&s->decisions.swaps, swap);
}

static uint32_t tier_with_room(const shuttle *s, uint64_t bytes) {
    for (uint32_t i = 0; i < s->tiers.n; i++)
        if (s->room[s->tiers.tier[i]] >= bytes) return s->tiers.tier[i];
    return TIDE_NONE;
}

/* What is carried ends where its successor starts, which has the room. */
static uint32_t tier_for(const shuttle *s, tide_id t) {
    return s->successor[t] != TIDE_NONE ? s->tier[s->successor[t]] : tier_with_room(s, s->size[t]);
}

/* Where there is no copy yet. */
static tide_status save(shuttle *s, tide_id t) {
    if (s->tier[t] != TIDE_NONE) return TIDE_OK;
    s->tier[t] = tier_for(s, t);
    if (s->tier[t] == TIDE_NONE) {
        s->is_full = true;
        return TIDE_OK;
    }
    if (s->successor[t] == TIDE_NONE) s->room[s->tier[t]] -= s->size[t];
    TIDE_TRY(open_swap(s, t, s->slot));
    return note(s, TIDE__STEP_SAVE, s->open[t]);
}

static tide_status load(shuttle *s, tide_id t) {
    if (s->open[t] == TIDE_NONE) TIDE_TRY(open_swap(s, t, TIDE_NONE));
    s->decisions.swaps.data[s->open[t]].load_slot = s->slot;
    TIDE_TRY(note(s, TIDE__STEP_LOAD, s->open[t]));
    s->open[t] = TIDE_NONE;
    return tide__vec_push(&s->offsets, s->place[t]);
}

/* It is not needed any more. */
static void forget(shuttle *s, tide_id t) {
    uint32_t tier = s->tier[t];
    s->place[t] = NOWHERE;
    if (tier == TIDE_NONE || s->m->client[t] || s->is_carried_to[t]) return;
    s->room[tier] += s->size[t];
    s->tier[t] = TIDE_NONE;
}

/* ---- who leaves ---- */

/* Bytes to move, the sooner it is needed again the more: those of a block that may leave for an op. */
static void price(shuttle *s, tide__floor_block *b) {
    uint32_t use = next_use(s, b->tensor);
    bool is_clean = s->tier[b->tensor] != TIDE_NONE;
    uint64_t distance = use > s->slot ? use - s->slot : 1;
    b->stays = s->wanted[b->tensor] == s->slot + 1 || (!is_clean && tier_for(s, b->tensor) == TIDE_NONE);
    b->cost = (is_clean ? 1 : 2) * (b->size / distance) + 1;
}

static tide_status copy_floor(const tide__floor *from, tide__floor *to) {
    to->blocks.count = 0;
    to->capacity = from->capacity;
    TIDE_TRY(tide__vec_reserve(&to->blocks, from->blocks.count));
    if (from->blocks.count) memcpy(to->blocks.data, from->blocks.data, from->blocks.count * sizeof *to->blocks.data);
    to->blocks.count = from->blocks.count;
    return TIDE_OK;
}

/* ---- who wants to be there ---- */

static tide_status want_one(shuttle *s, tide_id t, uint64_t size, bool is_read) {
    bool is_there = is_read && s->place[t] != NOWHERE;
    return tide__vec_push(&s->wants, ((want){.tensor = t,
                                             .size = size,
                                             .place = is_there ? s->place[t] : NOWHERE,
                                             .is_read = is_read,
                                             .is_still = is_there}));
}

static tide_status want_read(shuttle *s, tide_id t) {
    if (s->wanted[t] == s->slot + 1) return TIDE_OK;
    s->wanted[t] = s->slot + 1;
    return want_one(s, t, s->size[t], true);
}

/* A write takes over the bytes of a read that dies here, of any read where room is short (is_tight), in-place kernels
 * always do. */
static void find_heirs(shuttle *s, bool is_tight) {
    const tide__model *m = s->m;
    for (uint32_t i = m->pair_at[s->slot]; i < m->pair_at[s->slot + 1]; i++) {
        tide_id read = m->pairs[i].read, write = m->pairs[i].write;
        bool is_due = is_tight || m->destroyer[read] == s->slot || next_use(s, read) == TIDE_NONE;
        bool is_taken = s->heir[read] != TIDE_NONE || s->wanted[write] == s->slot + 1;
        if (!is_due || is_taken || s->size[read] != s->size[write]) continue;
        s->heir[read] = write;
        s->wanted[write] = s->slot + 1;
    }
}

static tide_status list_wants(shuttle *s, bool is_tight) {
    const tide__model *m = s->m;
    uint32_t o = s->slot;
    s->wants.count = 0;
    for (uint32_t i = m->write_at[o]; i < m->write_at[o + 1]; i++) s->wanted[m->writes[i]] = 0;
    for (uint32_t i = m->read_at[o]; i < m->read_at[o + 1]; i++) {
        s->wanted[m->reads[i]] = 0;
        s->heir[m->reads[i]] = TIDE_NONE;
    }
    for (uint32_t i = m->read_at[o]; i < m->read_at[o + 1]; i++) TIDE_TRY(want_read(s, m->reads[i]));
    find_heirs(s, is_tight);
    for (uint32_t i = m->write_at[o]; i < m->write_at[o + 1]; i++) {
        bool is_heir = s->wanted[m->writes[i]] == o + 1;
        s->wanted[m->writes[i]] = o + 1;
        if (!is_heir) TIDE_TRY(want_one(s, m->writes[i], s->size[m->writes[i]], false));
    }
    uint64_t workspace = (m->workspace_bytes[o] + s->unit - 1) & ~(s->unit - 1);
    return workspace ? want_one(s, TIDE_NONE, workspace, false) : TIDE_OK;
}

/* ---- where ---- */

/* Those that need a place first, the largest first; then those that have one, the smallest first. */
static int by_need(const void *a, const void *b) {
    const want *x = a, *y = b;
    if (x->is_still != y->is_still) return x->is_still ? 1 : -1;
    if (x->size != y->size) return (x->size > y->size) == x->is_still ? 1 : -1;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static int by_size(const void *a, const void *b) {
    const want *x = a, *y = b;
    if (x->size != y->size) return x->size > y->size ? -1 : 1;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

/* Places for the first n wants, beside the others, in s->draft; false: there are none. */
static tide_status place_first(shuttle *s, size_t n, bool *found) {
    TIDE_TRY(copy_floor(&s->floor, &s->draft));
    *found = true;
    for (size_t i = 0; i < n; i++) {
        const want *w = &s->wants.data[i];
        if (w->is_still && w->size) tide__floor_clear(&s->draft, s->place[w->tensor], w->size);
    }
    for (size_t i = 0; i < n && *found; i++) {
        want *w = &s->wants.data[i];
        w->place = 0;
        if (w->size == 0) continue;
        *found = tide__floor_find(&s->draft, w->size, &w->place);
        if (!*found) break;
        tide__floor_clear(&s->draft, w->place, w->size);
        TIDE_TRY(tide__floor_insert(&s->draft, (tide__floor_block){w->place, w->size, w->tensor, 0, true}));
    }
    return TIDE_OK;
}

/* One beside the other, whatever lies there. */
static void pack(shuttle *s) {
    uint64_t at = 0;
    for (size_t i = 0; i < s->wants.count; i++) {
        s->wants.data[i].place = at;
        at += s->wants.data[i].size;
    }
    if (at > s->floor.capacity) s->is_full = true;
}

/* Who is there already may have to lie elsewhere, the smallest first: one, two, four of them, all. */
static tide_status settle(shuttle *s) {
    size_t missing = 0, n_wants = s->wants.count;
    bool found = false;
    for (size_t i = 0; i < s->floor.blocks.count; i++) price(s, &s->floor.blocks.data[i]);
    if (n_wants) qsort(s->wants.data, n_wants, sizeof *s->wants.data, by_need);
    while (missing < n_wants && !s->wants.data[missing].is_still) missing++;
    for (size_t moved = 0; !found && missing + moved <= n_wants; moved = moved ? 2 * moved : 1) {
        if (missing + moved > missing) /* in turn, the largest of them first */
            qsort(s->wants.data, missing + moved, sizeof *s->wants.data, by_size);
        TIDE_TRY(place_first(s, missing + moved, &found));
        if (!found) qsort(s->wants.data, n_wants, sizeof *s->wants.data, by_need);
    }
    if (found) return TIDE_OK;
    TIDE_TRY(list_wants(s, true));
    qsort(s->wants.data, s->wants.count, sizeof *s->wants.data, by_size);
    pack(s);
    return TIDE_OK;
}

/* ---- the moves ---- */

static bool is_moved(const shuttle *s, const want *w) { return w->is_read && s->place[w->tensor] != w->place; }

/* What lies where a want is to lie, and is none of them. */
static tide_status evict_under(shuttle *s, const want *w) {
    for (size_t i = tide__floor_at(&s->floor, w->place); i < s->floor.blocks.count; i++) {
        const tide__floor_block *b = &s->floor.blocks.data[i];
        if (b->offset >= w->place + w->size) break;
        if (s->wanted[b->tensor] == s->slot + 1) continue;
        TIDE_TRY(save(s, b->tensor));
        s->place[b->tensor] = NOWHERE;
    }
    return TIDE_OK;
}

/* Who leaves for good, who lies elsewhere, and whose bytes an heir takes though it is needed again: saved first. */
static tide_status save_all(shuttle *s) {
    for (size_t i = 0; i < s->wants.count; i++)
        if (s->wants.data[i].size) TIDE_TRY(evict_under(s, &s->wants.data[i]));
    for (size_t i = 0; i < s->wants.count; i++) {
        const want *w = &s->wants.data[i];
        if (!w->is_read || s->place[w->tensor] == NOWHERE) continue;
        bool is_overwritten = s->slot < s->m->n_ops && s->heir[w->tensor] != TIDE_NONE;
        if (is_moved(s, w) || (is_overwritten && next_use(s, w->tensor) != TIDE_NONE)) TIDE_TRY(save(s, w->tensor));
    }
    return TIDE_OK;
}

/* Blocks whose value is not at their place any more go. */
static void sweep(shuttle *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->floor.blocks.count; i++) {
        tide__floor_block b = s->floor.blocks.data[i];
        if (b.tensor != TIDE_NONE && s->place[b.tensor] == b.offset) s->floor.blocks.data[kept++] = b;
    }
    s->floor.blocks.count = kept;
}

/* A read that is loaded and overwritten, but needed again, has its copy in the tier. */
static tide_status load_all(shuttle *s) {
    for (size_t i = 0; i < s->wants.count; i++) {
        const want *w = &s->wants.data[i];
        if (is_moved(s, w)) s->place[w->tensor] = NOWHERE;
    }
    sweep(s);
    for (size_t i = 0; i < s->wants.count; i++) {
        const want *w = &s->wants.data[i];
        bool loads = is_moved(s, w);
        if (w->is_read && !loads) continue;
        if (w->tensor != TIDE_NONE) s->place[w->tensor] = w->place;
        if (loads) TIDE_TRY(load(s, w->tensor));
        if (w->size)
            TIDE_TRY(tide__floor_insert(&s->floor, (tide__floor_block){w->place, w->size, w->tensor, 0, true}));
    }
    return TIDE_OK;
}

static tide_status commit(shuttle *s) {
    TIDE_TRY(save_all(s));
    return s->is_full ? TIDE_OK : load_all(s);
}

/* ---- an op ---- */

/* Heirs lie where the reads were. */
static void inherit(shuttle *s) {
    const tide__model *m = s->m;
    for (uint32_t i = m->read_at[s->slot]; i < m->read_at[s->slot + 1]; i++) {
        tide_id read = m->reads[i], heir = s->heir[read];
        if (heir == TIDE_NONE || s->place[read] == NOWHERE) continue;
        uint64_t place = s->place[heir] = s->place[read];
        s->place[read] = NOWHERE;
        if (s->size[read]) s->floor.blocks.data[tide__floor_at(&s->floor, place)].tensor = heir;
    }
}

/* In the order in which the schedule makes residencies. */
static tide_status note_run(shuttle *s) {
    const tide__model *m = s->m;
    uint64_t workspace = NOWHERE;
    for (size_t i = 0; i < s->wants.count; i++)
        if (s->wants.data[i].tensor == TIDE_NONE) workspace = s->wants.data[i].place;
    for (uint32_t i = m->write_at[s->slot]; i < m->write_at[s->slot + 1]; i++)
        TIDE_TRY(tide__vec_push(&s->offsets, s->place[m->writes[i]]));
    return workspace == NOWHERE ? TIDE_OK : tide__vec_push(&s->offsets, workspace);
}

static void forget_dead(shuttle *s) {
    const tide__model *m = s->m;
    for (uint32_t i = m->read_at[s->slot]; i < m->read_at[s->slot + 1]; i++)
        if (next_use(s, m->reads[i]) == TIDE_NONE) forget(s, m->reads[i]);
    for (uint32_t i = m->write_at[s->slot]; i < m->write_at[s->slot + 1]; i++)
        if (next_use(s, m->writes[i]) == TIDE_NONE) forget(s, m->writes[i]);
}

/* More blocks than one can look at for each op: the cheapest leave. */
static tide_status trim(shuttle *s) {
    if (s->floor.blocks.count <= MAX_BLOCKS) return TIDE_OK;
    for (size_t i = 0; i < s->floor.blocks.count; i++) price(s, &s->floor.blocks.data[i]);
    for (size_t surplus = s->floor.blocks.count - MAX_BLOCKS; surplus > 0; surplus--) {
        tide__floor_block *best = NULL;
        for (size_t i = 0; i < s->floor.blocks.count; i++) {
            tide__floor_block *b = &s->floor.blocks.data[i];
            bool may_go = s->place[b->tensor] != NOWHERE && (s->tier[b->tensor] != TIDE_NONE || !b->stays);
            if (may_go && (!best || b->cost < best->cost)) best = b;
        }
        if (!best) break;
        TIDE_TRY(save(s, best->tensor));
        s->place[best->tensor] = NOWHERE;
    }
    sweep(s);
    return TIDE_OK;
}

static tide_status run_op(shuttle *s) {
    TIDE_TRY(list_wants(s, false));
    TIDE_TRY(settle(s));
    if (s->is_full) return TIDE_OK;
    TIDE_TRY(commit(s));
    if (s->is_full) return TIDE_OK;
    inherit(s);
    TIDE_TRY(note_run(s));
    forget_dead(s);
    sweep(s);
    return trim(s);
}

/* ---- the end of the step ---- */

/* To the arena, beside what was wanted there before. */
static tide_status fetch(shuttle *s, tide_id t) {
    s->wants.count = 0;
    TIDE_TRY(want_read(s, t));
    if (s->place[t] != NOWHERE || s->wants.count == 0) return TIDE_OK;
    bool found;
    for (size_t i = 0; i < s->floor.blocks.count; i++) price(s, &s->floor.blocks.data[i]);
    TIDE_TRY(place_first(s, 1, &found));
    s->is_full = s->is_full || !found;
    return s->is_full ? TIDE_OK : commit(s);
}

/* What is carried goes to the tier where the next step starts with it; an input that is kept has to be in the arena; others
 * stay where they are. */
static tide_status end_value(shuttle *s, tide_id t) {
    bool is_carried = s->successor[t] != TIDE_NONE,
         is_idle = s->m->present[t] && s->m->use_at[t] == s->m->use_at[t + 1];
    if (!is_carried && !is_idle && !s->m->keep[t]) return TIDE_OK;
    if (s->m->client[t]) {
        TIDE_TRY(fetch(s, t));
        if (!is_carried) return TIDE_OK;
        s->tier[t] = TIDE_NONE;
    }
    if (is_carried && s->tier[t] == TIDE_NONE) {
        TIDE_TRY(save(s, t));
        s->wanted[t] = 0;
    }
    if (is_carried && s->tier[t] != s->tier[s->successor[t]]) s->is_full = true; /* both were there at the start */
    bool is_away = s->place[t] == NOWHERE && s->open[t] == TIDE_NONE;
    return is_away ? open_swap(s, t, TIDE_NONE) : TIDE_OK;
}

static tide_status end_step(shuttle *s) {
    s->slot = s->m->n_ops;
    for (tide_id t = 0; t < s->m->n_tensors && !s->is_full; t++) TIDE_TRY(end_value(s, t));
    return TIDE_OK;
}

/* ---- the whole ---- */

/* Everything starts in tiers. */
static void start_step(shuttle *s) {
    uint32_t client = tide_machine_find_tier(s->in->machine, TIDE_TIER_CLIENT);
    for (tide_id t = 0; t < s->m->n_tensors; t++) {
        if (s->m->client[t]) s->tier[t] = client;
        if (!s->m->present[t]) continue;
        s->tier[t] = tier_with_room(s, s->size[t]);
        if (s->tier[t] == TIDE_NONE)
            s->is_full = true;
        else
            s->room[s->tier[t]] -= s->size[t];
    }
}

static void find_carried(shuttle *s) {
    for (uint32_t i = 0; i < tide_program_carry_count(s->in->program); i++) {
        const tide_carry *c = tide_program_carry(s->in->program, i);
        s->is_carried_to[c->to] = true;
        s->successor[c->from] = c->to;
    }
}

static uint64_t unit_of(const shuttle *s) {
    const tide_machine *m = s->in->machine;
    uint64_t unit = m->align_bytes;
    uint32_t client = tide_machine_find_tier(m, TIDE_TIER_CLIENT);
    for (uint32_t i = 0; i < s->tiers.n; i++) unit = tide__max_u64(unit, m->tier[s->tiers.tier[i]].block_bytes);
    return client == TIDE_NONE ? unit : tide__max_u64(unit, m->tier[client].block_bytes);
}

static tide_status begin(shuttle *s) {
    size_t n = s->m->n_tensors + (size_t)1;
    tide__array(&s->arrays, s->size, n);
    tide__array_ones(&s->arrays, s->place, n);
    tide__array_ones(&s->arrays, s->tier, n);
    tide__array_ones(&s->arrays, s->open, n);
    tide__array(&s->arrays, s->next, n);
    tide__array_ones(&s->arrays, s->successor, n);
    tide__array(&s->arrays, s->is_carried_to, n);
    tide__array(&s->arrays, s->wanted, n);
    tide__array_ones(&s->arrays, s->heir, n);
    TIDE_TRY(tide__arrays_check(&s->arrays));
    for (tide_id t = 0; t < s->m->n_tensors; t++) s->size[t] = (s->m->size[t] + s->unit - 1) & ~(s->unit - 1);
    memcpy(s->next, s->m->use_at, s->m->n_tensors * sizeof *s->next);
    find_carried(s);
    start_step(s);
    return tide__workspaces_shrink(s->in, &s->decisions);
}

static void end(shuttle *s) {
    tide__arrays_free(&s->arrays);
    tide__vec_free(&s->floor.blocks);
    tide__vec_free(&s->draft.blocks);
    tide__vec_free(&s->wants);
    tide__vec_free(&s->offsets);
    tide__decisions_free(&s->decisions);
    tide__model_destroy(s->m);
}

static tide_status walk(shuttle *s) {
    for (; s->slot < s->m->n_ops && !s->is_full; s->slot++) TIDE_TRY(run_op(s));
    return s->is_full ? TIDE_OK : end_step(s);
}

static tide_status shuttle_through(const tide__policy_input *in, tide__tiers tiers, tide_plan **out) {
    shuttle s = {.in = in, .tiers = tiers};
    for (uint32_t i = 0; i < tiers.n; i++) s.room[tiers.tier[i]] = tide__tier_room(in, tiers.tier[i]);
    s.unit = unit_of(&s);
    s.floor.capacity = in->options->budgets.arena_bytes & ~(s.unit - 1);
    TIDE_TRY(tide__model_create(in, &s.m));
    tide_status status = begin(&s);
    if (status == TIDE_OK) status = walk(&s);
    if (status == TIDE_OK && !s.is_full)
        status = tide__evaluate_at(in, &s.decisions, s.offsets.data, s.offsets.count, out);
    end(&s);
    return status;
}

static bool fits(const tide__policy_input *in, const tide_plan *plan) {
    if (plan->arena_bytes > in->options->budgets.arena_bytes) return false;
    for (uint32_t t = 0; t < in->machine->n_tiers; t++)
        if (in->machine->tier[t].kind != TIDE_TIER_CLIENT && plan->tier_bytes[t] > tide__tier_room(in, t)) return false;
    return true;
}

/* TIDE_E_UNSUPPORTED: a value and the one that it is carried to need their slot at the same time. */
static tide_status try_tiers(const tide__policy_input *in, tide__tiers tiers, tide_plan **out) {
    tide_plan *plan = NULL;
    tide_status status = shuttle_through(in, tiers, &plan);
    if (status == TIDE_E_UNSUPPORTED) return TIDE_OK;
    if (status == TIDE_OK && plan && fits(in, plan)) {
        *out = plan;
        return TIDE_OK;
    }
    tide_plan_destroy(plan);
    return status;
}

/* Blocks of a disk make values larger, so it is used only where RAM alone has no room. */
tide_status tide__shuttle(const tide__policy_input *in, tide_plan **out) {
    tide__tiers all = tide__tiers_with_room(in), first = {.n = 1, .tier = {all.tier[0]}};
    *out = NULL;
    if (all.n > 0) TIDE_TRY(try_tiers(in, first, out));
    return *out || all.n < 2 ? TIDE_OK : try_tiers(in, all, out);
}
