/* Tokens of PTX, for ptx_parse.c. A scanner stops at the first thing that is wrong: scan_fail() does not return. */
#ifndef TIDE_TESTS_CUDA_PTX_SCAN_H
#define TIDE_TESTS_CUDA_PTX_SCAN_H

#include <setjmp.h>

#include "ptx.h"

typedef struct scanner {
    const char *at;
    ptx_text token; /* the one that is looked at; length 0: the end */
    uint32_t line;
    jmp_buf failed;
    char *error;
    ptx_module *module;
    uint32_t groups; /* of operands so far, in this instruction */
} scanner;

_Noreturn void scan_fail(scanner *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* On to the next token: a word (dots included: opcodes, directives, names), a number, a string, or one character. */
void scan_next(scanner *s);
bool scan_is_part(char c); /* of a word */
/* The token is this; and it is taken if so; and it must be. */
bool scan_is(const scanner *s, const char *word);
bool scan_take(scanner *s, const char *word);
void scan_expect(scanner *s, const char *word);
/* What must come next. */
ptx_text scan_word(scanner *s);
uint64_t scan_number(scanner *s);
uint32_t scan_small(scanner *s); /* below 2^24 */
ptx_type scan_type(scanner *s);
/* Room for one more element; arrays grow by doubling. */
void *scan_grow(scanner *s, void *array, uint32_t count, size_t element);

#endif
