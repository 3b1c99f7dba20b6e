/* See short_memory.h. */
#include "support/short_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "support/test.h"

/* ---- the allocator ---- */

static atomic_long calls, live;   /* allocations asked for since the last reset; blocks that are not freed */
static atomic_long fails_at = -1; /* which call fails; -1: none */

static bool refuses(void) {
    bool now = atomic_fetch_add(&calls, 1) == fails_at;
    if (now) errno = ENOMEM;
    return now;
}

static void *count(void *block) {
    if (block) atomic_fetch_add(&live, 1);
    return block;
}

/* The names are the linker's. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
int __real_posix_memalign(void **out, size_t align, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size) { return refuses() ? NULL : count(__real_malloc(size)); }
void *__wrap_calloc(size_t n, size_t size) { return refuses() ? NULL : count(__real_calloc(n, size)); }
void *__wrap_aligned_alloc(size_t align, size_t size) {
    return refuses() ? NULL : count(__real_aligned_alloc(align, size));
}

void *__wrap_realloc(void *block, size_t size) {
    if (refuses()) return NULL;
    return block ? __real_realloc(block, size) : count(__real_malloc(size));
}

int __wrap_posix_memalign(void **out, size_t align, size_t size) {
    if (refuses()) return ENOMEM;
    int error = __real_posix_memalign(out, align, size);
    if (error == 0) atomic_fetch_add(&live, 1);
    return error;
}

void __wrap_free(void *block) {
    if (block) atomic_fetch_sub(&live, 1);
    __real_free(block);
}
/* NOLINTEND(bugprone-reserved-identifier) */

void refuse_one(long after) {
    atomic_store(&fails_at, -1);
    atomic_store(&calls, 0);
    atomic_store(&fails_at, after);
}

/* ---- trying with one call less each time ---- */

static void refuse_every(long stride, task_fn task, void *context) {
    tide_status status;
    long n = 0;
    do {
        long before = atomic_load(&live);
        atomic_store(&calls, 0);
        fails_at = n;
        n += stride;
        status = task(context);
        fails_at = -1;
        if (status != TIDE_OK) assert_status(status, TIDE_E_MEMORY);
        if (status != TIDE_OK) assert_error_has("memory");
        /* less is fine: some blocks that are freed here come from the C library (strdup, open_memstream) */
        if (atomic_load(&live) > before) fail_msg("allocation %ld refused: %ld blocks lost", n - stride, live - before);
    } while (atomic_load(&calls) > n - stride);
    assert_ok(status);
    assert_true(n > 5 * stride);
}

void exhaust(task_fn task, void *context) {
    assert_ok(task(context)); /* what is made once and stays does not count */
#ifdef __SANITIZE_THREAD__
    refuse_every(SANITIZER_SHARE - 1, task, context); /* what is lost is AddressSanitizer's matter */
#else
    refuse_every(quick_share(), task, context);
#endif
}

void exhaust_some(task_fn task, void *context, long n_tries) {
    assert_ok(task(context));
    atomic_store(&calls, 0);
    assert_ok(task(context));
    refuse_every(atomic_load(&calls) / n_tries + 1, task, context);
}
