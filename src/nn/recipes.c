/* Interning of descriptors: a hash table over words that hold every field, and the queries behind a miss. */
#include "nn/recipes.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/size.h"
#include "nn/analytic.h"

void tide__recipes_init(tide__recipes *r, tide_device *device, const tide_machine *machine, tide_dtype dtype) {
    *r = (tide__recipes){.device = device, .machine = machine, .dtype = dtype};
}

static void free_recipe(tide__recipe *recipe) {
    tide_kernel_destroy(recipe->kernel);
    free(recipe->grad_elements);
    free(recipe->part_channels);
    free(recipe);
}

void tide__recipes_deinit(tide__recipes *r) {
    for (size_t i = 0; i < r->all.count; i++) {
        free_recipe(r->all.data[i]);
    }
    tide__vec_free(&r->all);
    free(r->slots);
}

void tide__recipes_drop_kernels(tide__recipes *r) {
    for (size_t i = 0; i < r->all.count; i++) {
        tide_kernel_destroy(r->all.data[i]->kernel);
        r->all.data[i]->kernel = NULL;
    }
}

const tide_operand_info *tide__recipe_operand(const tide__recipe *recipe, uint32_t i) {
    uint32_t n_reads = recipe->info.n_reads;
    bool alike = recipe->desc.kind == TIDE_OP_GRAD_NORM || recipe->desc.kind == TIDE_OP_STACK;
    return i < n_reads ? &recipe->info.read[alike ? 0 : i] : &recipe->info.write[i - n_reads];
}

/* The analytic model has one layout for values of float32 and one for those of the shorter type; devices keep the same ones short. */
tide_dtype tide__recipe_dtype(const tide__recipes *r, const tide__recipe *recipe, uint32_t i, tide_dtype otherwise) {
    tide__recipe plain = {.desc = recipe->desc};
    if (r->dtype == TIDE_F32 || tide__analytic_operands(&recipe->desc, true, &plain.info) != TIDE_OK) return otherwise;
    return tide__recipe_operand(&plain, i)->layout == TIDE__LAYOUT_HALF ? r->dtype : otherwise;
}

/* ---- keys ---- */

static uint64_t pair_word(int32_t a, int32_t b) { return (uint64_t)(uint32_t)a << 32 | (uint32_t)b; }

static uint64_t float_words(float a, float b) {
    uint32_t bits[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    return (uint64_t)bits[0] << 32 | bits[1];
}

/* Every field that makes a kernel different; lists only by their address: that of a norm is used once, those of
 * concatenations stay where they are while a step is made. */
static void make_key(const tide_op_desc *d, uint64_t key[TIDE__DESC_KEY_WORDS]) {
    const uint64_t words[TIDE__DESC_KEY_WORDS] = {
        pair_word((int32_t)d->kind, d->stride),
        (uint64_t)d->x.n,
        (uint64_t)d->x.c,
        (uint64_t)d->x.h,
        (uint64_t)d->x.w,
        (uint64_t)d->y.n,
        (uint64_t)d->y.c,
        (uint64_t)d->y.h,
        (uint64_t)d->y.w,
        pair_word(d->kernel_h, d->kernel_w),
        pair_word(d->pad_h, d->pad_w),
        pair_word(d->bias, d->needs_dx),
        float_words(d->eps, d->momentum),
        float_words(d->drop_rate, d->lrn_alpha),
        float_words(d->lrn_beta, d->lrn_k),
        pair_word(d->lrn_size, d->clipped),
        d->elements,
        (uint64_t)d->n_grads << 32 | d->from_operand,
        (uint64_t)(uintptr_t)d->grad_elements,
        float_words(d->beta1, d->beta2),
        float_words(d->weight_decay, d->clip_norm),
        (uint64_t)(uintptr_t)d->from,
        (uint64_t)(uintptr_t)d->to,
        pair_word((int32_t)d->to_operand, d->bf16),
        float_words(d->loss_scale, 0.0f),
        pair_word((int32_t)d->n_parts, d->signs),
        (uint64_t)d->vocabulary,
        (uint64_t)d->positions,
        pair_word(d->steps, d->step),
        pair_word(d->heads, d->context),
        pair_word(d->has_prev, d->has_next),
        (uint64_t)(uintptr_t)d->part_channels,
        d->part_first,
        d->part_elements,
    };
    memcpy(key, words, sizeof words);
}

static size_t hash_key(const uint64_t key[TIDE__DESC_KEY_WORDS]) {
    uint64_t hash = 0;
    for (int i = 0; i < TIDE__DESC_KEY_WORDS; i++) hash = tide__hash_word(hash, key[i]);
    return (size_t)hash;
}

/* ---- the table ---- */

/* The slot of this key: its own, or the empty one where it belongs. */
static uint32_t *find_slot(const tide__recipes *r, const uint64_t key[TIDE__DESC_KEY_WORDS]) {
    size_t mask = r->n_slots - 1, at = hash_key(key) & mask;
    while (r->slots[at] && memcmp(r->all.data[r->slots[at] - 1]->key, key, sizeof r->all.data[0]->key) != 0)
        at = (at + 1) & mask;
    return &r->slots[at];
}

static tide_status grow(tide__recipes *r) {
    if (r->n_slots > 2 * r->all.count) return TIDE_OK;
    size_t n = r->n_slots ? 2 * r->n_slots : 64;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (!slots) return tide__fail_memory();
    free(r->slots);
    r->slots = slots;
    r->n_slots = n;
    for (size_t i = 0; i < r->all.count; i++) *find_slot(r, r->all.data[i]->key) = (uint32_t)i + 1;
    return TIDE_OK;
}

/* ---- making one ---- */

static tide_status query_device(tide_device *device, tide__recipe *recipe) {
    TIDE_TRY(tide_kernel_create(device, &recipe->desc, &recipe->kernel));
    return tide_kernel_get_info(recipe->kernel, &recipe->info);
}

/* Of w, dw and w' an update of a part leaves alone the rest. */
static uint64_t untouched_bytes(const tide_op_desc *d) {
    return d->part_elements ? 3 * sizeof(float) * (d->elements - d->part_elements) : 0;
}

/* Bytes that the op touches: all its operands, but of a table or of all steps only the rows that are wanted. */
static uint64_t operand_bytes(const tide__recipe *recipe) {
    const tide_kernel_info *info = &recipe->info;
    uint64_t reads = 0, writes = 0;
    for (uint32_t i = 0; i < info->n_reads; i++) reads += tide__recipe_operand(recipe, i)->size_bytes;
    for (uint32_t i = 0; i < info->n_writes; i++) writes += info->write[i].size_bytes;
    switch (recipe->desc.kind) {
    case TIDE_OP_GRAD_NORM: return recipe->desc.elements * sizeof(float) + writes;
    case TIDE_OP_EMBEDDING_FWD: return reads - info->read[1].size_bytes + 2 * writes;
    case TIDE_OP_SLICE: return 2 * writes;
    case TIDE_OP_CUT:
    case TIDE_OP_PASTE: return 2 * recipe->desc.part_elements * sizeof(float);
    default: return reads + writes - untouched_bytes(&recipe->desc);
    }
}

/* Costs that the source of `info` did not give, by the machine's roofline. */
static tide_status fill_costs(const tide__recipes *r, tide__recipe *recipe) {
    tide__work work[TIDE__MAX_VARIANTS];
    bool half = r->dtype != TIDE_F32 && !r->device; /* devices compute in float32 */
    for (int i = 0; i < TIDE__MAX_VARIANTS; i++) work[i] = (tide__work){recipe->flops, recipe->bytes, 1.0, half};
    if (!r->device) tide__analytic_variants(&recipe->desc, half, &recipe->info, work);
    for (uint32_t i = 0; i < recipe->info.n_variants; i++) {
        uint64_t *cost = &recipe->info.variant[i].cost_ns;
        if (*cost == 0) TIDE_TRY(tide__op_cost_ns(r->machine, recipe->desc.kind, work[i], cost));
    }
    return TIDE_OK;
}

static tide_status fill(const tide__recipes *r, tide__recipe *recipe) {
    if (r->device)
        TIDE_TRY(query_device(r->device, recipe));
    else
        TIDE_TRY(tide__analytic_operands(&recipe->desc, r->dtype != TIDE_F32, &recipe->info));
    TIDE_TRY(tide__op_flops(&recipe->desc, &recipe->flops));
    recipe->bytes = operand_bytes(recipe);
    return fill_costs(r, recipe);
}

/* Lists move into the recipe. */
static tide_status copy_lists(tide__recipe *recipe) {
    tide_op_desc *d = &recipe->desc;
    size_t grads = d->n_grads * sizeof *recipe->grad_elements, parts = d->n_parts * sizeof *recipe->part_channels;
    recipe->grad_elements = malloc(grads + 1);
    recipe->part_channels = malloc(parts + 1);
    if (!recipe->grad_elements || !recipe->part_channels) return tide__fail_memory();
    if (grads) memcpy(recipe->grad_elements, d->grad_elements, grads);
    if (parts) memcpy(recipe->part_channels, d->part_channels, parts);
    d->grad_elements = grads ? recipe->grad_elements : NULL;
    d->part_channels = parts ? recipe->part_channels : NULL;
    return TIDE_OK;
}

static tide_status make(tide__recipes *r, const tide_op_desc *desc, const uint64_t *key, tide__recipe **out) {
    tide__recipe *recipe = calloc(1, sizeof *recipe);
    if (!recipe) return tide__fail_memory();
    tide_status status;
    recipe->desc = *desc;
    memcpy(recipe->key, key, sizeof recipe->key);
    TIDE_TRY_GOTO(copy_lists(recipe), fail);
    TIDE_TRY_GOTO(fill(r, recipe), fail);
    TIDE_TRY_GOTO(tide__vec_push(&r->all, recipe), fail);
    *out = recipe;
    return TIDE_OK;
fail:
    free_recipe(recipe);
    return status;
}

tide_status tide__recipes_find(tide__recipes *r, const tide_op_desc *of, const tide__recipe **out) {
    uint64_t key[TIDE__DESC_KEY_WORDS];
    tide_op_desc typed = *of;
    const tide_op_desc *desc = &typed;
    typed.bf16 = r->device && r->dtype == TIDE_BF16;
    make_key(desc, key);
    TIDE_TRY(grow(r));
    uint32_t *slot = find_slot(r, key);
    if (*slot) return *out = r->all.data[*slot - 1], TIDE_OK;
    tide__recipe *recipe;
    TIDE_TRY(make(r, desc, key, &recipe));
    *slot = (uint32_t)r->all.count;
    *out = recipe;
    return TIDE_OK;
}
