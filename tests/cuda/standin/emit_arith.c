/* Arithmetic as C: integers wrap, floats round as the instruction says. Where PTX and C differ (shifts by more than the
 * width, division by zero, NaN in min and max, saturating conversions) lane.h has a function. */
#include <string.h>

#include "emit.h"

static const char *width_name(ptx_type t) { return t.bits == 64 ? "64" : t.bits == 32 ? "32" : "16"; }

/* The rounding mode as fenv.h names it; NULL: to nearest. */
static const char *mode_of(const ptx_instruction *i) {
    if (ptx_has(i, "rm")) return "FE_DOWNWARD";
    if (ptx_has(i, "rp")) return "FE_UPWARD";
    if (ptx_has(i, "rz")) return "FE_TOWARDZERO";
    return NULL;
}

/* ---- floats ---- */

/* An operand, flushed where the instruction says so. */
static emit_word real(emitter *e, uint32_t n, ptx_type t) {
    const emit_word v = emit_value(e, n, t);
    return ptx_has(e->at, "ftz") && t.bits == 32 ? emit_formatted("ftz32(%s)", v.text) : v;
}

static void assign_real(emitter *e, ptx_type t, emit_word v) {
    if (ptx_has(e->at, "sat")) v = emit_formatted("sat%s(%s)", width_name(t), v.text);
    if (ptx_has(e->at, "ftz") && t.bits == 32) v = emit_formatted("ftz32(%s)", v.text);
    emit_assign(e, 0, t, "%s", v.text);
}

/* Of two or three operands: as C's operator or function, or by the function that changes the rounding mode. */
static void emit_rounded(emitter *e, ptx_type t, const char *name, const char *plain, uint32_t n) {
    const char *mode = mode_of(e->at), *w = width_name(t);
    const emit_word a = real(e, 1, t), b = n > 1 ? real(e, 2, t) : emit_formatted("0");
    const emit_word c = n > 2 ? real(e, 3, t) : emit_formatted("0");
    if (mode)
        assign_real(e, t, emit_formatted("%s%s_in(%s, %s, %s, %s)", name, w, a.text, b.text, c.text, mode));
    else if (n == 3)
        assign_real(e, t, emit_formatted("%s%s(%s, %s, %s)", plain, t.bits == 32 ? "f" : "", a.text, b.text, c.text));
    else if (n == 2)
        assign_real(e, t, emit_formatted("%s %s %s", a.text, plain, b.text));
    else
        assign_real(e, t, emit_formatted("%s%s(%s)", plain, t.bits == 32 ? "f" : "", a.text));
}

static void emit_subtract_real(emitter *e, ptx_type t) {
    const char *mode = mode_of(e->at);
    const emit_word a = real(e, 1, t), b = real(e, 2, t);
    if (mode)
        assign_real(e, t, emit_formatted("add%s_in(%s, -%s, 0, %s)", width_name(t), a.text, b.text, mode));
    else
        assign_real(e, t, emit_formatted("%s - %s", a.text, b.text));
}

static void emit_reciprocal(emitter *e, ptx_type t) {
    const emit_word a = real(e, 1, t);
    const char *mode = mode_of(e->at);
    if (t.bits == 64 && ptx_has(e->at, "approx"))
        assign_real(e, t, emit_formatted("rcp64_approx(%s)", a.text));
    else if (mode)
        assign_real(e, t, emit_formatted("div%s_in(1, %s, 0, %s)", width_name(t), a.text, mode));
    else
        assign_real(e, t, emit_formatted("1 / %s", a.text));
}

static void emit_root_reciprocal(emitter *e, ptx_type t) {
    const emit_word a = real(e, 1, t);
    if (t.bits == 64)
        assign_real(e, t, emit_formatted("rsqrt64_approx(%s)", a.text));
    else
        assign_real(e, t, emit_formatted("(float)(1 / sqrt((double)%s))", a.text));
}

/* Sign bits are bits: NaN keeps what it has. */
static void emit_sign(emitter *e, ptx_type t, const char *what) {
    const char *one = t.bits == 32 ? "UINT32_C(0x80000000)" : "UINT64_C(0x8000000000000000)";
    const emit_word a =
        ptx_has(e->at, "ftz") ? emit_formatted("b32(ftz32(%s))", emit_value(e, 1, t).text) : emit_bits(e, 1, t.bits);
    const ptx_type bits = {PTX_BITS, t.bits};
    if (strcmp(what, "neg") == 0)
        emit_assign(e, 0, bits, "%s ^ %s", a.text, one);
    else if (strcmp(what, "abs") == 0)
        emit_assign(e, 0, bits, "%s & ~%s", a.text, one);
    else
        emit_assign(e, 0, bits, "(%s & %s) | (%s & ~%s)", a.text, one, emit_bits(e, 2, t.bits).text, one);
}

static bool emit_real(emitter *e, ptx_type t) {
    const ptx_text op = e->at->word[0];
    const char *w = width_name(t);
    if (ptx_is(op, "add"))
        emit_rounded(e, t, "add", "+", 2);
    else if (ptx_is(op, "sub"))
        emit_subtract_real(e, t);
    else if (ptx_is(op, "mul"))
        emit_rounded(e, t, "mul", "*", 2);
    else if (ptx_is(op, "div"))
        emit_rounded(e, t, "div", "/", 2);
    else if (ptx_is(op, "fma") || ptx_is(op, "mad"))
        emit_rounded(e, t, "fma", "fma", 3);
    else if (ptx_is(op, "sqrt"))
        emit_rounded(e, t, "sqrt", "sqrt", 1);
    else if (ptx_is(op, "rcp"))
        emit_reciprocal(e, t);
    else if (ptx_is(op, "rsqrt"))
        emit_root_reciprocal(e, t);
    else if (ptx_is(op, "max") && !ptx_has(e->at, "NaN"))
        assign_real(e, t, emit_formatted("max%s(%s, %s)", w, real(e, 1, t).text, real(e, 2, t).text));
    else if (ptx_is(op, "min") && !ptx_has(e->at, "NaN"))
        assign_real(e, t, emit_formatted("min%s(%s, %s)", w, real(e, 1, t).text, real(e, 2, t).text));
    else if (ptx_is(op, "neg"))
        emit_sign(e, t, "neg");
    else if (ptx_is(op, "abs"))
        emit_sign(e, t, "abs");
    else if (ptx_is(op, "copysign"))
        emit_sign(e, t, "copysign");
    else if (t.bits != 32)
        return false;
    else if (ptx_is(op, "ex2"))
        assign_real(e, t, emit_formatted("ex2(%s)", real(e, 1, t).text));
    else if (ptx_is(op, "lg2"))
        assign_real(e, t, emit_formatted("lg2(%s)", real(e, 1, t).text));
    else if (ptx_is(op, "sin"))
        assign_real(e, t, emit_formatted("(float)sin((double)%s)", real(e, 1, t).text));
    else if (ptx_is(op, "cos"))
        assign_real(e, t, emit_formatted("(float)cos((double)%s)", real(e, 1, t).text));
    else if (ptx_is(op, "tanh"))
        assign_real(e, t, emit_formatted("(float)tanh((double)%s)", real(e, 1, t).text));
    else
        return false;
    return true;
}

/* ---- integers ---- */

static ptx_type wider(ptx_type t) { return (ptx_type){t.kind, 2 * t.bits}; }

/* Unsigned, so that it wraps; 16 bits are computed in 32. */
static emit_word product(emitter *e, ptx_type t) {
    const char *sign = t.kind == PTX_SIGNED ? "s" : "u";
    if (ptx_has(e->at, "wide")) {
        const char *to = emit_c_type(wider(t));
        return emit_formatted("((%s)%s * (%s)%s)", to, emit_value(e, 1, t).text, to, emit_value(e, 2, t).text);
    }
    const emit_word a = emit_bits(e, 1, t.bits), b = emit_bits(e, 2, t.bits);
    if (!ptx_has(e->at, "hi")) return emit_formatted("(%s%s * %s)", t.bits == 16 ? "1u * " : "", a.text, b.text);
    if (t.bits == 16) emit_fail(e, "the upper half of 16 bits");
    return emit_formatted("mulhi_%s%u(%s, %s)", sign, t.bits, a.text, b.text);
}

static void emit_product(emitter *e, ptx_type t, bool add) {
    const ptx_type to = ptx_has(e->at, "wide") ? wider(t) : t;
    const ptx_type bits = {to.kind == PTX_SIGNED && to.bits == 16 ? PTX_SIGNED : PTX_UNSIGNED, to.bits};
    const emit_word p = product(e, t);
    if (add)
        emit_assign(e, 0, bits, "(%s)%s + %s", emit_c_type((ptx_type){PTX_UNSIGNED, to.bits}), p.text,
                    emit_bits(e, 3, to.bits).text);
    else
        emit_assign(e, 0, bits, "%s", p.text);
}

static void emit_binary(emitter *e, ptx_type t, const char *c_operator) {
    emit_assign(e, 0, (ptx_type){t.kind == PTX_PREDICATE ? PTX_PREDICATE : PTX_UNSIGNED, t.bits}, "%s %s %s",
                emit_bits(e, 1, t.bits).text, c_operator, emit_bits(e, 2, t.bits).text);
}

static void emit_extreme(emitter *e, ptx_type t, const char *relation) {
    const emit_word a = emit_value(e, 1, t), b = emit_value(e, 2, t);
    emit_assign(e, 0, t, "%s %s %s ? %s : %s", a.text, relation, b.text, a.text, b.text);
}

static void emit_divide(emitter *e, ptx_type t, const char *name) {
    const char *sign = t.kind == PTX_SIGNED ? "s" : "u";
    if (t.bits == 16) /* in 32 bits, where nothing overflows */
        emit_assign(e, 0, t, "%s_%s32((uint32_t)(%s)%s, (uint32_t)(%s)%s)", name, sign, emit_c_type(t),
                    emit_bits(e, 1, 16).text, emit_c_type(t), emit_bits(e, 2, 16).text);
    else
        emit_assign(e, 0, (ptx_type){PTX_UNSIGNED, t.bits}, "%s_%s%u(%s, %s)", name, sign, t.bits,
                    emit_bits(e, 1, t.bits).text, emit_bits(e, 2, t.bits).text);
}

static void emit_shift(emitter *e, ptx_type t, bool left) {
    const char *a = left ? "shl" : t.kind == PTX_SIGNED ? "shr_s" : "shr_u";
    emit_assign(e, 0, (ptx_type){PTX_UNSIGNED, t.bits}, "%s%u(%s, %s)", a, t.bits, emit_bits(e, 1, t.bits).text,
                emit_bits(e, 2, 32).text);
}

static void emit_not(emitter *e, ptx_type t) {
    if (t.kind == PTX_PREDICATE)
        emit_assign(e, 0, t, "!%s", emit_bits(e, 1, 1).text);
    else
        emit_assign(e, 0, (ptx_type){PTX_UNSIGNED, t.bits}, "~%s", emit_bits(e, 1, t.bits).text);
}

/* Fields, permutations and tables: 32 bits, as compilers write them. */
static bool emit_bit_tricks(emitter *e, ptx_type t) {
    const ptx_text op = e->at->word[0];
    const ptx_type word = {PTX_UNSIGNED, 32};
    if (ptx_is(op, "popc")) {
        emit_assign(e, 0, word, "__builtin_popcountll(%s)", emit_bits(e, 1, t.bits).text);
        return true;
    }
    if (ptx_is(op, "clz")) {
        emit_assign(e, 0, word, "clz%u(%s)", t.bits, emit_bits(e, 1, t.bits).text);
        return true;
    }
    if (t.bits != 32) return false;
    if (ptx_is(op, "brev")) return emit_assign(e, 0, word, "brev32(%s)", emit_bits(e, 1, 32).text), true;
    if (e->at->n_operands < 4) return false;
    const emit_word first = emit_bits(e, 1, 32), b = emit_bits(e, 2, 32), c = emit_bits(e, 3, 32);
    if (ptx_is(op, "lop3"))
        emit_assign(e, 0, word, "lop3(%s, %s, %s, %s)", first.text, b.text, c.text, emit_bits(e, 4, 32).text);
    else if (ptx_is(op, "prmt") && e->at->n_words == 2)
        emit_assign(e, 0, word, "prmt(%s, %s, %s)", first.text, b.text, c.text);
    else if (ptx_is(op, "shf"))
        emit_assign(e, 0, word, "shf_%s(%s, %s, %s%s)", ptx_has(e->at, "l") ? "l" : "r", first.text, b.text, c.text,
                    ptx_has(e->at, "wrap") ? " & 31" : "");
    else if (ptx_is(op, "bfe"))
        emit_assign(e, 0, word, "bfe_%s32(%s, %s, %s)", t.kind == PTX_SIGNED ? "s" : "u", first.text, b.text, c.text);
    else if (ptx_is(op, "bfi"))
        emit_assign(e, 0, word, "bfi_b32(%s, %s, %s, %s)", first.text, b.text, c.text, emit_bits(e, 4, 32).text);
    else
        return false;
    return true;
}

static bool emit_integer(emitter *e, ptx_type t) {
    const ptx_text op = e->at->word[0];
    if (ptx_has(e->at, "sat") || ptx_has(e->at, "cc")) return false;
    if (ptx_is(op, "add"))
        emit_binary(e, t, "+");
    else if (ptx_is(op, "sub"))
        emit_binary(e, t, "-");
    else if (ptx_is(op, "mul"))
        emit_product(e, t, false);
    else if (ptx_is(op, "mad"))
        emit_product(e, t, true);
    else if (ptx_is(op, "div"))
        emit_divide(e, t, "div");
    else if (ptx_is(op, "rem"))
        emit_divide(e, t, "rem");
    else if (ptx_is(op, "min"))
        emit_extreme(e, t, "<");
    else if (ptx_is(op, "max"))
        emit_extreme(e, t, ">");
    else if (ptx_is(op, "neg"))
        emit_assign(e, 0, (ptx_type){PTX_UNSIGNED, t.bits}, "0 - %s", emit_bits(e, 1, t.bits).text);
    else if (ptx_is(op, "abs"))
        emit_assign(e, 0, (ptx_type){PTX_UNSIGNED, t.bits}, "%s < 0 ? 0 - %s : %s", emit_value(e, 1, t).text,
                    emit_bits(e, 1, t.bits).text, emit_bits(e, 1, t.bits).text);
    else if (ptx_is(op, "and"))
        emit_binary(e, t, "&");
    else if (ptx_is(op, "or"))
        emit_binary(e, t, "|");
    else if (ptx_is(op, "xor"))
        emit_binary(e, t, "^");
    else if (ptx_is(op, "not"))
        emit_not(e, t);
    else if (ptx_is(op, "shl"))
        emit_shift(e, t, true);
    else if (ptx_is(op, "shr"))
        emit_shift(e, t, false);
    else
        return emit_bit_tricks(e, t);
    return true;
}

/* ---- comparisons and choices ---- */

/* With u: true where one of them is NaN. Without: false there, != included. */
static emit_word comparison(emitter *e, ptx_type t, uint32_t first) {
    static const char *const relations[][2] = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"},  {"le", "<="}, {"gt", ">"},
                                               {"ge", ">="}, {"lo", "<"},  {"ls", "<="}, {"hi", ">"},  {"hs", ">="}};
    const bool is_real = t.kind == PTX_FLOAT;
    const emit_word a = is_real ? real(e, first, t) : emit_value(e, first, t);
    const emit_word b = is_real ? real(e, first + 1, t) : emit_value(e, first + 1, t);
    const ptx_text word = e->at->word[1];
    const char *both = is_real ? "isunordered" : NULL;
    if (both && ptx_is(word, "num")) return emit_formatted("!isunordered(%s, %s)", a.text, b.text);
    if (both && ptx_is(word, "nan")) return emit_formatted("isunordered(%s, %s)", a.text, b.text);
    for (size_t i = 0; i < sizeof relations / sizeof relations[0]; i++) {
        if (word.length < 2 || memcmp(word.at, relations[i][0], 2) != 0) continue;
        const bool unordered = word.length == 3 && word.at[2] == 'u';
        if (word.length > 2 && !unordered) break;
        if (!both) return emit_formatted("(%s %s %s)", a.text, relations[i][1], b.text);
        return emit_formatted(unordered ? "(isunordered(%s, %s) || %s %s %s)" : "(!isunordered(%s, %s) && %s %s %s)",
                              a.text, b.text, a.text, relations[i][1], b.text);
    }
    emit_fail(e, "an unknown comparison");
}

static void emit_setp(emitter *e, ptx_type t) {
    const uint32_t n = ptx_destinations(e->at);
    const ptx_type predicate = {PTX_PREDICATE, 1};
    const emit_word c = comparison(e, t, n);
    const char *with = ptx_has(e->at, "and") ? "&" : ptx_has(e->at, "or") ? "|" : ptx_has(e->at, "xor") ? "^" : NULL;
    const emit_word third = with ? emit_bits(e, n + 2, 1) : emit_formatted("1");
    emit_text(e, "const bool first = %s, third = %s; ", c.text, third.text);
    emit_assign(e, 0, predicate, "first %s third", with ? with : "&");
    if (n > 1) emit_assign(e, 1, predicate, "!first %s third", with ? with : "&");
}

static void emit_selp(emitter *e, ptx_type t) {
    emit_assign(e, 0, (ptx_type){PTX_BITS, t.bits}, "%s ? %s : %s", emit_bits(e, 3, 1).text,
                emit_bits(e, 1, t.bits).text, emit_bits(e, 2, t.bits).text);
}

/* ---- conversions ---- */

/* A float rounded to a whole number, still a float. */
static emit_word whole(emitter *e, emit_word v, ptx_type t) {
    const char *f = t.bits == 32 ? "f" : "";
    if (ptx_has(e->at, "rni")) return emit_formatted("nearbyint%s(%s)", f, v.text);
    if (ptx_has(e->at, "rzi")) return emit_formatted("trunc%s(%s)", f, v.text);
    if (ptx_has(e->at, "rmi")) return emit_formatted("floor%s(%s)", f, v.text);
    if (ptx_has(e->at, "rpi")) return emit_formatted("ceil%s(%s)", f, v.text);
    return v;
}

static void convert_from_real(emitter *e, ptx_type to, ptx_type from) {
    const emit_word v = whole(e, real(e, 1, from), from);
    if (to.kind == PTX_FLOAT) {
        if (mode_of(e->at)) emit_fail(e, "a conversion in another rounding mode");
        assign_real(e, to, emit_formatted("(%s)%s", emit_c_type(to), v.text));
    } else if (to.bits >= 32) {
        emit_assign(e, 0, to, "to_%s%u(%s)", to.kind == PTX_SIGNED ? "s" : "u", to.bits, v.text);
    } else {
        emit_fail(e, "a float to a short integer");
    }
}

static void convert_from_integer(emitter *e, ptx_type to, ptx_type from) {
    const emit_word v = emit_value(e, 1, from);
    if (ptx_has(e->at, "sat")) emit_fail(e, "a saturating conversion of integers");
    if (to.kind != PTX_FLOAT) {
        /* Widened by the source's sign, then cut. */
        emit_assign(e, 0, to, "%s", v.text);
        return;
    }
    if (mode_of(e->at)) emit_fail(e, "a conversion in another rounding mode");
    assign_real(e, to, emit_formatted("(%s)%s", emit_c_type(to), v.text));
}

bool emit_arithmetic(emitter *e) {
    const ptx_text op = e->at->word[0];
    const ptx_type t = ptx_type_of(e->at, 0);
    if (t.kind == PTX_NONE) return false;
    if (ptx_is(op, "setp")) {
        emit_setp(e, t);
    } else if (ptx_is(op, "selp")) {
        emit_selp(e, t);
    } else if (ptx_is(op, "cvt")) {
        const ptx_type to = ptx_type_of(e->at, 1);
        if (to.kind == PTX_NONE) return false;
        if (t.kind == PTX_FLOAT)
            convert_from_real(e, to, t);
        else
            convert_from_integer(e, to, t);
    } else {
        return t.kind == PTX_FLOAT ? emit_real(e, t) : emit_integer(e, t);
    }
    return true;
}
