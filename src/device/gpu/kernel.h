/* Kernels of GPUs. An op kind has a builder (one table in kernel.c) that declares the operands, reads
 * first, and lists the *launches* that compute it: a function of one of the files in kernels/, a number of work items,
 * and arguments that are constants, places of operands or values of the step. Enqueueing then only fills in places.
 *
 * All operands are stored plainly, row-major, without padding. A work group takes a whole run of elements, a row or a
 * tile, and has as many items as the device has lanes (kernels/common.gpu). Reductions have one fixed order and no
 * atomics, so bits do not depend on how a driver schedules groups.
 *
 * To add an op: a builder in the file of its family, its functions in kernels/FAMILY.gpu, a line in kernel.c. */
#ifndef TIDE_DEVICE_GPU_KERNEL_H
#define TIDE_DEVICE_GPU_KERNEL_H

#include "device/gpu/gpu.h"

/* ---- operands (operand.c) ---- */

typedef enum tide__element { TIDE__F32, TIDE__I32, TIDE__U8 } tide__element;
static inline uint32_t tide__element_bytes(tide__element type) { return type == TIDE__U8 ? 1 : 4; }

typedef struct tide__gpu_operand {
    tide__element type;
    uint64_t elements;
} tide__gpu_operand;

/* Declaring operands, all reads before all writes. */
tide_status tide__gpu_reads(tide__gpu_kernel *k, tide__element type, uint64_t elements);
tide_status tide__gpu_writes(tide__gpu_kernel *k, tide__element type, uint64_t elements);
static inline uint64_t tide__shape_elements(const tide_shape *s) { return (uint64_t)(s->n * s->c * s->h * s->w); }

tide_status tide__gpu_operand_layout(const tide_kernel *kernel, uint32_t operand, tide__operand_layout *out);
tide_status tide__gpu_piece_pack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                 const float *plain, void *stored);
tide_status tide__gpu_piece_unpack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                   const void *stored, float *plain);

/* ---- launches ---- */

typedef enum tide__gpu_arg_kind {
    TIDE__ARG_PLACE, /* ulong: byte offset of an operand in the arena, plus `number` */
    TIDE__ARG_INT,
    TIDE__ARG_LONG,
    TIDE__ARG_FLOAT,
    TIDE__ARG_LOCAL,   /* `number` bytes of local memory */
    TIDE__ARG_SEED,    /* ulong, of the step */
    TIDE__ARG_STREAM,  /* ulong: of the op in this step */
    TIDE__ARG_RATE,    /* float: the learning rate */
    TIDE__ARG_M_SHARE, /* float, of adam: 1 / (1 - beta1^t) */
    TIDE__ARG_V_SHARE,
    TIDE__ARG_KEEP, /* float, of adamw: 1 - rate * decay */
} tide__gpu_arg_kind;

typedef struct tide__gpu_arg {
    tide__gpu_arg_kind kind;
    uint32_t operand;
    int64_t number;
    float real;
} tide__gpu_arg;

/* A row-major C = alpha A B + beta C for a library of products; offsets and row lengths in floats. */
typedef struct tide__product_matrix {
    bool transposed;
    size_t offset, row;
} tide__product_matrix;

typedef struct tide__product_shape {
    size_t m, n, depth;
    float alpha, beta;
    tide__product_matrix a, b, c;
} tide__product_shape;

/* Work of a library: a product, the offsets of whose shape count from the operands, or a convolution. */
struct tide__gpu_product {
    tide__product_shape shape;
    uint32_t a, b, c; /* operands; of a convolution the wide image, the weights, the small image */
    bool is_conv;
    uint32_t way;             /* the library's, for backend->run_product() */
    uint64_t temporary_bytes; /* at the end of the workspace */
};

struct tide__gpu_launch {
    void *function; /* the driver's; NULL: `product` of the kernel */
    size_t product;
    size_t groups[3];
    size_t first_arg, n_args; /* after the arena and the queue's faults, which every function begins with */
    uint32_t variant;         /* that it belongs to */
};

struct tide__gpu_kernel {
    tide_kernel base;
    tide_op_desc desc; /* its pointers are NULL */
    TIDE_VEC(tide__gpu_operand) operands;
    uint32_t n_reads;
    uint64_t *operand_bytes; /* what base.operand_bytes points to */
    TIDE_VEC(tide__gpu_launch) launches;
    TIDE_VEC(tide__gpu_arg) args;
    uint32_t n_variants; /* builders start with 1, add one with tide__gpu_variant() */
    tide_variant variants[4];
    uint64_t temporary_bytes[4]; /* of variants: for their products, behind the builder's own part of the workspace */
    TIDE_VEC(tide__gpu_product) products;
    const char *libraries[4]; /* of variants: "cuDNN, TF32"; NULL: our own */
    void *ways;               /* what a library needs for them, for backend->forget_ways() */
};

static inline tide__gpu_arg tide__place(uint32_t operand) { return (tide__gpu_arg){TIDE__ARG_PLACE, operand, 0, 0}; }
static inline tide__gpu_arg tide__place_at(uint32_t operand, int64_t bytes) {
    return (tide__gpu_arg){TIDE__ARG_PLACE, operand, bytes, 0};
}
static inline tide__gpu_arg tide__int(int64_t value) { return (tide__gpu_arg){TIDE__ARG_INT, 0, value, 0}; }
static inline tide__gpu_arg tide__long(uint64_t value) { return (tide__gpu_arg){TIDE__ARG_LONG, 0, (int64_t)value, 0}; }
static inline tide__gpu_arg tide__float(float value) { return (tide__gpu_arg){TIDE__ARG_FLOAT, 0, 0, value}; }
static inline tide__gpu_arg tide__local(uint64_t bytes) {
    return (tide__gpu_arg){TIDE__ARG_LOCAL, 0, (int64_t)bytes, 0};
}
static inline tide__gpu_arg tide__of_step(tide__gpu_arg_kind kind) { return (tide__gpu_arg){kind, 0, 0, 0}; }

/* Appends a launch to the newest variant. */
tide_status tide__gpu_launch_add(tide__gpu_kernel *k, const char *family, const char *name, const size_t groups[3],
                                 const tide__gpu_arg *args, size_t n_args);
#define TIDE__GPU_MAX_ARGS 48
#define TIDE__LAUNCH(k, family, name, x, y, z, ...)                                                       \
    tide__gpu_launch_add((k), (family), (name), (const size_t[3]){(size_t)(x), (size_t)(y), (size_t)(z)}, \
                         (const tide__gpu_arg[]){__VA_ARGS__},                                            \
                         sizeof((const tide__gpu_arg[]){__VA_ARGS__}) / sizeof(tide__gpu_arg))
/* Groups of a launch over n elements, each with a run of TIDE__RUN of them (RUN in kernels/common.gpu). */
#define TIDE__RUN 4096
static inline size_t tide__runs(uint64_t n) { return (size_t)((n + TIDE__RUN - 1) / TIDE__RUN); }
/* Groups of a launch where every lane takes one of n things. */
static inline size_t tide__lane_groups(const tide__gpu_kernel *k, uint64_t n) {
    const uint32_t lanes = ((const tide__gpu *)k->base.device)->lanes;
    return (size_t)((n + lanes - 1) / lanes);
}
/* Appends a product to the newest variant. */
tide_status tide__gpu_product_add(tide__gpu_kernel *k, const tide__gpu_product *product);
/* Where the temporary memory of products begins in the workspace of a variant. */
uint64_t tide__gpu_product_place(const tide__gpu_kernel *k, uint32_t variant);
/* The workspace of the newest variant is operand n_reads + n_writes. */
static inline uint32_t tide__workspace(const tide__gpu_kernel *k) { return (uint32_t)k->operands.count; }
void tide__gpu_set_workspace(tide__gpu_kernel *k, uint64_t bytes);
/* Launches from here on are another way to the same result, with the same bits iff `same_bits`. */
void tide__gpu_variant(tide__gpu_kernel *k, bool same_bits);
/* Makes a variant the default; it changes places with the one that was. */
void tide__gpu_variant_first(tide__gpu_kernel *k, uint32_t variant);

/* ---- kernels (kernel.c) ---- */

tide_status tide__gpu_kernel_create(tide_device *device, const tide_op_desc *desc, tide_kernel **out);
void tide__gpu_kernel_destroy(tide_kernel *kernel);
const char *tide__gpu_variant_library(const tide_kernel *kernel, uint32_t variant);
/* On a compute queue's thread: the launches of the command's variant. */
tide_status tide__gpu_run_kernel(tide__host_queue *queue, const tide__command *command);

/* ---- builders, one per family; `d` is the caller's descriptor, checked; k->desc is its copy ---- */

tide_status tide__gpu_build_conv(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_fc(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_bn(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_elementwise(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_pool(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_softmax_loss(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_head(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_dropout(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_lrn(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_reorder(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_update(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_grad_norm(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_concat(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_cut(tide__gpu_kernel *k, const tide_op_desc *d); /* paste, too */
tide_status tide__gpu_build_steps(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_layernorm(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_embedding(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_attention(tide__gpu_kernel *k, const tide_op_desc *d);
tide_status tide__gpu_build_lstm(tide__gpu_kernel *k, const tide_op_desc *d);

#endif
