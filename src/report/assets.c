/* See assets.h. */
#include "report/assets.h"

#include <string.h>

const tide__asset *tide__asset_find(const char *name) {
    for (const tide__asset *a = tide__assets; a->name; a++)
        if (strcmp(a->name, name) == 0) return a;
    return NULL;
}
