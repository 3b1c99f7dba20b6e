/* See kick.h. */
#include "plan/decide/hybrid/kick.h"

#include "base/rng.h"

enum { MAX_TRIES = 32, MAX_SLOTS = 8 };
/* Values below this part of the target are left alone, as in chains. */
enum { TINY_PART = 20000 };

static uint64_t draw(tide__repair *r, uint64_t below) { return tide__random_u64(r->seed, 1, r->draws++) % below; }

static tide_status add(tide__repair *r, uint32_t slot, tide_id op, tide__keys *fresh) {
    uint64_t key = tide__event_key(slot, TIDE__EVENT_RUN, op);
    if (tide__sketch_has(r->sketch, key)) return TIDE_OK;
    TIDE_TRY(tide__sketch_add(r->sketch, key));
    return tide__vec_push(fresh, key);
}

/* ---- a gap that fits as it is ---- */

static bool can_close(const tide__sketch *s, tide_id tensor) {
    tide_id producer = s->model->producer[tensor];
    if (producer == TIDE_NONE || !s->model->rerunnable[producer]) return false;
    return s->model->size[tensor] > s->target_bytes / TINY_PART;
}

static uint32_t slot_of(const tide__sketch *s, uint32_t event) {
    return event == s->n_events ? s->model->n_ops : tide__event_slot(s->keys[event]);
}

/* One of the gaps between the uses of a stay; false: it has none, or one inside of a slot was drawn. */
static bool draw_gap_of(tide__repair *r, const tide__stay *stay, tide__span *gap) {
    const tide__sketch *s = r->sketch;
    const tide__use *uses = s->uses.data;
    uint32_t n = 0, u = stay->last_use;
    for (; uses[u].before != TIDE_NONE; u = uses[u].before) n++;
    if (n == 0) return false;
    u = stay->last_use;
    for (uint64_t skip = draw(r, n); skip > 0; skip--) u = uses[u].before;
    *gap = (tide__span){.tensor = stay->tensor, .from = uses[uses[u].before].event, .to = uses[u].event};
    return slot_of(s, gap->from) != slot_of(s, gap->to);
}

static bool draw_gap(tide__repair *r, tide__span *gap) {
    const tide__sketch *s = r->sketch;
    for (int i = 0; i < MAX_TRIES && s->stays.count; i++) {
        const tide__stay *stay = &s->stays.data[draw(r, s->stays.count)];
        if (can_close(s, stay->tensor) && draw_gap_of(r, stay, gap)) return true;
    }
    return false;
}

static tide_status drop_value(tide__repair *r, tide__keys *fresh) {
    tide__chain *c = &r->chain;
    tide__span gap;
    bool possible;
    if (!draw_gap(r, &gap)) return TIDE_OK;
    TIDE_TRY(tide__chain_propose(r->sketch, gap, (tide__hold)draw(r, TIDE__N_HOLDS), c, &possible));
    for (size_t k = 0; possible && k < c->ops.count; k++) TIDE_TRY(add(r, c->slot, c->ops.data[k], fresh));
    return TIDE_OK;
}

/* ---- an earlier slot ---- */

/* The largest value that an op reads and that some op makes; TIDE_NONE: there is none. */
static tide_id main_input(const tide__model *m, tide_id op) {
    tide_id input = TIDE_NONE;
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++) {
        tide_id t = m->reads[i];
        if (m->producer[t] != TIDE_NONE && (input == TIDE_NONE || m->size[t] > m->size[input])) input = t;
    }
    return input;
}

/* Slots between two in which a tensor is used for the last time before it goes. */
static size_t find_ends(const tide__sketch *s, tide_id tensor, uint32_t after, uint32_t before, uint32_t *slots) {
    size_t n = 0;
    for (uint32_t i = s->latest[tensor]; i != TIDE_NONE && n < MAX_SLOTS; i = s->stays.data[i].before) {
        uint32_t slot = slot_of(s, s->stays.data[i].end);
        if (slot > after && slot < before) slots[n++] = slot;
    }
    return n;
}

static tide_status advance(tide__repair *r, const tide__keys *reruns, tide__keys *fresh) {
    uint32_t slots[MAX_SLOTS];
    if (reruns->count == 0) return TIDE_OK;
    uint64_t key = reruns->data[draw(r, reruns->count)];
    tide_id op = tide__event_id(key), input = main_input(r->sketch->model, op);
    if (input == TIDE_NONE) return TIDE_OK;
    size_t n = find_ends(r->sketch, input, op, tide__event_slot(key), slots);
    if (n == 0) return TIDE_OK;
    tide__sketch_remove(r->sketch, key);
    return add(r, slots[draw(r, n)], op, fresh);
}

tide_status tide__kick(tide__repair *r, const tide__keys *reruns, tide__keys *fresh) {
    fresh->count = 0;
    return draw(r, 2) ? advance(r, reruns, fresh) : drop_value(r, fresh);
}
