/* See tape.h. Invariant: every chunk between head and tail but the tail has unread records; only the tail may be
 * read to its end (the tape is then empty). */
#include "device/tape.h"

#include <stdint.h>
#include <stdlib.h>

#define CHUNK_BYTES ((size_t)64 * 1024)
#define RECORD_ALIGN (sizeof(max_align_t))

/* Bytes [read, written) hold records, each behind a header of RECORD_ALIGN bytes that starts with its total size. */
struct tide__tape_chunk {
    tide__tape_chunk *next;
    size_t read, written, capacity;
    _Alignas(max_align_t) unsigned char bytes[];
};

static void free_list(tide__tape_chunk *chunk) {
    while (chunk) {
        tide__tape_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void tide__tape_deinit(tide__command_tape *tape) {
    free_list(tape->head);
    free_list(tape->spare);
    *tape = (tide__command_tape){0};
}

/* A spare chunk with enough room, else a new one; empty, unlinked; NULL without memory. */
static tide__tape_chunk *get_chunk(tide__command_tape *tape, size_t size) {
    for (tide__tape_chunk **link = &tape->spare; *link; link = &(*link)->next) {
        tide__tape_chunk *chunk = *link;
        if (chunk->capacity < size) continue;
        *link = chunk->next;
        chunk->next = NULL;
        chunk->read = chunk->written = 0;
        return chunk;
    }
    size_t capacity = size > CHUNK_BYTES ? size : CHUNK_BYTES;
    tide__tape_chunk *chunk = malloc(sizeof *chunk + capacity);
    if (chunk) *chunk = (tide__tape_chunk){.capacity = capacity};
    return chunk;
}

static void drop_head(tide__command_tape *tape) {
    tide__tape_chunk *old = tape->head;
    tape->head = old->next;
    if (!tape->head) tape->tail = NULL;
    old->next = tape->spare;
    tape->spare = old;
}

static tide_status add_chunk(tide__command_tape *tape, size_t size) {
    tide__tape_chunk *chunk = get_chunk(tape, size);
    if (!chunk) return tide__fail_memory();
    if (tape->head && tape->head->read == tape->head->written) drop_head(tape);
    if (tape->tail)
        tape->tail->next = chunk;
    else
        tape->head = chunk;
    tape->tail = chunk;
    return TIDE_OK;
}

tide_status tide__tape_push(tide__command_tape *tape, size_t size_bytes, void **out) {
    if (size_bytes > SIZE_MAX / 2) return tide__fail_memory();
    size_t total = RECORD_ALIGN + (size_bytes + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
    if (!tape->tail || tape->tail->capacity - tape->tail->written < total) TIDE_TRY(add_chunk(tape, total));
    tide__tape_chunk *chunk = tape->tail;
    unsigned char *record = chunk->bytes + chunk->written;
    *(size_t *)(void *)record = total;
    chunk->written += total;
    *out = record + RECORD_ALIGN;
    return TIDE_OK;
}

void *tide__tape_front(const tide__command_tape *tape) {
    tide__tape_chunk *chunk = tape->head;
    if (!chunk || chunk->read == chunk->written) return NULL;
    return chunk->bytes + chunk->read + RECORD_ALIGN;
}

void tide__tape_pop(tide__command_tape *tape) {
    tide__tape_chunk *chunk = tape->head;
    chunk->read += *(size_t *)(void *)(chunk->bytes + chunk->read);
    if (chunk->read < chunk->written) return;
    if (chunk->next)
        drop_head(tape);
    else
        chunk->read = chunk->written = 0; /* the tail: start over at its beginning */
}
