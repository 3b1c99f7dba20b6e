/* See scheduler.h. */
#include "plan/schedule/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

typedef tide__slotted slotted;
typedef tide__slot_list slot_list;
typedef tide__scheduler scheduler;

const char *tide__scheduler_name(const scheduler *s, tide_id t) { return tide_program_tensor(s->program, t)->name; }

/* ---- decisions by slot ---- */

static int by_key(const void *a, const void *b) {
    const slotted *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static tide_status slot_list_alloc(slot_list *list, size_t room) {
    list->items = malloc((room ? room : 1) * sizeof *list->items);
    return list->items ? TIDE_OK : tide__fail_memory();
}

static void slot_list_add(slot_list *list, uint32_t slot, uint32_t tie, size_t index) {
    list->items[list->count++] = (slotted){.key = (uint64_t)slot << 32 | tie, .index = (uint32_t)index};
}

static tide_status check_swap(const scheduler *s, const tide__swap *w) {
    const tide_machine *m = s->machine;
    if (w->tensor >= s->n_tensors) return tide__fail(TIDE_E_ARGUMENT, "swap of tensor %u, which is none", w->tensor);
    const char *name = tide__scheduler_name(s, w->tensor);
    if (w->tier >= m->n_tiers)
        return tide__fail(TIDE_E_ARGUMENT, "swap of \"%s\" to tier %u, which is none", name, w->tier);
    bool saves = w->save_slot != TIDE_NONE, loads = w->load_slot != TIDE_NONE;
    if ((saves && w->save_slot > s->n_ops) || (loads && w->load_slot > s->n_ops))
        return tide__fail(TIDE_E_ARGUMENT, "swap of \"%s\" outside the step", name);
    if (saves && loads && w->load_slot < w->save_slot)
        return tide__fail(TIDE_E_ARGUMENT, "swap of \"%s\": it would be loaded before it is saved", name);
    if ((saves && tide_machine_queue(m, w->tier, true) == TIDE_NONE) ||
        (loads && tide_machine_queue(m, w->tier, false) == TIDE_NONE))
        return tide__fail(TIDE_E_ARGUMENT, "swap of \"%s\": tier \"%s\" has no such channel", name,
                          m->tier[w->tier].name);
    if (m->tier[w->tier].kind == TIDE_TIER_CLIENT &&
        tide_program_tensor(s->program, w->tensor)->start != TIDE_START_CLIENT)
        return tide__fail(TIDE_E_ARGUMENT, "swap of \"%s\": only inputs come from tier \"%s\"", name,
                          m->tier[w->tier].name);
    return TIDE_OK;
}

static tide_status sort_decisions(scheduler *s) {
    const tide__decisions *d = s->decisions;
    TIDE_TRY(slot_list_alloc(&s->saves, d->swaps.count));
    TIDE_TRY(slot_list_alloc(&s->loads, d->swaps.count));
    TIDE_TRY(slot_list_alloc(&s->reruns, d->reruns.count));
    for (size_t i = 0; i < d->swaps.count; i++) {
        const tide__swap *w = &d->swaps.data[i];
        TIDE_TRY(check_swap(s, w));
        if (w->save_slot != TIDE_NONE) slot_list_add(&s->saves, w->save_slot, (uint32_t)i, i);
        if (w->load_slot != TIDE_NONE) slot_list_add(&s->loads, w->load_slot, w->needed_slot, i);
    }
    for (size_t i = 0; i < d->reruns.count; i++) {
        const tide__rerun *r = &d->reruns.data[i];
        if (r->op >= s->n_ops || r->slot > s->n_ops || r->slot <= r->op)
            return tide__fail(TIDE_E_ARGUMENT, "re-run of op %u before op %u is not possible", r->op, r->slot);
        slot_list_add(&s->reruns, r->slot, r->op, i);
    }
    qsort(s->saves.items, s->saves.count, sizeof(slotted), by_key);
    qsort(s->loads.items, s->loads.count, sizeof(slotted), by_key);
    qsort(s->reruns.items, s->reruns.count, sizeof(slotted), by_key);
    return TIDE_OK;
}

/* ---- sizes ---- */

static tide_status round_to(uint64_t *bytes, uint64_t block) {
    uint64_t rounded;
    if (!tide__align_up(*bytes, block, &rounded))
        return tide__fail(TIDE_E_OVERFLOW, "a tensor of %llu bytes", (unsigned long long)*bytes);
    *bytes = rounded;
    return TIDE_OK;
}

tide_status tide__scheduler_client_tier(const scheduler *s, tide_id tensor, uint32_t *tier) {
    *tier = tide_machine_find_tier(s->machine, TIDE_TIER_CLIENT);
    if (*tier != TIDE_NONE && tide_machine_queue(s->machine, *tier, false) != TIDE_NONE) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "machine \"%s\" has no client tier to load tensor \"%s\" from", s->machine->name,
                      tide__scheduler_name(s, tensor));
}

static tide_id first_of(tide_id *parent, tide_id t) {
    while (parent[t] != t) t = parent[t] = parent[parent[t]];
    return t;
}

/* Carries make chains: x is carried to y, y to z. All of a chain get the largest size of them, found in disjoint sets
 * (`parent`) because chains may be as long as the program. */
static tide_status size_carried(scheduler *s) {
    tide_id *parent = malloc((s->n_tensors + (size_t)1) * sizeof *parent);
    if (!parent) return tide__fail_memory();
    for (tide_id t = 0; t < s->n_tensors; t++) parent[t] = t;
    for (uint32_t i = 0; i < tide_program_carry_count(s->program); i++) {
        const tide_carry *c = tide_program_carry(s->program, i);
        tide_id from = first_of(parent, c->from), to = first_of(parent, c->to);
        s->moved_bytes[from] = tide__max_u64(s->moved_bytes[from], s->moved_bytes[to]);
        parent[to] = from;
    }
    for (tide_id t = 0; t < s->n_tensors; t++) s->moved_bytes[t] = s->moved_bytes[first_of(parent, t)];
    free(parent);
    return TIDE_OK;
}

/* A value has one size wherever it goes, and a carried one has the same under both of its ids. */
static tide_status size_tensors(scheduler *s) {
    for (tide_id t = 0; t < s->n_tensors; t++) {
        const tide_tensor *tensor = tide_program_tensor(s->program, t);
        s->moved_bytes[t] = tensor->size_bytes;
        if (tensor->start != TIDE_START_CLIENT) continue;
        uint32_t tier;
        TIDE_TRY(tide__scheduler_client_tier(s, t, &tier));
        TIDE_TRY(round_to(&s->moved_bytes[t], s->machine->tier[tier].block_bytes));
    }
    for (size_t i = 0; i < s->decisions->swaps.count; i++) {
        const tide__swap *w = &s->decisions->swaps.data[i];
        TIDE_TRY(round_to(&s->moved_bytes[w->tensor], s->machine->tier[w->tier].block_bytes));
    }
    return size_carried(s);
}

/* ---- life ---- */

tide_status tide__scheduler_init(scheduler *s) {
    s->n_ops = tide_program_op_count(s->program);
    s->n_tensors = tide_program_tensor_count(s->program);
    size_t n = s->n_tensors ? s->n_tensors : 1;
    s->current = malloc(n * sizeof *s->current);
    s->first_copy = malloc(n * sizeof *s->first_copy);
    s->moved_bytes = malloc(n * sizeof *s->moved_bytes);
    s->starts_in_arena = calloc(n, sizeof *s->starts_in_arena);
    if (!s->current || !s->first_copy || !s->moved_bytes || !s->starts_in_arena) return tide__fail_memory();
    memset(s->current, 0xff, n * sizeof *s->current);
    memset(s->first_copy, 0xff, n * sizeof *s->first_copy);
    TIDE_TRY(sort_decisions(s));
    TIDE_TRY(size_tensors(s));
    return tide__vec_reserve(&s->plan->actions, s->n_ops + s->reruns.count + s->saves.count + s->loads.count);
}

void tide__scheduler_deinit(scheduler *s) {
    free(s->current);
    free(s->first_copy);
    free(s->starts_in_arena);
    free(s->moved_bytes);
    free(s->saves.items);
    free(s->loads.items);
    free(s->reruns.items);
    tide__vec_free(&s->next_copy);
}
