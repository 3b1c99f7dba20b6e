/* Programs: one per family in gpu/kernels/, built from that file and what stands before it when the first of its functions
 * is wanted, or taken from the disk if this device and driver have built the same text before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "device/opencl/opencl.h"
#include "device/opencl/sources.h"

typedef struct options {
    char text[96];
} options;

/* -w: what a driver warns of goes to stderr, which is not ours. Without the last option quotients and roots may be 2.5 or 3 units
 * off, and are on many GPUs; CUDA rounds them. */
static options options_of(const tide__opencl *opencl) {
    options o;
    snprintf(o.text, sizeof o.text, "-cl-std=CL1.2 -w -DLANES=%u%s", opencl->gpu.lanes,
             opencl->rounds_quotients ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    return o;
}

typedef struct function {
    char name[48];
    cl_kernel kernel;
} function;

struct tide__opencl_program {
    tide__opencl_program *next;
    const tide__cl_source *source;
    cl_program program;
    TIDE_VEC(function) functions;
};

static void release_program(tide__opencl *opencl, tide__opencl_program *p) {
    for (size_t i = 0; i < p->functions.count; i++) opencl->cl.ReleaseKernel(p->functions.data[i].kernel);
    if (p->program) opencl->cl.ReleaseProgram(p->program);
    tide__vec_free(&p->functions);
    free(p);
}

void tide__opencl_programs_release(tide__opencl *opencl) {
    while (opencl->programs) {
        tide__opencl_program *p = opencl->programs;
        opencl->programs = p->next;
        release_program(opencl, p);
    }
}

/* ---- building ---- */

static const tide__cl_source *find_source(const char *family) {
    char name[64];
    snprintf(name, sizeof name, "%s.gpu", family);
    for (const tide__cl_source *s = tide__cl_sources; s->name; s++)
        if (strcmp(s->name, name) == 0) return s;
    return NULL;
}

/* What stands before every family, and the family. */
#define PARTS 4
typedef struct text {
    const char *bytes[PARTS];
    size_t sizes[PARTS];
} text;

static tide_status text_of(const tide__cl_source *family, text *out) {
    const tide__cl_source *parts[PARTS] = {find_source("words_opencl"), find_source("common"), find_source("tile"),
                                           family};
    for (int i = 0; i < PARTS; i++) {
        if (!parts[i]) return tide__fail(TIDE_E_INTERNAL, "a file of kernels is not part of this library");
        out->bytes[i] = (const char *)parts[i]->bytes;
        out->sizes[i] = parts[i]->size;
    }
    return TIDE_OK;
}

/* What the binary depends on. */
static uint64_t key_of(const tide__opencl *opencl, const text *source) {
    static const cl_device_info asked[] = {CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DRIVER_VERSION, CL_DEVICE_VENDOR};
    const options built = options_of(opencl);
    uint64_t key = tide__hash_bytes(0, built.text, strlen(built.text));
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        char answer[256];
        tide__opencl_text(opencl, asked[i], answer, sizeof answer);
        key = tide__hash_bytes(key, answer, strlen(answer));
    }
    for (int i = 0; i < PARTS; i++) key = tide__hash_bytes(key, source->bytes[i], source->sizes[i]);
    return key;
}

uint64_t tide__opencl_cache_key(const tide__opencl *opencl, const char *family) {
    text source;
    return text_of(find_source(family), &source) == TIDE_OK ? key_of(opencl, &source) : 0;
}

static tide_status fail_build(const tide__opencl *opencl, const tide__opencl_program *p, cl_int error) {
    char log[512] = "";
    opencl->cl.GetProgramBuildInfo(p->program, opencl->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    return tide__fail(TIDE_E_DEVICE, "%s: the driver cannot build %s: %s (%d) %.400s", opencl->gpu.name,
                      p->source->name, tide__cl_error_name(error), error, log);
}

static cl_int build_program(const tide__opencl *opencl, cl_program program) {
    const options o = options_of(opencl);
    return opencl->cl.BuildProgram(program, 1, &opencl->id, o.text, NULL, NULL);
}

static bool build_from_binary(tide__opencl *opencl, tide__opencl_program *p, uint64_t key) {
    size_t size = 0;
    cl_int error = CL_SUCCESS, loaded = CL_SUCCESS;
    unsigned char *binary = tide__gpu_cache_read("opencl", key, &size);
    const unsigned char *bytes = binary;
    if (!binary) return false;
    p->program = opencl->cl.CreateProgramWithBinary(opencl->context, 1, &opencl->id, &size, &bytes, &loaded, &error);
    free(binary);
    if (error == CL_SUCCESS) error = build_program(opencl, p->program);
    if (error == CL_SUCCESS && loaded == CL_SUCCESS) return true;
    if (p->program) opencl->cl.ReleaseProgram(p->program);
    p->program = NULL;
    return false;
}

static void save_binary(const tide__opencl *opencl, const tide__opencl_program *p, uint64_t key) {
    size_t size = 0;
    if (opencl->cl.GetProgramInfo(p->program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS) return;
    unsigned char *binary = size ? malloc(size) : NULL;
    if (!binary) return;
    if (opencl->cl.GetProgramInfo(p->program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS)
        tide__gpu_cache_write("opencl", key, binary, size);
    free(binary);
}

static tide_status build_from_source(tide__opencl *opencl, tide__opencl_program *p, text *source) {
    cl_int error = CL_SUCCESS;
    p->program = opencl->cl.CreateProgramWithSource(opencl->context, PARTS, source->bytes, source->sizes, &error);
    TIDE_TRY(tide__cl_check(error, "create a program"));
    error = build_program(opencl, p->program);
    return error == CL_SUCCESS ? TIDE_OK : fail_build(opencl, p, error);
}

static tide_status build(tide__opencl *opencl, tide__opencl_program *p) {
    text source;
    TIDE_TRY(text_of(p->source, &source));
    uint64_t key = key_of(opencl, &source);
    if (build_from_binary(opencl, p, key)) return TIDE_OK;
    TIDE_TRY(build_from_source(opencl, p, &source));
    save_binary(opencl, p, key);
    return TIDE_OK;
}

static tide_status get_program(tide__opencl *opencl, const char *family, tide__opencl_program **out) {
    const tide__cl_source *source = find_source(family);
    if (!source) return tide__fail(TIDE_E_INTERNAL, "%s.gpu is not part of this library", family);
    for (*out = opencl->programs; *out; *out = (*out)->next)
        if ((*out)->source == source) return TIDE_OK;
    tide__opencl_program *p = calloc(1, sizeof *p);
    if (!p) return tide__fail_memory();
    p->source = source;
    tide_status status = build(opencl, p);
    if (status != TIDE_OK) {
        release_program(opencl, p);
        return status;
    }
    p->next = opencl->programs;
    *out = opencl->programs = p;
    return TIDE_OK;
}

/* ---- functions ---- */

static tide_status create_function(tide__opencl *opencl, tide__opencl_program *p, const char *name, cl_kernel *out) {
    function f = {.kernel = NULL};
    cl_int error = CL_SUCCESS;
    snprintf(f.name, sizeof f.name, "%s", name);
    TIDE_TRY(tide__vec_reserve(&p->functions, 1));
    f.kernel = opencl->cl.CreateKernel(p->program, name, &error);
    if (error != CL_SUCCESS)
        return tide__fail(TIDE_E_DEVICE, "%s: no kernel \"%s\" in %s: %s (%d)", opencl->gpu.name, name, p->source->name,
                          tide__cl_error_name(error), error);
    p->functions.data[p->functions.count++] = f;
    *out = f.kernel;
    return TIDE_OK;
}

static tide_status get_function(tide__opencl *opencl, const char *family, const char *name, cl_kernel *out) {
    tide__opencl_program *p;
    TIDE_TRY(get_program(opencl, family, &p));
    for (size_t i = 0; i < p->functions.count; i++) {
        if (strcmp(p->functions.data[i].name, name) != 0) continue;
        *out = p->functions.data[i].kernel;
        return TIDE_OK;
    }
    return create_function(opencl, p, name, out);
}

tide_status tide__opencl_function(tide__gpu *gpu, const char *family, const char *name, void **out) {
    tide__opencl *opencl = (tide__opencl *)gpu;
    cl_kernel found = NULL;
    pthread_mutex_lock(&opencl->lock);
    tide_status status = get_function(opencl, family, name, &found);
    pthread_mutex_unlock(&opencl->lock);
    if (status == TIDE_OK) *out = found;
    return status;
}
