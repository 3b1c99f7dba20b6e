/* Options and results whose first member is their size. A caller that was built against an older, shorter struct gets the
 * defaults for the options that it does not know, and no results that it has no room for. */
#ifndef TIDE_BASE_OPTIONS_H
#define TIDE_BASE_OPTIONS_H

#include <stddef.h>

#include "base/error.h"

/* *out has the defaults, and `size` bytes; name: of its type, for errors. given NULL: all are defaults. */
tide_status tide__options_take(const char *name, const void *given, size_t size, void *out);

/* The caller has set the size in *out. Checks it, for results that are yet to be made. */
tide_status tide__result_check(const char *name, const void *out, size_t size);
/* After that: as much of the result as *out has room for. */
void tide__result_give(const void *result, void *out);

#endif
