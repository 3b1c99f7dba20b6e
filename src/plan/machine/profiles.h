/* The profiles of machines/, made part of the library by cmake/embed.cmake when it is built. */
#ifndef TIDE_PLAN_PROFILES_H
#define TIDE_PLAN_PROFILES_H

#include <stddef.h>

typedef struct tide__profile {
    const char *name; /* of the file: "cpu.json" */
    const unsigned char *bytes;
    size_t size;
} tide__profile;

extern const tide__profile tide__profiles[]; /* ends with a name of NULL */
extern const tide__profile tide__clusters[]; /* of clusters/, likewise */

#endif
