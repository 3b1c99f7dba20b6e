/* Who computes a matrix product: the kernel of kernels/gemm.gpu, or CLBlast where it is here and faster.
 *
 * The two round differently, so a choice must not change between runs that are compared. It is made per device and class
 * of products, at the first product of a class, by measuring both ways on a product that stands for the class. What came
 * out is kept on disk beside the built programs, and from then on only read: the first process to measure decides for
 * all. Where it cannot be kept, products are our own. A choice belongs to device, driver and the text of our kernel. */
#include "device/gpu/gemm.h"
#include "device/opencl/opencl.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/size.h"

#define RUNS 4   /* of a product that is measured, the first not counted */
#define GAIN 0.9 /* of our time, that CLBlast must stay below */
#define SIZES 3
static const int64_t sizes[SIZES] = {32, 256, 1024}; /* stand for dimensions below `limits` */
static const int64_t limits[SIZES] = {96, 512, INT64_MAX};

/* To a place where a buffer may begin. */
static uint64_t aligned(const tide_device *device, uint64_t bytes) {
    return (bytes + device->align_bytes - 1) & ~(uint64_t)(device->align_bytes - 1);
}

/* ---- what is asked for ---- */

tide_status tide__products_open(tide__opencl *opencl) {
    const char *asked = getenv("TIDE_OPENCL_PRODUCTS");
    if (!asked || strcmp(asked, "measured") == 0)
        opencl->products = TIDE__PRODUCTS_MEASURED;
    else if (strcmp(asked, "own") == 0)
        opencl->products = TIDE__PRODUCTS_OWN;
    else if (strcmp(asked, "clblast") == 0)
        opencl->products = TIDE__PRODUCTS_CLBLAST;
    else
        return tide__fail(TIDE_E_ARGUMENT, "TIDE_OPENCL_PRODUCTS is \"%s\", not measured, own or clblast", asked);
    if (opencl->products != TIDE__PRODUCTS_OWN && !tide__clblast_load(&opencl->clblast)) {
        if (opencl->products == TIDE__PRODUCTS_CLBLAST)
            return tide__fail(TIDE_E_DEVICE, "TIDE_OPENCL_PRODUCTS asks for CLBlast, which is not here");
        opencl->products = TIDE__PRODUCTS_OWN;
    }
    return TIDE_OK;
}

/* CLBlast keeps programs by the address of their context: they must go before another has it. The library itself stays
 * loaded, as OpenCL does. */
void tide__products_close(tide__opencl *opencl) {
    if (opencl->clblast.is_here) opencl->clblast.clear_cache();
}

/* ---- measuring ---- */

static uint32_t size_of(size_t n) {
    uint32_t i = 0;
    while ((int64_t)n >= limits[i]) i++;
    return i;
}

static uint32_t class_of(const tide__product_shape *p) {
    const uint32_t order = p->a.transposed ? 2 : p->b.transposed ? 1 : 0;
    return ((order * SIZES + size_of(p->m)) * SIZES + size_of(p->n)) * SIZES + size_of(p->depth);
}

/* The products of a fully connected layer come in the three orders that there are. */
static tide_op_desc stand_in(uint32_t class) {
    const int64_t depth = sizes[class % SIZES], n = sizes[class / SIZES % SIZES];
    const int64_t m = sizes[class / (SIZES * SIZES) % SIZES];
    switch (class / (SIZES * SIZES * SIZES)) {
    case 0: return (tide_op_desc){.kind = TIDE_OP_FC_BWD_DATA, .x = {m, n, 1, 1}, .y = {m, depth, 1, 1}};
    case 1: return (tide_op_desc){.kind = TIDE_OP_FC_FWD, .x = {m, depth, 1, 1}, .y = {m, n, 1, 1}};
    default: return (tide_op_desc){.kind = TIDE_OP_FC_BWD_WEIGHTS, .x = {depth, n, 1, 1}, .y = {depth, m, 1, 1}};
    }
}

static tide_status time_kernel(tide__opencl *opencl, tide_kernel *kernel, uint64_t *best_ns) {
    const uint64_t workspace = kernel->info.variant[0].workspace_bytes;
    uint64_t offsets[4] = {0}, best = UINT64_MAX;
    tide_arena *arena = NULL;
    tide_queue *queue = NULL;
    tide_status status;
    for (int i = 0; i < 3; i++) offsets[i + 1] = aligned(&opencl->gpu.base, offsets[i] + kernel->operand_bytes[i]);
    TIDE_TRY_GOTO(tide_arena_create(&opencl->gpu.base, offsets[3] + workspace, &arena), done);
    TIDE_TRY_GOTO(tide_queue_create(&opencl->gpu.base, TIDE_QUEUE_COMPUTE, &queue), done);
    for (int i = 0; i < RUNS; i++) {
        const uint64_t begin = tide__now_ns();
        TIDE_TRY_GOTO(tide_kernel_enqueue(kernel, 0, queue, arena, offsets, workspace ? 4 : 3, NULL), done);
        TIDE_TRY_GOTO(tide_queue_sync(queue), done);
        if (i) best = tide__min_u64(best, tide__now_ns() - begin);
    }
    *best_ns = best;
done:
    tide_queue_destroy(queue);
    tide_arena_destroy(arena);
    return status;
}

static tide_status time_way(tide__opencl *opencl, const tide_op_desc *d, tide__products way, uint64_t *ns) {
    tide_kernel *kernel = NULL;
    opencl->products = way;
    tide_status status = tide_kernel_create(&opencl->gpu.base, d, &kernel);
    opencl->products = TIDE__PRODUCTS_MEASURED;
    if (status == TIDE_OK) status = time_kernel(opencl, kernel, ns);
    tide_kernel_destroy(kernel);
    return status;
}

/* A way that fails is not chosen. */
static tide__product_choice measure(tide__opencl *opencl, uint32_t class) {
    const tide_op_desc d = stand_in(class);
    tide__product_choice c = {.way = TIDE__PRODUCTS_OWN};
    if (time_way(opencl, &d, TIDE__PRODUCTS_OWN, &c.own_ns) == TIDE_OK &&
        time_way(opencl, &d, TIDE__PRODUCTS_CLBLAST, &c.clblast_ns) == TIDE_OK &&
        (double)c.clblast_ns < GAIN * (double)c.own_ns)
        c.way = TIDE__PRODUCTS_CLBLAST;
    return c;
}

static uint64_t key_of(const tide__opencl *opencl, uint32_t class) {
    static const char what[] = "product";
    return tide__hash_word(tide__hash_bytes(tide__opencl_cache_key(opencl, "gemm"), what, sizeof what), class);
}

static tide__product_choice choose(tide__opencl *opencl, uint32_t class) {
    tide__product_choice choice = {.way = TIDE__PRODUCTS_OWN};
    const uint64_t key = key_of(opencl, class);
    size_t size = 0;
    unsigned char *stored = tide__gpu_cache_read("opencl", key, &size);
    if (stored && size == sizeof choice) {
        memcpy(&choice, stored, sizeof choice);
    } else {
        choice = measure(opencl, class);
        if (!tide__gpu_cache_keep("opencl", key, &choice, sizeof choice)) choice.way = TIDE__PRODUCTS_OWN;
    }
    free(stored);
    return choice;
}

bool tide__product_is_clblast(tide__gpu *gpu, const tide__gemm *g) {
    tide__opencl *opencl = (tide__opencl *)gpu;
    tide__product_shape p;
    if (opencl->products == TIDE__PRODUCTS_OWN || !tide__gemm_is_whole(g, &p)) return false;
    if (opencl->products == TIDE__PRODUCTS_CLBLAST) return true;
    tide__product_choice *choice = &opencl->choices[class_of(&p)];
    if (choice->way == TIDE__PRODUCTS_MEASURED) *choice = choose(opencl, class_of(&p));
    return choice->way == TIDE__PRODUCTS_CLBLAST;
}

/* ---- CLBlast's products as launches ---- */

/* Sizes depend on the device, which CLBlast only takes as one of its queues. */
static tide_status find_temporary(tide__opencl *opencl, tide__gpu_product *product) {
    cl_int error = CL_SUCCESS;
    cl_command_queue queue = opencl->cl.CreateCommandQueue(opencl->context, opencl->id, 0, &error);
    TIDE_TRY(tide__cl_check(error, "create a queue"));
    tide_status status = tide__clblast_temporary(&opencl->clblast, queue, &product->shape, &product->temporary_bytes);
    opencl->cl.ReleaseCommandQueue(queue);
    return status;
}

tide_status tide__product_add(tide__gpu_kernel *k, const tide__gemm *g) {
    tide__gpu_product product = {.a = g->a.operand, .b = g->b.operand, .c = g->c.operand};
    if (!tide__gemm_is_whole(g, &product.shape)) return tide__fail(TIDE_E_INTERNAL, "not a product for CLBlast");
    TIDE_TRY(tide__gpu_spread_bias(k, g));
    TIDE_TRY(find_temporary((tide__opencl *)k->base.device, &product));
    return tide__gpu_product_add(k, &product);
}

/* ---- running them ---- */

/* `bytes` of the arena as a buffer, NULL for none. */
static tide_status cut(const tide__opencl *opencl, cl_mem arena, uint64_t offset, uint64_t bytes, cl_mem *out) {
    const cl_buffer_region region = {offset, bytes};
    cl_int error = CL_SUCCESS;
    if (!bytes) return TIDE_OK;
    *out = opencl->cl.CreateSubBuffer(arena, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    return tide__cl_check(error, "cut a buffer");
}

/* The workspace as a builder knows it ends before the temporary memory. */
static uint64_t bytes_of(const tide__gpu_kernel *k, uint32_t variant, uint32_t operand) {
    return operand < k->operands.count ? k->operand_bytes[operand] : k->variants[variant].workspace_bytes;
}

static tide_status multiply(const tide__opencl_queue *queue, const tide__command *command,
                            const tide__gpu_product *product) {
    const tide__gpu_kernel *k = (const tide__gpu_kernel *)command->kernel.kernel;
    const tide__opencl *opencl = (const tide__opencl *)k->base.device;
    const uint32_t operands[3] = {product->a, product->b, product->c}, variant = command->kernel.variant;
    cl_mem arena = ((const tide__opencl_arena *)command->kernel.arena)->buffer, part[4] = {NULL};
    tide_status status = TIDE_OK;
    for (int i = 0; i < 3 && status == TIDE_OK; i++)
        status = cut(opencl, arena, command->offsets[operands[i]], bytes_of(k, variant, operands[i]), &part[i]);
    if (status == TIDE_OK && product->temporary_bytes)
        status = cut(opencl, arena, command->offsets[tide__workspace(k)] + tide__gpu_product_place(k, variant),
                     product->temporary_bytes, &part[3]);
    if (status == TIDE_OK) status = tide__clblast_multiply(&opencl->clblast, queue->cl, &product->shape, part);
    for (int i = 0; i < 4; i++)
        if (part[i]) opencl->cl.ReleaseMemObject(part[i]);
    return status;
}

tide_status tide__product_run(tide__host_queue *queue, const tide__command *command, const tide__gpu_product *product) {
    tide__opencl *opencl = (tide__opencl *)queue->base.device;
    pthread_mutex_lock(&opencl->lock);
    tide_status status = multiply((const tide__opencl_queue *)queue, command, product);
    pthread_mutex_unlock(&opencl->lock);
    return status;
}
