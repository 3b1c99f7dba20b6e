/* See plan_cache.h. */
#include "run/plan_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "program/program_data.h"

enum { MAX_ENTRIES = 64 };

/* ---- equality ---- */

bool tide__same_tensor(const tide_tensor *a, const tide_tensor *b) {
    return a->size_bytes == b->size_bytes && a->dtype == b->dtype && a->cls == b->cls && a->start == b->start;
}

static bool same_variants(const tide_op *a, const tide_op *b) {
    for (uint32_t i = 0; i < a->n_variants; i++)
        if (a->variants[i].workspace_bytes != b->variants[i].workspace_bytes ||
            a->variants[i].bits_class != b->variants[i].bits_class)
            return false;
    return true;
}

static bool same_pairs(const tide_op *a, const tide_op *b) {
    for (uint32_t i = 0; i < a->n_inplace; i++)
        if (a->inplace[i].read != b->inplace[i].read || a->inplace[i].write != b->inplace[i].write ||
            a->inplace[i].must != b->inplace[i].must)
            return false;
    return true;
}

static bool same_ids(const tide_id *a, const tide_id *b, uint32_t n) {
    return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

bool tide__same_op(const tide_op *a, const tide_op *b) {
    if (a->phase != b->phase || a->rerunnable != b->rerunnable || a->random != b->random) return false;
    if (a->random && a->counter != b->counter) return false;
    if (a->n_reads != b->n_reads || a->n_writes != b->n_writes) return false;
    if (a->n_inplace != b->n_inplace || a->n_variants != b->n_variants) return false;
    return same_ids(a->reads, b->reads, a->n_reads) && same_ids(a->writes, b->writes, a->n_writes) &&
           same_pairs(a, b) && same_variants(a, b);
}

/* The signature does not see ids, a plan does. */
static bool same_program(const tide_program *a, const tide_program *b) {
    tide_signature x = tide_program_signature(a), y = tide_program_signature(b);
    if (x.word[0] != y.word[0] || x.word[1] != y.word[1]) return false;
    for (tide_id t = 0; t < tide_program_tensor_count(a); t++)
        if (!tide__same_tensor(tide_program_tensor(a, t), tide_program_tensor(b, t)) ||
            tide_program_tensor(a, t)->keep != tide_program_tensor(b, t)->keep)
            return false;
    for (tide_id i = 0; i < tide_program_op_count(a); i++)
        if (!tide__same_op(tide_program_op(a, i), tide_program_op(b, i))) return false;
    for (uint32_t i = 0; i < tide_program_carry_count(a); i++)
        if (memcmp(tide_program_carry(a, i), tide_program_carry(b, i), sizeof(tide_carry)) != 0) return false;
    return true;
}

/* ---- entries ---- */

static void destroy_entry(tide__cached *entry) {
    tide_plan_destroy(entry->plan);
    tide_program_destroy(entry->program);
    free(entry->last_op);
    free(entry);
}

void tide__plan_cache_deinit(tide__plan_cache *cache) {
    for (size_t i = 0; i < cache->entries.count; i++) destroy_entry(cache->entries.data[i]);
    tide__vec_free(&cache->entries);
}

void tide__plan_cache_forget_plan(tide__cached *entry) {
    tide_plan_destroy(entry->plan);
    entry->plan = NULL;
    entry->drift.n_misses = 0;
}

void tide__plan_cache_forget_plans(tide__plan_cache *cache) {
    for (size_t i = 0; i < cache->entries.count; i++) {
        tide__plan_cache_forget_plan(cache->entries.data[i]);
        cache->entries.data[i]->hopeless = false;
    }
}

void tide__plan_cache_touch(tide__plan_cache *cache, tide__cached *entry) {
    entry->last_use = ++cache->clock;
    entry->n_seen++;
}

static void evict_oldest(tide__plan_cache *cache) {
    size_t oldest = 0;
    for (size_t i = 1; i < cache->entries.count; i++)
        if (cache->entries.data[i]->last_use < cache->entries.data[oldest]->last_use) oldest = i;
    tide__cached *gone = cache->entries.data[oldest];
    cache->entries.data[oldest] = cache->entries.data[--cache->entries.count];
    for (size_t i = 0; i < cache->entries.count; i++)
        if (cache->entries.data[i]->next == gone) cache->entries.data[i]->next = NULL;
    destroy_entry(gone);
}

tide_status tide__find_last_ops(const tide_program *p, tide_id **out) {
    size_t n = tide_program_tensor_count(p);
    tide_id *last = malloc((n + 1) * sizeof *last);
    if (!last) return tide__fail_memory();
    memset(last, 0xff, n * sizeof *last); /* TIDE_NONE in each */
    for (tide_id i = 0; i < tide_program_op_count(p); i++) {
        const tide_op *op = tide_program_op(p, i);
        for (uint32_t k = 0; k < op->n_reads; k++) last[op->reads[k]] = i;
        for (uint32_t k = 0; k < op->n_writes; k++) last[op->writes[k]] = i;
    }
    *out = last;
    return TIDE_OK;
}

static tide_status look_at(tide__cached *entry) {
    const tide_program *p = entry->program;
    for (tide_id t = 0; t < tide_program_tensor_count(p); t++)
        entry->n_inputs += tide_program_tensor(p, t)->start == TIDE_START_CLIENT;
    return tide__find_last_ops(p, &entry->last_op);
}

static tide_status add(tide__plan_cache *cache, tide_program *program, tide__cached **out) {
    if (cache->entries.count >= MAX_ENTRIES) evict_oldest(cache);
    TIDE_TRY(tide__vec_reserve(&cache->entries, 1));
    tide__cached *entry = calloc(1, sizeof *entry);
    if (!entry) return tide__fail_memory();
    entry->program = program;
    if (look_at(entry) != TIDE_OK) {
        free(entry);
        return TIDE_E_MEMORY;
    }
    cache->entries.data[cache->entries.count++] = entry;
    *out = entry;
    return TIDE_OK;
}

/* The newest costs count for a plan that is still to be made. */
static void renew(tide__cached *entry, tide_program *program) {
    tide_program *other = entry->plan ? program : entry->program;
    if (!entry->plan) entry->program = program;
    tide_program_destroy(other);
}

tide_status tide__plan_cache_note(tide__plan_cache *cache, tide_program *program, tide__cached **out) {
    tide__cached *entry = NULL;
    for (size_t i = 0; i < cache->entries.count && !entry; i++)
        if (same_program(cache->entries.data[i]->program, program)) entry = cache->entries.data[i];
    if (entry) {
        renew(entry, program);
    } else {
        tide_status status = add(cache, program, &entry);
        if (status != TIDE_OK) {
            tide_program_destroy(program);
            return status;
        }
    }
    tide__plan_cache_touch(cache, entry);
    *out = entry;
    return TIDE_OK;
}

/* ---- plans in a folder ---- */

/* What a plan depends on besides the step. */
static uint64_t hash_options(const tide_machine *machine, const tide_plan_options *o) {
    const char *policy = o->policy ? o->policy : "liveness";
    uint64_t hash = tide__hash_word(tide_machine_fingerprint(machine), o->budgets.arena_bytes);
    for (uint32_t t = 0; t < machine->n_tiers; t++) hash = tide__hash_word(hash, o->budgets.tier_bytes[t]);
    hash = tide__hash_bytes(hash, policy, strlen(policy));
    if (o->order == TIDE_ORDER_FREE) hash = tide__hash_word(hash, 1);
    return tide__hash_word(tide__hash_word(hash, o->effort), o->bits_any);
}

static bool make_path(const char *folder, const tide_program *program, const tide_machine *machine,
                      const tide_plan_options *options, char *path, size_t size) {
    tide_signature s = tide_program_signature(program);
    int n = snprintf(path, size, "%s/%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 ".plan.jsonl", folder, s.word[0],
                     s.word[1], hash_options(machine, options));
    return n > 0 && (size_t)n < size;
}

/* As a step that repeats, or, where that is enough, as one that runs once: then states are moved back between steps. */
static bool is_valid(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                     const tide_plan_options *options, bool once_is_enough) {
    tide_program *once;
    if (tide_plan_bits_any(plan) && !options->bits_any) return false; /* the verifier takes the plan's word for it */
    if (tide_plan_is_reordered(plan) && options->order == TIDE_ORDER_PROGRAM) return false;
    if (tide_plan_verify(plan, program, machine, &options->budgets, NULL) == TIDE_OK) return true;
    if (!once_is_enough || tide__program_once(program, &once) != TIDE_OK) return false;
    bool valid = tide_plan_verify(plan, once, machine, &options->budgets, NULL) == TIDE_OK;
    tide_program_destroy(once);
    return valid;
}

/* Whatever is wrong with the file: then there is no plan in the folder, and NULL is returned. */
static tide_plan *read_plan(const char *folder, const tide_program *program, const tide_machine *machine,
                            const tide_plan_options *options, bool once_is_enough) {
    char path[4096];
    tide_plan *plan;
    if (!make_path(folder, program, machine, options, path, sizeof path) || tide_plan_read(path, &plan) != TIDE_OK)
        return NULL;
    if (is_valid(plan, program, machine, options, once_is_enough)) return plan;
    tide_plan_destroy(plan);
    return NULL;
}

tide_plan *tide_plan_recall(const char *folder, const tide_program *program, const tide_machine *machine,
                            const tide_plan_options *options) {
    return options->decisions ? NULL : read_plan(folder, program, machine, options, false);
}

tide_status tide_plan_remember(const char *folder, const tide_program *program, const tide_machine *machine,
                               const tide_plan_options *options, const tide_plan *plan) {
    TIDE_NEED(folder, program, machine, options, plan);
    char path[4096];
    if (options->decisions) return TIDE_OK;
    if (!make_path(folder, program, machine, options, path, sizeof path))
        return tide__fail(TIDE_E_ARGUMENT, "the path of the folder of plans is too long");
    return tide_plan_write(plan, path);
}

/* ---- plans of entries ---- */

/* A state and its successor that are alive at the same time cannot have one place over the step's end. */
static tide_status make_plan(const tide__plan_cache *cache, tide__cached *entry) {
    tide_program *once;
    tide_status status = tide_plan_create(entry->program, cache->machine, &cache->options, NULL, &entry->plan);
    if (status != TIDE_E_UNSUPPORTED) return status;
    TIDE_TRY(tide__program_once(entry->program, &once));
    status = tide_plan_create(once, cache->machine, &cache->options, NULL, &entry->plan);
    tide_program_destroy(once);
    return status;
}

tide_status tide__plan_cache_plan(tide__plan_cache *cache, tide__cached *entry) {
    if (entry->plan || entry->hopeless || !*cache->options.policy) return TIDE_OK;
    entry->plan_number = ++cache->clock;
    if (cache->folder && entry->drift.n_replans == 0 && entry->n_seen == 1)
        entry->plan = read_plan(cache->folder, entry->program, cache->machine, &cache->options, true);
    if (entry->plan || entry->n_seen < 2) return TIDE_OK;
    tide_status status = make_plan(cache, entry);
    if (status == TIDE_E_MEMORY) return status;
    entry->hopeless = status != TIDE_OK;
    if (status == TIDE_OK && cache->folder) /* a plan that cannot be written is a plan all the same */
        (void)tide_plan_remember(cache->folder, entry->program, cache->machine, &cache->options, entry->plan);
    return TIDE_OK;
}
