/* Ordered sets of free blocks: treaps over the heap's blocks that know the largest size below each node, so that the
 * first block that is large enough is found in O(log n), whatever the order. For heap.c. */
#ifndef TIDE_POOL_ONLINE_FREE_SET_H
#define TIDE_POOL_ONLINE_FREE_SET_H

#include "pool/online/heap.h"

void tide__free_set_add(tide__heap *heap, tide__free_set *set, uint32_t block);
void tide__free_set_remove(tide__heap *heap, tide__free_set *set, uint32_t block);
uint32_t tide__free_set_find(const tide__heap *heap, const tide__free_set *set, uint64_t size);

#endif
