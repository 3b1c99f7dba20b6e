/* See exact_state.h. The trail and the sets grow as a run goes deeper, up to a bound; all else is taken at once. */
#include "plan/place/exact_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/place/exact.h"

#define NONE UINT32_MAX

/* ---- reasons: sets of levels ---- */

static uint64_t *set_at(const tide__place_exact_state *s, uint32_t set) { return s->sets + set * s->n_words; }

/* In groups of words that compilers turn into a few wide instructions: most of the search's time is spent here. */
enum { GROUP = 4 };

static void unite(const tide__place_exact_state *s, uint64_t *restrict into, uint32_t set) {
    const uint64_t *restrict from = set_at(s, set);
    for (size_t w = 0; w < s->n_words; w += GROUP)
        for (size_t k = 0; k < GROUP; k++) into[w + k] |= from[w + k];
}

static void copy_set(const tide__place_exact_state *s, uint64_t *to, const uint64_t *from) {
    memcpy(to, from, s->n_words * sizeof *to);
}

static uint32_t push_copy(tide__place_exact_state *s, const uint64_t *from) {
    copy_set(s, set_at(s, (uint32_t)s->n_sets), from);
    return (uint32_t)s->n_sets++;
}

static void add_level(uint64_t *set, uint32_t level) { set[level / 64] |= UINT64_C(1) << level % 64; }

static void clear_conflict(tide__place_exact_state *s) { memset(s->conflict, 0, s->n_words * sizeof *s->conflict); }

bool tide__place_exact_conflict_has(const tide__place_exact_state *s, uint32_t level) {
    return s->conflict[level / 64] >> level % 64 & 1;
}

void tide__place_exact_conflict_drop(tide__place_exact_state *s, uint32_t level) {
    s->conflict[level / 64] &= ~(UINT64_C(1) << level % 64);
}

/* A set made of placed_reason alone is closed: where it has the level of an item, it has all of its placed_reason. So
 * most items are in it already after a few late ones. */
static void unite_placed(const tide__place_exact_state *s, uint64_t *closed, uint32_t item) {
    uint32_t level = s->level[item];
    if (!(closed[level / 64] >> level % 64 & 1)) unite(s, closed, s->placed_reason[item]);
}

/* The oldest reason for "item k is not at `below` or lower": the older, the fewer late levels are in it. Follows the
 * long step back where that is not too far. */
static uint32_t why_above(const tide__place_exact_state *s, uint32_t k, uint64_t below) {
    const tide__place_exact_bound *bound = &s->bounds[k];
    for (;;) {
        const tide__place_exact_bound *further = bound->jump == NONE ? NULL : &s->trail[bound->jump].bound;
        const tide__place_exact_bound *before = bound->previous == NONE ? NULL : &s->trail[bound->previous].bound;
        if (further && further->earliest > below)
            bound = further;
        else if (before && before->earliest > below)
            bound = before;
        else
            return bound->earliest_reason;
    }
}

/* ---- the trail ---- */

/* `unit` bytes each; what is grown is half as large again, so that few searches ever take all they might. */
static bool grow(void **entries, size_t unit, size_t need, size_t most, size_t *room) {
    if (need <= *room) return true;
    if (need > most) return false;
    size_t wanted = tide__max_u64(need, tide__min_u64(*room + *room / 2, most));
    void *moved = realloc(*entries, wanted * unit);
    if (!moved) return false;
    *entries = moved;
    *room = wanted;
    return true;
}

/* A decision changes each bound at most three times and adds a few sets per item. */
bool tide__place_exact_make_room(tide__place_exact_state *s) {
    size_t changes = s->n_trail + 4 * (size_t)s->n + 4, sets = s->n_sets + s->n + 4;
    void *trail = s->trail, *all = s->sets;
    bool has = grow(&trail, sizeof *s->trail, changes, 256 * (size_t)s->n + 65536, &s->trail_room);
    s->trail = trail;
    has = has && grow(&all, s->n_words * sizeof *s->sets, sets, 48 * (size_t)s->n + 4096, &s->sets_room);
    s->sets = all;
    return has;
}

tide__place_exact_mark tide__place_exact_here(const tide__place_exact_state *s) {
    return (tide__place_exact_mark){s->n_trail, s->n_sets};
}

/* Only the ends are marked; check_dirty sums them up. */
static void mark_dirty(tide__place_exact_state *s, uint32_t item) {
    const tide__place_item *it = &s->items[item];
    s->dirty[it->begin]++;
    s->dirty[it->end]--;
    s->dirty[it->begin2]++;
    s->dirty[it->end2]--;
}

/* Steps back of doubling length, as in a skew-binary list: a walk back takes a logarithm of its length. */
static void link_back(const tide__place_exact_state *s, tide__place_exact_bound *bound,
                      const tide__place_exact_bound *before) {
    const tide__place_exact_bound *far = before->jump == NONE ? NULL : &s->trail[before->jump].bound;
    bool doubles =
        far && far->jump != NONE && before->depth - far->depth == far->depth - s->trail[far->jump].bound.depth;
    bound->previous = (uint32_t)s->n_trail;
    bound->jump = doubles ? far->jump : bound->previous;
    bound->depth = before->depth + 1;
}

static void set_bound(tide__place_exact_state *s, uint32_t item, tide__place_exact_bound bound) {
    s->trail[s->n_trail] = (tide__place_exact_change){item, false, s->bounds[item]};
    if (bound.earliest != s->bounds[item].earliest) {
        mark_dirty(s, item);
        link_back(s, &bound, &s->bounds[item]);
    }
    s->n_trail++;
    s->bounds[item] = bound;
}

/* Where slot_at keeps the item's place in the list of a slot. */
static uint32_t *place_in_list(const tide__place_exact_state *s, uint32_t item, uint32_t slot) {
    const tide__place_item *it = &s->items[item];
    uint32_t nth = slot < it->end ? slot - it->begin : it->end - it->begin + slot - it->begin2;
    return &s->slot_at[s->first_slot[item] + nth];
}

/* Moves the item behind the open ones of its slots. Undone in reverse order it just has to be counted in again. */
static void take_out(tide__place_exact_state *s, uint32_t item) {
    const tide__place_item *it = &s->items[item];
    s->placed[item] = true;
    s->trail[s->n_trail++] = (tide__place_exact_change){.item = item, .was_placed = true};
    for (uint32_t t = it->begin; t != TIDE__PLACE_NO_SLOT; t = tide__place_next_slot(it, t)) {
        uint32_t *list = s->slot_items + s->first_in_slot[t], *at = place_in_list(s, item, t);
        uint32_t last = --s->n_open[t], other = list[last];
        list[*at] = other;
        *place_in_list(s, other, t) = *at;
        list[last] = item;
        *at = last;
        s->open_load[t] -= it->size;
    }
}

static void put_back(tide__place_exact_state *s, uint32_t item) {
    const tide__place_item *it = &s->items[item];
    s->placed[item] = false;
    for (uint32_t t = it->begin; t != TIDE__PLACE_NO_SLOT; t = tide__place_next_slot(it, t)) {
        s->n_open[t]++;
        s->open_load[t] += it->size;
    }
}

void tide__place_exact_undo(tide__place_exact_state *s, tide__place_exact_mark mark) {
    while (s->n_trail > mark.n_trail) {
        const tide__place_exact_change *change = &s->trail[--s->n_trail];
        if (change->was_placed)
            put_back(s, change->item);
        else
            s->bounds[change->item] = change->bound;
    }
    s->n_sets = mark.n_sets;
}

/* ---- what follows from a change ---- */

/* The open items of a slot will lie above each other, so the lowest of them cannot be above capacity - load. */
static bool slot_can_go_on(const tide__place_exact_state *s, uint32_t slot) {
    const uint32_t *list = s->slot_items + s->first_in_slot[slot];
    uint64_t most = s->capacity - s->open_load[slot];
    for (uint32_t k = 0; k < s->n_open[slot]; k++)
        if (s->bounds[list[k]].earliest <= most) return true;
    return s->n_open[slot] == 0;
}

static void explain_slot(tide__place_exact_state *s, uint32_t slot) {
    s->failures[slot]++;
    const uint32_t *list = s->slot_items + s->first_in_slot[slot];
    clear_conflict(s);
    for (uint32_t k = 0; k < s->n_open[slot]; k++)
        unite(s, s->conflict, why_above(s, list[k], s->capacity - s->open_load[slot]));
}

/* Leaves no slot marked. */
static bool check_dirty(tide__place_exact_state *s) {
    int32_t marks = 0;
    uint32_t failed = NONE;
    for (uint32_t t = 0; t < s->n_slots; t++) {
        marks += s->dirty[t];
        s->dirty[t] = 0;
        if (marks > 0 && failed == NONE && !slot_can_go_on(s, t)) failed = t;
    }
    s->dirty[s->n_slots] = 0;
    if (failed != NONE) explain_slot(s, failed);
    return failed == NONE;
}

/* When a step fails before its slots are checked. */
static bool fail_step(tide__place_exact_state *s) {
    memset(s->dirty, 0, (s->n_slots + 1) * sizeof *s->dirty);
    return false;
}

/* An item that waits for something under it: which of its neighbours could that be, and where does it end up then?
 * Only what can still be below its top will ever raise it. */
typedef struct raise {
    uint64_t top;      /* floor + size of the item */
    uint64_t earliest; /* above the lowest top of the neighbours that can raise it; UINT64_MAX: there is none */
} raise;

static uint64_t aligned(const tide__place_item *it, uint64_t at) { return (at + it->align - 1) & ~(it->align - 1); }

static raise find_raise(const tide__place_exact_state *s, uint32_t item) {
    raise r = {s->bounds[item].floor + s->items[item].size, UINT64_MAX};
    for (uint32_t a = s->first_neighbour[item]; a < s->first_neighbour[item + 1]; a++) {
        uint32_t k = s->neighbours[a];
        if (!s->placed[k] && s->bounds[k].earliest < r.top)
            r.earliest = tide__min_u64(r.earliest, s->bounds[k].earliest + s->items[k].size);
    }
    if (r.earliest != UINT64_MAX) r.earliest = aligned(&s->items[item], r.earliest);
    return r;
}

/* Why one open neighbour does not let the item, aligned to `align`, come below r->earliest. */
static uint32_t why_no_lower(const tide__place_exact_state *s, uint32_t k, uint64_t align, const raise *r) {
    if (s->bounds[k].earliest >= r->top) return why_above(s, k, r->top - 1);
    if (s->items[k].size + align > r->earliest) return TIDE__PLACE_EXACT_NO_REASON;
    return why_above(s, k, r->earliest - s->items[k].size - align);
}

/* Items that were lifted together share a reason, and often follow each other. */
static uint32_t explain_raise(tide__place_exact_state *s, uint32_t item, const raise *r) {
    uint32_t reason = push_copy(s, set_at(s, s->bounds[item].wait_reason)), last = TIDE__PLACE_EXACT_NO_REASON;
    uint64_t *set = set_at(s, reason);
    memset(s->closed, 0, s->n_words * sizeof *s->closed);
    for (uint32_t a = s->first_neighbour[item]; a < s->first_neighbour[item + 1]; a++) {
        uint32_t k = s->neighbours[a];
        if (s->placed[k]) {
            unite_placed(s, s->closed, k);
            continue;
        }
        uint32_t why = why_no_lower(s, k, s->items[item].align, r);
        if (why != last) unite(s, set, why);
        last = why;
    }
    for (size_t w = 0; w < s->n_words; w++) set[w] |= s->closed[w];
    return reason;
}

static bool raise_waiting(tide__place_exact_state *s, uint32_t item) {
    raise r = find_raise(s, item);
    if (r.earliest <= s->bounds[item].earliest) return true;
    uint32_t reason = explain_raise(s, item, &r);
    if (r.earliest > s->capacity - s->items[item].size) {
        copy_set(s, s->conflict, set_at(s, reason));
        return false;
    }
    tide__place_exact_bound bound = s->bounds[item];
    bound.earliest = r.earliest;
    bound.earliest_reason = reason;
    set_bound(s, item, bound);
    return true;
}

static bool is_fixed(const tide__place_item *it) { return it->fixed != TIDE__PLACE_FREE; }

static bool lift(tide__place_exact_state *s, uint32_t j, uint64_t top, uint32_t reason) {
    tide__place_exact_bound bound = s->bounds[j];
    if (bound.floor >= top) return true;
    uint64_t at = aligned(&s->items[j], top);
    if (is_fixed(&s->items[j]) || at + s->items[j].size > s->capacity) {
        copy_set(s, s->conflict, set_at(s, reason));
        return false;
    }
    if (at > bound.earliest) bound.earliest = at, bound.earliest_reason = reason;
    bound.floor = at;
    bound.floor_reason = reason;
    bound.waits = false;
    bound.wait_reason = TIDE__PLACE_EXACT_NO_REASON;
    set_bound(s, j, bound);
    return true;
}

/* Directly on each other they can be swapped, and nothing else changes. */
static bool are_twins(const tide__place_item *a, const tide__place_item *b) {
    return a->begin == b->begin && a->end == b->end && a->begin2 == b->begin2 && a->end2 == b->end2 &&
           a->align == b->align && ((a->size | b->size) & (a->align - 1)) == 0 && !is_fixed(a) && !is_fixed(b);
}

/* Of twins that lie directly on each other, the first by rank is below. So a better ranked one must not rest on the
 * one that was just placed. */
static bool part_twins(tide__place_exact_state *s, uint32_t item) {
    for (uint32_t a = s->first_neighbour[item]; a < s->first_neighbour[item + 1]; a++) {
        uint32_t j = s->neighbours[a];
        if (s->placed[j] || s->rank[j] > s->rank[item] || !are_twins(&s->items[j], &s->items[item])) continue;
        tide__place_exact_bound bound = s->bounds[j];
        bound.waits = true;
        bound.wait_reason = s->rests_reason[item];
        set_bound(s, j, bound);
        if (!raise_waiting(s, j)) return false;
    }
    return true;
}

/* ---- decisions ---- */

static void explain_placed(tide__place_exact_state *s, uint32_t item, uint32_t level) {
    s->rests_reason[item] = push_copy(s, set_at(s, s->bounds[item].floor_reason));
    add_level(set_at(s, s->rests_reason[item]), level);
    s->placed_reason[item] = push_copy(s, set_at(s, TIDE__PLACE_EXACT_NO_REASON));
    uint64_t *set = set_at(s, s->placed_reason[item]);
    add_level(set, level);
    s->level[item] = level;
    for (uint32_t a = s->first_neighbour[item]; a < s->first_neighbour[item + 1]; a++)
        if (s->placed[s->neighbours[a]]) unite_placed(s, set, s->neighbours[a]);
}

bool tide__place_exact_place(tide__place_exact_state *s, uint32_t item, uint32_t level) {
    s->offsets[item] = s->bounds[item].floor;
    uint64_t top = s->bounds[item].floor + s->items[item].size;
    explain_placed(s, item, level);
    take_out(s, item);
    mark_dirty(s, item);
    for (uint32_t a = s->first_neighbour[item]; a < s->first_neighbour[item + 1]; a++) {
        uint32_t j = s->neighbours[a];
        if (!s->placed[j] && !lift(s, j, top, s->rests_reason[item])) return fail_step(s);
    }
    return part_twins(s, item) ? check_dirty(s) : fail_step(s);
}

/* A fixed item lifts its neighbours because none of them can end at or below its offset: that is part of any failure
 * after it. (One that waits explains its neighbours when it is raised.) */
static void explain_fixed(tide__place_exact_state *s, uint32_t item) {
    uint64_t at = s->items[item].fixed;
    for (uint32_t a = s->first_neighbour[item]; a < s->first_neighbour[item + 1]; a++) {
        uint32_t k = s->neighbours[a];
        if (!s->placed[k] && s->items[k].size <= at) unite(s, s->conflict, why_above(s, k, at - s->items[k].size));
    }
}

bool tide__place_exact_wait(tide__place_exact_state *s, uint32_t item) {
    if (is_fixed(&s->items[item])) {
        explain_fixed(s, item);
        return false;
    }
    tide__place_exact_bound bound = s->bounds[item];
    bound.waits = true;
    bound.wait_reason = push_copy(s, s->conflict);
    set_bound(s, item, bound);
    return raise_waiting(s, item) ? check_dirty(s) : fail_step(s);
}

/* The item and all waiting items that might raise it one through the other; around them, items that are placed or
 * known to be too high. Nothing else is part of the failure. */
void tide__place_exact_explain_stuck(tide__place_exact_state *s, uint32_t item) {
    uint64_t top = s->bounds[item].floor + s->items[item].size;
    uint32_t n_queue = 0;
    s->seen_stamp++;
    s->seen[item] = s->seen_stamp;
    s->queue[n_queue++] = item;
    clear_conflict(s);
    for (uint32_t head = 0; head < n_queue; head++) {
        uint32_t j = s->queue[head];
        unite(s, s->conflict, s->bounds[j].wait_reason);
        for (uint32_t a = s->first_neighbour[j]; a < s->first_neighbour[j + 1]; a++) {
            uint32_t k = s->neighbours[a];
            if (s->placed[k]) {
                unite(s, s->conflict, s->placed_reason[k]);
            } else if (s->seen[k] != s->seen_stamp && s->bounds[k].waits && s->bounds[k].earliest < top) {
                s->seen[k] = s->seen_stamp;
                s->queue[n_queue++] = k;
            } else if (s->seen[k] != s->seen_stamp) {
                unite(s, s->conflict, why_above(s, k, top - 1));
            }
        }
    }
}

/* ---- setup ---- */

_Static_assert(TIDE__PLACE_EXACT_MOST_ITEMS <= UINT16_MAX, "neighbours are named in 16 bits");

static bool meet(uint32_t begin, uint32_t end, const tide__place_item *it) {
    return (begin < it->end && it->begin < end) || (begin < it->end2 && it->begin2 < end);
}

static bool alive_together(const tide__place_item *a, const tide__place_item *b) {
    return meet(a->begin, a->end, b) || (a->begin2 < a->end2 && meet(a->begin2, a->end2, b));
}

static uint32_t life_of(const tide__place_item *it) { return it->end - it->begin + it->end2 - it->begin2; }

static void count_slots(tide__place_exact_state *s, size_t *n_lives, size_t *n_conflicts) {
    *n_lives = *n_conflicts = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        *n_lives += life_of(&s->items[i]);
        for (uint32_t j = 0; j < i; j++) *n_conflicts += alive_together(&s->items[i], &s->items[j]) ? 2 : 0;
    }
}

static void list_neighbours(tide__place_exact_state *s) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        s->first_neighbour[i] = at;
        for (uint32_t j = 0; j < s->n; j++)
            if (j != i && alive_together(&s->items[i], &s->items[j])) s->neighbours[at++] = (uint16_t)j;
    }
    s->first_neighbour[s->n] = at;
}

static void list_slots(tide__place_exact_state *s) {
    uint32_t lives = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const tide__place_item *it = &s->items[i];
        s->first_slot[i] = lives;
        lives += life_of(it);
        for (uint32_t t = it->begin; t != TIDE__PLACE_NO_SLOT; t = tide__place_next_slot(it, t))
            s->first_in_slot[t + 1]++;
    }
    for (uint32_t t = 0; t < s->n_slots; t++) s->first_in_slot[t + 1] += s->first_in_slot[t];
    for (uint32_t i = 0; i < s->n; i++) {
        const tide__place_item *it = &s->items[i];
        for (uint32_t t = it->begin; t != TIDE__PLACE_NO_SLOT; t = tide__place_next_slot(it, t)) {
            uint32_t at = s->n_open[t]++;
            s->slot_items[s->first_in_slot[t] + at] = i;
            *place_in_list(s, i, t) = at;
            s->open_load[t] += it->size;
        }
    }
}

#define TAKE(field, count) ((field) = calloc((count) + 1, sizeof *(field)))

static bool take_memory(tide__place_exact_state *s) {
    size_t n = s->n, n_lives, n_conflicts;
    count_slots(s, &n_lives, &n_conflicts);
    s->n_words = (n / 64 / GROUP + 1) * GROUP;
    s->sets_room = 1; /* the empty one */
    return TAKE(s->rank, n) && TAKE(s->neighbours, n_conflicts) && TAKE(s->first_neighbour, n) &&
           TAKE(s->slot_items, n_lives) && TAKE(s->first_in_slot, s->n_slots) && TAKE(s->n_open, s->n_slots) &&
           TAKE(s->slot_at, n_lives) && TAKE(s->first_slot, n) && TAKE(s->open_load, s->n_slots) &&
           TAKE(s->failures, s->n_slots) && TAKE(s->bounds, n) && TAKE(s->placed, n) && TAKE(s->level, n) &&
           TAKE(s->closed, s->n_words) && TAKE(s->offsets, n) && TAKE(s->rests_reason, n) &&
           TAKE(s->placed_reason, n) && TAKE(s->sets, s->sets_room * s->n_words) && TAKE(s->conflict, s->n_words) &&
           TAKE(s->dirty, s->n_slots) && TAKE(s->queue, n) && TAKE(s->seen, n) && tide__place_exact_make_room(s);
}

tide_status tide__place_exact_state_init(tide__place_exact_state *s, const tide__place_problem *p, uint64_t capacity) {
    *s = (tide__place_exact_state){.n = (uint32_t)p->n, .n_slots = p->n_times, .items = p->items, .capacity = capacity};
    s->n_sets = 1;
    if (!take_memory(s)) {
        tide__place_exact_state_deinit(s);
        return tide__fail_memory();
    }
    list_neighbours(s);
    list_slots(s);
    return TIDE_OK;
}

void tide__place_exact_state_deinit(tide__place_exact_state *s) {
    void *const all[] = {
        s->level,         s->closed,        s->failures, s->rank,    s->neighbours, s->first_neighbour,
        s->slot_items,    s->first_in_slot, s->n_open,   s->slot_at, s->first_slot, s->open_load,
        s->bounds,        s->placed,        s->offsets,  s->trail,   s->sets,       s->rests_reason,
        s->placed_reason, s->conflict,      s->dirty,    s->queue,   s->seen,
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) free(all[k]);
    *s = (tide__place_exact_state){0};
}

static bool has_equal_before(const tide__place_exact_state *s, uint32_t item) {
    for (uint32_t a = s->first_neighbour[item]; a < s->first_neighbour[item + 1]; a++) {
        uint32_t j = s->neighbours[a];
        if (s->rank[j] < s->rank[item] && s->items[j].size == s->items[item].size &&
            are_twins(&s->items[j], &s->items[item]))
            return true;
    }
    return false;
}

void tide__place_exact_reset(tide__place_exact_state *s) {
    tide__place_exact_undo(s, (tide__place_exact_mark){0, 1});
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t lowest = is_fixed(&s->items[i]) ? s->items[i].fixed : 0;
        s->bounds[i] = (tide__place_exact_bound){
            .floor = lowest, .earliest = lowest, .previous = NONE, .jump = NONE, .waits = has_equal_before(s, i)};
    }
}
