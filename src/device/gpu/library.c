/* See library.h. */
#include "device/gpu/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool tide__library_load(const char *file, const tide__symbol *symbols, size_t n, void *table, const char **missing,
                        char *reason, size_t reason_size) {
    *missing = NULL;
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(reason, reason_size, "%s", dlerror());
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address) {
            *missing = symbols[i].name;
            dlclose(library);
            return false;
        }
        memcpy((char *)table + symbols[i].offset, &address, sizeof address); /* ISO C has no cast for it */
    }
    return true;
}
