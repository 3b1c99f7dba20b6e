/* Online: the engine's tables. They grow with the program, which may be complete at once or come op by op. */
#include "plan/decide/online/online.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan/plan_data.h"

/* ---- growing ---- */

/* A power of two, so that growing one by one reallocates seldom. */
static size_t widened(uint32_t n) {
    size_t capacity = 16;
    while (capacity <= n) capacity *= 2;
    return capacity;
}

tide_status tide__online_widen(uint32_t **numbers, uint32_t n_before, uint32_t n, int byte) {
    if (!*numbers || widened(n) > widened(n_before)) {
        uint32_t *wider = realloc(*numbers, widened(n) * sizeof **numbers);
        if (!wider) return tide__fail_memory();
        *numbers = wider;
    }
    memset(*numbers + n_before, byte, (n - n_before) * sizeof **numbers);
    return TIDE_OK;
}

/* A storage that may move through several tiers has the size that suits them all. */
static tide_status add_storage(tide__online *o, tide_id id, uint64_t block) {
    uint64_t bytes = tide_program_tensor(o->program, id)->size_bytes;
    tide__storage *s = &o->storages[id];
    *s = (tide__storage){.producer = TIDE_NONE,
                         .tier = TIDE_NONE,
                         .first_consumer = TIDE_NONE,
                         .last_consumer = TIDE_NONE,
                         .release_after = TIDE_NONE,
                         .start_tier = TIDE_NONE,
                         .end_tier = TIDE_NONE};
    if (!tide__align_up(bytes, block, &s->bytes))
        return tide__fail(TIDE_E_OVERFLOW, "a tensor of %llu bytes", (unsigned long long)bytes);
    return TIDE_OK;
}

static tide_status grow_storages(tide__online *o) {
    uint32_t before = o->n_storages, n = tide_program_tensor_count(o->program);
    uint64_t block = o->machine->align_bytes;
    for (uint32_t t = 0; t < o->machine->n_tiers; t++)
        if (o->policy->swaps || o->machine->tier[t].kind == TIDE_TIER_CLIENT)
            block = tide__max_u64(block, o->machine->tier[t].block_bytes);
    if (n > o->storage_capacity)
        TIDE_TRY(tide__vec_grow((void **)(void *)&o->storages, before, &o->storage_capacity, n - before,
                                sizeof *o->storages));
    for (tide_id id = before; id < n; id++) TIDE_TRY(add_storage(o, id, block));
    o->n_storages = n;
    return o->policy->grow && (n > before || n == 0) ? o->policy->grow(o->self, o, before) : TIDE_OK;
}

static tide_status add_consumer(tide__online *o, tide__storage *s, tide_id op) {
    uint32_t at = (uint32_t)o->consumers.count;
    tide__consumer consumer = {.op = op, .next = TIDE_NONE};
    TIDE_TRY(tide__vec_push(&o->consumers, consumer));
    if (s->last_consumer == TIDE_NONE)
        s->first_consumer = at;
    else
        o->consumers.data[s->last_consumer].next = at;
    s->last_consumer = at;
    return TIDE_OK;
}

static tide_status grow_ops(tide__online *o) {
    uint32_t n = tide_program_op_count(o->program);
    if (n > o->op_capacity)
        TIDE_TRY(tide__vec_grow((void **)(void *)&o->ops, o->n_ops, &o->op_capacity, n - o->n_ops, sizeof *o->ops));
    for (; o->n_ops < n; o->n_ops++) {
        const tide_op *op = tide_program_op(o->program, o->n_ops);
        o->ops[o->n_ops] = (tide__online_op){.cost_ns = op->variants[0].cost_ns};
        for (uint32_t i = 0; i < op->n_reads; i++) TIDE_TRY(add_consumer(o, &o->storages[op->reads[i]], o->n_ops));
        for (uint32_t i = 0; i < op->n_writes; i++) o->storages[op->writes[i]].producer = o->n_ops;
    }
    return TIDE_OK;
}

tide_status tide__online_grow(tide__online *o) {
    TIDE_TRY(grow_storages(o));
    return grow_ops(o);
}

/* ---- releases of a complete program ---- */

/* The last reference goes with the last use; what nothing uses goes with the first op. */
static void find_releases(tide__online *o) {
    for (tide_id id = 0; id < o->n_storages; id++) o->storages[id].release_after = 0;
    for (tide_id k = 0; k < o->n_ops; k++) {
        const tide_op *op = tide_program_op(o->program, k);
        for (uint32_t i = 0; i < op->n_reads; i++) o->storages[op->reads[i]].release_after = k;
        for (uint32_t i = 0; i < op->n_writes; i++) o->storages[op->writes[i]].release_after = k;
    }
    for (tide_id id = 0; id < o->n_storages; id++)
        if (tide_program_tensor(o->program, id)->keep) o->storages[id].release_after = TIDE_NONE;
}

static tide_status list_releases(tide__online *o) {
    uint32_t *next = malloc((o->n_ops + (size_t)1) * sizeof *next);
    o->releases = calloc(o->n_storages + (size_t)1, sizeof *o->releases);
    o->first_release = calloc(o->n_ops + (size_t)1, sizeof *o->first_release);
    if (!next || !o->releases || !o->first_release) {
        free(next);
        return tide__fail_memory();
    }
    for (tide_id id = 0; id < o->n_storages; id++)
        if (o->storages[id].release_after < o->n_ops) o->first_release[o->storages[id].release_after + 1]++;
    for (uint32_t i = 0; i < o->n_ops; i++) o->first_release[i + 1] += o->first_release[i];
    memcpy(next, o->first_release, o->n_ops * sizeof *next);
    for (tide_id id = 0; id < o->n_storages; id++)
        if (o->storages[id].release_after < o->n_ops) o->releases[next[o->storages[id].release_after]++] = id;
    free(next);
    return TIDE_OK;
}

/* ---- life ---- */

static tide_status fill(tide__online *o, const tide__online_options *options) {
    TIDE_TRY(o->policy->create ? o->policy->create(o, options->argument, &o->self) : TIDE_OK);
    TIDE_TRY(tide__online_grow(o));
    if (options->growing) return TIDE_OK;
    if (!options->release_after) find_releases(o);
    for (tide_id id = 0; id < o->n_storages && options->release_after; id++)
        o->storages[id].release_after = options->release_after[id];
    return list_releases(o);
}

tide_status tide__online_create(const tide__online_options *options, tide__online **out) {
    tide__online *o = calloc(1, sizeof *o);
    if (!o) return tide__fail_memory();
    o->program = options->program;
    o->machine = options->machine;
    o->policy = options->policy;
    o->device = options->device;
    o->device_self = options->device_self;
    o->tiers = tide__tiers_of(o->machine);
    for (uint32_t i = 0; i < o->tiers.n; i++) {
        uint32_t t = o->tiers.tier[i];
        o->tier_room[t] = tide__tier_limit(o->machine, options->budgets, t);
    }
    tide_status status = fill(o, options);
    if (status == TIDE_OK)
        *out = o;
    else
        tide__online_destroy(o);
    return status;
}

void tide__online_destroy(tide__online *o) {
    if (!o) return;
    if (o->policy->destroy && o->self) o->policy->destroy(o->self);
    free(o->storages);
    free(o->ops);
    free(o->first_release);
    free(o->releases);
    tide__vec_free(&o->residents);
    tide__vec_free(&o->consumers);
    tide__vec_free(&o->frames);
    tide__vec_free(&o->stack);
    tide__vec_free(&o->leftovers);
    tide__vec_free(&o->homeless);
    free(o);
}
