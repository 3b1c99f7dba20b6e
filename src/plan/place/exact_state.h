/* The state of the exact search (exact.h): what is placed, what is known about the rest, why, and how to go back.
 *
 * Everything known is justified by a reason: a set of decision levels, kept on a stack of sets that shrinks when the
 * search goes back. "Item j cannot be below e because of R" holds as long as the decisions of the levels in R stand.
 * A failure yields a reason too (`conflict`); the search jumps back to its latest level.
 *
 * Every change is recorded on a trail and undone in reverse order. Invariant: floor <= earliest for all items that
 * are not placed; an item that waits is going to be raised by something that is put under it. */
#ifndef TIDE_PLAN_PLACE_EXACT_STATE_H
#define TIDE_PLAN_PLACE_EXACT_STATE_H

#include "plan/place/problem.h"

#define TIDE__PLACE_EXACT_NO_REASON 0u /* the empty set: true whatever is decided */

/* What is known about an item that is not placed yet. Reasons are numbers of sets. */
typedef struct tide__place_exact_bound {
    uint64_t floor;    /* top of what is placed under it, aligned; of a fixed item its offset */
    uint64_t earliest; /* no offset below this one is possible */
    uint32_t floor_reason, earliest_reason, wait_reason;
    uint32_t previous; /* entry of the trail that holds the bound before `earliest` was raised to this */
    uint32_t jump;     /* likewise, an older one */
    uint32_t depth;    /* how often `earliest` was raised */
    bool waits;        /* must not be put onto its floor */
} tide__place_exact_bound;

typedef struct tide__place_exact_change {
    uint32_t item;
    bool was_placed;               /* the item was placed, else its bound changed */
    tide__place_exact_bound bound; /* before the change */
} tide__place_exact_change;

typedef struct tide__place_exact_mark {
    size_t n_trail, n_sets;
} tide__place_exact_mark;

typedef struct tide__place_exact_state {
    uint32_t n, n_slots;
    const tide__place_item *items;
    uint64_t capacity;
    uint32_t *rank; /* per item: which of those with equal floors goes first; set by the caller */

    /* Who conflicts with item i: neighbours[first_neighbour[i] .. first_neighbour[i + 1]). */
    uint16_t *neighbours; /* most of the memory that is always taken; items are few enough */
    uint32_t *first_neighbour;
    /* Who is alive in slot s: slot_items[first_in_slot[s] ..], the open ones (not placed) first. slot_at holds the
     * places of item i in the lists of its slots, in their order, from first_slot[i]. */
    uint32_t *slot_items, *first_in_slot, *n_open, *slot_at, *first_slot;
    uint64_t *open_load; /* per slot: sizes of the open items */
    uint64_t *failures;  /* per slot: how often it could not go on, in all runs */

    tide__place_exact_bound *bounds;
    bool *placed;
    uint64_t *offsets;       /* of placed items */
    uint32_t *level;         /* of placed items: at which it was decided */
    uint32_t *rests_reason;  /* of placed items: why it is at its offset */
    uint32_t *placed_reason; /* of placed items: why it and all that is connected to it are placed */

    tide__place_exact_change *trail;
    size_t n_trail, trail_room;
    uint64_t *sets; /* words per set: n_words */
    size_t n_words, n_sets, sets_room;
    uint64_t *conflict; /* a set */
    uint64_t *closed;   /* a set, for a while */

    int32_t *dirty;             /* per slot, one extra: summed up, above 0 where the test is due */
    uint32_t *queue;            /* of the walk that explains a failure */
    uint64_t *seen, seen_stamp; /* the stamp says "in this walk" without clearing; it must never come round */
} tide__place_exact_state;

tide_status tide__place_exact_state_init(tide__place_exact_state *s, const tide__place_problem *p, uint64_t capacity);
void tide__place_exact_state_deinit(tide__place_exact_state *s);

/* Nothing placed, every item on floor 0; of equal items (size and lifetime) only the first by rank does not wait. */
void tide__place_exact_reset(tide__place_exact_state *s);

/* Room for one more decision on the trail and the stack of sets; false: they are as long as they may be. */
bool tide__place_exact_make_room(tide__place_exact_state *s);

tide__place_exact_mark tide__place_exact_here(const tide__place_exact_state *s);
void tide__place_exact_undo(tide__place_exact_state *s, tide__place_exact_mark mark);

/* Both are false if what is known now contradicts itself; the conflict then says why. */
bool tide__place_exact_place(tide__place_exact_state *s, uint32_t item, uint32_t level); /* onto its floor */
bool tide__place_exact_wait(tide__place_exact_state *s,
                            uint32_t item); /* because of the conflict; a fixed one cannot */

/* The conflict of a waiting item that nothing can raise any more. */
void tide__place_exact_explain_stuck(tide__place_exact_state *s, uint32_t item);

bool tide__place_exact_conflict_has(const tide__place_exact_state *s, uint32_t level);
void tide__place_exact_conflict_drop(tide__place_exact_state *s, uint32_t level);

#endif
