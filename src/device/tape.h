/* The command tape of a queue: records of any size, first in, first out, that never move.
 *
 *     head ─▶ [rec rec rec ....] ─▶ [rec rec      ] ◀─ tail        spare ─▶ [ ] ─▶ [ ]
 *
 * Chunks that have been read to their end go to the spare list and come back, so a queue in its steady state does not
 * allocate. The caller's lock protects the tape; a record itself may be read without it between front and pop. */
#ifndef TIDE_DEVICE_TAPE_H
#define TIDE_DEVICE_TAPE_H

#include <stddef.h>

#include "base/error.h"

typedef struct tide__tape_chunk tide__tape_chunk;

typedef struct tide__command_tape {
    tide__tape_chunk *head, *tail, *spare;
} tide__command_tape;

void tide__tape_deinit(tide__command_tape *tape);
/* A new record of `size_bytes` at the end, aligned for any type, content unspecified. */
tide_status tide__tape_push(tide__command_tape *tape, size_t size_bytes, void **out);
/* The oldest record; NULL if the tape is empty. */
void *tide__tape_front(const tide__command_tape *tape);
/* Forgets the oldest record; the tape is not empty. */
void tide__tape_pop(tide__command_tape *tape);

#endif
