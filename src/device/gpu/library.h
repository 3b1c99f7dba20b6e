/* Libraries that are loaded at run time: this one starts where they are missing, and says so only to those who ask. */
#ifndef TIDE_DEVICE_GPU_LIBRARY_H
#define TIDE_DEVICE_GPU_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tide__symbol {
    const char *name;
    size_t offset; /* of its function pointer in the table */
} tide__symbol;

/* Fills the pointers of `table`. False: *missing is the symbol that the library lacks, or NULL where it cannot be loaded;
 * `reason` then says why, cut to size. It is never unloaded: drivers keep threads and hooks of their own that do not
 * survive that. */
bool tide__library_load(const char *file, const tide__symbol *symbols, size_t n, void *table, const char **missing,
                        char *reason, size_t reason_size);

#endif
