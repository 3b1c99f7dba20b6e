/* See swap_tiers.h. Spreading is n log n: a tree over the slots knows the most bytes of a tier in a range of them. */
#include "plan/decide/swaps/swap_tiers.h"

#include <stdlib.h>
#include <string.h>

#include "base/arrays.h"
#include "base/size.h"
#include "plan/decide/swaps/swap_gaps.h"

/* When a tensor's copy is in its tier: slots, inclusive. first > last: never. */
typedef struct stay {
    uint32_t first, last;
} stay;

/* Over the slots: the most bytes of a tier in a range of them. */
typedef struct tree {
    uint64_t *most;  /* of the slots below a node, without what is added at its ancestors */
    uint64_t *added; /* to all of them */
    uint32_t n;      /* slots */
} tree;

typedef struct candidate {
    tide_id value, partner; /* partner: what is carried to it; TIDE_NONE */
    bool chosen;
    uint64_t away_ns;
} candidate;

typedef struct tide__swaps_rooms {
    uint64_t bytes[TIDE_MACHINE_MAX_TIERS]; /* per tier */
    bool unbounded;                         /* for the time between gather and spread */
    tide_id *movers;                        /* tensors that have a gap, ascending */
    uint32_t n_movers;
    stay *stays;                              /* per tensor */
    uint64_t *moved_bytes;                    /* per tensor, while it has a stay */
    uint32_t *tier;                           /* per tensor, likewise */
    tide_id *value;                           /* per tensor: what it shares its tier with */
    bool *full;                               /* per tensor: found no room */
    tide_id *next;                            /* per tensor: the next that comes in the same slot */
    tide_id *comes;                           /* per slot: the first that does; TIDE_NONE */
    uint64_t *leaves[TIDE_MACHINE_MAX_TIERS]; /* per slot: bytes that left the tier before it; NULL: not such a tier */
    tree tree;
    candidate *list;  /* as many as tensors */
    bool *has_chosen; /* per tensor that is a value */
} rooms;

/* ---- life ---- */

static bool is_moving(const tide__swaps *s, const tide__swap_gap *g) {
    return s->in->machine->tier[g->tier].kind != TIDE_TIER_CLIENT;
}

/* All values that could move, at once. */
static uint64_t most_bytes(const tide__swaps *s, bool *seen) {
    uint64_t sum = 0;
    for (size_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        tide_id ends[] = {g->tensor, g->head};
        for (int k = 0; k < 2 && is_moving(s, g); k++) {
            if (ends[k] == TIDE_NONE || seen[ends[k]]) continue;
            seen[ends[k]] = true;
            sum = tide__add_capped(sum, g->moved_bytes);
        }
    }
    return sum;
}

static tide_status find_limited(tide__swaps *s, uint32_t n_tensors) {
    bool *seen = calloc(n_tensors + (size_t)1, sizeof *seen);
    if (!seen) return tide__fail_memory();
    s->limited = s->tiers.n > 0 && most_bytes(s, seen) > tide__tier_room(s->in, s->tiers.tier[0]);
    free(seen);
    return TIDE_OK;
}

static void list_movers(const tide__swaps *s, rooms *r, uint32_t n_tensors) {
    for (tide_id t = 0; t < n_tensors; t++) r->stays[t] = (stay){.first = TIDE_NONE, .last = 0};
    for (size_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        if (!is_moving(s, g)) continue;
        r->stays[g->tensor].first = 0;
        if (g->head != TIDE_NONE) r->stays[g->head].first = 0;
    }
    for (tide_id t = 0; t < n_tensors; t++)
        if (r->stays[t].first == 0) r->movers[r->n_movers++] = t;
}

static tide_status fill(tide__swaps *s, rooms *r, uint32_t n_tensors) {
    tide__arrays *owner = &s->arrays;
    size_t tensors = n_tensors + (size_t)1, slots = s->n_ops + (size_t)2;
    tide__array(owner, r->movers, tensors);
    tide__array(owner, r->stays, tensors);
    tide__array(owner, r->moved_bytes, tensors);
    tide__array(owner, r->tier, tensors);
    tide__array(owner, r->value, tensors);
    tide__array(owner, r->full, tensors);
    tide__array(owner, r->next, tensors);
    tide__array(owner, r->comes, slots);
    tide__array(owner, r->list, tensors);
    tide__array(owner, r->has_chosen, tensors);
    tide__array(owner, r->tree.most, 4 * slots);
    tide__array(owner, r->tree.added, 4 * slots);
    r->tree.n = s->n_ops + 1;
    for (uint32_t i = 0; i < s->tiers.n; i++) tide__array(owner, r->leaves[s->tiers.tier[i]], slots);
    TIDE_TRY(tide__arrays_check(owner));
    for (uint32_t i = 0; i < s->tiers.n; i++) r->bytes[s->tiers.tier[i]] = tide__tier_room(s->in, s->tiers.tier[i]);
    for (tide_id t = 0; t < n_tensors; t++) {
        r->value[t] = t;
        r->tier[t] = s->tiers.tier[0];
    }
    for (size_t i = 0; i < s->gaps.count; i++)
        if (s->gaps.data[i].head != TIDE_NONE) r->value[s->gaps.data[i].tensor] = s->gaps.data[i].head;
    list_movers(s, r, n_tensors);
    return TIDE_OK;
}

tide_status tide__swap_rooms_create(tide__swaps *s) {
    uint32_t n = tide_program_tensor_count(s->in->program);
    TIDE_TRY(find_limited(s, n));
    if (!s->limited) return TIDE_OK;
    tide__array(&s->arrays, s->rooms, 1);
    return s->rooms ? fill(s, s->rooms, n) : tide__fail_memory();
}

/* ---- stays ---- */

static void forget_stays(const tide__swaps *s) {
    const rooms *r = s->rooms;
    for (uint32_t i = 0; i < r->n_movers; i++) r->stays[r->movers[i]] = (stay){.first = TIDE_NONE, .last = 0};
}

/* Either way round: a gap that is too short for its transfers would be loaded before it is saved. */
static void note(rooms *r, const tide__swap_gap *g, tide_id tensor, uint32_t a, uint32_t b) {
    stay *x = &r->stays[tensor];
    uint32_t first = a < b ? a : b, last = a < b ? b : a;
    r->tier[tensor] = g->tier;
    r->moved_bytes[tensor] = g->moved_bytes;
    if (first < x->first) x->first = first;
    if (last > x->last) x->last = last;
}

/* `save`: the slot of its SAVE, TIDE_NONE: the tier has it, by an earlier one or from the start. */
static void note_gap(const tide__swaps *s, const tide__swap_gap *g, bool at_start, uint32_t save, uint32_t load) {
    rooms *r = s->rooms;
    bool own = g->clean || g->head == g->tensor; /* carried to itself: it is there all the time */
    uint32_t end = s->n_ops, from = own || at_start ? 0 : save != TIDE_NONE ? save : load;
    if (g->head == TIDE_NONE || own) {
        note(r, g, g->tensor, from, own ? end : load);
        return;
    }
    note(r, g, g->tensor, save == TIDE_NONE ? end : save, end);
    note(r, g, g->head, 0, g->to == TIDE_NONE ? end : load);
}

static void note_chosen(const tide__swaps *s, const bool *chosen, uint32_t i) {
    const tide__swap_gap *g = &s->gaps.data[i];
    bool at_start = g->across != TIDE_NONE && chosen[g->across];
    note_gap(s, g, at_start, s->save_slot[i], g->to == TIDE_NONE ? s->n_ops : s->load_slot[i]);
}

/* ---- refusing ---- */

static void list_comings(const tide__swaps *s) {
    rooms *r = s->rooms;
    memset(r->comes, 0xff, (s->n_ops + (size_t)1) * sizeof *r->comes);
    for (uint32_t i = 0; i < s->tiers.n; i++)
        memset(r->leaves[s->tiers.tier[i]], 0, (s->n_ops + (size_t)2) * sizeof **r->leaves);
    for (uint32_t i = r->n_movers; i-- > 0;) {
        tide_id t = r->movers[i];
        r->full[t] = false;
        if (r->stays[t].first > r->stays[t].last) continue;
        r->next[t] = r->comes[r->stays[t].first];
        r->comes[r->stays[t].first] = t;
    }
}

/* First come, first served. */
static void fill_tiers(const tide__swaps *s) {
    rooms *r = s->rooms;
    uint64_t left[TIDE_MACHINE_MAX_TIERS];
    memcpy(left, r->bytes, sizeof left);
    for (uint32_t k = 0; k <= s->n_ops; k++) {
        for (uint32_t i = 0; i < s->tiers.n; i++) left[s->tiers.tier[i]] += r->leaves[s->tiers.tier[i]][k];
        for (tide_id t = r->comes[k]; t != TIDE_NONE; t = r->next[t]) {
            uint64_t *room = &left[r->tier[t]];
            r->full[t] = r->moved_bytes[t] > *room;
            if (r->full[t]) continue;
            *room -= r->moved_bytes[t];
            r->leaves[r->tier[t]][r->stays[t].last + 1] += r->moved_bytes[t];
        }
    }
}

/* Even if they were there at the same time. */
static bool has_room_for_all(const tide__swaps *s, const bool *chosen) {
    uint64_t bytes[TIDE_MACHINE_MAX_TIERS] = {0};
    for (size_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        uint64_t both = g->head == TIDE_NONE ? g->moved_bytes : tide__add_capped(g->moved_bytes, g->moved_bytes);
        if (chosen[i]) bytes[g->tier] = tide__add_capped(bytes[g->tier], both);
    }
    for (uint32_t i = 0; i < s->tiers.n; i++)
        if (bytes[s->tiers.tier[i]] > s->rooms->bytes[s->tiers.tier[i]]) return false;
    return true;
}

void tide__swaps_refuse(tide__swaps *s, const bool *chosen) {
    const rooms *r = s->rooms;
    s->n_refused = 0;
    if (!s->limited || r->unbounded) return;
    if (has_room_for_all(s, chosen)) {
        memset(s->refused, 0, s->gaps.count * sizeof *s->refused);
        return;
    }
    forget_stays(s);
    for (uint32_t i = 0; i < s->gaps.count; i++)
        if (chosen[i] && is_moving(s, &s->gaps.data[i])) note_chosen(s, chosen, i);
    list_comings(s);
    fill_tiers(s);
    for (uint32_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        bool full = is_moving(s, g) && (r->full[g->tensor] || (g->head != TIDE_NONE && r->full[g->head]));
        s->refused[i] = chosen[i] && full;
        s->n_refused += s->refused[i];
    }
}

/* ---- the most bytes of a tier in a range of slots ---- */

/* One node and the slots [from, to) below it. */
typedef struct node {
    uint32_t at, from, to;
} node;

static node left_of(node x) { return (node){2 * x.at + 1, x.from, x.from + (x.to - x.from) / 2}; }
static node right_of(node x) { return (node){2 * x.at + 2, x.from + (x.to - x.from) / 2, x.to}; }

static uint64_t tree_most(const tree *t, node x, stay range) {
    if (range.last < x.from || range.first >= x.to) return 0;
    if (range.first <= x.from && x.to <= range.last + 1) return t->most[x.at];
    uint64_t left = tree_most(t, left_of(x), range), right = tree_most(t, right_of(x), range);
    return t->added[x.at] + tide__max_u64(left, right);
}

static void tree_add(tree *t, node x, stay range, uint64_t bytes) {
    if (range.last < x.from || range.first >= x.to) return;
    if (range.first <= x.from && x.to <= range.last + 1) {
        t->most[x.at] += bytes;
        t->added[x.at] += bytes;
        return;
    }
    tree_add(t, left_of(x), range, bytes);
    tree_add(t, right_of(x), range, bytes);
    t->most[x.at] = t->added[x.at] + tide__max_u64(t->most[left_of(x).at], t->most[right_of(x).at]);
}

/* ---- spreading ---- */

static int by_merit(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->chosen != y->chosen) return x->chosen ? -1 : 1;
    if (x->away_ns != y->away_ns) return x->away_ns < y->away_ns ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

static uint64_t stay_ns(const tide__swaps *s, tide_id tensor) {
    stay x = tensor == TIDE_NONE ? (stay){1, 0} : s->rooms->stays[tensor];
    return x.first > x.last ? 0 : s->slot_ns[x.last] - s->slot_ns[x.first];
}

static void note_all_chosen(const tide__swaps *s, const bool *chosen) {
    rooms *r = s->rooms;
    forget_stays(s);
    memset(r->has_chosen, 0, tide_program_tensor_count(s->in->program) * sizeof *r->has_chosen);
    for (uint32_t i = 0; i < s->gaps.count; i++) {
        if (!chosen[i] || !is_moving(s, &s->gaps.data[i])) continue;
        note_chosen(s, chosen, i);
        r->has_chosen[r->value[s->gaps.data[i].tensor]] = true;
    }
}

/* Of gaps that are not chosen, and whose value has no other that is, all that they could be. */
static void note_others(const tide__swaps *s, const bool *chosen) {
    for (uint32_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        if (chosen[i] || !is_moving(s, g) || s->rooms->has_chosen[s->rooms->value[g->tensor]]) continue;
        note_gap(s, g, false, g->from, g->to == TIDE_NONE ? s->n_ops : g->to);
    }
}

static bool has_stay(const rooms *r, tide_id tensor) { return r->stays[tensor].first <= r->stays[tensor].last; }

/* Of the stays that are noted; returns how many there are. They come by value. */
static size_t list_candidates(const tide__swaps *s) {
    rooms *r = s->rooms;
    size_t n = 0;
    tide_id *partner = r->next; /* not in use here */
    for (uint32_t i = 0; i < r->n_movers; i++) partner[r->movers[i]] = TIDE_NONE;
    for (uint32_t i = 0; i < r->n_movers; i++) {
        tide_id t = r->movers[i];
        if (r->value[t] != t && has_stay(r, t)) partner[r->value[t]] = t;
    }
    for (uint32_t i = 0; i < r->n_movers; i++) {
        tide_id t = r->movers[i];
        if (r->value[t] != t || (!has_stay(r, t) && partner[t] == TIDE_NONE)) continue;
        r->list[n++] = (candidate){t, partner[t], r->has_chosen[t], stay_ns(s, t) + stay_ns(s, partner[t])};
    }
    return n;
}

static bool fits(const rooms *r, tide_id tensor, uint64_t room, uint64_t bytes) {
    if (tensor == TIDE_NONE || !has_stay(r, tensor)) return true;
    return bytes <= room && tree_most(&r->tree, (node){0, 0, r->tree.n}, r->stays[tensor]) <= room - bytes;
}

static void take(rooms *r, tide_id tensor, uint64_t bytes) {
    if (tensor != TIDE_NONE && has_stay(r, tensor))
        tree_add(&r->tree, (node){0, 0, r->tree.n}, r->stays[tensor], bytes);
}

/* True, and its bytes are taken, if the tier has room for it. */
static bool admit(const tide__swaps *s, uint32_t tier, const candidate *c) {
    rooms *r = s->rooms;
    uint64_t bytes, room = r->bytes[tier];
    if (!tide__align_up(tide_program_tensor(s->in->program, c->value)->size_bytes,
                        s->in->machine->tier[tier].block_bytes, &bytes))
        return false;
    if (!fits(r, c->value, room, bytes) || !fits(r, c->partner, room, bytes)) return false;
    take(r, c->value, bytes);
    take(r, c->partner, bytes);
    return true;
}

static void empty_tree(tree *t) {
    memset(t->most, 0, 4 * (size_t)t->n * sizeof *t->most);
    memset(t->added, 0, 4 * (size_t)t->n * sizeof *t->added);
}

/* Those of the list that fit get the tier; the others stay on it, in their order. Returns how many do. */
static size_t fill_tier(const tide__swaps *s, uint32_t tier, size_t n) {
    rooms *r = s->rooms;
    size_t left = 0;
    empty_tree(&r->tree);
    for (size_t i = 0; i < n; i++) {
        candidate c = r->list[i];
        r->tier[c.value] = tier;
        if (!admit(s, tier, &c)) r->list[left++] = c;
    }
    return left;
}

static tide_status set_tiers(tide__swaps *s) {
    for (size_t i = 0; i < s->gaps.count; i++) {
        tide__swap_gap *g = &s->gaps.data[i];
        if (is_moving(s, g))
            TIDE_TRY(tide__swap_gap_to_tier(s->in->machine, s->rooms->tier[s->rooms->value[g->tensor]], g));
    }
    return tide__swaps_reset_orders(s);
}

tide_status tide__swaps_gather(tide__swaps *s) {
    uint32_t n = tide_program_tensor_count(s->in->program);
    for (tide_id t = 0; t < n; t++) s->rooms->tier[t] = s->tiers.tier[0];
    memset(s->refused, 0, s->gaps.count * sizeof *s->refused);
    s->rooms->unbounded = true;
    return set_tiers(s);
}

tide_status tide__swaps_spread(tide__swaps *s, const bool *chosen) {
    note_all_chosen(s, chosen);
    note_others(s, chosen);
    size_t n = list_candidates(s);
    qsort(s->rooms->list, n, sizeof *s->rooms->list, by_merit);
    for (uint32_t i = 0; i < s->tiers.n && n > 0; i++) n = fill_tier(s, s->tiers.tier[i], n);
    s->rooms->unbounded = false;
    s->spread = true;
    return set_tiers(s);
}

/* ---- admitting ---- */

/* The list by the order of the gaps; what is in none of them comes first. */
static void sort_by_gaps(const tide__swaps *s, size_t n, const uint32_t *order, size_t n_order) {
    rooms *r = s->rooms;
    for (size_t i = 0; i < n; i++) r->list[i].away_ns = 0;
    uint32_t *at = r->next; /* per value: its place on the list */
    for (size_t i = 0; i < n; i++) at[r->list[i].value] = (uint32_t)i;
    for (size_t i = n_order; i-- > 0;) {
        const tide__swap_gap *g = &s->gaps.data[order[i]];
        tide_id value = r->value[g->tensor];
        if (is_moving(s, g) && r->has_chosen[value]) r->list[at[value]].away_ns = i + 1;
    }
    qsort(r->list, n, sizeof *r->list, by_merit);
}

/* What a tier has no room for is not admitted, or is left to the next one. True if something was. */
static bool admit_to(const tide__swaps *s, uint32_t i, size_t n, bool falls) {
    rooms *r = s->rooms;
    uint32_t tier = s->tiers.tier[i];
    bool fell = false;
    empty_tree(&r->tree);
    for (size_t k = 0; k < n; k++) {
        const candidate *c = &r->list[k];
        if (r->tier[c->value] != tier || admit(s, tier, c)) continue;
        r->has_chosen[c->value] = falls && i + 1 < s->tiers.n;
        if (!r->has_chosen[c->value]) continue;
        r->tier[c->value] = s->tiers.tier[i + 1];
        fell = true;
    }
    return fell;
}

static bool admit_all(tide__swaps *s, const uint32_t *order, size_t n_order, bool falls, bool *chosen) {
    rooms *r = s->rooms;
    bool fell = false;
    note_all_chosen(s, chosen);
    size_t n = list_candidates(s);
    sort_by_gaps(s, n, order, n_order);
    for (size_t i = 0; i < s->gaps.count; i++) r->tier[r->value[s->gaps.data[i].tensor]] = s->gaps.data[i].tier;
    for (uint32_t i = 0; i < s->tiers.n; i++) fell = admit_to(s, i, n, falls) || fell;
    for (size_t i = 0; i < s->gaps.count; i++) {
        const tide__swap_gap *g = &s->gaps.data[i];
        if (is_moving(s, g)) chosen[i] = chosen[i] && r->has_chosen[r->value[g->tensor]];
    }
    return fell;
}

static void evaluate_unbounded(tide__swaps *s, const bool *chosen, uint64_t target_bytes) {
    s->rooms->unbounded = true;
    memset(s->refused, 0, s->gaps.count * sizeof *s->refused);
    (void)tide__swaps_evaluate(s, chosen, target_bytes);
    s->rooms->unbounded = false;
}

void tide__swaps_admit(tide__swaps *s, const uint32_t *order, size_t n_order, uint64_t target_bytes, bool *chosen) {
    evaluate_unbounded(s, chosen, target_bytes);
    (void)admit_all(s, order, n_order, false, chosen);
}

tide_status tide__swaps_fall_through(tide__swaps *s, const uint32_t *order, size_t n_order, uint64_t target_bytes,
                                     bool *chosen) {
    evaluate_unbounded(s, chosen, target_bytes);
    return admit_all(s, order, n_order, true, chosen) ? set_tiers(s) : TIDE_OK;
}
