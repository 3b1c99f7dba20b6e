/* See cl.h. TIDE_OPENCL names another library to load, for drivers that bring their own. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "device/opencl/cl.h"

typedef struct symbol {
    const char *name;
    size_t offset; /* of its pointer in tide__cl */
} symbol;

static const symbol symbols[] = {
#define SYMBOL(name) {"cl" #name, offsetof(tide__cl, name)},
    TIDE__CL_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

void tide__pointer_set(void *function_pointer, void *address) { memcpy(function_pointer, &address, sizeof address); }

tide_status tide__cl_load(tide__cl *out) {
    const char *name = getenv("TIDE_OPENCL");
    tide__cl cl = {.library = dlopen(name ? name : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!cl.library) return tide__fail(TIDE_E_DEVICE, "no OpenCL here: %s", dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *address = dlsym(cl.library, symbols[i].name);
        if (!address) {
            dlclose(cl.library);
            return tide__fail(TIDE_E_DEVICE, "the OpenCL library is older than 1.2: it has no %s", symbols[i].name);
        }
        tide__pointer_set((char *)&cl + symbols[i].offset, address);
    }
    *out = cl;
    return TIDE_OK;
}

/* Drivers keep threads and hooks of their own that do not survive being unmapped: the library stays loaded. */
void tide__cl_unload(tide__cl *cl) { cl->library = NULL; }

/* ---- failures ---- */

typedef struct error_name {
    cl_int error;
    const char *name;
} error_name;

static const error_name errors[] = {
#define ERROR(e) \
    { e, #e }
    ERROR(CL_DEVICE_NOT_FOUND),
    ERROR(CL_DEVICE_NOT_AVAILABLE),
    ERROR(CL_COMPILER_NOT_AVAILABLE),
    ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    ERROR(CL_OUT_OF_RESOURCES),
    ERROR(CL_OUT_OF_HOST_MEMORY),
    ERROR(CL_BUILD_PROGRAM_FAILURE),
    ERROR(CL_INVALID_VALUE),
    ERROR(CL_INVALID_DEVICE),
    ERROR(CL_INVALID_CONTEXT),
    ERROR(CL_INVALID_BINARY),
    ERROR(CL_INVALID_KERNEL_NAME),
    ERROR(CL_INVALID_KERNEL_ARGS),
    ERROR(CL_INVALID_ARG_SIZE),
    ERROR(CL_INVALID_WORK_GROUP_SIZE),
    ERROR(CL_INVALID_WORK_ITEM_SIZE),
    ERROR(CL_INVALID_BUFFER_SIZE),
    ERROR(CL_INVALID_OPERATION),
    ERROR(CL_INVALID_GLOBAL_WORK_SIZE),
    ERROR(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
#undef ERROR
    {-1001, "no OpenCL driver is installed"}, /* what the loader of cl_khr_icd says */
};

const char *tide__cl_error_name(cl_int error) {
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error) return errors[i].name;
    return "unknown OpenCL error";
}

tide_status tide__cl_check(cl_int error, const char *doing) {
    if (error == CL_SUCCESS) return TIDE_OK;
    bool memory = error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_HOST_MEMORY;
    return tide__fail(memory ? TIDE_E_MEMORY : TIDE_E_DEVICE, "OpenCL cannot %s: %s (%d)", doing,
                      tide__cl_error_name(error), error);
}
