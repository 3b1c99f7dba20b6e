/* See free_set.h. Depth is logarithmic by the random priorities, so recursion is shallow. */
#include "pool/online/free_set.h"

#include "base/size.h"

static uint64_t most_below(const tide__heap *heap, uint32_t root) {
    return root == TIDE__NO_BLOCK ? 0 : tide__heap_at(heap, root)->most;
}

static void update(tide__heap *heap, uint32_t root) {
    tide__heap_block *b = tide__heap_at(heap, root);
    b->most = tide__max_u64(b->size, tide__max_u64(most_below(heap, b->left), most_below(heap, b->right)));
}

static bool comes_before(const tide__heap *heap, const tide__free_set *set, uint32_t x, uint32_t y) {
    const tide__heap_block *a = tide__heap_at(heap, x), *b = tide__heap_at(heap, y);
    if (!set->by_address && a->size != b->size) return a->size < b->size;
    return a->address < b->address;
}

/* Everything below `root` that comes before `block` goes to *low, the rest to *high. */
static void cut(tide__heap *heap, const tide__free_set *set, uint32_t root, uint32_t block, uint32_t *low,
                uint32_t *high) {
    if (root == TIDE__NO_BLOCK) {
        *low = *high = TIDE__NO_BLOCK;
        return;
    }
    tide__heap_block *b = tide__heap_at(heap, root);
    if (comes_before(heap, set, root, block)) {
        cut(heap, set, b->right, block, &b->right, high);
        *low = root;
    } else {
        cut(heap, set, b->left, block, low, &b->left);
        *high = root;
    }
    update(heap, root);
}

/* All of `low` comes before all of `high`. */
static uint32_t merge(tide__heap *heap, uint32_t low, uint32_t high) {
    if (low == TIDE__NO_BLOCK) return high;
    if (high == TIDE__NO_BLOCK) return low;
    tide__heap_block *a = tide__heap_at(heap, low), *b = tide__heap_at(heap, high);
    uint32_t root = a->priority > b->priority ? low : high;
    if (root == low)
        a->right = merge(heap, a->right, high);
    else
        b->left = merge(heap, low, b->left);
    update(heap, root);
    return root;
}

static uint32_t add_below(tide__heap *heap, const tide__free_set *set, uint32_t root, uint32_t block) {
    tide__heap_block *b = tide__heap_at(heap, block);
    if (root == TIDE__NO_BLOCK || b->priority > tide__heap_at(heap, root)->priority) {
        cut(heap, set, root, block, &b->left, &b->right);
        root = block;
    } else {
        tide__heap_block *r = tide__heap_at(heap, root);
        uint32_t *side = comes_before(heap, set, block, root) ? &r->left : &r->right;
        *side = add_below(heap, set, *side, block);
    }
    update(heap, root);
    return root;
}

void tide__free_set_add(tide__heap *heap, tide__free_set *set, uint32_t block) {
    set->root = add_below(heap, set, set->root, block);
}

static uint32_t remove_below(tide__heap *heap, const tide__free_set *set, uint32_t root, uint32_t block) {
    tide__heap_block *r = tide__heap_at(heap, root);
    if (root == block) return merge(heap, r->left, r->right);
    uint32_t *side = comes_before(heap, set, block, root) ? &r->left : &r->right;
    *side = remove_below(heap, set, *side, block);
    update(heap, root);
    return root;
}

void tide__free_set_remove(tide__heap *heap, tide__free_set *set, uint32_t block) {
    set->root = remove_below(heap, set, set->root, block);
}

uint32_t tide__free_set_find(const tide__heap *heap, const tide__free_set *set, uint64_t size) {
    uint32_t root = set->root;
    if (most_below(heap, root) < size) return TIDE__NO_BLOCK;
    for (;;) { /* something below `root` is large enough */
        const tide__heap_block *b = tide__heap_at(heap, root);
        if (most_below(heap, b->left) >= size && b->left != TIDE__NO_BLOCK)
            root = b->left;
        else if (b->size >= size)
            return root;
        else
            root = b->right;
    }
}
