/* The driver, its devices and their primary contexts. Contexts of other kinds are not known: nobody needs them. */
#include <string.h>
#include <unistd.h>

#include "context.h"

/* ---- the driver ---- */

CUresult CUDAAPI cuInit(unsigned flags) {
    call c = call_begin(__func__, 0);
    if (c.result == CUDA_SUCCESS && flags)
        c.result = misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "flags must be 0");
    if (c.result == CUDA_SUCCESS && call_is_child()) c.result = CUDA_ERROR_NOT_INITIALIZED;
    if (c.result == CUDA_SUCCESS && the_standin.settings.n_devices == 0) c.result = CUDA_ERROR_NO_DEVICE;
    if (c.result == CUDA_SUCCESS) {
        the_standin.initialised = true;
        the_standin.process = getpid();
    }
    return call_end(&c);
}

CUresult CUDAAPI cuDriverGetVersion(int *version) {
    call c = call_begin(__func__, 0);
    if (call_has(&c, version)) *version = (int)the_standin.settings.version;
    return call_end(&c);
}

static const char *name_of(CUresult error) {
    static const struct {
        CUresult error;
        const char *name;
    } names[] = {
#define STANDIN_NAMED(name, value) {name, #name},
        STANDIN_ERRORS(STANDIN_NAMED)
#undef STANDIN_NAMED
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].error == error) return names[i].name;
    return NULL;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **text) {
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = name_of(error);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The stand-in has no prose for errors: their names say it. */
CUresult CUDAAPI cuGetErrorString(CUresult error, const char **text) { return cuGetErrorName(error, text); }

static void *address_of(const char *symbol) {
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {
#define STANDIN_ADDRESS(name, parameters) {#name, (void (*)(void))name},
        STANDIN_FUNCTIONS(STANDIN_ADDRESS)
#undef STANDIN_ADDRESS
    };
    const size_t n = strlen(symbol);
    void *address = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const char *name = functions[i].name; /* without its version, as this call wants it */
        if (strncmp(name, symbol, n) != 0 || (name[n] && strcmp(name + n, "_v2") != 0)) continue;
        memcpy(&address, &functions[i].function, sizeof address);
        return address;
    }
    return NULL;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **out, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult *status) {
    call c = call_begin(__func__, 0);
    if (call_has(&c, out) && call_has(&c, symbol)) {
        *out = version <= (int)the_standin.settings.version ? address_of(symbol) : NULL;
        if (status) *status = *out ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        if (!*out) c.result = CUDA_ERROR_NOT_FOUND;
    }
    return call_end(&c);
}

/* ---- devices ---- */

CUresult CUDAAPI cuDeviceGetCount(int *count) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (call_has(&c, count)) *count = (int)the_standin.settings.n_devices;
    return call_end(&c);
}

static bool is_device(call *c, int device) {
    if (c->result == CUDA_SUCCESS && (device < 0 || device >= (int)the_standin.settings.n_devices))
        c->result = CUDA_ERROR_INVALID_DEVICE;
    return c->result == CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *out, int ordinal) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (call_has(&c, out) && is_device(&c, ordinal)) *out = ordinal;
    return call_end(&c);
}

CUresult CUDAAPI cuDeviceGetName(char *name, int length, CUdevice device) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (call_has(&c, name) && is_device(&c, device)) snprintf(name, (size_t)length, "Stand-in %d", device);
    return call_end(&c);
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (call_has(&c, uuid) && is_device(&c, device)) {
        for (int i = 0; i < 16; i++) uuid->bytes[i] = (char)(0x10 * device + i);
    }
    return call_end(&c);
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (call_has(&c, text) && is_device(&c, device)) snprintf(text, (size_t)length, "0000:%02x:00.0", device + 1);
    return call_end(&c);
}

enum { LAST_ATTRIBUTE = 147 }; /* of CUDA 13.0 */

static CUresult attribute_of(CUdevice_attribute attribute, CUdevice device, int *value) {
    const int capability = (int)the_standin.settings.capability;
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return *value = capability / 10, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return *value = capability % 10, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return *value = device + 1, CUDA_SUCCESS;
    default: break;
    }
    switch ((int)attribute) {
#define STANDIN_ANSWER(name, number, answer) \
    case number: *value = answer; return CUDA_SUCCESS;
        STANDIN_ATTRIBUTES(STANDIN_ANSWER)
#undef STANDIN_ANSWER
    default: break;
    }
    if ((int)attribute < 1 || (int)attribute > LAST_ATTRIBUTE)
        return misuse(MISUSE_BAD_VALUE, CUDA_ERROR_INVALID_VALUE, "attribute %d is not known", (int)attribute);
    *value = 0; /* a feature that is not there */
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (call_has(&c, value) && is_device(&c, device)) c.result = attribute_of(attribute, device, value);
    return call_end(&c);
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (call_has(&c, bytes) && is_device(&c, device)) *bytes = the_standin.settings.memory_bytes;
    return call_end(&c);
}

/* ---- contexts ---- */

#define CONTEXT_TAG UINT64_C(0x0050000000000000)
enum { STACK_DEPTH = 16 };
static _Thread_local owner stack[STACK_DEPTH];
static _Thread_local uint32_t depth;

bool owner_is(owner o, const context *c) { return o.context == c && o.generation == c->generation && c->active; }

bool owner_is_or_any(owner o, const context *c) { return owner_is(o, c ? c : o.context); }

static CUcontext handle_of(owner o) {
    if (!o.context) return NULL;
    return (CUcontext)(uintptr_t)(CONTEXT_TAG | (uint64_t)o.generation << 12 | (o.context->device + 1) << 4);
}

context *context_current(bool *gone) {
    const owner o = depth ? stack[depth - 1] : (owner){.context = NULL};
    *gone = o.context && !owner_is(o, o.context);
    return *gone ? NULL : o.context;
}

/* NULL is a context, too: none. */
static CUresult context_of(CUcontext handle, owner *out) {
    const uint64_t bits = (uint64_t)(uintptr_t)handle, device = (bits >> 4 & 0xff) - 1;
    *out = (owner){.context = NULL};
    if (!handle) return CUDA_SUCCESS;
    if ((bits & CONTEXT_TAG) != CONTEXT_TAG || device >= the_standin.settings.n_devices)
        return misuse(MISUSE_BAD_HANDLE, CUDA_ERROR_INVALID_CONTEXT, "%p is no context", (void *)handle);
    const owner o = {&the_standin.contexts[device], (uint32_t)((bits & ~CONTEXT_TAG) >> 12)};
    if (!owner_is(o, o.context))
        return misuse(MISUSE_RELEASED_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context was released");
    *out = o;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (call_has(&c, out) && is_device(&c, device)) {
        context *x = &the_standin.contexts[device];
        if (!x->active)
            *x = (context){.device = (uint32_t)device,
                           .retained = x->retained,
                           .flags = x->flags,
                           .active = true,
                           .generation = x->generation + 1};
        x->retained++;
        *out = handle_of((owner){x, x->generation});
    }
    return call_end(&c);
}

/* Everything in it goes, whoever still has it. */
static void destroy_context(context *x) {
    stream_release_context(x);
    event_release_context(x);
    module_release_context(x);
    memory_release_context(x);
    x->default_stream = NULL;
    x->active = false;
    x->error = CUDA_SUCCESS;
    x->error_told = false;
}

static void report_leaks(const context *x) {
    memory_report_leaks(x);
    stream_report_leaks(x);
    event_report_leaks(x);
    module_report_leaks(x);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (is_device(&c, device)) {
        context *x = &the_standin.contexts[device];
        if (x->retained == 0) {
            c.result = misuse(MISUSE_RELEASED_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, "nobody retains the context");
        } else if (--x->retained == 0 && x->active) {
            stream_wait_context(x);
            report_leaks(x);
            destroy_context(x);
        }
    }
    return call_end(&c);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (is_device(&c, device) && the_standin.contexts[device].active) {
        stream_wait_context(&the_standin.contexts[device]);
        destroy_context(&the_standin.contexts[device]);
    }
    return call_end(&c);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (is_device(&c, device)) the_standin.contexts[device].flags = flags;
    return call_end(&c);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (call_has(&c, flags) && call_has(&c, active) && is_device(&c, device)) {
        *flags = the_standin.contexts[device].flags;
        *active = the_standin.contexts[device].active;
    }
    return call_end(&c);
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context_handle) {
    call c = call_begin(__func__, NEEDS_INIT);
    owner o = {0};
    if (c.result == CUDA_SUCCESS) c.result = context_of(context_handle, &o);
    if (c.result == CUDA_SUCCESS) {
        if (depth == 0) depth = 1;
        stack[depth - 1] = o;
        if (!o.context) depth--;
    }
    return call_end(&c);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *out) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (call_has(&c, out)) *out = depth ? handle_of(stack[depth - 1]) : NULL;
    return call_end(&c);
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context_handle) {
    call c = call_begin(__func__, NEEDS_INIT);
    owner o = {.context = NULL};
    if (c.result == CUDA_SUCCESS) c.result = context_of(context_handle, &o);
    if (c.result == CUDA_SUCCESS && (!o.context || depth == STACK_DEPTH))
        c.result = misuse(MISUSE_NO_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, "nothing to push, or too much");
    if (c.result == CUDA_SUCCESS) stack[depth++] = o;
    return call_end(&c);
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *out) {
    call c = call_begin(__func__, NEEDS_INIT);
    if (c.result == CUDA_SUCCESS && depth == 0)
        c.result = misuse(MISUSE_NO_CONTEXT, CUDA_ERROR_INVALID_CONTEXT, "nothing to pop");
    if (c.result == CUDA_SUCCESS) {
        depth--;
        if (out) *out = handle_of(stack[depth]);
    }
    return call_end(&c);
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *out) {
    call c = call_begin(__func__, NEEDS_CONTEXT);
    if (call_has(&c, out)) *out = (int)c.context->device;
    return call_end(&c);
}

CUresult CUDAAPI cuCtxSynchronize(void) {
    call c = call_begin(__func__, NEEDS_CONTEXT);
    if (c.result == CUDA_SUCCESS) stream_wait_context(c.context);
    return call_end(&c);
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    call c = call_begin(__func__, NEEDS_CONTEXT);
    if (c.result == CUDA_SUCCESS && least) *least = 0;
    if (c.result == CUDA_SUCCESS && greatest) *greatest = -5;
    return call_end(&c);
}

void context_report_leaks(void) {
    report_leaks(NULL);
    for (uint32_t i = 0; i < MAX_DEVICES; i++)
        if (the_standin.contexts[i].retained)
            misuse(MISUSE_LEAK, CUDA_SUCCESS, "the context of device %u, retained %u times", i,
                   the_standin.contexts[i].retained);
}

void context_reset_all(void) {
    depth = 0; /* of this thread; others have ended */
    for (uint32_t i = 0; i < MAX_DEVICES; i++) {
        const uint32_t generation = the_standin.contexts[i].generation;
        the_standin.contexts[i] = (context){.device = i, .generation = generation};
    }
}
