/* Operands: plain row-major, so a layout is a type and a number of elements, and packing is a conversion. */
#include <string.h>

#include "device/gpu/kernel.h"

static tide_status add(tide__gpu_kernel *k, tide__element type, uint64_t elements) {
    return tide__vec_push(&k->operands, ((tide__gpu_operand){type, elements}));
}

tide_status tide__gpu_reads(tide__gpu_kernel *k, tide__element type, uint64_t elements) {
    TIDE_TRY(add(k, type, elements));
    k->n_reads++;
    return TIDE_OK;
}

tide_status tide__gpu_writes(tide__gpu_kernel *k, tide__element type, uint64_t elements) {
    return add(k, type, elements);
}

/* ---- to and from plain float32 ---- */

tide_status tide__gpu_operand_layout(const tide_kernel *kernel, uint32_t operand, tide__operand_layout *out) {
    const tide__gpu_operand *o = &((const tide__gpu_kernel *)kernel)->operands.data[operand];
    tide__operand_layout_plain(o->elements, tide__element_bytes(o->type), out);
    return TIDE_OK;
}

tide_status tide__gpu_piece_pack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                 const float *plain, void *stored) {
    tide__element type = ((const tide__gpu_kernel *)kernel)->operands.data[operand].type;
    uint64_t n = piece->to[0] - piece->from[0];
    if (type == TIDE__F32) memcpy(stored, plain, n * sizeof(float));
    for (uint64_t i = 0; type == TIDE__I32 && i < n; i++)
        ((int32_t *)stored)[i] = (int32_t)tide__round_into(plain[i], -2147483648.0f, 2147483520.0f);
    for (uint64_t i = 0; type == TIDE__U8 && i < n; i++)
        ((uint8_t *)stored)[i] = (uint8_t)tide__round_into(plain[i], 0, 255);
    return TIDE_OK;
}

tide_status tide__gpu_piece_unpack(const tide_kernel *kernel, uint32_t operand, const tide_piece *piece,
                                   const void *stored, float *plain) {
    tide__element type = ((const tide__gpu_kernel *)kernel)->operands.data[operand].type;
    uint64_t n = piece->to[0] - piece->from[0];
    if (type == TIDE__F32) memcpy(plain, stored, n * sizeof(float));
    for (uint64_t i = 0; type == TIDE__I32 && i < n; i++) plain[i] = (float)((const int32_t *)stored)[i];
    for (uint64_t i = 0; type == TIDE__U8 && i < n; i++) plain[i] = ((const uint8_t *)stored)[i];
    return TIDE_OK;
}
