/* The files of src/report/assets/, made part of the library by cmake/embed.cmake when it is built. */
#ifndef TIDE_REPORT_ASSETS_H
#define TIDE_REPORT_ASSETS_H

#include <stddef.h>

typedef struct tide__asset {
    const char *name;
    const unsigned char *bytes;
    size_t size;
} tide__asset;

/* In the order in which they depend on each other. */
#define TIDE__REPORT_SCRIPTS \
    "decode.js", "model.js", "scale.js", "map.js", "charts.js", "tables.js", "ranks.js", "page.js"

extern const tide__asset tide__assets[]; /* ends with a name of NULL */
/* Never NULL for a file that is there when the library is built, which a test checks. */
const tide__asset *tide__asset_find(const char *name);

#endif
