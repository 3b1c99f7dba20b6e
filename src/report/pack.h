/* Packing: columns of numbers and lists of names as small as they get without a compressor, for a page that must stay
 * one file. A column is a row of LEB128 varints, of the values or (delta) of the zigzag differences between neighbours;
 * names are front-coded: shared prefix with the name before, rest. The page's decode.js is the reader.
 *
 * Errors are sticky: `status` holds the first one, later calls do nothing. */
#ifndef TIDE_REPORT_PACK_H
#define TIDE_REPORT_PACK_H

#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"

typedef struct tide__pack {
    TIDE_VEC(uint8_t) bytes;
    tide_status status;
} tide__pack;

typedef uint64_t (*tide__pack_number)(const void *context, size_t i);
typedef const char *(*tide__pack_text)(const void *context, size_t i);

void tide__pack_column(tide__pack *p, const void *context, tide__pack_number get, size_t n, int delta);
/* Control characters become '?', as the reader splits at line ends. */
void tide__pack_names(tide__pack *p, const void *context, tide__pack_text get, size_t n);
void tide__pack_free(tide__pack *p);

/* Base64 (RFC 4648) with padding, in one line. */
void tide__base64_write(FILE *stream, const uint8_t *bytes, size_t n);

#endif
