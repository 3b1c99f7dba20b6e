/* See probabilities.h. */
#include "nn/probabilities.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/size.h"
#include "nn/states.h"
#include "nn/step.h"

/* The op whose first write are the probabilities. */
static tide_id loss_op(const tide__network *n) {
    tide_id tensor = tide_step_probabilities(n->step, 0), op = tide_program_op_count(n->program) - 1;
    while (op > 0 && tide_program_op(n->program, op)->writes[0] != tensor) op--;
    return op;
}

/* About a piece of rows at a time, whole units of them. */
tide_status tide__probabilities_open(tide__network *n, const tide_device *device, tide__probabilities *p) {
    uint64_t size = tide_program_tensor(n->program, tide_step_probabilities(n->step, 0))->size_bytes;
    tide_device_info info;
    *p = (tide__probabilities){.network = n, .op = loss_op(n)};
    TIDE_TRY(tide_device_get_info(device, &info));
    tide_shape shape = tide_step_op_desc(n->step, p->op)->x;
    p->classes = (uint64_t)shape.c;
    p->pixels = (uint64_t)(shape.h * shape.w);
    p->rows = (uint64_t)shape.n;
    p->row_bytes = size / p->rows;
    for (p->unit = 1; (p->unit * p->row_bytes) & (info.align_bytes - 1);) p->unit *= 2; /* a power of two */
    p->most = p->unit * tide__max_u64(TIDE__PIECE_BYTES / p->row_bytes / p->unit, 1);
    uint64_t rows = tide__min_u64(p->rows, p->most);
    p->stored = malloc(rows * p->row_bytes);
    p->plain = malloc(rows * p->classes * p->pixels * sizeof *p->plain);
    return p->stored && p->plain ? TIDE_OK : tide__fail_memory();
}

void tide__probabilities_close(tide__probabilities *p) {
    free(p->stored);
    free(p->plain);
}

tide_status tide__probabilities_read(const tide__probabilities *p, uint64_t first, const float **rows, uint64_t *n) {
    tide_kernel *kernel = tide__step_kernel(p->network->step, p->op);
    uint32_t operand = tide_program_op(p->network->program, p->op)->n_reads;
    uint64_t begin = first - first % p->unit;
    tide_piece piece;
    TIDE_TRY(tide_operand_piece(kernel, operand, begin * p->row_bytes, p->most * p->row_bytes, &piece));
    TIDE_TRY(tide__network_read_part(p->network, tide_step_probabilities(p->network->step, 0), piece.position_bytes,
                                     p->stored, piece.size_bytes));
    TIDE_TRY(tide_piece_unpack(kernel, operand, &piece, p->stored, p->plain));
    *rows = p->plain + (first - begin) * p->classes * p->pixels;
    *n = piece.size_bytes / p->row_bytes - (first - begin);
    return TIDE_OK;
}
