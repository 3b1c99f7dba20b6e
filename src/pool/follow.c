/* Following a plan through the stream (pool_data.h has the invariant).
 *
 *      plan     a b c d e f g h           stream   a b c d X e f ...       extra: X does not fit, then e does
 *                       ▲ at              stream   a b c d g h ...         missing: g does not, but g h comes later
 *                                         stream   ... b c d e ...         elsewhere: the last 8 symbols occur there
 *
 * An event that does not fit leaves the place where it is. What the place passes is no longer expected to be live; after
 * a jump, what is expected is looked up anew. */
#include "pool/pool_data.h"

enum {
    NEAR = 16,          /* events that may be missing for two fitting events to be enough */
    MAX_PLACES = 8,     /* looked at in each plan */
    MAX_AGREEMENT = 64, /* events compared at each place */
    JUMP_CREDIT = 16,   /* items of a plan looked at per event of the stream, at most */
};

/* The place moves over event `at`. */
static inline void pass(tide_pool *pool, const tide__pool_plan *plan, uint32_t at) {
    for (uint32_t i = plan->ends[at]; i != TIDE__NO_ITEM; i = plan->items[i].next_end)
        if (plan->items[i].state == TIDE__ITEM_LIVE) tide__set_state(pool, plan, &plan->items[i], TIDE__ITEM_OVERDUE);
}

static void set_place(tide__follower *f, uint32_t at) {
    f->at = at;
    f->border = (at / f->plan->period + 1) * f->plan->period;
}

static void walk_to(tide_pool *pool, uint32_t target) {
    tide__follower *f = &pool->follower;
    for (uint32_t at = f->at; at != target; at = at + 1 == f->plan->length ? 0 : at + 1) pass(pool, f->plan, at);
    set_place(f, target);
}

/* No item of the plan is expected any more. */
static void leave_plan(tide_pool *pool, tide__pool_plan *plan) {
    for (uint32_t i = 0; i < plan->n_items; i++)
        if (plan->items[i].state == TIDE__ITEM_LIVE) tide__set_state(pool, plan, &plan->items[i], TIDE__ITEM_OVERDUE);
}

/* Of the copies of this place the one that expects most of the blocks that are there. */
static uint32_t best_copy(const tide__pool_plan *plan, uint32_t at) {
    uint32_t best = at, most = 0;
    for (uint32_t copy = 0; plan->n_live > 0 && copy < plan->length / plan->period; copy++) {
        uint32_t place = (at + copy * plan->period) % plan->length, n = 0;
        for (uint32_t i = 0; i < plan->n_items; i++)
            n += plan->items[i].state != TIDE__ITEM_IDLE && tide__item_is_expected(plan, &plan->items[i], place);
        if (n > most) best = place, most = n;
    }
    return best;
}

void tide__follow_plan(tide_pool *pool, tide__pool_plan *plan, uint32_t at) {
    tide__follower *f = &pool->follower;
    if (f->plan && f->plan != plan) leave_plan(pool, f->plan);
    f->plan = plan;
    set_place(f, best_copy(plan, at));
    for (uint32_t i = 0; i < plan->n_items; i++) {
        tide__pool_item *item = &plan->items[i];
        if (item->state == TIDE__ITEM_IDLE) continue;
        bool expected = tide__item_is_expected(plan, item, f->at);
        if (expected != (item->state == TIDE__ITEM_LIVE))
            tide__set_state(pool, plan, item, expected ? TIDE__ITEM_LIVE : TIDE__ITEM_OVERDUE);
    }
    plan->last_used = pool->history.count;
}

static void end_iteration(tide_pool *pool) {
    tide__follower *f = &pool->follower;
    pool->stats.n_iterations++;
    set_place(f, f->at == f->plan->length ? 0 : f->at);
    f->starved = !tide__region_fit(pool, f->plan->height);
}

/* The event is the one at the place. */
static inline uint32_t accept(tide_pool *pool) {
    tide__follower *f = &pool->follower;
    uint32_t at = f->at++;
    f->clean++;
    pass(pool, f->plan, at);
    if (f->at == f->border) end_iteration(pool);
    return at;
}

/* ---- off the plan ---- */

/* The last two events, the first of which did not fit where it came, a little further on. */
static bool find_near(tide_pool *pool, tide__symbol symbol) {
    const tide__pool_plan *plan = pool->follower.plan;
    tide__symbol last = tide__history_at(&pool->history, pool->history.count - 1)->symbol;
    uint32_t at = pool->follower.at;
    for (int i = 0; i < NEAR; i++) {
        uint32_t next = at + 1 == plan->length ? 0 : at + 1;
        if (plan->symbols[at] == last && plan->symbols[next] == symbol) {
            walk_to(pool, next);
            return true;
        }
        at = next;
    }
    return false;
}

/* A place in a plan where the stream may be, and how many of the last events agree with it. */
typedef struct place {
    tide__pool_plan *plan;
    uint32_t at, agreement;
} place;

static uint32_t agreement(const tide_pool *pool, const tide__pool_plan *plan, uint32_t at) {
    const tide__history *h = &pool->history;
    uint64_t remembered = h->count - tide__history_oldest(h);
    uint32_t most = remembered < MAX_AGREEMENT ? (uint32_t)remembered : MAX_AGREEMENT, n = 0;
    while (n < most) {
        at = at == 0 ? plan->length - 1 : at - 1;
        if (plan->symbols[at] != tide__history_at(h, h->count - 1 - n)->symbol) break;
        n++;
    }
    return n;
}

/* The places of `plan` where the last 8 events occur, the best of them kept in `best`. */
static void look_in(const tide_pool *pool, tide__pool_plan *plan, uint64_t gram, tide__symbol symbol, place *best) {
    uint32_t found[MAX_PLACES], from = plan == pool->follower.plan ? pool->follower.at : 0;
    uint32_t n = tide__pool_plan_find(plan, gram, from, MAX_PLACES, found);
    for (uint32_t i = 0; i < n; i++) {
        if (plan->symbols[found[i]] != symbol) continue;
        uint32_t agrees = agreement(pool, plan, found[i]);
        if (agrees > best->agreement) *best = (place){plan, found[i], agrees};
    }
}

/* Going there looks at every item of the plan, and of the one that is left: events of the stream must have paid for
 * that. */
static bool can_afford(const tide_pool *pool, const place *to) {
    const tide__follower *f = &pool->follower;
    uint64_t items = to->plan->n_items + (to->plan != f->plan ? f->plan->n_items : 0);
    return items <= JUMP_CREDIT * (pool->history.count - f->jumped_at);
}

/* The last 8 events, or more, anywhere in any plan. As long as some of them came before the stream left its place, it is
 * likelier that it only gained or lost an event there. */
static bool find_far(tide_pool *pool, tide__symbol symbol) {
    tide__follower *f = &pool->follower;
    if (pool->history.count - f->left_at < TIDE__GRAM_LENGTH - 1) return false;
    uint64_t gram = tide__gram_push(tide__history_gram(&pool->history, pool->history.count - 1), symbol);
    place best = {.agreement = TIDE__GRAM_LENGTH - 2};
    look_in(pool, f->plan, gram, symbol, &best);
    for (uint32_t i = 0; i < pool->n_plans; i++)
        if (pool->plans[i] != f->plan) look_in(pool, pool->plans[i], gram, symbol, &best);
    if (!best.plan || !can_afford(pool, &best)) return false;
    f->jumped_at = pool->history.count;
    tide__follow_plan(pool, best.plan, best.at);
    return true;
}

/* The more events say the same, the better; that a single one fits comes last. */
static uint32_t recover(tide_pool *pool, tide__symbol symbol) {
    tide__follower *f = &pool->follower;
    if (f->clean >= TIDE__GRAM_LENGTH) f->left_at = pool->history.count;
    bool found = (f->off && find_near(pool, symbol)) || find_far(pool, symbol) || f->plan->symbols[f->at] == symbol;
    if (!f->off) pool->stats.n_deviations++;
    if (found) pool->stats.n_returns++;
    f->off = found ? 0 : f->off + 1;
    f->clean = 0;
    if (f->off > pool->stats.longest_off_events) pool->stats.longest_off_events = f->off;
    return found ? accept(pool) : TIDE__NO_ITEM;
}

uint32_t tide__follow(tide_pool *pool, tide__symbol symbol) {
    tide__follower *f = &pool->follower;
    if (!f->plan) return TIDE__NO_ITEM;
    return f->plan->symbols[f->at] == symbol && !f->off ? accept(pool) : recover(pool, symbol);
}
