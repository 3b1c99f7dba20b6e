/* Names of a log as dense ids. The table is seeded per use, so a file cannot be made to collide; ids depend only on
 * the order in which names first appear. */
#ifndef TIDE_PROGRAM_IMPORT_NAMES_H
#define TIDE_PROGRAM_IMPORT_NAMES_H

#include <stdint.h>

#include "base/vec.h"

typedef struct tide__import_names {
    TIDE_VEC(char) text;     /* every name, terminated */
    TIDE_VEC(size_t) start;  /* per id: its place in text */
    TIDE_VEC(uint64_t) hash; /* per id */
    uint32_t *table;         /* open addressing; id + 1, 0 = free */
    size_t table_size;       /* a power of two, at least twice the names */
    uint64_t seed;
} tide__import_names;

void tide__names_init(tide__import_names *names);
void tide__names_free(tide__import_names *names);
/* The id of this name; a new one, equal to the number of names so far, if it was not seen before. */
tide_status tide__names_intern(tide__import_names *names, const char *text, size_t length, uint32_t *id);
/* The name, terminated; valid until the next intern. */
const char *tide__names_text(const tide__import_names *names, uint32_t id);

#endif
