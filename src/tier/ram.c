/* The RAM tier: one private mapping. Refused when the system cannot back it, so the budget is real. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tier/tier_kind.h"

typedef struct ram_tier {
    tide__tier base;
    char *bytes; /* NULL when the capacity is 0 */
    size_t mapped_bytes;
} ram_tier;

static tide_status ram_save(tide__tier *tier, uint64_t offset, const char *data, uint64_t size_bytes) {
    if (size_bytes) memcpy(((ram_tier *)tier)->bytes + offset, data, size_bytes);
    return TIDE_OK;
}

static tide_status ram_load(tide__tier *tier, uint64_t offset, char *data, uint64_t size_bytes) {
    if (size_bytes) memcpy(data, ((ram_tier *)tier)->bytes + offset, size_bytes);
    return TIDE_OK;
}

char *tide__tier_ram_bytes(tide__tier *tier) { return ((ram_tier *)tier)->bytes; }

static void ram_destroy(tide__tier *tier) {
    ram_tier *ram = (ram_tier *)tier;
    if (ram->bytes) munmap(ram->bytes, ram->mapped_bytes);
    free(ram);
}

/* old: what there is already, old_bytes of it; it stays where it is on failure. */
static tide_status map(char *old, uint64_t old_bytes, uint64_t size_bytes, char **out) {
    void *bytes = MAP_FAILED;
    errno = ENOMEM;
    if (size_bytes <= SIZE_MAX / 2)
        bytes = old ? mremap(old, old_bytes, size_bytes, MREMAP_MAYMOVE)
                    : mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return tide__fail_errno(TIDE_E_MEMORY, errno, "cannot map a RAM tier of %llu bytes",
                                (unsigned long long)size_bytes);
    madvise(bytes, size_bytes, MADV_HUGEPAGE); /* advice: failure costs only speed */
    *out = bytes;
    return TIDE_OK;
}

static tide_status ram_resize(tide__tier *tier, uint64_t capacity_bytes) {
    ram_tier *ram = (ram_tier *)tier;
    TIDE_TRY(map(ram->bytes, ram->mapped_bytes, capacity_bytes, &ram->bytes));
    ram->mapped_bytes = capacity_bytes;
    return TIDE_OK;
}

static const tide__tier_vtable ram_vtable = {ram_save, ram_load, ram_resize, ram_destroy};

tide_status tide__tier_ram_create(uint64_t capacity_bytes, tide__tier **out) {
    char *bytes = NULL;
    if (capacity_bytes) TIDE_TRY(map(NULL, 0, capacity_bytes, &bytes));
    ram_tier *ram = calloc(1, sizeof *ram);
    if (!ram) {
        if (bytes) munmap(bytes, capacity_bytes);
        return tide__fail_memory();
    }
    ram->base.v = &ram_vtable;
    ram->bytes = bytes;
    ram->mapped_bytes = capacity_bytes;
    *out = &ram->base;
    return TIDE_OK;
}
