/* See host_arena.h. No MAP_NORESERVE: a size the system cannot back is refused here and not by a signal later. The
 * mapping ends with the last page in use, so that no huge page can be larger than what was asked for. */
#include "device/host_arena.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/size.h"

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)
#define PAGE_BYTES UINT64_C(4096)

static tide_status fail_size(uint64_t size_bytes, int error) {
    return tide__fail_errno(TIDE_E_MEMORY, error, "cannot map an arena of %llu bytes (%.1f MiB)",
                            (unsigned long long)size_bytes, (double)size_bytes / 0x1p20);
}

/* Maps one huge page too much, then gives back what lies before and after the aligned part. */
static tide_status map_aligned(uint64_t size_bytes, char **out) {
    uint64_t mapped, wanted;
    if (!tide__align_up(size_bytes, PAGE_BYTES, &wanted) || !tide__add(wanted, HUGE_PAGE_BYTES, &mapped) ||
        mapped > SIZE_MAX / 2)
        return fail_size(size_bytes, ENOMEM);
    char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return fail_size(size_bytes, errno);
    uint64_t head = (HUGE_PAGE_BYTES - (uintptr_t)start % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
    if (head) munmap(start, head);
    munmap(start + head + wanted, mapped - head - wanted);
    madvise(start + head, wanted, MADV_HUGEPAGE); /* advice: failure costs only speed */
    *out = start + head;
    return TIDE_OK;
}

tide_status tide__host_arena_create(tide_device *device, uint64_t size_bytes, tide_arena **out) {
    tide__host_arena *arena = malloc(sizeof *arena);
    if (!arena) return tide__fail_memory();
    *arena = (tide__host_arena){.base = {.device = device, .size_bytes = size_bytes}};
    tide_status status = map_aligned(size_bytes, &arena->bytes);
    if (status != TIDE_OK) {
        free(arena);
        return status;
    }
    *out = &arena->base;
    return TIDE_OK;
}

void tide__host_arena_destroy(tide_arena *base) {
    tide__host_arena *arena = (tide__host_arena *)base;
    uint64_t mapped = (base->size_bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
    munmap(arena->bytes, mapped);
    free(arena);
}

void *tide__host_arena_host(tide_arena *base) { return ((tide__host_arena *)base)->bytes; }

/* Whole pages only; it is advice. */
void tide__host_arena_discard(tide_arena *base, uint64_t offset, uint64_t size_bytes) {
    uint64_t begin = (offset + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1), end = (offset + size_bytes) & ~(PAGE_BYTES - 1);
    if (begin < end) madvise(((tide__host_arena *)base)->bytes + begin, end - begin, MADV_DONTNEED);
}
