/* The shapes of a model's values, as far as they are known: a program has bytes, a model's step also remembers the
 * layers its ops came from. A shape counts only if its numbers are exactly the bytes. */
#include <stdlib.h>

#include "cli.h"

typedef struct shaper {
    const tide_step *step;
    const tide_program *program;
    tide_shape *shapes; /* per tensor; n = 0: not known */
} shaper;

static bool has_bytes(tide_shape s, const tide_tensor *tensor) {
    uint64_t unit = tensor->dtype == TIDE_BF16 || tensor->dtype == TIDE_F16 ? 2 : sizeof(float);
    return s.n > 0 && (uint64_t)s.n * (uint64_t)s.c * (uint64_t)s.h * (uint64_t)s.w * unit == tensor->size_bytes;
}

/* TIDE_NONE: another rank has it. */
static void set(const shaper *s, tide_id tensor, tide_shape shape) {
    if (tensor == TIDE_NONE) return;
    if (s->shapes[tensor].n == 0 && has_bytes(shape, tide_program_tensor(s->program, tensor)))
        s->shapes[tensor] = shape;
}

/* What an op writes has the shape of its layer's output; going backward, of its input. */
static void shape_writes(const shaper *s, const tide_op *op, const tide_op_desc *desc) {
    for (uint32_t k = 0; k < op->n_writes; k++) {
        tide_class cls = tide_program_tensor(s->program, op->writes[k])->cls;
        if (cls == TIDE_CLASS_ACTIVATION) set(s, op->writes[k], desc->y);
        if (cls == TIDE_CLASS_ACTIVATION_GRADIENT) set(s, op->writes[k], desc->x);
    }
}

/* A gradient has the shape of the weight it is about to change. */
static void shape_gradients(const shaper *s, const tide_op *op) {
    tide_shape weight = {0};
    for (uint32_t k = 0; k < op->n_reads; k++)
        if (tide_program_tensor(s->program, op->reads[k])->cls == TIDE_CLASS_WEIGHT) weight = s->shapes[op->reads[k]];
    for (uint32_t k = 0; k < op->n_reads; k++)
        if (tide_program_tensor(s->program, op->reads[k])->cls == TIDE_CLASS_GRADIENT) set(s, op->reads[k], weight);
}

tide_status find_shapes(const tide_step *step, tide_shape **out) {
    shaper s = {.step = step, .program = tide_step_program(step)};
    uint32_t n_ops = tide_program_op_count(s.program);
    s.shapes = calloc((size_t)tide_program_tensor_count(s.program) + 1, sizeof *s.shapes);
    if (!s.shapes) return complain(TIDE_E_MEMORY, "out of host memory");
    for (uint32_t i = 0; i < tide_step_state_count(step); i++) {
        const tide_state *state = tide_step_state(step, i);
        set(&s, state->at_start, state->shape);
        set(&s, state->at_end, state->shape);
    }
    if (n_ops) set(&s, tide_step_input(step, 0), tide_step_op_desc(step, 0)->x);
    for (tide_id i = 0; i < n_ops; i++) {
        const tide_op *op = tide_program_op(s.program, i);
        shape_writes(&s, op, tide_step_op_desc(step, i));
        if (op->phase == TIDE_UPDATE) shape_gradients(&s, op);
    }
    *out = s.shapes;
    return TIDE_OK;
}
