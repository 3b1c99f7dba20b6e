/* See ranks.h. */
#include "plan/place/ranks.h"

#include <stdlib.h>

typedef struct ranked {
    double first, second;
    uint32_t item;
} ranked;

static int by_keys(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->first != y->first) return x->first > y->first ? -1 : 1;
    if (x->second != y->second) return x->second > y->second ? -1 : 1;
    return x->item < y->item ? -1 : 1;
}

static ranked key_of(const tide__place_item *item, tide__rank_key key) {
    double size = (double)item->size, width = (double)(item->end - item->begin) + (double)(item->end2 - item->begin2);
    switch (key) {
    case TIDE__RANK_WIDTH: return (ranked){width, size, 0};
    case TIDE__RANK_AREA: return (ranked){width * size, size, 0};
    case TIDE__RANK_START: return (ranked){-(double)item->begin, size, 0};
    case TIDE__RANK_SIZE:
    case TIDE__RANK_KEYS: break;
    }
    return (ranked){size, width, 0};
}

tide_status tide__rank_by(const tide__place_problem *p, tide__rank_key key, uint32_t *rank) {
    ranked *keys = malloc((p->n + 1) * sizeof *keys);
    if (!keys) return tide__fail_memory();
    for (uint32_t i = 0; i < p->n; i++) {
        keys[i] = key_of(&p->items[i], key);
        keys[i].item = i;
    }
    qsort(keys, p->n, sizeof *keys, by_keys);
    for (size_t k = 0; k < p->n; k++) rank[keys[k].item] = (uint32_t)k;
    free(keys);
    return TIDE_OK;
}

const char *tide__rank_name(tide__rank_key key) {
    static const char *const names[] = {"skyline by width", "skyline by area", "skyline by size", "skyline by start"};
    return key < TIDE__RANK_KEYS ? names[key] : "";
}
