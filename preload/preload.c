/* libtidemark-preload.so: LD_PRELOAD puts the pool (pool.h) in front of malloc for large blocks, in programs that cannot be
 * changed. Everything else goes to the C library, untouched: small blocks, calloc, alignments above 64 bytes.
 *
 *      granule: 2 MiB     a backing block fills whole ones, so one byte per granule tells whose an address is
 *      block              | size | ... 64 bytes | what the program has ...
 *
 * TIDEMARK_PRELOAD_MIN: the smallest block of the pool, in bytes (1 MiB). TIDEMARK_PRELOAD_STATS: a file that figures are
 * appended to when a process ends; "-" is the standard error stream.
 *
 * Invariant: the lock is held around every call of the pool, and a thread that holds it gets its own memory from the C
 * library (`inside`), so that a fork finds the pool at rest and the pool never waits for itself. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tidemark/pool.h>

#define SHOW __attribute__((visibility("default")))
#define GRANULE_BITS 21
#define ADDRESS_BITS 47
#define GRANULE_BYTES (UINT64_C(1) << GRANULE_BITS)

enum { HEAD_BYTES = 64 }; /* before what the program gets: the size that it asked for */

extern void *__libc_malloc(size_t size);                     /* NOLINT(bugprone-reserved-identifier) */
extern void *__libc_realloc(void *block, size_t size);       /* NOLINT(bugprone-reserved-identifier) */
extern void *__libc_memalign(size_t alignment, size_t size); /* NOLINT(bugprone-reserved-identifier) */
extern void __libc_free(void *block);                        /* NOLINT(bugprone-reserved-identifier) */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static tide_pool *pool;              /* NULL: it could not be made, and everything is the C library's */
static _Atomic unsigned char *owned; /* per granule of the address space; touched where the pool has blocks */
static _Atomic size_t min_bytes = SIZE_MAX;
static size_t (*libc_usable_size)(void *block);
static __thread int inside __attribute__((tls_model("initial-exec")));

/* ---- memory of the pool ---- */

static uint64_t whole_granules(uint64_t size_bytes) { return (size_bytes + GRANULE_BYTES - 1) & ~(GRANULE_BYTES - 1); }

static void mark(const void *block, uint64_t size_bytes, unsigned char value) {
    uint64_t first = (uint64_t)(uintptr_t)block >> GRANULE_BITS;
    for (uint64_t i = 0; i < size_bytes >> GRANULE_BITS; i++)
        atomic_store_explicit(&owned[first + i], value, memory_order_relaxed);
}

static tide_status backing_alloc(void *context, uint64_t size_bytes, uint64_t alignment, void **out) {
    const tide_pool_backing *host = context;
    (void)alignment; /* granules are aligned more than that */
    tide_status status = host->alloc(host->context, whole_granules(size_bytes), GRANULE_BYTES, out);
    if (status == TIDE_OK) mark(*out, whole_granules(size_bytes), 1);
    return status;
}

static void backing_free(void *context, void *block, uint64_t size_bytes) {
    const tide_pool_backing *host = context;
    mark(block, whole_granules(size_bytes), 0);
    host->free(host->context, block, whole_granules(size_bytes));
}

/* ---- begin and end ---- */

static void hold(void) {
    pthread_mutex_lock(&lock);
    inside++;
}

static void let_go(void) {
    inside--;
    pthread_mutex_unlock(&lock);
}

static size_t wanted_min(void) {
    const char *text = getenv("TIDEMARK_PRELOAD_MIN");
    unsigned long long bytes = text ? strtoull(text, NULL, 10) : 0;
    return bytes >= 4096 ? (size_t)bytes : (size_t)1 << 20;
}

static void begin(void) {
    static tide_pool_backing host;
    tide_pool_options options;
    size_t table = (size_t)1 << (ADDRESS_BITS - GRANULE_BITS);
    inside++; /* of the thread that begins */
    void *map = mmap(NULL, table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *usable = dlsym(RTLD_NEXT, "malloc_usable_size");
    memcpy(&libc_usable_size, &usable, sizeof usable); /* a function of what dlsym calls an object */
    host = tide_pool_host_backing();
    tide_pool_options_init(&options);
    options.backing = (tide_pool_backing){.alloc = backing_alloc, .free = backing_free, .context = &host};
    options.alignment = HEAD_BYTES;
    options.plan_seconds = 0; /* no threads, no waiting inside a malloc */
    if (map != MAP_FAILED && tide_pool_create(&options, &pool) == TIDE_OK) {
        owned = map;
        pthread_atfork(hold, let_go, let_go);
        atomic_store(&min_bytes, wanted_min());
    }
    inside--;
}

__attribute__((constructor)) static void begin_early(void) { pthread_once(&once, begin); }

static void write_figures(FILE *out) {
    tide_pool_stats s;
    tide_pool_get_stats(pool, &s);
    fprintf(
        out,
        "tidemark-preload: %llu large blocks, %llu of them planned; %u plans, %llu deviations; at most %.1f MiB live, "
        "%.1f MiB held\n",
        (unsigned long long)s.n_mallocs, (unsigned long long)s.n_planned, s.n_plans, (unsigned long long)s.n_deviations,
        (double)s.peak_live_bytes / 0x1p20, (double)s.peak_held_bytes / 0x1p20);
}

/* The pool itself stays: others may free its blocks after this. */
__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("TIDEMARK_PRELOAD_STATS");
    if (!pool || !path || !*path) return;
    hold();
    FILE *out = strcmp(path, "-") == 0 ? stderr : fopen(path, "a");
    if (out) write_figures(out);
    if (out && out != stderr) fclose(out);
    let_go();
}

/* ---- blocks ---- */

static int is_owned(const void *block) {
    uint64_t granule = (uint64_t)(uintptr_t)block >> GRANULE_BITS;
    return owned && granule >> (ADDRESS_BITS - GRANULE_BITS) == 0 &&
           atomic_load_explicit(&owned[granule], memory_order_relaxed);
}

static char *head_of(void *block) { return (char *)block - HEAD_BYTES; }

static size_t size_of(void *block) {
    size_t size;
    memcpy(&size, head_of(block), sizeof size);
    return size;
}

/* NULL: the C library shall answer. */
static void *take(size_t size) {
    void *block = NULL;
    if (size < atomic_load_explicit(&min_bytes, memory_order_relaxed) || inside || size > SIZE_MAX - HEAD_BYTES)
        return NULL;
    hold();
    tide_status status = tide_pool_malloc(pool, size + HEAD_BYTES, &block);
    let_go();
    if (status != TIDE_OK) return NULL;
    memcpy(block, &size, sizeof size);
    return (char *)block + HEAD_BYTES;
}

SHOW void free(void *block) {
    if (!is_owned(block)) {
        __libc_free(block);
        return;
    }
    int kept = errno;
    hold();
    (void)tide_pool_free(pool, head_of(block));
    let_go();
    errno = kept;
}

SHOW void *malloc(size_t size) {
    void *block = take(size);
    return block ? block : __libc_malloc(size);
}

SHOW void *realloc(void *old, size_t size) {
    if (!is_owned(old)) return __libc_realloc(old, size);
    if (size == 0) {
        free(old);
        return NULL;
    }
    void *block = malloc(size);
    if (!block) return NULL;
    size_t had = size_of(old);
    memcpy(block, old, had < size ? had : size);
    free(old);
    return block;
}

SHOW void *memalign(size_t alignment, size_t size) {
    void *block = alignment <= HEAD_BYTES ? take(size) : NULL;
    return block ? block : __libc_memalign(alignment, size);
}

SHOW void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

SHOW int posix_memalign(void **out, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1))) return EINVAL;
    void *block = memalign(alignment, size);
    if (!block) return ENOMEM;
    *out = block;
    return 0;
}

SHOW size_t malloc_usable_size(void *block) {
    if (is_owned(block)) return size_of(block);
    return libc_usable_size ? libc_usable_size(block) : 0;
}
