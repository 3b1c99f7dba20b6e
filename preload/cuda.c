/* The two functions that PyTorch's CUDAPluggableAllocator wants, over pools of device memory. Never run on a GPU.
 *
 *      torch.cuda.memory.CUDAPluggableAllocator("libtidemark-preload.so", "tidemark_cuda_malloc", "tidemark_cuda_free")
 *
 * A freed block may be handed out again at once, which is right for work in the order of one stream: so each device and
 * stream has a pool of its own. CUDA's runtime is the one that the process has loaded. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <tidemark/pool.h>

#define SHOW __attribute__((visibility("default")))

enum { MAX_POOLS = 64, SUCCESS = 0 };

typedef int (*cuda_malloc_fn)(void **out, size_t size_bytes);
typedef int (*cuda_free_fn)(void *block);
typedef int (*cuda_device_fn)(int device);

typedef struct stream_pool {
    int device;
    const void *stream;
    tide_pool *pool;
} stream_pool;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stream_pool pools[MAX_POOLS];
static uint32_t n_pools;

/* PyTorch finds them by name. */
void *tidemark_cuda_malloc(ssize_t size, int device, void *stream);
void tidemark_cuda_free(void *block, ssize_t size, int device, void *stream);

/* NULL: the process has no CUDA runtime. */
static void *cuda(const char *name) { return dlsym(RTLD_DEFAULT, name); }

static tide_status device_alloc(void *context, uint64_t size_bytes, uint64_t alignment, void **out) {
    (void)context;
    (void)alignment; /* cudaMalloc aligns to 256 bytes, which is what the pool asks for */
    void *symbol = cuda("cudaMalloc");
    cuda_malloc_fn call;
    memcpy(&call, &symbol, sizeof call);
    return symbol && call(out, (size_t)size_bytes) == SUCCESS ? TIDE_OK : TIDE_E_MEMORY;
}

static void device_free(void *context, void *block, uint64_t size_bytes) {
    (void)context;
    (void)size_bytes;
    void *symbol = cuda("cudaFree");
    cuda_free_fn call;
    memcpy(&call, &symbol, sizeof call);
    if (symbol) (void)call(block);
}

static void use_device(int device) {
    void *symbol = cuda("cudaSetDevice");
    cuda_device_fn call;
    memcpy(&call, &symbol, sizeof call);
    if (symbol) (void)call(device);
}

/* Under the lock; NULL: there can be none. */
static tide_pool *pool_of(int device, const void *stream) {
    for (uint32_t i = 0; i < n_pools; i++)
        if (pools[i].device == device && pools[i].stream == stream) return pools[i].pool;
    tide_pool_options options;
    tide_pool_options_init(&options);
    options.backing = (tide_pool_backing){.alloc = device_alloc, .free = device_free};
    stream_pool *p = &pools[n_pools];
    if (n_pools == MAX_POOLS || tide_pool_create(&options, &p->pool) != TIDE_OK) return NULL;
    p->device = device;
    p->stream = stream;
    n_pools++;
    return p->pool;
}

SHOW void *tidemark_cuda_malloc(ssize_t size, int device, void *stream) {
    void *block = NULL;
    if (size <= 0) return NULL;
    pthread_mutex_lock(&lock);
    use_device(device);
    tide_pool *pool = pool_of(device, stream);
    if (!pool || tide_pool_malloc(pool, (uint64_t)size, &block) != TIDE_OK) block = NULL;
    pthread_mutex_unlock(&lock);
    return block;
}

SHOW void tidemark_cuda_free(void *block, ssize_t size, int device, void *stream) {
    (void)size;
    pthread_mutex_lock(&lock);
    use_device(device);
    tide_pool *pool = pool_of(device, stream);
    if (pool) (void)tide_pool_free(pool, block);
    pthread_mutex_unlock(&lock);
}
