/* See iteration.h. */
#include "pool/iteration.h"

#include <stdlib.h>
#include <string.h>

/* ---- the cut ---- */

/* grams[i] = gram of the 8 symbols that end with number i, around the circle. */
static void compute_grams(const tide__symbol *symbols, uint32_t n, uint64_t *grams) {
    uint64_t gram = 0;
    for (uint32_t i = 0; i < TIDE__GRAM_LENGTH; i++)
        gram = tide__gram_push(gram, symbols[(n - TIDE__GRAM_LENGTH % n + i) % n]);
    for (uint32_t i = 0; i < n; i++) grams[i] = gram = tide__gram_push(gram, symbols[i]);
}

/* The event before which the fewest bytes are live; among equals the one after the smallest gram. Live bytes are
 * relative to the start and stay below 2^62 either way (the pool admits no more), so they fit. */
static uint32_t find_cut(const tide__symbol *symbols, const uint64_t *grams, uint32_t n) {
    int64_t live = 0, least = INT64_MAX;
    uint32_t best = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t last = (i + n - 1) % n;
        if (live < least || (live == least && grams[last] < grams[(best + n - 1) % n])) best = i, least = live;
        int64_t bytes = (int64_t)tide__symbol_bytes(symbols[i]);
        live += tide__symbol_is_free(symbols[i]) ? -bytes : bytes;
    }
    return best;
}

static uint64_t sign(const uint64_t *grams, uint32_t n) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += tide__mix(grams[i]);
    return tide__hash_word(n, sum);
}

/* ---- lifetimes ---- */

static void number_items(tide__iteration *it) {
    for (uint32_t i = 0; i < it->period; i++)
        it->item[i] = tide__symbol_is_free(it->symbols[i]) ? TIDE__NO_ITEM : it->n_items++;
}

/* The item whose Malloc lies `distance` events before event `at`, if it has the right size. */
static uint32_t find_item(const tide__iteration *it, uint32_t at, uint32_t distance) {
    uint64_t longest = (uint64_t)TIDE__MAX_COPIES * it->period;
    if (distance > longest) return TIDE__NO_ITEM;
    uint32_t begin = (uint32_t)((at + longest - distance) % it->period);
    return it->symbols[begin] == (it->symbols[at] & ~UINT64_C(1)) ? it->item[begin] : TIDE__NO_ITEM;
}

/* distances[i]: of event i in the newest stretch, and in the one before. */
static void match_frees(tide__iteration *it, const uint32_t *newest, const uint32_t *older) {
    for (uint32_t i = 0; i < it->period; i++) {
        if (!tide__symbol_is_free(it->symbols[i])) continue;
        uint32_t item = find_item(it, i, newest[i]);
        if (item == TIDE__NO_ITEM || it->life[item]) continue;
        it->item[i] = item;
        it->life[item] = newest[i];
        if (find_item(it, i, older[i]) == item && older[i] > newest[i]) it->life[item] = older[i];
    }
}

static bool judge(const tide__iteration *it, bool strictly) {
    uint64_t total = 0, lost = 0;
    bool complete = true;
    for (uint32_t i = 0; i < it->period; i++) {
        bool matched = it->item[i] != TIDE__NO_ITEM && it->life[it->item[i]];
        uint64_t kib = tide__symbol_bytes(it->symbols[i]) / 1024 + 1; /* sums of these stay below 2^64 */
        complete = complete && matched;
        if (tide__symbol_is_free(it->symbols[i])) continue;
        total += kib;
        lost += matched ? 0 : kib;
    }
    return strictly ? complete : lost <= total / 8 && lost < total;
}

/* ---- the whole ---- */

typedef struct reader {
    tide__symbol *symbols; /* as in the history */
    uint64_t *grams;
    uint32_t *newest, *older; /* distances, from the cut on */
} reader;

static tide_status allocate(reader *r, tide__iteration *it, uint32_t n) {
    *r = (reader){malloc(n * sizeof *r->symbols), malloc(n * sizeof *r->grams), malloc(n * sizeof *r->newest),
                  malloc(n * sizeof *r->older)};
    *it = (tide__iteration){.period = n,
                            .symbols = malloc(n * sizeof *it->symbols),
                            .item = malloc(n * sizeof *it->item),
                            .life = calloc(n, sizeof *it->life)};
    bool good = r->symbols && r->grams && r->newest && r->older && it->symbols && it->item && it->life;
    return good ? TIDE_OK : tide__fail_memory();
}

static void copy_from_cut(const tide__history *history, reader *r, tide__iteration *it) {
    uint32_t n = it->period;
    uint64_t first = history->count - n;
    for (uint32_t i = 0; i < n; i++) r->symbols[i] = tide__history_at(history, first + i)->symbol;
    compute_grams(r->symbols, n, r->grams);
    uint32_t cut = find_cut(r->symbols, r->grams, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = (cut + i) % n;
        it->symbols[i] = r->symbols[from];
        r->newest[i] = tide__history_at(history, first + from)->distance;
        r->older[i] = tide__history_at(history, first + from - n)->distance;
    }
    it->next = (n - cut) % n;
    it->signature = sign(r->grams, n);
}

tide_status tide__iteration_read(const tide__history *history, uint32_t period, bool strictly, tide__iteration *out,
                                 bool *steady) {
    reader r;
    tide__iteration it;
    tide_status status = allocate(&r, &it, period);
    if (status == TIDE_OK) {
        copy_from_cut(history, &r, &it);
        number_items(&it);
        match_frees(&it, r.newest, r.older);
        *steady = judge(&it, strictly);
        *out = it;
    } else {
        tide__iteration_deinit(&it);
    }
    free(r.symbols);
    free(r.grams);
    free(r.newest);
    free(r.older);
    return status;
}

void tide__iteration_deinit(tide__iteration *it) {
    free(it->symbols);
    free(it->item);
    free(it->life);
}
