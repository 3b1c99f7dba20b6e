/* See find_library.h. */
#include "device/cuda/find_library.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct library {
    const tide__symbol *symbols;
    size_t n;
    void *table;
    const char *missing;
    char reason[256];
} library;

static bool load(library *l, const char *file) {
    return tide__library_load(file, l->symbols, l->n, l->table, &l->missing, l->reason, sizeof l->reason);
}

static bool load_from(library *l, const char *folder, const char *below, const char *file) {
    char path[1024];
    return folder && snprintf(path, sizeof path, "%s/%s/%s", folder, below, file) < (int)sizeof path && load(l, path);
}

static bool find(library *l, const char *file) {
    static const char *const below[] = {"lib64", "lib"};
    if (load(l, file)) return true;
    for (size_t i = 0; i < 2; i++)
        if (load_from(l, getenv("CUDA_PATH"), below[i], file) || load_from(l, "/usr/local/cuda", below[i], file))
            return true;
    return false;
}

tide_status tide__cuda_library_load(const char *name, int major, const char *instead, const tide__symbol *symbols,
                                    size_t n, void *table) {
    library l = {.symbols = symbols, .n = n, .table = table};
    const char *named = getenv(instead);
    char file[64];
    snprintf(file, sizeof file, "%s.%d", name, major);
    if (!named && getenv("TIDE_CUDA_LIBRARY"))
        return tide__fail(TIDE_E_DEVICE, "%s is not used with another driver than the system's", file);
    if (named ? load(&l, named) : find(&l, file)) return TIDE_OK;
    return l.missing ? tide__fail(TIDE_E_DEVICE, "%s has no %s", named ? named : file, l.missing)
                     : tide__fail(TIDE_E_DEVICE, "no %s here: %s", file, l.reason);
}
