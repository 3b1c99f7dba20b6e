/* See driver.h. */
#include "device/cuda/driver.h"

#include <stddef.h>
#include <stdlib.h>

#include "device/gpu/library.h"

/* The header turns some names into those of their newest version: cuMemAlloc is cuMemAlloc_v2. */
#define TEXT(name) #name
#define NAME(name) TEXT(name)

static const tide__symbol symbols[] = {
#define SYMBOL(name) {NAME(cu##name), offsetof(tide__cu, name)},
    TIDE__CU_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

typedef struct asking {
    CUresult (*version)(int *version);
} asking;
static const tide__symbol version_symbol = {"cuDriverGetVersion", offsetof(asking, version)};

/* Within a major version of CUDA newer toolkits work with older drivers. */
static tide_status fail_old(int version) {
    return tide__fail(TIDE_E_DEVICE,
                      "the NVIDIA driver here is too old: it is for CUDA %d.%d, the kernels are made by CUDA %d.%d and "
                      "need a driver for CUDA %d.0 at least",
                      version / 1000, version % 1000 / 10, CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10,
                      CUDA_VERSION / 1000);
}

static tide_status load_from(const char *file, tide__cu *out) {
    const char *missing;
    char reason[256];
    asking ask;
    int version = 0;
    if (!tide__library_load(file, &version_symbol, 1, &ask, &missing, reason, sizeof reason))
        return missing ? tide__fail(TIDE_E_DEVICE, "%s is no CUDA driver: it has no %s", file, missing)
                       : tide__fail(TIDE_E_DEVICE, "no NVIDIA driver here: %s", reason);
    const CUresult answer = ask.version(&version);
    if (answer != CUDA_SUCCESS)
        return tide__fail(TIDE_E_DEVICE, "%s is no working CUDA driver: error %d", file, (int)answer);
    if (version < CUDA_VERSION / 1000 * 1000) return fail_old(version);
    if (!tide__library_load(file, symbols, sizeof symbols / sizeof symbols[0], out, &missing, reason, sizeof reason))
        return tide__fail(TIDE_E_DEVICE, "the CUDA driver has no %s", missing ? missing : reason);
    out->version = version;
    return TIDE_OK;
}

tide_status tide__cu_load(tide__cu *out) {
    const char *file = getenv("TIDE_CUDA_LIBRARY");
    tide__cu cu = {0};
    TIDE_TRY(load_from(file ? file : "libcuda.so.1", &cu));
    const CUresult result = cu.Init(0);
    if (result == CUDA_ERROR_NO_DEVICE) return tide__fail(TIDE_E_DEVICE, "CUDA has a driver but no GPU here");
    if (result == CUDA_ERROR_NOT_INITIALIZED)
        return tide__fail(TIDE_E_DEVICE, "CUDA does not work in a process that was forked from one that uses it");
    TIDE_TRY(tide__cu_check(&cu, result, "begin"));
    *out = cu;
    return TIDE_OK;
}

const char *tide__cu_error_name(const tide__cu *cu, CUresult result) {
    const char *name = NULL;
    return cu->GetErrorName(result, &name) == CUDA_SUCCESS && name ? name : "unknown CUDA error";
}

tide_status tide__cu_check(const tide__cu *cu, CUresult result, const char *doing) {
    if (result == CUDA_SUCCESS) return TIDE_OK;
    return tide__fail(result == CUDA_ERROR_OUT_OF_MEMORY ? TIDE_E_MEMORY : TIDE_E_DEVICE, "CUDA cannot %s: %s (%d)",
                      doing, tide__cu_error_name(cu, result), (int)result);
}
