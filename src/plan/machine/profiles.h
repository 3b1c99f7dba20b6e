/* The profiles of machines/, made part of the library by cmake/embed.cmake when it is built. */
#ifndef TIDE_PLAN_PROFILES_H
#define TIDE_PLAN_PROFILES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tide__profile {
    const char *name; /* of the file: "cpu.json" */
    const unsigned char *bytes;
    size_t size;
} tide__profile;

extern const tide__profile tide__profiles[]; /* ends with a name of NULL */
extern const tide__profile tide__clusters[]; /* of clusters/, likewise */

/* Is this the name of a file, whatever profiles there are? */
bool tide__profile_is_path(const char *name);
/* The one of that name, "cpu"; NULL: there is none. */
const tide__profile *tide__profile_own(const tide__profile *profiles, const char *name);
/* ", cpu", without the ending, as far as there is room in a text of `size` bytes. */
void tide__profile_append(const char *file_name, char *out, size_t size);

#endif
