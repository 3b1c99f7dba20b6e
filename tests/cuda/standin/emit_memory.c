/* Loads, stores and atomics as C. Each becomes one call of an access function of lane.h, vectors included: a vector is one
 * access of its whole width, aligned to it. */
#include <string.h>

#include "emit.h"

static const char *access_function(emitter *e, bool *parameter) {
    static const char *const functions[][2] = {{"global", "lane_global"},
                                               {"const", "lane_global"},
                                               {"shared", "lane_shared"},
                                               {"shared::cta", "lane_shared"},
                                               {"local", "lane_local"}};
    *parameter = ptx_has(e->at, "param") || ptx_has(e->at, "param::entry");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (ptx_has(e->at, functions[i][0])) return functions[i][1];
    return "lane_generic";
}

/* The address of operand n. */
static emit_word address(emitter *e, uint32_t n) {
    const ptx_operand *o = &e->at->operand[n];
    if (n >= e->at->n_operands || o->form != PTX_ADDRESS) emit_fail(e, "an address is missing");
    if (o->has_reg) return emit_formatted("(uint64_t)v%u + UINT64_C(%llu)", o->reg, (unsigned long long)o->number);
    if (o->name.length == 0) return emit_formatted("UINT64_C(%llu)", (unsigned long long)o->number);
    return emit_formatted("(uint64_t)%s + UINT64_C(%llu)", emit_name(e, o->name).text, (unsigned long long)o->number);
}

static uint32_t vector_width(const ptx_instruction *i) { return ptx_has(i, "v4") ? 4 : ptx_has(i, "v2") ? 2 : 1; }

static void emit_load(emitter *e) {
    const ptx_type type = ptx_type_of(e->at, 0);
    const uint32_t n = vector_width(e->at), bytes = n * type.bits / 8;
    bool parameter;
    const char *function = access_function(e, &parameter);
    if (type.kind == PTX_NONE || e->at->n_operands != n + 1) emit_fail(e, "a load without type or operands");
    const char *plain = emit_c_type((ptx_type){type.kind == PTX_SIGNED ? PTX_SIGNED : PTX_UNSIGNED, type.bits});
    if (parameter)
        emit_text(e, "%s got[%u]; memcpy(got, l->run->parameters + %s, sizeof got); ", plain, n, address(e, n).text);
    else
        emit_text(e, "%s got[%u]; memcpy(got, %s(l, %s, %u, LANE_READ, %u), sizeof got); ", plain, n, function,
                  address(e, n).text, bytes, e->at->line);
    for (uint32_t i = 0; i < n; i++)
        emit_assign(e, i, (ptx_type){type.kind == PTX_SIGNED ? PTX_SIGNED : PTX_UNSIGNED, type.bits}, "got[%u]", i);
}

static void emit_store(emitter *e) {
    const ptx_type type = ptx_type_of(e->at, 0);
    const uint32_t n = vector_width(e->at), bytes = n * type.bits / 8;
    bool parameter;
    const char *function = access_function(e, &parameter);
    if (type.kind == PTX_NONE || parameter || e->at->n_operands != n + 1)
        emit_fail(e, "a store without type or operands");
    emit_text(e, "%s put[%u] = {", emit_c_type((ptx_type){PTX_UNSIGNED, type.bits}), n);
    for (uint32_t i = 0; i < n; i++) emit_text(e, "%s%s", i ? ", " : "", emit_bits(e, 1 + i, type.bits).text);
    emit_text(e, "}; memcpy(%s(l, %s, %u, LANE_WRITE, %u), put, sizeof put); ", function, address(e, 0).text, bytes,
              e->at->line);
}

/* What an atomic leaves in memory, of `old` and the operands from `first` on. */
static emit_word atomic_result(emitter *e, ptx_type type, uint32_t first) {
    const emit_word b = emit_value(e, first, type);
    const char *t = emit_c_type(type);
    if (ptx_has(e->at, "add")) return emit_formatted("(%s)(old + %s)", t, b.text);
    if (ptx_has(e->at, "exch")) return b;
    if (ptx_has(e->at, "and")) return emit_formatted("(%s)(old & %s)", t, b.text);
    if (ptx_has(e->at, "or")) return emit_formatted("(%s)(old | %s)", t, b.text);
    if (ptx_has(e->at, "xor")) return emit_formatted("(%s)(old ^ %s)", t, b.text);
    if (ptx_has(e->at, "min")) return emit_formatted("old < %s ? old : %s", b.text, b.text);
    if (ptx_has(e->at, "max")) return emit_formatted("old > %s ? old : %s", b.text, b.text);
    if (ptx_has(e->at, "cas"))
        return emit_formatted("old == %s ? %s : old", b.text, emit_value(e, first + 1, type).text);
    emit_fail(e, "this atomic is not known");
}

/* Kernels of two streams may hit the same word: a compare-and-swap loop on the real memory. */
static void emit_atomic(emitter *e, bool returns) {
    const ptx_type type = ptx_type_of(e->at, 0);
    const uint32_t at = returns, bytes = type.bits / 8;
    bool parameter;
    const char *function = access_function(e, &parameter), *bits = type.bits == 64 ? "uint64_t" : "uint32_t";
    if (type.bits < 32) emit_fail(e, "atomics have 32 or 64 bits");
    emit_text(e, "%s *word = %s(l, %s, %u, LANE_ATOMIC, %u), seen = __atomic_load_n(word, __ATOMIC_RELAXED), next; ",
              bits, function, address(e, at).text, bytes, e->at->line);
    const bool is_real = type.kind == PTX_FLOAT;
    const char *from = is_real ? (type.bits == 32 ? "f32" : "f64") : "",
               *to = is_real ? (type.bits == 32 ? "b32" : "b64") : "";
    emit_text(e, "do { %s old = (%s)%s(seen); next = (%s)%s(%s); } ", emit_c_type(type), emit_c_type(type), from, bits,
              to, atomic_result(e, type, at + 1).text);
    emit_text(e, "while (!__atomic_compare_exchange_n(word, &seen, next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); ");
    if (returns) emit_assign(e, 0, (ptx_type){PTX_BITS, type.bits}, "seen");
}

/* Addresses of a space from and to addresses without one. */
static void emit_cvta(emitter *e) {
    const bool to = ptx_has(e->at, "to");
    const char *window = ptx_has(e->at, "shared")  ? "LANE_SHARED_WINDOW"
                         : ptx_has(e->at, "local") ? "LANE_LOCAL_WINDOW"
                                                   : "0";
    const ptx_type type = {PTX_BITS, 64};
    emit_assign(e, 0, type, "%s %s %s", emit_bits(e, 1, 64).text, to ? "-" : "+", window);
}

bool emit_memory(emitter *e) {
    const ptx_text op = e->at->word[0];
    if (ptx_is(op, "ld") || ptx_is(op, "ldu"))
        emit_load(e);
    else if (ptx_is(op, "st"))
        emit_store(e);
    else if (ptx_is(op, "atom"))
        emit_atomic(e, true);
    else if (ptx_is(op, "red"))
        emit_atomic(e, false);
    else if (ptx_is(op, "cvta"))
        emit_cvta(e);
    else
        return false;
    return true;
}
