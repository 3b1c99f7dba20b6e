/* See clblast.h. */
#include "device/opencl/clblast.h"

#include <stddef.h>
#include <stdlib.h>

#include "device/gpu/library.h"

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

static const tide__symbol symbols[] = {
    {"CLBlastSGemmTempBufferSize", offsetof(tide__clblast, size)},
    {"CLBlastSgemmWithTempBuffer", offsetof(tide__clblast, sgemm)},
    {"CLBlastClearCache", offsetof(tide__clblast, clear_cache)},
};

bool tide__clblast_load(tide__clblast *out) {
    const char *missing;
    char reason[256];
    tide__clblast blast = {.is_here = true};
    if (getenv("TIDE_OPENCL")) return false; /* CLBlast calls the system's libOpenCL, whose objects are not ours then */
    if (!tide__library_load("libclblast.so.1", symbols, sizeof symbols / sizeof symbols[0], &blast, &missing, reason,
                            sizeof reason))
        return false;
    *out = blast;
    return true;
}

static tide_status check(int status, const char *doing) {
    if (status == 0) return TIDE_OK;
    return tide__fail(TIDE_E_DEVICE, "CLBlast cannot %s: status %d", doing, status);
}

static int order_of(const tide__product_matrix *m) { return m->transposed ? TRANSPOSED : PLAIN; }

/* A matrix that begins with its buffer may need less; asking for one that does not covers both. */
tide_status tide__clblast_temporary(const tide__clblast *blast, cl_command_queue queue, const tide__product_shape *p,
                                    uint64_t *bytes) {
    size_t size = 0;
    TIDE_TRY(check(blast->size(ROW_MAJOR, order_of(&p->a), order_of(&p->b), p->m, p->n, p->depth, 16, p->a.row, 16,
                               p->b.row, 16, p->c.row, &queue, &size),
                   "describe a product"));
    *bytes = size;
    return TIDE_OK;
}

tide_status tide__clblast_multiply(const tide__clblast *blast, cl_command_queue queue, const tide__product_shape *p,
                                   const cl_mem buffers[4]) {
    return check(blast->sgemm(ROW_MAJOR, order_of(&p->a), order_of(&p->b), p->m, p->n, p->depth, p->alpha, buffers[0],
                              p->a.offset, p->a.row, buffers[1], p->b.offset, p->b.row, p->beta, buffers[2],
                              p->c.offset, p->c.row, &queue, NULL, buffers[3]),
                 "multiply");
}
