/* The host as backing: one anonymous mapping per block. No MAP_NORESERVE: a size that the system cannot back is refused
 * here and not by a signal later. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tidemark/pool.h>

#include "base/error.h"
#include "base/size.h"

static uint64_t page_bytes(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

static tide_status refuse(uint64_t size_bytes, int error) {
    return tide__fail_errno(TIDE_E_MEMORY, error, "cannot map a block of %llu bytes", (unsigned long long)size_bytes);
}

/* Maps enough to contain an aligned block, then gives back what lies before and after it. */
static tide_status host_alloc(void *context, uint64_t size_bytes, uint64_t alignment, void **out) {
    (void)context;
    uint64_t page = page_bytes(), slack = alignment > page ? alignment : 0, wanted, mapped;
    if (!tide__align_up(size_bytes, page, &wanted) || !tide__add(wanted, slack, &mapped) || mapped > SIZE_MAX / 2)
        return refuse(size_bytes, ENOMEM);
    char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return refuse(size_bytes, errno);
    uint64_t head = slack ? (alignment - (uintptr_t)start % alignment) % alignment : 0;
    if (head) munmap(start, head);
    if (slack > head) munmap(start + head + wanted, slack - head);
    *out = start + head;
    return TIDE_OK;
}

static void host_free(void *context, void *block, uint64_t size_bytes) {
    (void)context;
    uint64_t page = page_bytes();
    munmap(block, (size_bytes + page - 1) & ~(page - 1));
}

tide_pool_backing tide_pool_host_backing(void) { return (tide_pool_backing){.alloc = host_alloc, .free = host_free}; }
