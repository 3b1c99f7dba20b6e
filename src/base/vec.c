/* The one out-of-line part of vec.h. */
#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

tide_status tide__vec_grow(void **data, size_t count, size_t *capacity, size_t extra, size_t element_size) {
    size_t wanted = count + extra;
    if (wanted < count || wanted > SIZE_MAX / 2 / element_size) return tide__fail_memory();
    size_t next = *capacity ? *capacity * 2 : 8;
    if (next < wanted) next = wanted;
    void *old;
    memcpy(&old, data, sizeof old);
    void *grown = realloc(old, next * element_size);
    if (!grown) return tide__fail_memory();
    memcpy(data, &grown, sizeof grown);
    *capacity = next;
    /* cppcheck-suppress memleak ; `data` owns it now, through the memcpy */
    return TIDE_OK;
}
