/* States in and out of the arrays of a safetensors file, piece by piece. */
#ifndef TIDE_NN_ARRAY_FILE_H
#define TIDE_NN_ARRAY_FILE_H

#include <stdio.h>

#include "nn/published.h"
#include "nn/states.h"

/* The array of the state at hand. */
typedef struct tide__array_place {
    FILE *stream;
    const char *name; /* for errors, with the length of it */
    int name_length;
    uint64_t at_bytes; /* in the stream */
    const char *dtype; /* "F32", and for reading also "F16" and "BF16" */
    bool transposed;   /* a matrix of inputs x outputs */
} tide__array_place;

bool tide__array_is_readable(const char *dtype);
/* tide__piece_fn; the context is a place. What is written is finite, or it is TIDE_E_DIVERGED. */
tide_status tide__array_read(void *place, const tide_state *state, const tide_piece *piece, float *plain);
tide_status tide__array_write(void *place, const tide_state *state, const tide_piece *piece, float *plain);

/* A state, if this rank has it, from an array of its size that is readable; `s` says where in the stream it is. */
tide_status tide__network_load_array(tide__network *network, uint32_t state, FILE *stream, const tide__safetensors *s,
                                     const tide__array *array, bool transposed);

#endif
