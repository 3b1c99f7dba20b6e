/* The stand-in as its own tests use it: loaded like a driver, called through a table of its functions. */
#ifndef TIDE_TESTS_CUDA_LOADED_H
#define TIDE_TESTS_CUDA_LOADED_H

#include "cuda/standin/driver.h"
#include "cuda/standin/standin_api.h"

typedef struct standin_table {
#define STANDIN_POINTER(name, parameters) CUresult(CUDAAPI *name) parameters;
    STANDIN_FUNCTIONS(STANDIN_POINTER)
#undef STANDIN_POINTER
    uint32_t (*misuse_count)(standin_misuse kind);
    const char *(*report)(uint32_t n);
    void (*finish)(void);
    void (*reset)(void);
    uint64_t (*calls)(const char *name);
} standin_table;

extern standin_table cu;
/* The file of the library. */
const char *standin_library(void);
/* Loads it, once. */
void standin_load(void);
/* A clean stand-in with the context of device 0 current; what the environment says holds from here on. */
CUcontext standin_open(void);
/* Releases it. Whatever was reported in between fails the test. */
void standin_close(void);
/* Fails the test where the stand-in has reported something. */
void standin_expect_quiet(void);
/* The beginning of every PTX text here. */
#define PTX_HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
/* A kernel of a text; fails the test where there is none. */
CUfunction standin_kernel_of(const char *ptx, const char *name, CUmodule *module_out);

/* A call that must succeed. */
#define assert_cu(call)                                                                     \
    do {                                                                                    \
        CUresult assert_result_ = (call);                                                   \
        if (assert_result_ != CUDA_SUCCESS) fail_msg("%s: %d", #call, (int)assert_result_); \
    } while (0)

#endif
