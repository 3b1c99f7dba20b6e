/* Online: the engine's tables, made once per step. */
#include "plan/decide/online.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

/* A storage that may move through several tiers has the size that suits them all. */
static tide_status size_storages(tide__online *o) {
    uint64_t block = o->machine->align_bytes;
    for (uint32_t t = 0; t < o->machine->n_tiers; t++)
        if (o->policy->swaps || o->machine->tier[t].kind == TIDE_TIER_CLIENT)
            block = tide__max_u64(block, o->machine->tier[t].block_bytes);
    for (tide_id id = 0; id < o->n_storages; id++) {
        uint64_t bytes = tide_program_tensor(o->program, id)->size_bytes;
        if (!tide__align_up(bytes, block, &o->storages[id].bytes))
            return tide__fail(TIDE_E_OVERFLOW, "a tensor of %llu bytes", (unsigned long long)bytes);
    }
    return TIDE_OK;
}

static void init_storages(tide__online *o) {
    for (tide_id id = 0; id < o->n_storages; id++) {
        o->storages[id].producer = tide_program_producer(o->program, id);
        o->storages[id].tier = TIDE_NONE;
        o->start_tier[id] = o->end_tier[id] = TIDE_NONE;
    }
    for (tide_id op = 0; op < o->n_ops; op++) o->cost_ns[op] = tide_program_op(o->program, op)->variants[0].cost_ns;
}

/* counts[k + 1] = items of k  ->  counts[k] = first item of k */
static void sum_counts(uint32_t *counts, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) counts[i + 1] += counts[i];
}

static tide_status list_consumers(tide__online *o) {
    for (tide_id id = 0; id < o->n_ops; id++) {
        const tide_op *op = tide_program_op(o->program, id);
        for (uint32_t i = 0; i < op->n_reads; i++) o->first_consumer[op->reads[i] + 1]++;
    }
    sum_counts(o->first_consumer, o->n_storages);
    uint32_t *next = malloc((o->n_storages + (size_t)1) * sizeof *next);
    o->consumers = malloc((o->first_consumer[o->n_storages] + (size_t)1) * sizeof *o->consumers);
    if (!next || !o->consumers) {
        free(next);
        return tide__fail_memory();
    }
    memcpy(next, o->first_consumer, o->n_storages * sizeof *next);
    for (tide_id id = 0; id < o->n_ops; id++) {
        const tide_op *op = tide_program_op(o->program, id);
        for (uint32_t i = 0; i < op->n_reads; i++) o->consumers[next[op->reads[i]]++] = id;
    }
    free(next);
    return TIDE_OK;
}

/* The last reference goes with the last use; what nothing uses goes with the first op. */
static void find_releases(tide__online *o) {
    for (tide_id id = 0; id < o->n_storages; id++) o->release_after[id] = 0;
    for (tide_id k = 0; k < o->n_ops; k++) {
        const tide_op *op = tide_program_op(o->program, k);
        for (uint32_t i = 0; i < op->n_reads; i++) o->release_after[op->reads[i]] = k;
        for (uint32_t i = 0; i < op->n_writes; i++) o->release_after[op->writes[i]] = k;
    }
    for (tide_id id = 0; id < o->n_storages; id++)
        if (tide_program_tensor(o->program, id)->keep) o->release_after[id] = TIDE_NONE;
}

static tide_status list_releases(tide__online *o) {
    for (tide_id id = 0; id < o->n_storages; id++)
        if (o->release_after[id] < o->n_ops) o->first_release[o->release_after[id] + 1]++;
    sum_counts(o->first_release, o->n_ops);
    uint32_t *next = malloc((o->n_ops + (size_t)1) * sizeof *next);
    if (!next) return tide__fail_memory();
    memcpy(next, o->first_release, o->n_ops * sizeof *next);
    for (tide_id id = 0; id < o->n_storages; id++)
        if (o->release_after[id] < o->n_ops) o->releases[next[o->release_after[id]]++] = id;
    free(next);
    return TIDE_OK;
}

static tide_status allocate(tide__online *o) {
    size_t n = o->n_storages + (size_t)1, m = o->n_ops + (size_t)1;
    o->storages = calloc(n, sizeof *o->storages);
    o->first_consumer = calloc(n, sizeof *o->first_consumer);
    o->release_after = calloc(n, sizeof *o->release_after);
    o->releases = calloc(n, sizeof *o->releases);
    o->start_tier = calloc(n, sizeof *o->start_tier);
    o->end_tier = calloc(n, sizeof *o->end_tier);
    o->cost_ns = calloc(m, sizeof *o->cost_ns);
    o->ran = calloc(m, sizeof *o->ran);
    o->dead = calloc(m, sizeof *o->dead);
    o->fixed = calloc(m, sizeof *o->fixed);
    o->first_release = calloc(m, sizeof *o->first_release);
    o->op_stamp = calloc(m, sizeof *o->op_stamp);
    bool complete = o->storages && o->first_consumer && o->release_after && o->releases && o->start_tier &&
                    o->end_tier && o->cost_ns && o->ran && o->dead && o->fixed && o->first_release && o->op_stamp;
    return complete ? TIDE_OK : tide__fail_memory();
}

static tide_status fill(tide__online *o, const tide__online_options *options) {
    TIDE_TRY(allocate(o));
    init_storages(o);
    TIDE_TRY(size_storages(o));
    TIDE_TRY(list_consumers(o));
    if (options->release_after)
        memcpy(o->release_after, options->release_after, o->n_storages * sizeof *o->release_after);
    else
        find_releases(o);
    TIDE_TRY(list_releases(o));
    return o->policy->create ? o->policy->create(o, options->argument, &o->self) : TIDE_OK;
}

tide_status tide__online_create(const tide__online_options *options, tide__online **out) {
    tide__online *o = calloc(1, sizeof *o);
    if (!o) return tide__fail_memory();
    o->program = options->program;
    o->machine = options->machine;
    o->policy = options->policy;
    o->device = options->device;
    o->device_self = options->device_self;
    o->n_ops = tide_program_op_count(o->program);
    o->n_storages = tide_program_tensor_count(o->program);
    o->max_events = 40 * (uint64_t)o->n_ops + 1000;
    for (uint32_t t = 0; t < o->machine->n_tiers; t++) {
        bool both = tide_machine_queue(o->machine, t, true) != TIDE_NONE &&
                    tide_machine_queue(o->machine, t, false) != TIDE_NONE;
        o->tier_room[t] = both ? tide__min_u64(o->machine->tier[t].capacity_bytes, options->budgets->tier_bytes[t]) : 0;
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
    free(o->first_consumer);
    free(o->consumers);
    free(o->release_after);
    free(o->releases);
    free(o->start_tier);
    free(o->end_tier);
    free(o->cost_ns);
    free(o->ran);
    free(o->dead);
    free(o->fixed);
    free(o->first_release);
    free(o->op_stamp);
    tide__vec_free(&o->residents);
    tide__vec_free(&o->frames);
    tide__vec_free(&o->stack);
    tide__vec_free(&o->leftovers);
    tide__vec_free(&o->homeless);
    free(o);
}
