/* The translator, instruction by instruction: each is run on 64 lanes with awkward numbers and compared with plain C that
 * says what the documentation of PTX says. And what it refuses: every prefix of a text, and texts with damage. */
#include "support/test.h"

#include <math.h>

#include "cuda/loaded.h"
#include "support/random_below.h"

/* What a lane has: three words (%r5 %r6 %r7, also as floats %f5 %f6 %f7) and two double words made of them (%rd5 = b:a,
 * %rd6 = a:c, also as %d5 %d6). */
typedef struct inputs {
    uint32_t a, b, c;
} inputs;

__extension__ typedef unsigned __int128 wide_unsigned;
__extension__ typedef __int128 wide_signed;

static float real(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static uint64_t bits_of(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return isnan(v) ? 0x7fffffff : bits;
}
static double real64(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static uint64_t bits_of64(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return isnan(v) ? 0x7fffffffffffffff : bits;
}
static uint64_t first64(inputs i) { return (uint64_t)i.b << 32 | i.a; }
static uint64_t second64(inputs i) { return (uint64_t)i.a << 32 | i.c; }

#define AF real(i.a)
#define BF real(i.b)
#define CF real(i.c)
#define AS ((int32_t)i.a)
#define BS ((int32_t)i.b)
#define AD real64(first64(i))
#define BD real64(second64(i))
#define AL first64(i)
#define BL second64(i)

/* Lines that leave their result in %r10, %f10, %rd10, %d10 or %p1; the C that says what it is. */
#define CASES(X)                                                                                                  \
    X(r10, "add.s32 %r10, %r5, %r6;", i.a + i.b)                                                                  \
    X(r10, "sub.s32 %r10, %r5, %r6;", i.a - i.b)                                                                  \
    X(r10, "mul.lo.s32 %r10, %r5, %r6;", i.a *i.b)                                                                \
    X(r10, "mul.hi.s32 %r10, %r5, %r6;", (uint32_t)((int64_t)AS * BS >> 32))                                      \
    X(r10, "mul.hi.u32 %r10, %r5, %r6;", (uint32_t)((uint64_t)i.a * i.b >> 32))                                   \
    X(r10, "mad.lo.s32 %r10, %r5, %r6, %r7;", i.a *i.b + i.c)                                                     \
    X(rd10, "mul.wide.s32 %rd10, %r5, %r6;", (uint64_t)((int64_t)AS * BS))                                        \
    X(rd10, "mul.wide.u32 %rd10, %r5, %r6;", (uint64_t)i.a *i.b)                                                  \
    X(rd10, "mul.hi.u64 %rd10, %rd5, %rd6;", (uint64_t)((wide_unsigned)AL * BL >> 64))                            \
    X(rd10, "mul.hi.s64 %rd10, %rd5, %rd6;", (uint64_t)((wide_signed)(int64_t)AL * (int64_t)BL >> 64))            \
    X(r10, "div.u32 %r10, %r5, %r6;", i.b ? i.a / i.b : UINT32_MAX)                                               \
    X(r10, "rem.u32 %r10, %r5, %r6;", i.b ? i.a % i.b : i.a)                                                      \
    X(r10, "div.s32 %r10, %r5, %r6;", BS == 0 ? UINT32_MAX : (uint32_t)((int64_t)AS / BS))                        \
    X(r10, "rem.s32 %r10, %r5, %r6;", BS == 0 ? i.a : (uint32_t)((int64_t)AS % BS))                               \
    X(rd10, "div.u64 %rd10, %rd5, %rd6;", BL ? AL / BL : UINT64_MAX)                                              \
    X(r10, "min.s32 %r10, %r5, %r6;", AS < BS ? i.a : i.b)                                                        \
    X(r10, "max.u32 %r10, %r5, %r6;", i.a > i.b ? i.a : i.b)                                                      \
    X(r10, "neg.s32 %r10, %r5;", 0 - i.a)                                                                         \
    X(r10, "abs.s32 %r10, %r5;", AS < 0 ? 0 - i.a : i.a)                                                          \
    X(r10, "not.b32 %r10, %r5;", ~i.a)                                                                            \
    X(r10, "and.b32 %r10, %r5, %r6;", i.a &i.b)                                                                   \
    X(r10, "or.b32 %r10, %r5, %r6;", i.a | i.b)                                                                   \
    X(r10, "xor.b32 %r10, %r5, -5;", i.a ^ (uint32_t)-5)                                                          \
    X(r10, "shl.b32 %r10, %r5, %r6;", i.b > 31 ? 0 : i.a << i.b)                                                  \
    X(r10, "shr.u32 %r10, %r5, %r6;", i.b > 31 ? 0 : i.a >> i.b)                                                  \
    X(r10, "shr.s32 %r10, %r5, %r6;", (uint32_t)(AS >> (i.b > 31 ? 31 : i.b)))                                    \
    X(rd10, "shl.b64 %rd10, %rd5, 33;", AL << 33)                                                                 \
    X(rd10, "shr.s64 %rd10, %rd5, 7;", (uint64_t)((int64_t)AL >> 7))                                              \
    X(r10, "popc.b32 %r10, %r5;", (uint32_t)__builtin_popcount(i.a))                                              \
    X(r10, "clz.b32 %r10, %r5;", i.a ? (uint32_t)__builtin_clz(i.a) : 32)                                         \
    X(r10, "lop3.b32 %r10, %r5, %r6, %r7, 0xE8;", (i.a & i.b) | (i.a & i.c) | (i.b & i.c))                        \
    X(r10, "prmt.b32 %r10, %r5, %r6, 0x7210;", (i.a & 0xffffff) | (i.b & 0xff000000))                             \
    X(r10, "shf.l.wrap.b32 %r10, %r5, %r6, 5;", i.b << 5 | i.a >> 27)                                             \
    X(r10, "bfe.u32 %r10, %r5, 4, 9;", i.a >> 4 & 511)                                                            \
    X(r10, "bfe.s32 %r10, %r5, 4, 9;", (uint32_t)(((int32_t)(i.a << 19)) >> 23))                                  \
    X(r10, "bfi.b32 %r10, %r5, %r6, 4, 9;", (i.b & ~(511u << 4)) | (i.a & 511) << 4)                              \
    X(r10, "setp.lt.s32 %p1, %r5, %r6; selp.b32 %r10, %r5, %r6, %p1;", AS < BS ? i.a : i.b)                       \
    X(p1, "setp.lt.u32 %p1, %r5, %r6;", i.a < i.b)                                                                \
    X(p1, "setp.ne.and.s32 %p1, %r5, %r6, %p7;", i.a != i.b && i.c & 1)                                           \
    X(p1, "setp.eq.s32 %p2|%p1, %r5, %r6;", i.a != i.b)                                                           \
    X(p1, "setp.lt.f32 %p1, %f5, %f6;", AF < BF)                                                                  \
    X(p1, "setp.ne.f32 %p1, %f5, %f6;", AF<BF || AF> BF)                                                          \
    X(p1, "setp.neu.f32 %p1, %f5, %f6;", AF != BF)                                                                \
    X(p1, "setp.geu.f32 %p1, %f5, %f6;", !(AF < BF))                                                              \
    X(p1, "setp.nan.f32 %p1, %f5, %f6;", isnan(AF) || isnan(BF))                                                  \
    X(f10, "add.rn.f32 %f10, %f5, %f6;", bits_of(AF + BF))                                                        \
    X(f10, "sub.rn.f32 %f10, %f5, %f6;", bits_of(AF - BF))                                                        \
    X(f10, "mul.rn.f32 %f10, %f5, %f6;", bits_of(AF *BF))                                                         \
    X(f10, "div.rn.f32 %f10, %f5, %f6;", bits_of(AF / BF))                                                        \
    X(f10, "fma.rn.f32 %f10, %f5, %f6, %f7;", bits_of(fmaf(AF, BF, CF)))                                          \
    X(f10, "sqrt.rn.f32 %f10, %f5;", bits_of(sqrtf(AF)))                                                          \
    X(f10, "rcp.rn.f32 %f10, %f5;", bits_of(1 / AF))                                                              \
    X(r10, "neg.f32 %f10, %f5; mov.b32 %r10, %f10;", i.a ^ 0x80000000)                                            \
    X(r10, "abs.f32 %f10, %f5; mov.b32 %r10, %f10;", i.a & 0x7fffffff)                                            \
    X(r10, "copysign.f32 %f10, %f5, %f6; mov.b32 %r10, %f10;", (i.b & 0x7fffffff) | (i.a & 0x80000000))           \
    X(f10, "max.f32 %f10, %f5, %f6;",                                                                             \
      bits_of(isnan(AF)                  ? BF                                                                     \
              : isnan(BF) || AF > BF     ? AF                                                                     \
              : AF == BF && !signbit(AF) ? AF                                                                     \
                                         : BF))                                                                   \
    X(f10, "mul.ftz.f32 %f10, %f5, 0f3F800000;", fpclassify(AF) == FP_SUBNORMAL ? i.a & 0x80000000 : bits_of(AF)) \
    X(f10, "cvt.sat.f32.f32 %f10, %f5;", bits_of(AF > 0 ? AF < 1 ? AF : 1 : 0))                                   \
    X(f10, "cvt.rmi.f32.f32 %f10, %f5;", bits_of(floorf(AF)))                                                     \
    X(f10, "cvt.rni.f32.f32 %f10, %f5;", bits_of(rintf(AF)))                                                      \
    X(r10, "cvt.rzi.s32.f32 %r10, %f5;",                                                                          \
      isnan(AF)       ? 0                                                                                         \
      : AF >= 0x1p31f ? INT32_MAX                                                                                 \
      : AF < -0x1p31f ? 0x80000000                                                                                \
                      : (uint32_t)(int32_t)AF)                                                                    \
    X(f10, "cvt.rn.f32.s32 %f10, %r5;", bits_of((float)AS))                                                       \
    X(f10, "cvt.rn.f32.u64 %f10, %rd5;", bits_of((float)AL))                                                      \
    X(d10, "cvt.f64.f32 %d10, %f5;", bits_of64((double)AF))                                                       \
    X(f10, "cvt.rn.f32.f64 %f10, %d5;", bits_of((float)AD))                                                       \
    X(rd10, "cvt.s64.s32 %rd10, %r5;", (uint64_t)(int64_t)AS)                                                     \
    X(rd10, "cvt.u64.u32 %rd10, %r5;", (uint64_t)i.a)                                                             \
    X(r10, "cvt.u32.u64 %r10, %rd5;", i.a)                                                                        \
    X(r10, "cvt.s32.s8 %r10, %r5;", (uint32_t)(int32_t)(int8_t)i.a)                                               \
    X(r10, "cvt.u16.u32 %h1, %r5; cvt.u32.u16 %r10, %h1;", i.a & 0xffff)                                          \
    X(d10, "add.rn.f64 %d10, %d5, %d6;", bits_of64(AD + BD))                                                      \
    X(d10, "fma.rn.f64 %d10, %d5, %d6, %d5;", bits_of64(fma(AD, BD, AD)))                                         \
    X(d10, "div.rn.f64 %d10, %d5, %d6;", bits_of64(AD / BD))                                                      \
    X(d10, "sqrt.rn.f64 %d10, %d5;", bits_of64(sqrt(AD)))                                                         \
    X(rd10, "mov.b64 %rd10, {%r7, %r6};", (uint64_t)i.b << 32 | i.c)                                              \
    X(r10, "mov.b64 {_, %r10}, %rd5;", i.b)                                                                       \
    X(r10, "mov.u32 %r10, %r5; @%p7 mov.u32 %r10, %r6;", i.c & 1 ? i.b : i.a)

typedef struct rule {
    const char *reg, *lines;
} rule;

static const rule rules[] = {
#define CASE_LINES(reg, lines, value) {#reg, lines},
    CASES(CASE_LINES)
#undef CASE_LINES
};
enum { N_RULES = sizeof rules / sizeof rules[0], LANES = 64 };

static uint64_t expected(int rule_number, inputs i) {
    int n = 0;
#define CASE_VALUE(reg, lines, value) \
    if (n++ == rule_number) return (uint64_t)(value);
    CASES(CASE_VALUE)
#undef CASE_VALUE
    return 0;
}

/* All lines in one kernel: results of rule r and lane i at out[64 r + i]. */
static char *make_text(void) {
    char *text = malloc(200 * (size_t)N_RULES + 4096), *at = text;
    at += sprintf(at, "%s",
                  PTX_HEAD
                  ".visible .entry f(.param .u64 in, .param .u64 out) {\n.reg .pred %p<8>;\n.reg .b16 %h<4>;\n"
                  ".reg .b32 %r<16>;\n.reg .f32 %f<16>;\n.reg .f64 %d<16>;\n.reg .b64 %rd<16>;\n"
                  "ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, %tid.x;\n"
                  "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd1, %rd1, %rd3;\nmul.wide.u32 %rd3, %r1, 8;\n"
                  "add.s64 %rd2, %rd2, %rd3;\nld.global.u32 %r5, [%rd1];\nld.global.u32 %r6, [%rd1+256];\n"
                  "ld.global.u32 %r7, [%rd1+512];\nmov.b32 %f5, %r5;\nmov.b32 %f6, %r6;\nmov.b32 %f7, %r7;\n"
                  "mov.b64 %rd5, {%r5, %r6};\nmov.b64 %rd6, {%r7, %r5};\nmov.b64 %d5, %rd5;\nmov.b64 %d6, %rd6;\n"
                  "and.b32 %r2, %r7, 1;\nsetp.eq.s32 %p7, %r2, 1;\n");
    for (int r = 0; r < N_RULES; r++) {
        const char *reg = rules[r].reg;
        at += sprintf(at, "%s\n", rules[r].lines);
        if (reg[0] == 'p') at += sprintf(at, "selp.b64 %%rd10, 1, 0, %%%s;\n", reg);
        if (reg[0] == 'f') at += sprintf(at, "mov.b32 %%r10, %%%s;\n", reg);
        if (reg[0] == 'd') at += sprintf(at, "mov.b64 %%rd10, %%%s;\n", reg);
        if (strcmp(reg, "r10") == 0 || reg[0] == 'f') at += sprintf(at, "cvt.u64.u32 %%rd10, %%r10;\n");
        at += sprintf(at, "st.global.u64 [%%rd2+%d], %%rd10;\n", 8 * LANES * r);
    }
    sprintf(at, "ret;\n}\n");
    return text;
}

static uint32_t awkward(uint64_t *random) {
    static const uint32_t some[] = {0,          1,          2,          31,         32,         0x7fffffff,
                                    0x80000000, 0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
                                    0x7fc00000, 0x00000100, 0x3f000000, 0x4f000000};
    return random_below(random, 2) ? some[random_below(random, 16)] : (uint32_t)random_below(random, UINT64_C(1) << 32);
}

static void compare(CUfunction f, uint64_t *random, CUdeviceptr in, CUdeviceptr out) {
    static uint32_t words[3 * LANES];
    static uint64_t got[N_RULES * LANES];
    for (int i = 0; i < 3 * LANES; i++) words[i] = awkward(random);
    assert_cu(cu.cuMemcpyHtoD_v2(in, words, sizeof words));
    assert_cu(cu.cuLaunchKernel(f, 1, 1, 1, LANES, 1, 1, 0, NULL, (void *[]){&in, &out}, NULL));
    assert_cu(cu.cuMemcpyDtoH_v2(got, out, sizeof got));
    for (int r = 0; r < N_RULES; r++)
        for (int i = 0; i < LANES; i++) {
            const inputs with = {words[i], words[LANES + i], words[2 * LANES + i]};
            const uint64_t wanted = expected(r, with);
            if (got[LANES * r + i] != wanted)
                fail_msg("%s with %#x %#x %#x: %#llx, not %#llx", rules[r].lines, with.a, with.b, with.c,
                         (unsigned long long)got[LANES * r + i], (unsigned long long)wanted);
        }
}

static void test_instructions(void **state) {
    (void)state;
    char *text = make_text();
    uint64_t random = 7;
    CUmodule module = NULL;
    CUdeviceptr in = 0, out = 0;
    standin_open();
    CUfunction f = standin_kernel_of(text, "f", &module);
    assert_cu(cu.cuMemAlloc_v2(&in, 3 * LANES * 4));
    assert_cu(cu.cuMemAlloc_v2(&out, (size_t)8 * LANES * N_RULES));
    for (int round = 0; round < 50; round++) compare(f, &random, in, out);
    assert_cu(cu.cuMemFree_v2(in));
    assert_cu(cu.cuMemFree_v2(out));
    assert_cu(cu.cuModuleUnload(module));
    standin_close();
    free(text);
}

/* Approximations are within two units of the last place of what C computes. */
static void test_approximations(void **state) {
    (void)state;
    static const char *const text = PTX_HEAD
        ".visible .entry f(.param .u64 at) {\n.reg .b32 %r<4>;\n.reg .f32 %f<8>;\n.reg .b64 %rd<4>;\n"
        "ld.param.u64 %rd1, [at];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd1, %rd1, %rd2;\n"
        "ld.global.f32 %f1, [%rd1];\nex2.approx.ftz.f32 %f2, %f1;\nst.global.f32 [%rd1+256], %f2;\n"
        "lg2.approx.f32 %f3, %f1;\nst.global.f32 [%rd1+512], %f3;\nrsqrt.approx.f32 %f4, %f1;\n"
        "st.global.f32 [%rd1+768], %f4;\ntanh.approx.f32 %f5, %f1;\nst.global.f32 [%rd1+1024], %f5;\nret;\n}\n";
    float x[5 * LANES] = {0};
    CUmodule module = NULL;
    CUdeviceptr at = 0;
    for (int i = 0; i < LANES; i++) x[i] = 0.125f + 0.37f * (float)i;
    standin_open();
    CUfunction f = standin_kernel_of(text, "f", &module);
    assert_cu(cu.cuMemAlloc_v2(&at, sizeof x));
    assert_cu(cu.cuMemcpyHtoD_v2(at, x, sizeof x));
    assert_cu(cu.cuLaunchKernel(f, 1, 1, 1, LANES, 1, 1, 0, NULL, (void *[]){&at}, NULL));
    assert_cu(cu.cuMemcpyDtoH_v2(x, at, sizeof x));
    for (int i = 0; i < LANES; i++) {
        const double v = (double)x[i], wanted[4] = {exp2(v), log2(v), 1 / sqrt(v), tanh(v)};
        for (int k = 0; k < 4; k++)
            assert_true(fabs((double)x[(k + 1) * LANES + i] - wanted[k]) <= 2 * 0x1p-23 * fabs(wanted[k]));
    }
    assert_cu(cu.cuMemFree_v2(at));
    assert_cu(cu.cuModuleUnload(module));
    standin_close();
}

/* Variables of the module lie in global memory, with their first values; shared ones are each kernel's own. */
static void test_variables(void **state) {
    (void)state;
    static const char *const text =
        PTX_HEAD ".global .align 4 .u32 table[4] = {10, 20, 0x1E, -2};\n.const .align 4 .f32 half = 0f3F000000;\n"
                 ".shared .align 4 .b8 room[256];\n"
                 ".visible .entry f(.param .u64 at) {\n.reg .b32 %r<8>;\n.reg .f32 %f<4>;\n.reg .b64 %rd<8>;\n"
                 "ld.param.u64 %rd1, [at];\nmov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 3;\nmul.wide.u32 %rd2, %r2, 4;\n"
                 "mov.u64 %rd3, table;\nadd.s64 %rd3, %rd3, %rd2;\nld.global.u32 %r3, [%rd3];\n"
                 "shl.b32 %r4, %r1, 2;\nmov.u32 %r5, room;\nadd.s32 %r5, %r5, %r4;\nst.shared.u32 [%r5], %r3;\n"
                 "ld.const.f32 %f1, [half];\nmul.wide.u32 %rd4, %r1, 8;\nadd.s64 %rd1, %rd1, %rd4;\n"
                 "ld.shared.u32 %r6, [%r5];\nst.global.u32 [%rd1], %r6;\nst.global.f32 [%rd1+4], %f1;\nret;\n}\n";
    static const uint32_t values[4] = {10, 20, 30, (uint32_t)-2};
    uint32_t got[2 * LANES], held[4];
    CUmodule module = NULL;
    CUdeviceptr at = 0, table = 0;
    size_t bytes = 0;
    standin_open();
    CUfunction f = standin_kernel_of(text, "f", &module);
    assert_cu(cu.cuMemAlloc_v2(&at, sizeof got));
    assert_cu(cu.cuLaunchKernel(f, 1, 1, 1, LANES, 1, 1, 0, NULL, (void *[]){&at}, NULL));
    assert_cu(cu.cuMemcpyDtoH_v2(got, at, sizeof got));
    for (int i = 0; i < LANES; i++) {
        assert_int_equal(got[2 * i], values[i % 4]);
        assert_int_equal(got[2 * i + 1], 0x3f000000);
    }
    assert_cu(cu.cuModuleGetGlobal_v2(&table, &bytes, module, "table"));
    assert_int_equal(bytes, sizeof held);
    assert_cu(cu.cuMemcpyDtoH_v2(held, table, sizeof held));
    assert_memory_equal(held, values, sizeof held);
    assert_cu(cu.cuMemFree_v2(at));
    assert_cu(cu.cuModuleUnload(module));
    standin_close();
}

/* ---- what is no PTX ---- */

/* Loads a text that may be anything; where it is taken, its kernels are asked for. */
static bool is_taken(const char *text) {
    CUmodule module = NULL;
    CUfunction f = NULL;
    if (cu.cuModuleLoadData(&module, text) != CUDA_SUCCESS) return false;
    const bool taken = cu.cuModuleGetFunction(&f, module, "f") == CUDA_SUCCESS;
    assert_cu(cu.cuModuleUnload(module));
    return taken;
}

static void test_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "not PTX at all",
        ".version 7.5\n.target sm_75\n.address_size 32\n",
        PTX_HEAD ".visible .entry f(.param .u64 a) { ret; ",
        PTX_HEAD ".visible .entry f(.param .pred a) { ret; }",
        PTX_HEAD ".visible .entry f() { .reg .b32 %r<2>; add.s32 %r1, %r0; ret; }",
        PTX_HEAD ".visible .entry f() { .reg .b32 %r<2>; add.s32 %r1, %r0, %r2; ret; }",
        PTX_HEAD ".visible .entry f() { bra NOWHERE; ret; }",
        PTX_HEAD ".visible .entry f() { bar.sync 1; ret; }",
        PTX_HEAD ".visible .entry f() { bar.arrive 0, 64; ret; }",
        PTX_HEAD ".visible .entry f() { .reg .b32 %r<2>; shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; ret; }",
        PTX_HEAD ".func g() { ret; } .visible .entry f() { call g; ret; }",
        PTX_HEAD "/* no end",
    };
    standin_open();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (is_taken(texts[i])) fail_msg("taken: %s", texts[i]);
    assert_true(cu.misuse_count(MISUSE_IMAGE) >= sizeof texts / sizeof texts[0] - 1);
    assert_non_null(strstr(cu.report(0), "image: cuModuleLoadData: line 1: "));
    assert_cu(cu.cuDevicePrimaryCtxRelease_v2(0));
}

/* Damage is refused or read, but never followed anywhere. */
static void test_damage(void **state) {
    (void)state;
    char *text = make_text(), *copy = malloc(strlen(text) + 1);
    const size_t n = strlen(text);
    uint64_t random = 3;
    standin_open();
    for (uint32_t round = 0; round < rounds(400); round++) {
        strcpy(copy, text);
        if (round % 2)
            copy[random_below(&random, n)] = 0;
        else
            for (int k = 0; k < 3; k++) copy[random_below(&random, n)] = (char)(1 + random_below(&random, 255));
        is_taken(copy);
    }
    assert_cu(cu.cuDevicePrimaryCtxRelease_v2(0));
    free(copy);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instructions), cmocka_unit_test(test_approximations), cmocka_unit_test(test_variables),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
