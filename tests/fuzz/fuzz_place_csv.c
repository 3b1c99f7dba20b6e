/* Fuzzes the reader of placement problems as CSV; what it accepts must be placed without overlap, or refused cleanly. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "plan/place/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool together(const tide__place_item *a, const tide__place_item *b) {
    return a->size && b->size && a->begin < a->end && b->begin < b->end && a->begin < b->end && b->begin < a->end;
}

static void check_offsets(const tide__place_table *t, const uint64_t *offsets) {
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < i; k++) {
            const tide__place_item *a = &t->items[i], *b = &t->items[k];
            if (!together(a, b)) continue;
            if (offsets[i] < offsets[k] + b->size && offsets[k] < offsets[i] + a->size) abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide__place_table table;
    tide__place_result result;
    if (tide__place_csv_parse((const char *)data, size, "fuzz", &table) != TIDE_OK) return 0;
    uint64_t *offsets = calloc(table.n + 1, sizeof *offsets);
    tide__place_options options = {.node_limit = 200};
    if (offsets && table.n < 64 && tide__place(table.items, table.n, &options, offsets, &result) == TIDE_OK)
        check_offsets(&table, offsets);
    free(offsets);
    tide__place_table_free(&table);
    return 0;
}
