/* Modules: one per family of kernels, loaded when the first of its functions is wanted. The driver compiles PTX for its
 * GPU then, and keeps the result on disk by itself. */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"
#include "device/cuda/images.h"

struct tide__cuda_module {
    tide__cuda_module *next;
    const tide__cuda_image *image;
    CUmodule module;
};

void tide__cuda_modules_unload(tide__cuda *cuda) {
    while (cuda->modules) {
        tide__cuda_module *m = cuda->modules;
        cuda->modules = m->next;
        if (!cuda->is_gone) cuda->cu.ModuleUnload(m->module);
        free(m);
    }
}

static bool is_of(const tide__cuda_image *image, const char *family) {
    const size_t length = strlen(family);
    return strncmp(image->name, family, length) == 0 && image->name[length] == '.';
}

/* The first image that the driver takes: one that is made for other GPUs, or by a later toolkit, leaves the next. */
static CUresult load_image(const tide__cuda *cuda, const char *family, CUmodule *module,
                           const tide__cuda_image **image) {
    CUresult result = CUDA_ERROR_NOT_FOUND;
    for (const tide__cuda_image *i = tide__cuda_images; i->name; i++) {
        if (!is_of(i, family)) continue;
        *image = i;
        result = cuda->cu.ModuleLoadData(module, i->bytes);
        if (result != CUDA_ERROR_NO_BINARY_FOR_GPU && result != CUDA_ERROR_UNSUPPORTED_PTX_VERSION) break;
    }
    return result;
}

static tide_status load(tide__cuda *cuda, const char *family, tide__cuda_module **out) {
    tide__cuda_module *m = calloc(1, sizeof *m);
    if (!m) return tide__fail_memory();
    CUresult result = load_image(cuda, family, &m->module, &m->image);
    if (result != CUDA_SUCCESS) {
        free(m);
        return tide__fail(TIDE_E_DEVICE, "%s: the driver cannot load the kernels of %s: %s (%d)%s", cuda->gpu.name,
                          family, tide__cu_error_name(&cuda->cu, result), (int)result,
                          result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ? ": it is older than the toolkit of this build"
                                                                       : "");
    }
    m->next = cuda->modules;
    *out = cuda->modules = m;
    return TIDE_OK;
}

static tide_status get_module(tide__cuda *cuda, const char *family, tide__cuda_module **out) {
    for (*out = cuda->modules; *out; *out = (*out)->next)
        if (is_of((*out)->image, family)) return TIDE_OK;
    return load(cuda, family, out);
}

static tide_status get_function(tide__cuda *cuda, const char *family, const char *name, CUfunction *out) {
    tide__cuda_module *m;
    TIDE_TRY(get_module(cuda, family, &m));
    CUresult result = cuda->cu.ModuleGetFunction(out, m->module, name);
    if (result == CUDA_SUCCESS) return TIDE_OK;
    return tide__fail(TIDE_E_DEVICE, "%s: no kernel \"%s\" in %s: %s (%d)", cuda->gpu.name, name, m->image->name,
                      tide__cu_error_name(&cuda->cu, result), (int)result);
}

tide_status tide__cuda_function(tide__gpu *gpu, const char *family, const char *name, void **out) {
    tide__cuda *cuda = (tide__cuda *)gpu;
    CUfunction found = NULL;
    TIDE_TRY(tide__cuda_enter(cuda));
    pthread_mutex_lock(&cuda->lock);
    tide_status status = get_function(cuda, family, name, &found);
    pthread_mutex_unlock(&cuda->lock);
    tide__cuda_leave(cuda);
    if (status == TIDE_OK) *out = found;
    return status;
}
