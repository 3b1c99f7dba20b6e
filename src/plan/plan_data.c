/* Plans as data: life, accessors, fingerprint. See plan_data.h. */
#include "plan/plan_data.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/size.h"

tide_status tide__plan_new(tide_plan **out) {
    tide_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return tide__fail_memory();
    *out = plan;
    return TIDE_OK;
}

void tide__plan_clear(tide_plan *plan) {
    plan->actions.count = plan->uses.count = plan->waits.count = 0;
    plan->residencies.count = plan->copies.count = 0;
    plan->arena_bytes = 0;
    memset(plan->tier_bytes, 0, sizeof plan->tier_bytes);
    plan->prediction = (tide_prediction){0};
}

void tide_plan_destroy(tide_plan *plan) {
    if (!plan) return;
    tide__vec_free(&plan->actions);
    tide__vec_free(&plan->uses);
    tide__vec_free(&plan->waits);
    tide__vec_free(&plan->residencies);
    tide__vec_free(&plan->copies);
    free(plan);
}

/* Copies a vector of `plan` into the empty one of the clone. */
#define CLONE_VEC(field)                                                                               \
    do {                                                                                               \
        clone->field.data = NULL;                                                                      \
        clone->field.count = clone->field.capacity = 0;                                                \
        if (status == TIDE_OK) status = tide__vec_reserve(&clone->field, plan->field.count);           \
        if (status == TIDE_OK && plan->field.count) {                                                  \
            memcpy(clone->field.data, plan->field.data, plan->field.count * sizeof *plan->field.data); \
            clone->field.count = plan->field.count;                                                    \
        }                                                                                              \
    } while (0)

tide_status tide__plan_clone(const tide_plan *plan, tide_plan **out) {
    tide_plan *clone;
    TIDE_TRY(tide__plan_new(&clone));
    *clone = *plan;
    tide_status status = TIDE_OK;
    CLONE_VEC(actions);
    CLONE_VEC(uses);
    CLONE_VEC(waits);
    CLONE_VEC(residencies);
    CLONE_VEC(copies);
    if (status == TIDE_OK)
        *out = clone;
    else
        tide_plan_destroy(clone);
    return status;
}

uint32_t tide_plan_action_count(const tide_plan *plan) { return (uint32_t)plan->actions.count; }
uint32_t tide_plan_residency_count(const tide_plan *plan) { return (uint32_t)plan->residencies.count; }
uint32_t tide_plan_copy_count(const tide_plan *plan) { return (uint32_t)plan->copies.count; }

tide_action tide_plan_action(const tide_plan *plan, uint32_t i) {
    const tide__action *a = &plan->actions.data[i];
    return (tide_action){
        .kind = a->kind,
        .queue = a->queue,
        .op = a->op,
        .variant = a->variant,
        .copy = a->copy,
        .n_uses = a->n_uses,
        .n_waits = a->n_waits,
        .uses = a->n_uses ? plan->uses.data + a->uses : NULL,
        .waits = a->n_waits ? plan->waits.data + a->waits : NULL,
    };
}

const tide_residency *tide_plan_residency(const tide_plan *plan, tide_id id) {
    return id < plan->residencies.count ? &plan->residencies.data[id] : NULL;
}

const tide_copy *tide_plan_copy(const tide_plan *plan, tide_id id) {
    return id < plan->copies.count ? &plan->copies.data[id] : NULL;
}

uint64_t tide_plan_arena_bytes(const tide_plan *plan) { return plan->arena_bytes; }
bool tide_plan_bits_any(const tide_plan *plan) { return plan->bits_any; }
uint32_t tide_plan_parts(const tide_plan *plan) { return plan->parts > 1 ? plan->parts : 1; }
bool tide_plan_is_reordered(const tide_plan *plan) { return plan->reordered; }
const char *tide_plan_policy(const tide_plan *plan) { return plan->policy; }
const tide_prediction *tide_plan_prediction(const tide_plan *plan) { return &plan->prediction; }

uint64_t tide_plan_tier_bytes(const tide_plan *plan, uint32_t tier) {
    return tier < TIDE_MACHINE_MAX_TIERS ? plan->tier_bytes[tier] : 0;
}

static uint64_t hash_actions(uint64_t h, const tide_plan *plan) {
    for (size_t i = 0; i < plan->actions.count; i++) {
        tide_action a = tide_plan_action(plan, (uint32_t)i);
        h = tide__hash_word(h, (uint64_t)a.kind << 32 | a.queue);
        h = tide__hash_word(h, (uint64_t)a.op << 32 | a.variant);
        h = tide__hash_word(h, (uint64_t)a.copy << 32 | a.n_uses);
        for (uint32_t k = 0; k < a.n_uses; k++) h = tide__hash_word(h, a.uses[k]);
        for (uint32_t k = 0; k < a.n_waits; k++) h = tide__hash_word(h, ~(uint64_t)a.waits[k]);
    }
    return h;
}

static uint64_t hash_place(uint64_t h, uint64_t tensor_and_tier, uint64_t offset, uint64_t size, uint32_t begin,
                           uint32_t end, bool at_start, bool at_end) {
    h = tide__hash_word(h, tensor_and_tier);
    h = tide__hash_word(h, offset);
    h = tide__hash_word(h, size);
    h = tide__hash_word(h, (uint64_t)begin << 32 | end);
    return tide__hash_word(h, (uint64_t)at_start << 1 | (uint64_t)at_end);
}

uint64_t tide_plan_fingerprint(const tide_plan *plan) {
    uint64_t h = tide__hash_word(plan->signature.word[0], plan->signature.word[1]);
    h = tide__hash_word(h, plan->machine_fingerprint);
    h = tide__hash_word(h, (uint64_t)plan->n_queues << 32 | plan->n_tiers);
    h = tide__hash_word(h, plan->arena_bytes << 1 | (uint64_t)plan->bits_any);
    for (uint32_t t = 0; t < TIDE_MACHINE_MAX_TIERS; t++) h = tide__hash_word(h, plan->tier_bytes[t]);
    if (plan->reordered) h = tide__hash_word(h, 1);
    if (plan->parts > 1) h = tide__hash_word(h, plan->parts);
    h = hash_actions(h, plan);
    for (size_t i = 0; i < plan->residencies.count; i++) {
        const tide_residency *r = &plan->residencies.data[i];
        h = hash_place(h, r->tensor, r->offset_bytes, r->size_bytes, r->begin, r->end, r->at_start, r->at_end);
    }
    for (size_t i = 0; i < plan->copies.count; i++) {
        const tide_copy *c = &plan->copies.data[i];
        h = hash_place(h, (uint64_t)c->tier << 32 | c->tensor, c->offset_bytes, c->size_bytes, c->begin, c->end,
                       c->at_start, c->at_end);
    }
    return h;
}

void tide_budgets_init(tide_budgets *b) {
    b->arena_bytes = UINT64_MAX;
    for (int i = 0; i < TIDE_MACHINE_MAX_TIERS; i++) b->tier_bytes[i] = UINT64_MAX;
}

uint64_t tide__tier_limit(const tide_machine *machine, const tide_budgets *budgets, uint32_t tier) {
    return tide__min_u64(machine->tier[tier].capacity_bytes, budgets ? budgets->tier_bytes[tier] : UINT64_MAX);
}

void tide_plan_options_init(tide_plan_options *options) {
    *options = (tide_plan_options){.size = sizeof *options, .effort = TIDE_EFFORT_NORMAL};
    tide_budgets_init(&options->budgets);
    options->arena_budget.bytes = options->host_budget.bytes = options->disk_budget.bytes = UINT64_MAX;
}
