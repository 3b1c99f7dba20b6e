/* See options.h. */
#include "base/options.h"

#include <string.h>

static size_t size_of(const void *sized) {
    size_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

tide_status tide__result_check(const char *name, const void *out, size_t size) {
    if (!out) return tide__fail(TIDE_E_ARGUMENT, "%s: there is none", name);
    if (size_of(out) >= sizeof(size_t) && size_of(out) <= size) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "%s: wrong size: it says %zu bytes, and this library knows %zu", name,
                      size_of(out), size);
}

tide_status tide__options_take(const char *name, const void *given, size_t size, void *out) {
    if (!given) return TIDE_OK;
    TIDE_TRY(tide__result_check(name, given, size));
    memcpy(out, given, size_of(given));
    memcpy(out, &size, sizeof size);
    return TIDE_OK;
}

void tide__result_give(const void *result, void *out) {
    const size_t head = sizeof(size_t);
    memcpy((char *)out + head, (const char *)result + head, size_of(out) - head);
}
