/* Buffers as compilers have them: weights that stay or come with their first use, activations that wait for their
 * backward, temporaries of a few ops, sizes from 64 bytes to 256 MiB. A heuristic has about a second for 25000. */
#include "place/compiled.h"

#include <stdlib.h>

#include "base/rng.h"

static uint64_t draw(uint64_t seed, uint64_t stream, uint64_t i, uint64_t below) {
    return tide__random_u64(seed, stream, i) % below;
}

static tide__place_item buffer(uint64_t size, uint64_t begin, uint64_t end) {
    return (tide__place_item){
        .size = size, .align = 1, .fixed = TIDE__PLACE_FREE, .begin = (uint32_t)begin, .end = (uint32_t)end};
}

/* Weights for good or from their first use on, a few values for some time, most for some ops; 64 bytes to 64 MiB. */
static void fill_inference(uint64_t seed, uint64_t n, tide__place_item *items) {
    for (uint64_t i = 0; i < n; i++) {
        uint64_t power = UINT64_C(64) << draw(seed, 1, i, 20), size = (power + draw(seed, 2, i, power)) / 64 * 64;
        uint64_t kind = draw(seed, 3, i, 20), begin = kind < 2 ? 0 : kind == 2 ? draw(seed, 4, i, n) : i;
        uint64_t length = kind < 3 ? n : 2 + draw(seed, 5, i, kind == 3 ? n / 10 : 8);
        items[i] = buffer(size, begin, begin + length < n ? begin + length : n + 1);
    }
}

/* Ops in layers of one size each, whose weights are fetched ahead of them; some outputs are read much later. */
static void fill_layers(uint64_t seed, uint64_t n, tide__place_item *items) {
    enum { PER_LAYER = 10 };
    uint64_t end = n + PER_LAYER;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t layer = i / PER_LAYER, begin = layer * PER_LAYER;
        uint64_t unit = (UINT64_C(1024) << draw(seed, 1, layer, 12)) + draw(seed, 2, layer, 80) * 64;
        uint64_t reach = draw(seed, 5, i, 10) == 0 ? 2000 : 40;
        switch (i % PER_LAYER) {
        case 0: items[i] = buffer(unit * (1 + draw(seed, 3, i, 4)), 0, end); break;
        case 1: items[i] = buffer(unit * 8, begin > 20 ? begin - 20 : 0, begin + PER_LAYER + 2); break;
        case 2: items[i] = buffer(unit, begin, begin + PER_LAYER + draw(seed, 4, i, reach)); break;
        default: items[i] = buffer(unit / 2 * (1 + draw(seed, 3, i, 8)), i, i + 2 + draw(seed, 4, i, 3));
        }
    }
}

/* A graph without layers: a value lives until the last of three readers, a few or a thousand ops away. */
static void fill_graph(uint64_t seed, uint64_t n, tide__place_item *items) {
    for (uint64_t i = 0; i < n; i++) {
        uint64_t size = 256 * (1 + draw(seed, 1, i, UINT64_C(16) << draw(seed, 2, i, 14))), length = 1;
        for (uint64_t reader = 0; reader < 3; reader++) {
            uint64_t distance = 1 + draw(seed, 10 + reader, i, UINT64_C(2) << draw(seed, 20 + reader, i, 10));
            length = distance > length ? distance : length;
        }
        bool is_weight = draw(seed, 3, i, 5) == 0;
        uint64_t end = is_weight || i + 1 + length > n ? n + 1 : i + 1 + length;
        items[i] = buffer(size, is_weight ? 0 : i, end);
    }
}

/* ---- recipes: shares of kinds of buffers ---- */

typedef struct recipe {
    uint32_t weights, late, early; /* of 100: alive throughout; from the first use on; until the last use */
    uint32_t activations;          /* of 100: from a forward op to its mirror in the backward half */
    uint32_t values;               /* of 100: for up to 2^10 ops, each power of two as likely; the rest: 1 to 3 ops */
    uint32_t phases;               /* the ops are so many forward and backward sweeps, one after the other */
    uint32_t sizes_of_layer;       /* of 100: the size is that of the layer (100 ops), which comes again */
    uint32_t aligned;              /* of 100: to 64 bytes up to 4 KiB; the others have odd sizes */
    uint32_t powers;               /* sizes from 64 bytes up, over so many powers of two */
} recipe;

static uint64_t draw_size(const recipe *r, uint64_t seed, uint64_t i, uint64_t op) {
    bool of_layer = draw(seed, 1, i, 100) < r->sizes_of_layer;
    uint64_t key = of_layer ? op / 100 % 12 * 4 + draw(seed, 2, i, 4) : i, stream = of_layer ? 3 : 4;
    uint64_t power = UINT64_C(64) << draw(seed, stream, key, r->powers);
    return power + draw(seed, stream + 2, key, power);
}

static tide__place_item cook(const recipe *r, uint64_t seed, uint64_t i, uint64_t n) {
    uint64_t op = i, kind = draw(seed, 7, i, 100), sweep = n / r->phases, at = op % sweep, start = op - at;
    uint64_t length = 1 + draw(seed, 8, i, 3), size = draw_size(r, seed, i, op), end = n + 3;
    if (kind < r->weights) return buffer(size, 0, end);
    if ((kind -= r->weights) < r->late) return buffer(size, op, end);
    if ((kind -= r->late) < r->early) return buffer(size, 0, op + 1);
    if ((kind -= r->early) < r->activations && at < sweep / 2) return buffer(size, op, start + sweep - at + length);
    if (kind - r->activations < r->values) length = 1 + draw(seed, 9, i, UINT64_C(2) << draw(seed, 10, i, 10));
    return buffer(size, op, op + length < n ? op + length : end);
}

static void cook_all(const recipe *r, uint64_t seed, uint64_t n, tide__place_item *items) {
    for (uint64_t i = 0; i < n; i++) {
        items[i] = cook(r, seed, i, n);
        if (draw(seed, 11, i, 100) >= r->aligned) continue;
        items[i].align = UINT64_C(64) << draw(seed, 12, i, 7);
        items[i].size = (items[i].size + 63) / 64 * 64;
    }
}

/*                                 weights late early activations values phases layer aligned powers */
static const recipe served = {10, 5, 5, 0, 10, 1, 50, 100, 22};
static const recipe streamed = {0, 15, 15, 0, 10, 1, 0, 100, 22};
static const recipe trained = {5, 0, 0, 30, 5, 1, 80, 100, 22};
static const recipe phased = {5, 2, 2, 25, 10, 6, 30, 50, 22};
static const recipe odd = {5, 5, 5, 10, 25, 2, 0, 0, 18};
static const recipe fused = {2, 0, 0, 0, 60, 1, 20, 30, 20};

static void fill_served(uint64_t seed, uint64_t n, tide__place_item *items) { cook_all(&served, seed, n, items); }
static void fill_streamed(uint64_t seed, uint64_t n, tide__place_item *items) { cook_all(&streamed, seed, n, items); }
static void fill_trained(uint64_t seed, uint64_t n, tide__place_item *items) { cook_all(&trained, seed, n, items); }
static void fill_phased(uint64_t seed, uint64_t n, tide__place_item *items) { cook_all(&phased, seed, n, items); }
static void fill_odd(uint64_t seed, uint64_t n, tide__place_item *items) { cook_all(&odd, seed, n, items); }
static void fill_fused(uint64_t seed, uint64_t n, tide__place_item *items) { cook_all(&fused, seed, n, items); }

const compiled_kind compiled_kinds[COMPILED_KINDS] = {
    {"inference", fill_inference}, {"layers", fill_layers},     {"graph", fill_graph},
    {"served", fill_served},       {"streamed", fill_streamed}, {"trained", fill_trained},
    {"phased", fill_phased},       {"odd", fill_odd},           {"fused", fill_fused},
};
