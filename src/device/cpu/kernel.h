/* Kernels of the CPU device. An op kind has a builder (one table in kernel.c) that declares the operands of a kernel,
 * reads first, and says how to run it: by a oneDNN primitive (prim.h) or by own loops.
 *
 * Stored layouts. An activation with 8 or more channels and more than one pixel is nChw8c, channels padded to a
 * multiple of 8 with zeros; every other one is plain row-major. Every kernel keeps padding zero. Weights lie as the
 * forward primitive wants them; those that meet rows are plain. Vectors (bias, statistics, labels, scalars) are plain.
 *
 * Own loops give the same bits for any number of threads: partial sums are over ranges that depend on shapes only and
 * are combined in one fixed order. */
#ifndef TIDE_DEVICE_CPU_KERNEL_H
#define TIDE_DEVICE_CPU_KERNEL_H

#include "device/cpu/cpu.h"

typedef struct tide__cpu_kernel tide__cpu_kernel;
typedef struct tide__prim tide__prim;
typedef struct tide__widened tide__widened;

/* ---- operands (operand.c) ---- */

typedef enum tide__form {
    TIDE__FORM_ACTIVATION,
    TIDE__FORM_FLOAT32, /* an activation that is never stored as bf16 */
    TIDE__FORM_VECTOR,
    TIDE__FORM_WEIGHTS
} tide__form;

typedef struct tide__operand {
    tide__form form;
    dnnl_data_type_t type;
    tide_shape shape; /* logical; a vector of n elements is (n, 1, 1, 1) */
    uint64_t size_bytes, layout;
    tide__md md; /* the kernel's; while an operand of an activation or a vector is declared: NULL */
} tide__operand;

/* Is an activation of this shape stored in blocks of 8 channels? */
static inline bool tide__is_blocked(const tide_shape *s) { return s->c >= 8 && (s->h > 1 || s->w > 1); }

/* As oneDNN sees it. A 1 x 1 image of whole blocks is plain and nChw8c at once: described as nChw8c. */
tide_status tide__activation_md(tide__mds *mds, const tide_shape *shape, dnnl_data_type_t type, tide__md *out);
/* pieces.c */
tide_status tide__cpu_operand_layout(const tide_kernel *kernel, uint32_t operand, tide__operand_layout *out);
tide_status tide__cpu_piece_pack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                 const float *plain, void *stored);
tide_status tide__cpu_piece_unpack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                   const void *stored, float *plain);

/* Declaring operands, all reads before all writes. */
typedef enum tide__access { TIDE__READ, TIDE__WRITE } tide__access;
tide_status tide__add_activation(tide__cpu_kernel *k, tide__access access, tide_shape shape); /* of desc.bf16's type */
tide_status tide__add_float32(tide__cpu_kernel *k, tide__access access, tide_shape shape);    /* in any case */
tide_status tide__add_bytes_like(tide__cpu_kernel *k, tide__access access, tide_shape shape); /* u8 per element */
tide_status tide__add_vector(tide__cpu_kernel *k, tide__access access, int64_t n, dnnl_data_type_t type);
tide_status tide__add_floats(tide__cpu_kernel *k, tide__access access, uint64_t n); /* TIDE_LAYOUT_ANY */
tide_status tide__add_weights(tide__cpu_kernel *k, tide__access access, tide__md md);
/* A plain matrix of weights. */
tide_status tide__add_matrix(tide__cpu_kernel *k, tide__access access, int64_t rows, int64_t columns);
tide_status tide__add_copy(tide__cpu_kernel *k, tide__access access, const tide__operand *other);

/* ---- kernels (kernel.c) ---- */

typedef struct tide__call {
    char *arena;
    uint32_t variant;
    const uint64_t *offsets; /* reads, writes, workspace */
    const tide_step_args *args;
    dnnl_stream_t stream;
} tide__call;

/* Another implementation of the same op, with other bits; its primitive comes into being at its first use. */
typedef struct tide__alternative {
    tide__prim *prim;
    uint64_t workspace_bytes;
} tide__alternative;

#define TIDE__MAX_ALTERNATIVES 3

typedef tide_status (*tide__run_fn)(const tide__cpu_kernel *k, const tide__call *call);

struct tide__cpu_kernel {
    tide_kernel base;
    tide_op_desc desc; /* its pointers are NULL */
    TIDE_VEC(tide__operand) operands;
    uint32_t n_reads;
    uint64_t workspace_bytes; /* of variant 0 */
    tide__run_fn run;
    tide__prim *prim;                                       /* of variant 0; NULL for own loops */
    tide__alternative alternatives[TIDE__MAX_ALTERNATIVES]; /* variants 1, 2 ... */
    uint32_t n_alternatives;
    tide__widened *widened;  /* NULL: it works on its operands itself */
    uint64_t *operand_bytes; /* what base.operand_bytes points to */
    tide__mds mds;           /* layouts that the builder needs; gone when the kernel is built */
    tide__mds operand_mds;   /* those of the operands */
};

tide_status tide__cpu_kernel_create(tide_device *device, const tide_op_desc *desc, tide_kernel **out);
void tide__cpu_kernel_destroy(tide_kernel *kernel);
tide_status tide__cpu_kernel_enqueue(tide_kernel *kernel, uint32_t variant, tide_queue *queue, tide_arena *arena,
                                     const uint64_t *offsets, uint32_t n_offsets, const tide_step_args *args);

/* Operand i of a call (the workspace is operand n_reads + n_writes). */
static inline void *tide__at(const tide__call *call, uint32_t i) { return call->arena + call->offsets[i]; }
static inline float *tide__floats(const tide__call *call, uint32_t i) { return tide__at(call, i); }

/* The OpenMP setting of this thread, exchanged while oneDNN creates or runs something. Returns the old one. */
int tide__set_threads(int threads);

/* Of kernels of bf16 that leave the work to one of float32 (widened.c): instead of its builder, or called by it. */
tide_status tide__build_widened(tide__cpu_kernel *k, const tide_op_desc *source);
bool tide__is_widened(const tide_op_desc *d);
void tide__widened_destroy(tide__widened *w); /* NULL is fine */

/* ---- builders, one per op kind or family; `source` is the caller's desc, k->desc its copy ---- */

tide_status tide__build_conv(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_fc(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_upconv(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_layernorm(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_gelu(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_embedding(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_attention(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_steps(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_lstm_cell(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_concat(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_reorder(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_relu(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_add(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_accumulate(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_zero(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_cut(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_paste(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_maxpool(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_avgpool(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_bn(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_dropout(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_lrn(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_grad_norm(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_softmax_loss(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_head(tide__cpu_kernel *k, const tide_op_desc *source);
tide_status tide__build_update(tide__cpu_kernel *k, const tide_op_desc *source);

#endif
