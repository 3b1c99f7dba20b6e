/* The safetensors format: named arrays in one file, readable by many tools.
 *
 *      8 bytes: n, little-endian | n bytes: JSON header | data, in the order of their offsets, without holes
 *
 * The header is one object: name -> {"dtype", "shape", "data_offsets": [begin, end)}, and "__metadata__" -> an object of
 * strings. Files are hostile input: what is parsed has distinct names, arrays that cover the data exactly once, and
 * shapes that match their sizes. */
#ifndef TIDE_NN_SAFETENSORS_H
#define TIDE_NN_SAFETENSORS_H

#include "base/json.h"

enum { TIDE__SAFETENSORS_MAX_RANK = 8 };
#define TIDE__SAFETENSORS_MAX_HEADER (UINT64_C(64) << 20) /* bytes */

typedef struct tide__array {
    const char *name; /* not terminated; in the header's text */
    uint32_t name_length;
    char dtype[8]; /* "F32" */
    uint32_t rank;
    uint64_t shape[TIDE__SAFETENSORS_MAX_RANK];
    uint64_t begin, end; /* bytes from the start of the data */
} tide__array;

typedef struct tide__safetensors {
    char *header; /* owned */
    tide__json doc;
    tide__array *arrays; /* by name, ascending */
    uint32_t n_arrays;
    uint64_t data_at, data_bytes; /* in the file */
} tide__safetensors;

/* `stream` is at its beginning and can seek; it stays open. Errors begin with `name`. */
tide_status tide__safetensors_open(FILE *stream, const char *name, tide__safetensors *out);
/* The same for a whole file in memory; what fuzzing calls. */
tide_status tide__safetensors_parse(const void *file, size_t size, const char *name, tide__safetensors *out);
/* Opens the file at a path, and hands it and what it says to `fn`. Errors begin with the path. */
typedef tide_status (*tide__safetensors_fn)(void *context, FILE *stream, const tide__safetensors *s);
tide_status tide__safetensors_visit(const char *path, tide__safetensors_fn fn, void *context);
void tide__safetensors_close(tide__safetensors *s); /* harmless on one that is all zeros */

const tide__array *tide__safetensors_find(const tide__safetensors *s, const char *name); /* NULL: not there */
bool tide__safetensors_has(const tide__safetensors *s, const char *key);                 /* in the metadata */
/* A metadata string, into `out`, terminated; fails if it is not there or too long. */
tide_status tide__safetensors_text(const tide__safetensors *s, const char *key, char *out, size_t size);
tide_status tide__safetensors_u64(const tide__safetensors *s, const char *key, uint64_t *out); /* a string of digits */

#endif
