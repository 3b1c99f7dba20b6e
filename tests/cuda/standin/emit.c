/* A kernel as C: registers, the jump to where a lane goes on, and the instructions one by one. Arithmetic and memory are
 * in files of their own; here are moves, branches and barriers. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

/* ---- text ---- */

__attribute__((format(printf, 2, 0))) static void append(emitter *e, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (e->length + (size_t)n + 1 > e->capacity) {
        size_t capacity = 2 * (e->length + (size_t)n + 512);
        char *larger = realloc(e->text, capacity);
        if (!larger) emit_fail(e, "no memory");
        e->text = larger, e->capacity = capacity;
    }
    vsnprintf(e->text + e->length, e->capacity - e->length, format, arguments);
    e->length += (size_t)n;
}

void emit_text(emitter *e, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(e, format, arguments);
    va_end(arguments);
}

emit_word emit_formatted(const char *format, ...) {
    emit_word w;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(w.text, sizeof w.text, format, arguments);
    va_end(arguments);
    return w;
}

_Noreturn void emit_fail(emitter *e, const char *why) {
    char opcode[96] = "";
    size_t n = 0;
    for (uint32_t i = 0; e->at && i < e->at->n_words && n < sizeof opcode; i++)
        n += (size_t)snprintf(opcode + n, sizeof opcode - n, "%s%.*s", i ? "." : "", (int)e->at->word[i].length,
                              e->at->word[i].at);
    snprintf(e->error, PTX_ERROR_SIZE, "line %u: %s in %s: %s", e->at ? e->at->line : 0, opcode, e->kernel->name, why);
    longjmp(e->failed, 1);
}

/* ---- operands ---- */

const char *emit_c_type(ptx_type type) {
    static const char *const sized[3][4] = {{"uint8_t", "uint16_t", "uint32_t", "uint64_t"},
                                            {"int8_t", "int16_t", "int32_t", "int64_t"},
                                            {"", "", "float", "double"}};
    if (type.kind == PTX_PREDICATE) return "bool";
    const int width = type.bits == 8 ? 0 : type.bits == 16 ? 1 : type.bits == 32 ? 2 : 3;
    return sized[type.kind == PTX_SIGNED ? 1 : type.kind == PTX_FLOAT ? 2 : 0][width];
}

static const ptx_variable *variable_named(const ptx_variable *v, uint32_t n, ptx_text name) {
    for (uint32_t i = 0; i < n; i++)
        if (v[i].name.length == name.length && memcmp(v[i].name.at, name.at, name.length) == 0) return &v[i];
    return NULL;
}

static bool special(ptx_text name, emit_word *out) {
    static const char *const tables[][2] = {
        {"%tid.", "l->tid"}, {"%ntid.", "l->run->ntid"}, {"%ctaid.", "l->run->ctaid"}, {"%nctaid.", "l->run->nctaid"}};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        const size_t n = strlen(tables[i][0]);
        if (name.length != n + 1 || memcmp(name.at, tables[i][0], n) != 0) continue;
        const int axis = name.at[n] - 'x';
        if (axis < 0 || axis > 2) return false;
        *out = emit_formatted("%s[%d]", tables[i][1], axis);
        return true;
    }
    if (ptx_is(name, "%laneid"))
        *out = emit_formatted("(l->number %% 32)");
    else if (ptx_is(name, "%warpid"))
        *out = emit_formatted("(l->number / 32)");
    else
        return ptx_is(name, "WARP_SZ") ? (*out = emit_formatted("32"), true) : false;
    return true;
}

/* The address of a variable within its space; of the module's, in global memory. */
emit_word emit_name(emitter *e, ptx_text name) {
    emit_word w;
    if (special(name, &w)) return w;
    const ptx_variable *v = variable_named(e->kernel->variables, e->kernel->n_variables, name);
    if (v && v->external) return emit_formatted("l->run->dynamic_at");
    if (v) return emit_formatted("%lluu", (unsigned long long)v->at);
    v = variable_named(e->module->variables, e->module->n_variables, name);
    if (v && v->space == PTX_GLOBAL && v->at < 16) return emit_formatted("l->run->globals[%u]", (uint32_t)v->at);
    emit_fail(e, "an unknown name");
}

emit_word emit_bits(emitter *e, uint32_t n, uint32_t bits) {
    if (n >= e->at->n_operands) emit_fail(e, "an operand is missing");
    const ptx_operand *o = &e->at->operand[n];
    const char *type = emit_c_type((ptx_type){bits == 1 ? PTX_PREDICATE : PTX_UNSIGNED, bits});
    switch (o->form) {
    case PTX_REGISTER: return emit_formatted("%s(%s)v%u", o->negated ? "!" : "", type, o->reg);
    case PTX_INTEGER:
    case PTX_REAL: return emit_formatted("(%s)UINT64_C(%llu)", type, (unsigned long long)o->number);
    case PTX_NAME: return emit_formatted("(%s)%s", type, emit_name(e, o->name).text);
    default: emit_fail(e, "an operand of another kind");
    }
}

emit_word emit_value(emitter *e, uint32_t n, ptx_type type) {
    if (type.kind == PTX_FLOAT) {
        if (n < e->at->n_operands && e->at->operand[n].form == PTX_REAL)
            return emit_formatted("f%u(UINT64_C(0x%llx))", type.bits, (unsigned long long)e->at->operand[n].number);
        return emit_formatted("f%u(%s)", type.bits, emit_bits(e, n, type.bits).text);
    }
    const emit_word bits = emit_bits(e, n, type.bits);
    if (type.kind == PTX_SIGNED) return emit_formatted("(%s)%s", emit_c_type(type), bits.text);
    return bits;
}

void emit_assign(emitter *e, uint32_t n, ptx_type type, const char *format, ...) {
    va_list arguments;
    const ptx_operand *o = &e->at->operand[n];
    if (n >= e->at->n_operands) emit_fail(e, "a destination is missing");
    if (o->form == PTX_SINK) return;
    if (o->form != PTX_REGISTER) emit_fail(e, "the destination is no register");
    const ptx_type to = ptx_register_type(e->kernel, o->reg);
    /* A signed value fills a wider register with its sign. */
    emit_text(e, "v%u = (%s)%s", o->reg,
              emit_c_type((ptx_type){to.kind == PTX_PREDICATE ? PTX_PREDICATE : PTX_UNSIGNED, to.bits}),
              type.kind == PTX_FLOAT ? type.bits == 32 ? "b32" : "b64" : "");
    if (type.kind != PTX_FLOAT) emit_text(e, "(%s)", emit_c_type(type));
    emit_text(e, "(");
    va_start(arguments, format);
    append(e, format, arguments);
    va_end(arguments);
    emit_text(e, "); ");
}

/* ---- moves and control ---- */

/* mov.b64 %rd, {%r1, %r2} and back: the first is the lowest. */
static void emit_pack(emitter *e, ptx_type type) {
    const uint32_t parts = e->at->n_operands - 1, bits = parts ? type.bits / parts : 0;
    if (bits == 0) emit_fail(e, "too few operands");
    const char *whole = emit_c_type((ptx_type){PTX_UNSIGNED, type.bits});
    emit_text(e, "{ %s whole = 0; ", whole);
    for (uint32_t i = 0; i < parts; i++)
        emit_text(e, "whole |= (%s)%s << %u; ", whole, emit_bits(e, 1 + i, bits).text, i * bits);
    emit_assign(e, 0, (ptx_type){PTX_BITS, type.bits}, "whole");
    emit_text(e, "}");
}

static void emit_unpack(emitter *e, ptx_type type, uint32_t parts) {
    const uint32_t bits = type.bits / parts;
    emit_text(e, "{ %s whole = %s; ", emit_c_type((ptx_type){PTX_UNSIGNED, type.bits}),
              emit_bits(e, parts, type.bits).text);
    for (uint32_t i = 0; i < parts; i++) emit_assign(e, i, (ptx_type){PTX_BITS, bits}, "whole >> %u", i * bits);
    emit_text(e, "}");
}

static void emit_move(emitter *e) {
    const ptx_type type = ptx_type_of(e->at, 0);
    const uint32_t n = ptx_destinations(e->at);
    if (type.kind == PTX_NONE || e->at->n_operands < 2) emit_fail(e, "a move without type or operands");
    if (n > 1)
        emit_unpack(e, type, n);
    else if (e->at->operand[1].group)
        emit_pack(e, type);
    else
        emit_assign(e, 0, (ptx_type){type.kind == PTX_PREDICATE ? PTX_PREDICATE : PTX_BITS, type.bits}, "%s",
                    emit_bits(e, 1, type.bits).text);
}

static emit_word label(ptx_text name) {
    emit_word w = emit_formatted("L_%.*s", (int)name.length, name.at);
    for (char *c = w.text; *c; c++)
        if (*c == '$' || *c == '%' || *c == '.') *c = '_';
    return w;
}

static void emit_registers_at(emitter *e, const uint64_t *live, uint32_t words, const char *format) {
    uint32_t slot = 0;
    for (uint32_t r = 0; r < e->kernel->register_count && r / 64 < words; r++) {
        if (!(live[r / 64] >> r % 64 & 1)) continue;
        const ptx_type type = ptx_register_type(e->kernel, r);
        if (format[0] == 's')
            emit_text(e, "l->slots[%u] = v%u; ", slot, r);
        else
            emit_text(e, "v%u = (%s)l->slots[%u]; ", r,
                      emit_c_type((ptx_type){type.kind == PTX_PREDICATE ? PTX_PREDICATE : PTX_UNSIGNED, type.bits}),
                      slot);
        slot++;
    }
}

static void emit_barrier(emitter *e, const uint64_t *live, uint32_t words) {
    const ptx_instruction *i = e->at;
    if (!ptx_has(i, "sync") || i->n_operands != 1 || i->operand[0].form != PTX_INTEGER || i->operand[0].number != 0 ||
        ptx_has(i, "warp"))
        emit_fail(e, "only barriers of the whole group are known");
    const uint64_t *set = live + (size_t)(i->barrier - 1) * words;
    emit_registers_at(e, set, words, "save");
    emit_text(e, "l->at = %u; l->barrier = %u; return LANE_AT_BARRIER; resume_%u: ", i->barrier, i->line, i->barrier);
    emit_registers_at(e, set, words, "load");
}

static bool emit_control(emitter *e, const uint64_t *live, uint32_t words) {
    const ptx_text op = e->at->word[0];
    if (ptx_is(op, "mov")) {
        emit_move(e);
    } else if (ptx_is(op, "bra")) {
        if (e->at->n_operands != 1 || e->at->operand[0].form != PTX_NAME) emit_fail(e, "a branch to no label");
        if (ptx_find_label(e->kernel, e->at->operand[0].name) == e->kernel->n_instructions)
            emit_fail(e, "a branch to a label that is not there");
        emit_text(e, "goto %s;", label(e->at->operand[0].name).text);
    } else if (ptx_is(op, "ret") || ptx_is(op, "exit")) {
        emit_text(e, "return LANE_AT_END;");
    } else if (ptx_is(op, "bar") || ptx_is(op, "barrier")) {
        emit_barrier(e, live, words);
    } else if (ptx_is(op, "trap")) {
        emit_text(e, "l->run->fail(l, LANE_TRAP, 0, 0, %u);", e->at->line);
    } else if (!ptx_is(op, "nop") && !ptx_is(op, "membar") && !ptx_is(op, "fence")) {
        return false;
    }
    return true;
}

/* ---- the function ---- */

static void emit_instruction(emitter *e, const uint64_t *live, uint32_t words) {
    if (e->at->label.length) emit_text(e, "%s:;\n", label(e->at->label).text);
    emit_text(e, "    ");
    if (e->at->guarded) emit_text(e, "if (%sv%u) ", e->at->guard_negated ? "!" : "", e->at->guard);
    emit_text(e, "{ ");
    if (!emit_control(e, live, words) && !emit_memory(e) && !emit_arithmetic(e))
        emit_fail(e, "this instruction is not known");
    emit_text(e, "} /* %u */\n", e->at->line);
}

static uint32_t count_slots(const uint64_t *live, uint32_t words, uint32_t n_barriers) {
    uint32_t most = 0;
    for (uint32_t b = 0; b < n_barriers; b++) {
        uint32_t n = 0;
        for (uint32_t w = 0; w < words; w++) n += (uint32_t)__builtin_popcountll(live[(size_t)b * words + w]);
        if (n > most) most = n;
    }
    return most;
}

static void emit_function(emitter *e, const uint64_t *live, uint32_t words) {
    const ptx_kernel *k = e->kernel;
    emit_text(e, "#include \"lane.h\"\nint standin_kernel(lane *l);\nint standin_kernel(lane *l) {\n");
    for (uint32_t r = 0; r < k->register_count; r++) {
        const ptx_type type = ptx_register_type(k, r);
        emit_text(e, "    %s v%u = 0;\n",
                  emit_c_type((ptx_type){type.kind == PTX_PREDICATE ? PTX_PREDICATE : PTX_UNSIGNED, type.bits}), r);
    }
    emit_text(e, "    switch (l->at) {\n");
    for (uint32_t b = 1; b <= k->n_barriers; b++) emit_text(e, "    case %u: goto resume_%u;\n", b, b);
    emit_text(e, "    default: break;\n    }\n");
    for (uint32_t i = 0; i < k->n_instructions; i++) {
        e->at = &k->instructions[i];
        emit_instruction(e, live, words);
    }
    emit_text(e, "}\n");
}

static bool emit_all(emitter *e, const uint64_t *live, uint32_t words) {
    if (setjmp(e->failed)) return false;
    emit_function(e, live, words);
    return true;
}

char *ptx_emit(const ptx_module *m, const ptx_kernel *k, uint32_t *slots_out, char error[PTX_ERROR_SIZE]) {
    emitter e = {.module = m, .kernel = k, .error = error};
    uint32_t words = 0;
    uint64_t *live = k->n_barriers ? ptx_live_at_barriers(k, &words) : NULL;
    if (k->n_barriers && !live) return snprintf(error, PTX_ERROR_SIZE, "no memory"), NULL;
    const bool good = emit_all(&e, live, words);
    if (good) *slots_out = count_slots(live, words, k->n_barriers);
    if (!good) free(e.text);
    free(live);
    return good ? e.text : NULL;
}
