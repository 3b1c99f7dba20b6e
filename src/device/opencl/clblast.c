/* See clblast.h. */
#include <dlfcn.h>
#include <stdlib.h>

#include "device/opencl/clblast.h"

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

bool tide__clblast_load(tide__clblast *out) {
    static const char *const names[] = {"CLBlastSGemmTempBufferSize", "CLBlastSgemmWithTempBuffer",
                                        "CLBlastClearCache"};
    tide__clblast blast = {0};
    void *address[3];
    if (getenv("TIDE_OPENCL")) return false; /* CLBlast calls the system's libOpenCL, whose objects are not ours then */
    blast.library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!blast.library) return false;
    for (int i = 0; i < 3; i++) {
        address[i] = dlsym(blast.library, names[i]);
        if (address[i]) continue;
        dlclose(blast.library);
        return false;
    }
    tide__pointer_set(&blast.size, address[0]);
    tide__pointer_set(&blast.sgemm, address[1]);
    tide__pointer_set(&blast.clear_cache, address[2]);
    *out = blast;
    return true;
}

static tide_status check(int status, const char *doing) {
    if (status == 0) return TIDE_OK;
    return tide__fail(TIDE_E_DEVICE, "CLBlast cannot %s: status %d", doing, status);
}

static int order_of(const tide__clblast_matrix *m) { return m->transposed ? TRANSPOSED : PLAIN; }

/* A matrix that begins with its buffer may need less; asking for one that does not covers both. */
tide_status tide__clblast_temporary(const tide__clblast *blast, cl_command_queue queue, const tide__clblast_product *p,
                                    uint64_t *bytes) {
    size_t size = 0;
    TIDE_TRY(check(blast->size(ROW_MAJOR, order_of(&p->a), order_of(&p->b), p->m, p->n, p->depth, 16, p->a.row, 16,
                               p->b.row, 16, p->c.row, &queue, &size),
                   "describe a product"));
    *bytes = size;
    return TIDE_OK;
}

tide_status tide__clblast_multiply(const tide__clblast *blast, cl_command_queue queue, const tide__clblast_product *p,
                                   const cl_mem buffers[4]) {
    return check(blast->sgemm(ROW_MAJOR, order_of(&p->a), order_of(&p->b), p->m, p->n, p->depth, p->alpha, buffers[0],
                              p->a.offset, p->a.row, buffers[1], p->b.offset, p->b.row, p->beta, buffers[2],
                              p->c.offset, p->c.row, &queue, NULL, buffers[3]),
                 "multiply");
}
