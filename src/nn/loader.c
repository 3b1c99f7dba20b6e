/* See loader.h. */
#include "nn/loader.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/rng.h"

/* ---- the order of the samples ---- */

/* A random bijection of [0, 4^half_bits): four Feistel rounds. */
static uint64_t mix_index(uint64_t seed, uint64_t epoch, unsigned half_bits, uint64_t i) {
    uint64_t mask = (UINT64_C(1) << half_bits) - 1, left = i >> half_bits, right = i & mask;
    for (uint64_t round = 0; round < 4; round++) {
        uint64_t next = left ^ (tide__random_u64(seed, tide__hash_word(epoch, round), right) & mask);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

/* The i-th sample of an epoch: a permutation of [0, n) that needs no memory. Walking the larger bijection until it
 * lands inside keeps it one. */
static uint64_t shuffled(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i) {
    unsigned half_bits = 1;
    while (half_bits < 31 && n > UINT64_C(1) << (2 * half_bits)) half_bits++;
    do i = mix_index(seed, epoch, half_bits, i);
    while (i >= n);
    return i;
}

/* The i-th sample of the batch. An epoch ends in the middle of a batch if it has to. */
uint64_t tide__cursor_order(const void *context, uint64_t i, uint64_t *draw) {
    const tide__cursor *c = context;
    uint64_t at = c->seen + i;
    *draw = at;
    return shuffled(c->seed, at / c->n_samples, c->n_samples, at % c->n_samples);
}

/* ---- life ---- */

void tide__loader_open(tide__loader *l, tide__network *network, const tide_data *data, tide_device *device) {
    *l = (tide__loader){.network = network, .data = data, .device = device};
    tide_device_info info;
    if (tide_device_get_info(device, &info) != TIDE_OK || !info.host_visible) return; /* it runs no host functions */
    if (tide__batch_open(network, &l->spare) != TIDE_OK) return;
    if (tide_queue_create(device, TIDE_QUEUE_COPY, &l->queue) != TIDE_OK) l->queue = NULL;
}

void tide__loader_close(tide__loader *l) {
    if (!l->network) return;
    tide_queue_destroy(l->queue);
    tide__batch_close(l->network, &l->spare);
    *l = (tide__loader){0};
}

/* ---- loading ---- */

static tide_status fill_spare(void *context) {
    tide__loader *l = context;
    return tide__network_fill(l->network, &l->spare, l->data, tide__cursor_order, &l->cursor);
}

void tide__loader_begin(tide__loader *l, const tide__cursor *cursor) {
    if (!l->queue) return;
    l->cursor = *cursor;
    l->ahead = tide_queue_launch(l->queue, fill_spare, l, 0) == TIDE_OK;
}

/* A queue that has failed stays so; another one takes its place. */
void tide__loader_rest(tide__loader *l) {
    if (!l->ahead || tide_queue_sync(l->queue) == TIDE_OK) return;
    l->ahead = false;
    tide_queue_destroy(l->queue);
    if (tide_queue_create(l->device, TIDE_QUEUE_COPY, &l->queue) != TIDE_OK) l->queue = NULL;
}

tide_status tide__loader_take(tide__loader *l, const tide__cursor *cursor) {
    tide__batch *now = &l->network->batch;
    tide__loader_rest(l);
    bool loaded = l->ahead && l->cursor.seen == cursor->seen;
    l->ahead = false;
    if (!loaded) return tide__network_fill(l->network, now, l->data, tide__cursor_order, cursor);
    tide__batch filled = l->spare;
    l->spare = *now;
    *now = filled;
    return TIDE_OK;
}
