/* What tests/pool/test_preload.sh runs under libtidemark-preload.so: a loop of large blocks like a training's, threads that
 * pass blocks on, a fork in the middle, and the device functions over a runtime made of malloc. Every block is filled and
 * checked before it is freed. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_BLOCKS = 12, N_STEPS = 40, N_THREADS = 4 };

static void need(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "preload_client: %s\n", what);
    _exit(1);
}

static unsigned char *filled(size_t size, unsigned char value) {
    void *block = NULL;
    need(posix_memalign(&block, 64, size) == 0 && (uintptr_t)block % 64 == 0, "no block");
    need(malloc_usable_size(block) >= size, "a block is smaller than asked for");
    memset(block, value, size);
    return block;
}

static void check_and_free(unsigned char *block, size_t size, unsigned char value) {
    for (size_t i = 0; i < size; i += 997) need(block[i] == value, "a block has changed");
    need(block[size - 1] == value, "the end of a block has changed");
    free(block);
}

static size_t size_of(int i) { return ((size_t)1 << 20) + (size_t)i * 300000; }

/* Forward: blocks come; backward: they go. */
static void step(unsigned char tag) {
    unsigned char *blocks[N_BLOCKS];
    for (int i = 0; i < N_BLOCKS; i++) blocks[i] = filled(size_of(i), (unsigned char)(tag + i));
    for (int i = N_BLOCKS; i-- > 0;) check_and_free(blocks[i], size_of(i), (unsigned char)(tag + i));
}

static void grow(void) {
    unsigned char *block = filled(2 << 20, 7);
    unsigned char *larger = realloc(block, 5 << 20);
    need(larger != NULL, "realloc failed");
    memset(larger + (2 << 20), 7, 3 << 20);
    check_and_free(larger, 5 << 20, 7);
    unsigned char *small = malloc(100);
    memset(small, 9, 100);
    small = realloc(small, 3 << 20);
    need(small && small[99] == 9, "realloc lost bytes");
    free(small);
    free(NULL);
}

static void *work(void *context) {
    for (int i = 0; i < 8; i++) step(*(const unsigned char *)context);
    return filled(1 << 20, *(const unsigned char *)context); /* another thread frees it */
}

static void use_threads(void) {
    pthread_t threads[N_THREADS];
    unsigned char tags[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        tags[i] = (unsigned char)(i * 50);
        need(pthread_create(&threads[i], NULL, work, &tags[i]) == 0, "no thread");
    }
    for (int i = 0; i < 8; i++) { /* forks while others malloc */
        pid_t child = fork();
        if (child == 0) {
            step(3);
            _exit(0);
        }
        int status = 1;
        need(waitpid(child, &status, 0) == child && status == 0, "a child failed");
    }
    for (int i = 0; i < N_THREADS; i++) {
        void *block = NULL;
        need(pthread_join(threads[i], &block) == 0, "no join");
        check_and_free(block, 1 << 20, tags[i]);
    }
}

/* ---- a device whose memory is the host's ---- */

int cudaMalloc(void **out, size_t size) { return posix_memalign(out, 256, size); }
int cudaFree(void *block) {
    free(block);
    return 0;
}
int cudaSetDevice(int device) { return device < 0; }

static void use_device(void) {
    void *(*take)(ssize_t, int, void *) = NULL;
    void (*give)(void *, ssize_t, int, void *) = NULL;
    *(void **)&take = dlsym(RTLD_DEFAULT, "tidemark_cuda_malloc");
    *(void **)&give = dlsym(RTLD_DEFAULT, "tidemark_cuda_free");
    need(take && give, "no device functions");
    int streams[2];
    for (int s = 0; s < N_STEPS; s++) {
        void *a = take(1 << 20, 0, &streams[0]), *b = take(1 << 20, 0, &streams[1]);
        need(a && b && a != b, "no device block");
        memset(a, 1, 1 << 20);
        memset(b, 2, 1 << 20);
        need(*(unsigned char *)a == 1, "two streams share a block");
        give(a, 1 << 20, 0, &streams[0]);
        give(b, 1 << 20, 0, &streams[1]);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "threads") == 0) {
        use_threads();
    } else if (argc > 1 && strcmp(argv[1], "device") == 0) {
        use_device();
    } else {
        grow();
        for (int i = 0; i < N_STEPS; i++) step((unsigned char)i);
    }
    return 0;
}
