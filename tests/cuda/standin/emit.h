/* What the files that write C share: the text that grows, and how operands are spelled. */
#ifndef TIDE_TESTS_CUDA_EMIT_H
#define TIDE_TESTS_CUDA_EMIT_H

#include <setjmp.h>

#include "ptx.h"

typedef struct emitter {
    const ptx_module *module;
    const ptx_kernel *kernel;
    const ptx_instruction *at;
    char *text;
    size_t length, capacity;
    jmp_buf failed;
    char *error;
} emitter;

/* An operand or an expression as C. */
typedef struct emit_word {
    char text[200];
} emit_word;

void emit_text(emitter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Refuses the instruction. */
_Noreturn void emit_fail(emitter *e, const char *why);

/* The value of operand n as a C expression of its type: float, double, intN_t, uintN_t, or 0/1. */
emit_word emit_value(emitter *e, uint32_t n, ptx_type type);
/* The same as bits without a sign. */
emit_word emit_bits(emitter *e, uint32_t n, uint32_t bits);
/* The address of a variable within its space (of the module's, in global memory), or a special register. */
emit_word emit_name(emitter *e, ptx_text name);
/* Operand n = an expression of a type. */
void emit_assign(emitter *e, uint32_t n, ptx_type type, const char *format, ...) __attribute__((format(printf, 4, 5)));
const char *emit_c_type(ptx_type type);
emit_word emit_formatted(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Both return false for opcodes that are not theirs. */
bool emit_arithmetic(emitter *e);
bool emit_memory(emitter *e);

#endif
