/* Is an op descriptor sane? Asked once, for all devices that have kernels, before one is built: builders see positive
 * dimensions, shapes that follow from each other, and element counts far from overflow. */
#ifndef TIDE_DEVICE_OP_CHECK_H
#define TIDE_DEVICE_OP_CHECK_H

#include "device/device_vtable.h"

#define TIDE__MAX_ELEMENTS (INT64_C(1) << 46) /* of an operand: far beyond any memory, far below overflow */

/* TIDE_E_ARGUMENT with a text, or TIDE_E_UNSUPPORTED where no device has a kernel. Nothing is said about REORDER. */
tide_status tide__op_check(const tide_op_desc *d);

/* Head: rows of a chunk, whose scores lie in the workspace. The same on all devices. */
int64_t tide__head_rows(const tide_op_desc *desc);

/* Embedding: rows of the table of positions. */
int64_t tide__position_rows(const tide_op_desc *desc);

/* A copy that may outlive the caller's: without what its pointers point to. */
tide_op_desc tide__op_desc_own(const tide_op_desc *d);

#endif
