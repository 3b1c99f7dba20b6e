/* See sketch.h. One pass over the events makes stays and uses, one over the stays the load. */
#include "plan/decide/hybrid/sketch.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

/* ---- life ---- */

tide_status tide__sketch_create(const tide__model *model, uint64_t target_bytes, tide__sketch **out) {
    tide__sketch *s = calloc(1, sizeof *s);
    if (!s) return tide__fail_memory();
    s->model = model;
    s->target_bytes = target_bytes;
    s->slot_at = malloc((model->n_ops + (size_t)2) * sizeof *s->slot_at);
    s->latest = malloc((model->n_tensors + (size_t)1) * sizeof *s->latest);
    s->away_first = calloc(model->n_tensors + (size_t)1, sizeof *s->away_first);
    s->away_last = calloc(model->n_tensors + (size_t)1, sizeof *s->away_last);
    bool all = s->slot_at && s->latest && s->away_first && s->away_last;
    tide_status status = all ? tide__sketch_build(s) : tide__fail_memory();
    if (status == TIDE_OK)
        *out = s;
    else
        tide__sketch_destroy(s);
    return status;
}

void tide__sketch_destroy(tide__sketch *s) {
    if (!s) return;
    tide__vec_free(&s->extra);
    tide__vec_free(&s->stays);
    tide__vec_free(&s->uses);
    tide__vec_free(&s->handovers);
    free(s->keys);
    free(s->load);
    free(s->through);
    free(s->over);
    free(s->change);
    free(s->slot_at);
    free(s->latest);
    free(s->away_first);
    free(s->away_last);
    free(s);
}

/* ---- the decisions ---- */

void tide__sketch_clear(tide__sketch *s) {
    s->extra.count = 0;
    memset(s->away_first, 0, s->model->n_tensors * sizeof *s->away_first);
    memset(s->away_last, 0, s->model->n_tensors * sizeof *s->away_last);
}

static size_t position(const tide__sketch *s, uint64_t key) {
    size_t low = 0, high = s->extra.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->extra.data[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tide__sketch_has(const tide__sketch *s, uint64_t key) {
    size_t i = position(s, key);
    return i < s->extra.count && s->extra.data[i] == key;
}

tide_status tide__sketch_add(tide__sketch *s, uint64_t key) {
    size_t i = position(s, key);
    if (i < s->extra.count && s->extra.data[i] == key) return TIDE_OK;
    TIDE_TRY(tide__vec_reserve(&s->extra, 1));
    memmove(&s->extra.data[i + 1], &s->extra.data[i], (s->extra.count - i) * sizeof *s->extra.data);
    s->extra.data[i] = key;
    s->extra.count++;
    return TIDE_OK;
}

void tide__sketch_remove(tide__sketch *s, uint64_t key) {
    size_t i = position(s, key);
    if (i == s->extra.count || s->extra.data[i] != key) return;
    s->extra.count--;
    memmove(&s->extra.data[i], &s->extra.data[i + 1], (s->extra.count - i) * sizeof *s->extra.data);
}

tide_status tide__keys_copy(const tide__keys *from, tide__keys *to) {
    to->count = 0;
    TIDE_TRY(tide__vec_reserve(to, from->count));
    if (from->count) memcpy(to->data, from->data, from->count * sizeof *from->data);
    to->count = from->count;
    return TIDE_OK;
}

uint32_t tide__sketch_after(const tide__sketch *s, uint64_t key) {
    uint32_t slot = tide__event_slot(key), low = s->slot_at[slot], high = s->slot_at[slot + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->keys[middle] <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t tide__sketch_peak(const tide__sketch *s) {
    uint64_t peak = 0;
    for (uint32_t e = 0; e < s->n_events; e++) peak = tide__max_u64(peak, s->load[e]);
    return peak;
}

/* ---- the build ---- */

static tide_status make_room(tide__sketch *s) {
    size_t n = s->model->n_ops + s->extra.count + 2;
    if (n <= s->room) return TIDE_OK;
    if (n >= UINT32_MAX / 2) return tide__fail(TIDE_E_OVERFLOW, "a sketch of 2^31 events");
    size_t room = n + n / 4;
    free(s->keys);
    free(s->load);
    free(s->through);
    free(s->over);
    free(s->change);
    s->room = 0;
    s->keys = malloc(room * sizeof *s->keys);
    s->load = malloc(room * sizeof *s->load);
    s->through = malloc(room * sizeof *s->through);
    s->over = malloc(room * sizeof *s->over);
    s->change = malloc(room * sizeof *s->change);
    if (!s->keys || !s->load || !s->through || !s->over || !s->change) return tide__fail_memory();
    s->room = room;
    return TIDE_OK;
}

/* Ops and extra events in one order. */
static void merge(tide__sketch *s) {
    const uint64_t *extra = s->extra.data, *end = extra + s->extra.count;
    uint32_t n = 0;
    for (uint32_t slot = 0; slot <= s->model->n_ops; slot++) {
        s->slot_at[slot] = n;
        while (extra < end && tide__event_slot(*extra) == slot) s->keys[n++] = *extra++;
        if (slot < s->model->n_ops) s->keys[n++] = tide__event_key(slot, TIDE__EVENT_RUN, slot);
    }
    s->slot_at[s->model->n_ops + 1] = s->n_events = n;
}

/* Room for every stay and use of the events, so that adding them need not ask. */
static tide_status reserve(tide__sketch *s) {
    const tide__model *m = s->model;
    size_t stays = 2 * (size_t)m->n_tensors + 1, uses = stays, pairs = 0;
    for (uint32_t e = 0; e < s->n_events; e++) {
        uint32_t id = tide__event_id(s->keys[e]);
        stays++;
        uses++;
        if (tide__event_kind_of(s->keys[e]) != TIDE__EVENT_RUN) continue;
        stays += m->write_at[id + 1] - m->write_at[id];
        uses += m->read_at[id + 1] - m->read_at[id] + m->write_at[id + 1] - m->write_at[id];
        pairs += m->pair_at[id + 1] - m->pair_at[id];
    }
    s->stays.count = s->uses.count = s->handovers.count = 0;
    TIDE_TRY(tide__vec_reserve(&s->stays, stays));
    TIDE_TRY(tide__vec_reserve(&s->uses, uses));
    return tide__vec_reserve(&s->handovers, pairs);
}

static void add_use(tide__sketch *s, uint32_t stay, uint32_t event) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): `stay` is one of them */
    tide__stay *x = &s->stays.data[stay];
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): reserve() was before */
    s->uses.data[s->uses.count] = (tide__use){.event = event, .before = x->last_use};
    x->last_use = (uint32_t)s->uses.count++;
    if (event > x->end) x->end = event;
}

static void begin_stay(tide__sketch *s, tide_id tensor, uint32_t event) {
    uint32_t use = (uint32_t)s->uses.count++, stay = (uint32_t)s->stays.count++;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): reserve() was before */
    s->uses.data[use] = (tide__use){.event = event, .before = TIDE_NONE};
    s->stays.data[stay] =
        (tide__stay){.tensor = tensor, .begin = event, .end = event, .before = s->latest[tensor], .last_use = use};
    s->latest[tensor] = stay;
}

/* Where a read dies at this event, its pair's write takes over its bytes; known when all uses are. */
static void note_handovers(tide__sketch *s, tide_id op, uint32_t event) {
    const tide__model *m = s->model;
    for (uint32_t i = m->pair_at[op]; i < m->pair_at[op + 1]; i++) {
        bool again = i > m->pair_at[op] && m->pairs[i - 1].read == m->pairs[i].read;
        if (!again) s->handovers.data[s->handovers.count++] = (uint64_t)event << 32 | s->latest[m->pairs[i].read];
    }
}

static void run_op(tide__sketch *s, tide_id op, uint32_t event) {
    const tide__model *m = s->model;
    s->run_ns = tide__add_capped(s->run_ns, m->cost_ns[op]);
    for (uint32_t i = m->read_at[op]; i < m->read_at[op + 1]; i++) {
        tide_id t = m->reads[i];
        if (s->latest[t] == TIDE_NONE) { /* from the client's tier, just before its first use */
            begin_stay(s, t, event);
            continue;
        }
        s->broken = s->broken || s->stays.data[s->latest[t]].gone;
        add_use(s, s->latest[t], event);
    }
    for (uint32_t i = m->pair_at[op]; i < m->pair_at[op + 1]; i++)
        if (m->destroyer[m->pairs[i].read] == op) s->stays.data[s->latest[m->pairs[i].read]].gone = true;
    note_handovers(s, op, event);
    for (uint32_t i = m->write_at[op]; i < m->write_at[op + 1]; i++) begin_stay(s, m->writes[i], event);
}

static void walk(tide__sketch *s) {
    for (uint32_t e = 0; e < s->n_events; e++) {
        uint32_t id = tide__event_id(s->keys[e]);
        switch (tide__event_kind_of(s->keys[e])) {
        case TIDE__EVENT_RUN: run_op(s, id, e); break;
        case TIDE__EVENT_LOAD: begin_stay(s, id, e); break;
        case TIDE__EVENT_SAVE: /* holds the bytes, but is no use that somebody would bring them back for */
            if (s->latest[id] != TIDE_NONE) s->stays.data[s->latest[id]].end = e;
            break;
        }
    }
}

static void begin_step(tide__sketch *s) {
    for (tide_id t = 0; t < s->model->n_tensors; t++)
        if (s->model->present[t] && !s->away_first[t]) begin_stay(s, t, 0);
}

static void end_step(tide__sketch *s) {
    for (tide_id t = 0; t < s->model->n_tensors; t++)
        if (s->model->keep[t] && !s->away_last[t] && s->latest[t] != TIDE_NONE) add_use(s, s->latest[t], s->n_events);
}

/* Bytes through and at each event. Sums are modulo 2^64 on the way; a program's bytes stay below 2^62. */
static void sum_loads(tide__sketch *s, size_t n_present) {
    const tide__model *m = s->model;
    memset(s->change, 0, (s->n_events + (size_t)1) * sizeof *s->change);
    memset(s->load, 0, (s->n_events + (size_t)1) * sizeof *s->load);
    for (size_t i = 0; i < s->stays.count; i++) {
        const tide__stay *x = &s->stays.data[i];
        uint64_t size = m->size[x->tensor];
        if (i < n_present)
            s->change[0] += size;
        else
            s->load[x->begin] += size;
        if (i >= n_present && x->begin < s->n_events) s->change[x->begin + 1] += size;
        if (x->end < s->n_events) s->change[x->end + 1] -= size;
    }
    uint64_t through = 0;
    for (uint32_t e = 0; e <= s->n_events; e++) {
        s->through[e] = through += s->change[e];
        s->load[e] += through;
        if (e < s->n_events && tide__event_kind_of(s->keys[e]) == TIDE__EVENT_RUN)
            s->load[e] += m->workspace_bytes[tide__event_id(s->keys[e])];
    }
    for (size_t i = 0; i < s->handovers.count; i++) {
        const tide__stay *x = &s->stays.data[(uint32_t)s->handovers.data[i]];
        uint32_t event = (uint32_t)(s->handovers.data[i] >> 32);
        if (x->end == event) s->load[event] -= m->size[x->tensor];
    }
}

static void sum_excess(tide__sketch *s) {
    s->excess = 0;
    s->over[0] = 0;
    for (uint32_t e = 0; e < s->n_events; e++) {
        bool over = s->load[e] > s->target_bytes;
        s->over[e + 1] = s->over[e] + over;
        if (over) s->excess += (double)(s->load[e] - s->target_bytes);
    }
}

tide_status tide__sketch_build(tide__sketch *s) {
    TIDE_TRY(make_room(s));
    merge(s);
    TIDE_TRY(reserve(s));
    s->run_ns = 0;
    s->broken = false;
    memset(s->latest, 0xff, s->model->n_tensors * sizeof *s->latest);
    begin_step(s);
    size_t n_present = s->stays.count;
    walk(s);
    end_step(s);
    sum_loads(s, n_present);
    sum_excess(s);
    return TIDE_OK;
}
