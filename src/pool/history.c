/* See history.h. */
#include "pool/history.h"

#include <stdlib.h>

tide_status tide__history_init(tide__history *history, uint64_t events) {
    uint64_t places = 64;
    while (places < events) places *= 2;
    *history = (tide__history){.ring = calloc(places, sizeof *history->ring), .mask = places - 1};
    return history->ring ? TIDE_OK : tide__fail_memory();
}

void tide__history_deinit(tide__history *history) { free(history->ring); }

uint64_t tide__history_gram(const tide__history *history, uint64_t index) {
    uint64_t oldest = tide__history_oldest(history), gram = 0;
    uint64_t from = index >= oldest + TIDE__GRAM_LENGTH - 1 ? index - TIDE__GRAM_LENGTH + 1 : oldest;
    for (uint64_t i = from; i <= index; i++) gram = tide__gram_push(gram, tide__history_at(history, i)->symbol);
    return gram;
}
