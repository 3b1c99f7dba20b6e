/* PTX as data: a module of kernels, a kernel of instructions. ptx_parse.c reads the text, ptx_flow.c says which registers
 * live across which barriers, emit.c writes C. Names and texts point into the module's copy of the source.
 *
 * Only what is documented for the instructions that compilers emit for plain kernels is known. Everything else is refused
 * with its line: nothing is guessed. */
#ifndef TIDE_TESTS_CUDA_PTX_H
#define TIDE_TESTS_CUDA_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_text {
    const char *at;
    size_t length;
} ptx_text;

typedef enum ptx_kind { PTX_NONE, PTX_BITS, PTX_UNSIGNED, PTX_SIGNED, PTX_FLOAT, PTX_PREDICATE } ptx_kind;
typedef struct ptx_type {
    ptx_kind kind;
    uint32_t bits;
} ptx_type;

typedef enum ptx_form {
    PTX_REGISTER, /* number; negated: !%p */
    PTX_INTEGER,  /* number */
    PTX_REAL,     /* number: the bits; width */
    PTX_NAME,     /* a variable, a label, a special register */
    PTX_ADDRESS,  /* [register or name + number] */
    PTX_SINK      /* _ */
} ptx_form;

typedef struct ptx_operand {
    ptx_form form;
    ptx_text name;
    int64_t number;
    uint32_t reg; /* of a register, or of an address that begins with one */
    bool has_reg, negated;
    uint32_t group; /* operands within { } share a number above 0; a pair p|q, too */
} ptx_operand;

enum { PTX_MAX_OPERANDS = 12, PTX_MAX_WORDS = 10 };

typedef struct ptx_instruction {
    uint32_t line;
    ptx_text word[PTX_MAX_WORDS]; /* "fma" "rn" "f32" */
    uint32_t n_words;
    ptx_operand operand[PTX_MAX_OPERANDS];
    uint32_t n_operands;
    bool guarded, guard_negated;
    uint32_t guard;   /* register */
    ptx_text label;   /* stands before it; length 0: none */
    uint32_t barrier; /* 0: none; n: the n-th of the kernel */
} ptx_instruction;

typedef struct ptx_register {
    ptx_text prefix;
    uint32_t first, count; /* %r<count> are registers first ... ; count 0: one register without a number */
    ptx_type type;
} ptx_register;

typedef enum ptx_space { PTX_PARAM, PTX_SHARED, PTX_LOCAL, PTX_GLOBAL } ptx_space;
typedef struct ptx_variable {
    ptx_text name;
    ptx_space space;
    uint64_t size_bytes, at; /* at: offset within its space of the kernel, or number of the module's variable */
    uint32_t align, element_bytes;
    bool external;         /* extern shared: the dynamic part */
    unsigned char *values; /* initial ones of a module's variable; NULL: zeros */
} ptx_variable;

typedef struct ptx_kernel {
    char name[128];
    ptx_text text; /* from .entry to the closing brace */
    ptx_variable *variables;
    ptx_register *registers;
    ptx_instruction *instructions;
    uint32_t n_variables, n_registers, n_instructions, n_barriers;
    uint32_t register_count; /* over all declarations */
    uint32_t parameter_bytes, n_parameters, shared_bytes, local_bytes;
    uint32_t max_lanes, required[3]; /* 0: not said */
} ptx_kernel;

typedef struct ptx_module {
    char *source;
    ptx_variable *variables;
    ptx_kernel *kernels;
    uint32_t n_variables, n_kernels;
    uint32_t version, target; /* 9.0: 90; sm_75: 75 */
} ptx_module;

/* What is wrong and in which line; length of the buffers of callers. */
enum { PTX_ERROR_SIZE = 256 };

/* False with `error` filled: not PTX, or more than is known. `text` ends with NUL. */
bool ptx_parse(const char *text, ptx_module *out, char error[PTX_ERROR_SIZE]);
void ptx_free(ptx_module *m);

/* The type of the i-th register. */
ptx_type ptx_register_type(const ptx_kernel *k, uint32_t reg);
bool ptx_is(ptx_text t, const char *word);
/* True if one of the words behind the opcode is this. */
bool ptx_has(const ptx_instruction *i, const char *word);
/* Behind the opcode, the n-th from the end that is a type; kind PTX_NONE: there is none. */
ptx_type ptx_type_of(const ptx_instruction *i, uint32_t from_end);
bool ptx_parse_type(ptx_text word, ptx_type *out);

/* The bits of registers that are needed behind barrier n (from 1) lie at live + (n - 1) * words: one bit per register,
 * words 64-bit words per barrier. The caller frees it; NULL: memory. */
uint64_t *ptx_live_at_barriers(const ptx_kernel *k, uint32_t *words_out);
/* The instruction behind a label; n_instructions: there is none. */
uint32_t ptx_find_label(const ptx_kernel *k, ptx_text label);
/* The destinations of an instruction are its first operands. */
uint32_t ptx_destinations(const ptx_instruction *i);

/* C for a kernel: one function `int standin_kernel(lane *l)`, and how many slots a lane needs. NULL: `error` says why. */
char *ptx_emit(const ptx_module *m, const ptx_kernel *k, uint32_t *slots_out, char error[PTX_ERROR_SIZE]);

#endif
