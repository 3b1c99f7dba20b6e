/* OpenCL as loaded at run time, a dozen functions of it. */
#define CL_TARGET_OPENCL_VERSION 120
#include "support/test.h"

#include <dlfcn.h>

#include "cuda/opencl_run.h"

/* ---- texts ---- */

static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    char *text = calloc(1, (size_t)size + 1);
    if (text && fread(text, 1, (size_t)size, file) != (size_t)size) text[0] = 0;
    fclose(file);
    return text;
}

char *pairs_opencl_text(void) {
    char *words = read_text(STANDIN_PAIRS_DIR "/words_opencl.h"), *kernels = read_text(STANDIN_PAIRS_DIR "/pairs.cl");
    assert_non_null(words);
    assert_non_null(kernels);
    char *both = malloc(strlen(words) + strlen(kernels) + 1);
    sprintf(both, "%s%s", words, kernels);
    free(words);
    free(kernels);
    return both;
}

char *pairs_ptx_text(void) {
#ifdef STANDIN_PAIRS
    return read_text(STANDIN_PAIRS);
#else
    return NULL;
#endif
}

#if __has_include(<CL/cl.h>)
#include <CL/cl.h>

#define CL_FUNCTIONS(X)          \
    X(clGetPlatformIDs)          \
    X(clGetDeviceIDs)            \
    X(clCreateContext)           \
    X(clCreateCommandQueue)      \
    X(clReleaseContext)          \
    X(clReleaseCommandQueue)     \
    X(clCreateProgramWithSource) \
    X(clBuildProgram)            \
    X(clReleaseProgram)          \
    X(clCreateKernel)            \
    X(clReleaseKernel)           \
    X(clCreateBuffer) X(clReleaseMemObject) X(clSetKernelArg) X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer)

static struct {
    void *library;
#define CL_POINTER(name) __typeof__(name) *name;
    CL_FUNCTIONS(CL_POINTER)
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
} cl;

static void check(cl_int error, const char *what) {
    if (error != CL_SUCCESS) fail_msg("%s: %d", what, error);
}

static bool load(void) {
    cl_platform_id platform;
    cl_uint n = 0;
    cl.library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cl.library) return false;
#define CL_LOAD(name)                               \
    {                                               \
        void *address = dlsym(cl.library, #name);   \
        if (!address) return false;                 \
        memcpy(&cl.name, &address, sizeof address); \
    }
    CL_FUNCTIONS(CL_LOAD)
    if (cl.clGetPlatformIDs(1, &platform, &n) != CL_SUCCESS || n == 0) return false;
    return cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &cl.device, &n) == CL_SUCCESS && n > 0;
}

bool opencl_run_open(const char *text, const char *options) {
    cl_int error = CL_SUCCESS;
    if (!load()) return false;
    cl.context = cl.clCreateContext(NULL, 1, &cl.device, NULL, NULL, &error);
    check(error, "clCreateContext");
    cl.queue = cl.clCreateCommandQueue(cl.context, cl.device, 0, &error);
    check(error, "clCreateCommandQueue");
    cl.program = cl.clCreateProgramWithSource(cl.context, 1, &text, NULL, &error);
    check(error, "clCreateProgramWithSource");
    check(cl.clBuildProgram(cl.program, 1, &cl.device, options, NULL, NULL), "clBuildProgram");
    return true;
}

void opencl_run(const char *kernel, const float *x, float *y, int32_t n, int32_t width, uint32_t groups,
                uint32_t lanes) {
    cl_int error = CL_SUCCESS;
    const size_t bytes = (size_t)n * sizeof *x, in_all = (size_t)groups * lanes, in_a_group = lanes;
    cl_kernel k = cl.clCreateKernel(cl.program, kernel, &error);
    check(error, kernel);
    float *copy = malloc(bytes);
    memcpy(copy, x, bytes);
    cl_mem from = cl.clCreateBuffer(cl.context, CL_MEM_COPY_HOST_PTR, bytes, copy, &error);
    check(error, "clCreateBuffer");
    cl_mem to = cl.clCreateBuffer(cl.context, CL_MEM_COPY_HOST_PTR, bytes, y, &error);
    check(error, "clCreateBuffer");
    check(cl.clSetKernelArg(k, 0, sizeof from, &from), "argument 0");
    check(cl.clSetKernelArg(k, 1, sizeof to, &to), "argument 1");
    check(cl.clSetKernelArg(k, 2, sizeof n, &n), "argument 2");
    check(cl.clSetKernelArg(k, 3, sizeof width, &width), "argument 3");
    check(cl.clEnqueueNDRangeKernel(cl.queue, k, 1, NULL, &in_all, &in_a_group, 0, NULL, NULL), kernel);
    check(cl.clEnqueueReadBuffer(cl.queue, to, CL_TRUE, 0, bytes, y, 0, NULL, NULL), "clEnqueueReadBuffer");
    cl.clReleaseMemObject(from);
    cl.clReleaseMemObject(to);
    cl.clReleaseKernel(k);
    free(copy);
}

void opencl_run_close(void) {
    cl.clReleaseProgram(cl.program);
    cl.clReleaseCommandQueue(cl.queue);
    cl.clReleaseContext(cl.context);
}

#else

bool opencl_run_open(const char *text, const char *options) { return false; }
void opencl_run(const char *kernel, const float *x, float *y, int32_t n, int32_t width, uint32_t groups,
                uint32_t lanes) {}
void opencl_run_close(void) {}

#endif
