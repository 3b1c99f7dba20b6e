/* See cl.h. TIDE_OPENCL names another library to load, for drivers that bring their own. */
#include <stdbool.h>
#include <stdlib.h>

#include "device/gpu/library.h"
#include "device/opencl/cl.h"

static const tide__symbol symbols[] = {
#define SYMBOL(name) {"cl" #name, offsetof(tide__cl, name)},
    TIDE__CL_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

tide_status tide__cl_load(tide__cl *out) {
    const char *name = getenv("TIDE_OPENCL"), *missing;
    char reason[256];
    if (tide__library_load(name ? name : "libOpenCL.so.1", symbols, sizeof symbols / sizeof symbols[0], out, &missing,
                           reason, sizeof reason))
        return TIDE_OK;
    if (missing) return tide__fail(TIDE_E_DEVICE, "the OpenCL library is older than 1.2: it has no %s", missing);
    return tide__fail(TIDE_E_DEVICE, "no OpenCL here: %s", reason);
}

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
