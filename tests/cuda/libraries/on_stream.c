/* See on_stream.h. */
#include "on_stream.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(name) #name
#define NAME(name) TEXT(name)
#define FUNCTIONS(X)       \
    X(cuMemHostAlloc)      \
    X(cuMemFreeHost)       \
    X(cuMemcpyDtoHAsync)   \
    X(cuMemcpyHtoDAsync)   \
    X(cuMemsetD8Async)     \
    X(cuStreamSynchronize) \
    X(cuLaunchHostFunc)

static struct {
#define POINTER(name) __typeof__(name) *name##_;
    FUNCTIONS(POINTER)
} cu;

static bool load(void) {
    const char *file = getenv("TIDE_CUDA_LIBRARY");
    void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) return false;
#define FIND(name)                                     \
    {                                                  \
        void *address = dlsym(library, NAME(name));    \
        if (!address) return false;                    \
        memcpy(&cu.name##_, &address, sizeof address); \
    }
    FUNCTIONS(FIND)
    return true;
}

static void CUDA_CB run(void *data) {
    work *w = data;
    w->compute(w);
}

static bool start(work *w, CUstream stream) {
    void *pinned = NULL;
    size_t all = 0, at = 0;
    for (int i = 0; i < WORK_OPERANDS; i++) all += w->bytes[i];
    if (cu.cuMemHostAlloc_(&pinned, all, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) return false;
    for (int i = 0; i < WORK_OPERANDS; at += w->bytes[i++]) {
        w->host[i] = (float *)(void *)((char *)pinned + at);
        if (cu.cuMemcpyDtoHAsync_(w->host[i], w->at[i], w->bytes[i], stream) != CUDA_SUCCESS) return false;
    }
    const int o = w->written;
    return cu.cuLaunchHostFunc_(stream, run, w) == CUDA_SUCCESS &&
           cu.cuMemcpyHtoDAsync_(w->at[o], w->host[o], w->bytes[o], stream) == CUDA_SUCCESS;
}

bool work_enqueue(work **list, const work *w, CUstream stream, CUdeviceptr workspace, size_t workspace_bytes) {
    if (!cu.cuLaunchHostFunc_ && !load()) return false;
    if (workspace_bytes && cu.cuMemsetD8Async_(workspace, 0xa5, workspace_bytes, stream) != CUDA_SUCCESS) return false;
    work *own = malloc(sizeof *own);
    if (!own) return false;
    *own = *w;
    own->next = *list;
    *list = own;
    return start(own, stream);
}

void work_free_all(work **list) {
    while (*list) {
        work *w = *list;
        *list = w->next;
        if (w->host[0]) cu.cuMemFreeHost_(w->host[0]);
        free(w);
    }
}
