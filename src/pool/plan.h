/* A plan: an iteration, unrolled so that every block's lifetime fits into it, with an offset for every block.
 *
 *      copies = 2: a block that lives 1.3 periods          event   0 . . . . p . . . . 2p
 *      is two items, used in turn                          item a  ├────────────┤
 *                                                          item b  ────┤     ├─────────
 *
 * Made once, checked, then followed: only the items' states change. The invariant that makes following safe: items
 * whose planned lifetimes meet have disjoint bytes. */
#ifndef TIDE_POOL_PLAN_H
#define TIDE_POOL_PLAN_H

#include "pool/iteration.h"

typedef enum tide__item_state {
    TIDE__ITEM_IDLE,
    TIDE__ITEM_LIVE,     /* handed out, and the plan expects it to be live */
    TIDE__ITEM_OVERDUE,  /* handed out, where the plan no longer expects it; listed in the follower's spans */
    TIDE__ITEM_UNLISTED, /* the same, but there was no room in the list */
} tide__item_state;

typedef struct tide__pool_item {
    uint64_t offset;
    uint64_t event;         /* while not idle: index of its Malloc in the history */
    uint32_t begin;         /* event of the plan: its Malloc, which has its size */
    uint32_t life;          /* events; 0: has no offset, always served by the backing */
    uint32_t next_end;      /* another item whose life ends with the same event; TIDE__NO_ITEM: none */
    unsigned int slot : 30; /* the number of its offset */
    unsigned int state : 2; /* tide__item_state, of its block in the region in use */
} tide__pool_item;

/* A different offset of a plan. At most one block begins there at a time. */
typedef struct tide__pool_slot {
    uint64_t offset;
    uint32_t item; /* whose block that is, if it is not idle */
} tide__pool_slot;

typedef struct tide__gram_place {
    uint64_t gram;
    uint32_t at; /* the event it ends with */
} tide__gram_place;

typedef struct tide__pool_plan {
    uint32_t period, length; /* length = copies * period, in events */
    uint32_t n_items;
    tide__symbol *symbols; /* per event of the length */
    uint32_t *item;        /* per event: the item that a Malloc begins; TIDE__NO_ITEM for a Free */
    uint32_t *ends;        /* per event: the first of the items whose life ends there; TIDE__NO_ITEM: none */
    tide__pool_item *items;
    tide__pool_slot *slots; /* sorted by offset */
    uint32_t n_slots;
    tide__gram_place *grams;      /* per event, sorted by (gram, at) */
    uint64_t height;              /* bytes of the region it needs */
    uint64_t lower_bound;         /* no placement is lower */
    const char *algorithm;        /* a static string */
    uint64_t signature;           /* of the iteration */
    uint64_t made_at;             /* event */
    uint32_t n_versions;          /* plans for this iteration before it */
    bool lean;                    /* leaves out the blocks that outlive the iteration */
    uint64_t last_used;           /* event at which it was last chosen */
    uint32_t n_live;              /* blocks served from it that are live */
    struct tide__pool_plan *next; /* in the list of dropped plans, which wait for their last block */
} tide__pool_plan;

static inline uint64_t tide__item_bytes(const tide__pool_plan *plan, const tide__pool_item *item) {
    return tide__symbol_bytes(plan->symbols[item->begin]);
}

/* Is the item to be live when event `at` comes? */
static inline bool tide__item_is_expected(const tide__pool_plan *plan, const tide__pool_item *item, uint32_t at) {
    uint32_t age = (at >= item->begin ? at : at + plan->length) - item->begin;
    return age > 0 && age <= item->life;
}

/* Places the iteration. A block of an earlier plan for the same iteration (or NULL) keeps at least its lifetime.
 * The alignment is that of every block; `seconds` as in tide_pool_options. */
tide_status tide__pool_plan_create(const tide__iteration *iteration, const tide__pool_plan *earlier, uint64_t alignment,
                                   double seconds, tide__pool_plan **out);
/* The same plan without the blocks that outlive the iteration: they come from the backing. */
tide_status tide__pool_plan_create_lean(const tide__pool_plan *plan, uint64_t alignment, double seconds,
                                        tide__pool_plan **out);
void tide__pool_plan_destroy(tide__pool_plan *plan);

bool tide__pool_plan_is_of(const tide__pool_plan *plan, const tide__iteration *iteration);

/* Would a plan made now give some block a longer life? */
bool tide__pool_plan_is_outlived(const tide__pool_plan *plan, const tide__iteration *iteration);

/* The item whose block begins at this offset; NULL if there is none. */
tide__pool_item *tide__pool_plan_block_at(const tide__pool_plan *plan, uint64_t offset);

/* Up to `max` events that end this gram, in the order in which they come at or after `from`, around the circle. */
uint32_t tide__pool_plan_find(const tide__pool_plan *plan, uint64_t gram, uint32_t from, uint32_t max, uint32_t *out);

/* The proof, sharing no code with placement: lifetimes that meet have disjoint bytes below the height, and the
 * end of each is listed. O(n log n). */
tide_status tide__pool_plan_check(const tide__pool_plan *plan);

#endif
