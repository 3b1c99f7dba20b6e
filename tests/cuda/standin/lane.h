/* What a translated kernel is made of: included by the C that emit.c writes, and by the launcher that runs it.
 *
 * A kernel becomes one function that runs one lane from the point it stopped at to its next barrier or its end. Between
 * barriers registers are C variables; at a barrier those that are still needed go to the lane's slots. Registers hold
 * plain bits (uint32_t, uint64_t ...); f32() and b32() turn bits to floats and back.
 *
 * Every access to memory goes through one of the functions here: they check bounds and alignment, and look at the shadow
 * of the word. What is out of the ordinary (another allocation, a first touch, an error) is the launcher's: run->touch. */
#ifndef TIDE_TESTS_CUDA_LANE_H
#define TIDE_TESTS_CUDA_LANE_H

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Generic addresses of the spaces that are no global memory. No processor maps such addresses. */
#define LANE_SHARED_WINDOW UINT64_C(0x00e0000000000000)
#define LANE_LOCAL_WINDOW UINT64_C(0x00f0000000000000)
#define LANE_WINDOW_BYTES UINT64_C(0x100000000)

typedef enum lane_access { LANE_READ, LANE_WRITE, LANE_ATOMIC } lane_access;
typedef enum lane_stop { LANE_AT_BARRIER, LANE_AT_END } lane_stop;

/* Who touched four bytes of device memory or pinned memory last. An epoch is an operation on a stream, see cells.c;
 * an agent is a lane of it between two barriers. */
typedef struct lane_cell {
    uint32_t written;        /* epoch; 0: never */
    uint32_t read[3];        /* epochs of up to three streams */
    uint64_t writer, reader; /* agents within the newest epoch; LANE_ALL: lanes of several groups */
} lane_cell;
#define LANE_ALL UINT64_MAX
#define LANE_ATOMS (UINT64_MAX - 1) /* atomics, or parts of a word: no race within a launch is looked for */
#define LANE_ANY UINT64_C(0xfff)    /* as the lane of an agent: several of the group */

typedef struct lane_run lane_run;
typedef struct lane {
    lane_run *run;
    uint32_t at;      /* 0: the beginning; n: behind the n-th barrier of the text */
    uint32_t barrier; /* the line of the barrier it stopped at */
    uint32_t number;  /* within the group */
    uint32_t tid[3];
    uint64_t *slots; /* registers that live across barriers */
    unsigned char *local;
} lane;

/* An allocation. */
typedef struct lane_range {
    uint64_t base, size;
    unsigned char *bytes;
    lane_cell *cells; /* NULL: nothing is recorded */
} lane_range;

/* A launch, as its lanes see it. */
struct lane_run {
    const unsigned char *parameters;
    uint32_t ntid[3], nctaid[3], ctaid[3];
    lane_range range; /* the allocation touched last */
    uint32_t epoch;
    uint64_t group_agent; /* group << 32 | phase << 12 */
    /* the group's shared memory; a shadow entry is phase << 32 | writer + 1 << 16 | reader + 1, 0xffff: several */
    unsigned char *shared;
    uint64_t *shadow; /* NULL: nothing is recorded */
    uint32_t shared_bytes, dynamic_at, phase;
    uint32_t local_bytes;
    /* The memory of an access, wherever it is; does not return where the access is wrong. */
    void *(*touch)(lane *l, uint64_t address, uint32_t bytes, lane_access access, uint32_t line);
    /* What a lane did wrong; does not return. */
    void (*fail)(lane *l, int kind, uint64_t address, uint32_t bytes, uint32_t line);
    uint64_t globals[16]; /* where the module's variables lie, in the order of their declaration */
};

enum { LANE_BAD_SHARED, LANE_BAD_LOCAL, LANE_UNALIGNED, LANE_SHARED_RACE, LANE_TRAP };

/* ---- global memory ---- */

static inline uint64_t lane_agent(const lane *l) { return l->run->group_agent | l->number; }

/* True where nothing new is learned from the access: then touch() need not look at the cells. */
static inline bool lane_known(const lane *l, const lane_cell *c, lane_access access) {
    const uint32_t epoch = l->run->epoch;
    if (access == LANE_READ)
        return c->read[0] == epoch && c->written != epoch && (c->reader == LANE_ALL || c->reader == lane_agent(l));
    return access == LANE_WRITE && c->written == epoch && c->writer == lane_agent(l) && c->read[0] != epoch;
}

static inline void *lane_global(lane *l, uint64_t address, uint32_t bytes, lane_access access, uint32_t line) {
    const lane_range *r = &l->run->range;
    const uint64_t at = address - r->base;
    if (at >= r->size || bytes > r->size - at || (address & (bytes - 1)))
        return l->run->touch(l, address, bytes, access, line);
    if (r->cells && !(bytes == 4 && lane_known(l, r->cells + (at >> 2), access)))
        return l->run->touch(l, address, bytes, access, line);
    return r->bytes + at;
}

/* ---- shared memory ---- */

static inline void lane_shared_read(lane *l, uint64_t *s, uint32_t line) {
    const uint32_t me = l->number + 1;
    uint64_t v = *s;
    if ((uint32_t)(v >> 32) != l->run->phase) v = (uint64_t)l->run->phase << 32;
    const uint32_t writer = (v >> 16) & 0xffff, reader = v & 0xffff;
    if (writer && writer != me) l->run->fail(l, LANE_SHARED_RACE, 0, writer - 1, line);
    *s = (v & ~UINT64_C(0xffff)) | (reader && reader != me ? 0xffff : me);
}

static inline void lane_shared_write(lane *l, uint64_t *s, uint32_t line) {
    const uint32_t me = l->number + 1;
    uint64_t v = *s;
    if ((uint32_t)(v >> 32) != l->run->phase) v = (uint64_t)l->run->phase << 32;
    const uint32_t writer = (v >> 16) & 0xffff, reader = v & 0xffff;
    if ((writer && writer != me) || (reader && reader != me))
        l->run->fail(l, LANE_SHARED_RACE, 0, writer ? writer - 1 : reader == 0xffff ? 0xffff : reader - 1, line);
    *s = (v & ~UINT64_C(0xffffffff)) | (uint64_t)me << 16 | reader;
}

/* One shadow entry per byte: neighbours may write neighbouring bytes. */
static inline void *lane_shared(lane *l, uint64_t address, uint32_t bytes, lane_access access, uint32_t line) {
    lane_run *x = l->run;
    const uint64_t at = address >= LANE_SHARED_WINDOW ? address - LANE_SHARED_WINDOW : address;
    if (at >= x->shared_bytes || bytes > x->shared_bytes - at) x->fail(l, LANE_BAD_SHARED, at, bytes, line);
    if (at & (bytes - 1)) x->fail(l, LANE_UNALIGNED, at, bytes, line);
    if (x->shadow && access != LANE_ATOMIC) {
        for (uint32_t i = 0; i < bytes; i += bytes < 4 ? 1 : 4) {
            if (access == LANE_READ)
                lane_shared_read(l, x->shadow + at + i, line);
            else
                lane_shared_write(l, x->shadow + at + i, line);
        }
    }
    return x->shared + at;
}

/* ---- a lane's own memory ---- */

static inline void *lane_local(lane *l, uint64_t address, uint32_t bytes, lane_access access, uint32_t line) {
    const uint64_t at = address >= LANE_LOCAL_WINDOW ? address - LANE_LOCAL_WINDOW : address;
    (void)access;
    if (at >= l->run->local_bytes || bytes > l->run->local_bytes - at) l->run->fail(l, LANE_BAD_LOCAL, at, bytes, line);
    if (at & (bytes - 1)) l->run->fail(l, LANE_UNALIGNED, at, bytes, line);
    return l->local + at;
}

/* An address without a space. */
static inline void *lane_generic(lane *l, uint64_t address, uint32_t bytes, lane_access access, uint32_t line) {
    if (address - LANE_SHARED_WINDOW < LANE_WINDOW_BYTES) return lane_shared(l, address, bytes, access, line);
    if (address - LANE_LOCAL_WINDOW < LANE_WINDOW_BYTES) return lane_local(l, address, bytes, access, line);
    return lane_global(l, address, bytes, access, line);
}

/* ---- bits ---- */

static inline float f32(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static inline double f64(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
/* NaN has one form, as on the hardware. */
static inline uint32_t b32(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return v != v ? 0x7fffffff : bits;
}
static inline uint64_t b64(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return v != v ? UINT64_C(0x7fffffffffffffff) : bits;
}

/* ---- integers ---- */

static inline uint32_t shl32(uint32_t v, uint32_t n) { return n > 31 ? 0 : v << n; }
static inline uint64_t shl64(uint64_t v, uint32_t n) { return n > 63 ? 0 : v << n; }
static inline uint16_t shl16(uint16_t v, uint32_t n) { return (uint16_t)(n > 15 ? 0 : v << n); }
static inline uint32_t shr_u32(uint32_t v, uint32_t n) { return n > 31 ? 0 : v >> n; }
static inline uint64_t shr_u64(uint64_t v, uint32_t n) { return n > 63 ? 0 : v >> n; }
static inline uint16_t shr_u16(uint16_t v, uint32_t n) { return (uint16_t)(n > 15 ? 0 : v >> n); }
static inline uint32_t shr_s32(uint32_t v, uint32_t n) { return (uint32_t)((int32_t)v >> (n > 31 ? 31 : n)); }
static inline uint64_t shr_s64(uint64_t v, uint32_t n) { return (uint64_t)((int64_t)v >> (n > 63 ? 63 : n)); }
static inline uint16_t shr_s16(uint16_t v, uint32_t n) { return (uint16_t)((int16_t)v >> (n > 15 ? 15 : n)); }

/* Division by zero gives all ones, as the hardware does; so nothing traps here. */
#define LANE_DIVISIONS(bits, minimum)                                                                          \
    static inline uint##bits##_t div_u##bits(uint##bits##_t a, uint##bits##_t b) {                             \
        return b ? a / b : UINT##bits##_MAX;                                                                   \
    }                                                                                                          \
    static inline uint##bits##_t rem_u##bits(uint##bits##_t a, uint##bits##_t b) { return b ? a % b : a; }     \
    static inline uint##bits##_t div_s##bits(uint##bits##_t a, uint##bits##_t b) {                             \
        if (b == 0) return UINT##bits##_MAX;                                                                   \
        if (b == UINT##bits##_MAX) return 0 - a;                                                               \
        return (uint##bits##_t)((int##bits##_t)a / (int##bits##_t)b);                                          \
    }                                                                                                          \
    static inline uint##bits##_t rem_s##bits(uint##bits##_t a, uint##bits##_t b) {                             \
        return b == 0 ? a : b == UINT##bits##_MAX ? 0 : (uint##bits##_t)((int##bits##_t)a % (int##bits##_t)b); \
    }
LANE_DIVISIONS(32, INT32_MIN)
LANE_DIVISIONS(64, INT64_MIN)

static inline uint32_t mulhi_u32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
static inline uint32_t mulhi_s32(uint32_t a, uint32_t b) { return (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32); }
static inline uint64_t mulhi_u64(uint64_t a, uint64_t b) {
    const uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    const uint64_t middle = ah * bl + (al * bl >> 32), other = al * bh + (uint32_t)middle;
    return ah * bh + (middle >> 32) + (other >> 32);
}
static inline uint64_t mulhi_s64(uint64_t a, uint64_t b) {
    return mulhi_u64(a, b) - ((int64_t)a < 0 ? b : 0) - ((int64_t)b < 0 ? a : 0);
}

/* Any function of three bits, by its table. */
static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t v = 0;
    for (uint32_t i = 0; i < 8; i++)
        if (table >> i & 1) v |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return v;
}
static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t select) {
    const uint64_t pair = (uint64_t)b << 32 | a;
    uint32_t v = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t s = select >> 4 * i & 15;
        uint32_t byte = (uint32_t)(pair >> 8 * (s & 7)) & 255;
        if (s & 8) byte = byte & 128 ? 255 : 0;
        v |= byte << 8 * i;
    }
    return v;
}
/* Funnel shifts of the pair high:low. */
static inline uint32_t shf_l(uint32_t low, uint32_t high, uint32_t n) {
    return n ? n > 31 ? low : high << n | low >> (32 - n) : high;
}
static inline uint32_t shf_r(uint32_t low, uint32_t high, uint32_t n) {
    return n ? n > 31 ? high : low >> n | high << (32 - n) : low;
}
static inline uint32_t bfe_u32(uint32_t v, uint32_t at, uint32_t n) {
    at &= 255, n &= 255;
    return n == 0 || at > 31 ? 0 : shr_u32(v, at) & (n > 31 ? UINT32_MAX : (UINT32_C(1) << n) - 1);
}
static inline uint32_t bfe_s32(uint32_t v, uint32_t at, uint32_t n) {
    at &= 255, n &= 255;
    if (n == 0) return 0;
    const uint32_t last = at + n - 1 > 31 ? 31 : at + n - 1, sign = v >> last & 1;
    const uint32_t mask = n > 31 ? UINT32_MAX : (UINT32_C(1) << n) - 1;
    const uint32_t field = shr_u32(v, at) & mask;
    const uint32_t valid = at > 31 ? 0 : 32 - at < n ? 32 - at : n;
    return !sign ? field : valid > 31 ? field : field | ~((UINT32_C(1) << valid) - 1);
}
static inline uint32_t bfi_b32(uint32_t a, uint32_t b, uint32_t at, uint32_t n) {
    at &= 255, n &= 255;
    const uint32_t mask = shl32(n > 31 ? UINT32_MAX : (UINT32_C(1) << n) - 1, at);
    return (b & ~mask) | (shl32(a, at) & mask);
}
static inline uint32_t brev32(uint32_t v) {
    uint32_t r = 0;
    for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i);
    return r;
}
static inline uint32_t clz32(uint32_t v) { return v ? (uint32_t)__builtin_clz(v) : 32; }
static inline uint32_t clz64(uint64_t v) { return v ? (uint32_t)__builtin_clzll(v) : 64; }

/* ---- floats ---- */

static inline float ftz32(float v) { return fpclassify(v) == FP_SUBNORMAL ? copysignf(0, v) : v; }
static inline float sat32(float v) { return v > 0 ? v < 1 ? v : 1 : 0; }
static inline double sat64(double v) { return v > 0 ? v < 1 ? v : 1 : 0; }

/* A number wins over NaN, and +0 is above -0. */
static inline float max32(float a, float b) {
    if (a != a || b != b) return a != a ? b : a;
    return a > b || (a == b && !signbit(a)) ? a : b;
}
static inline float min32(float a, float b) {
    if (a != a || b != b) return a != a ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}
static inline double max64(double a, double b) {
    if (a != a || b != b) return a != a ? b : a;
    return a > b || (a == b && !signbit(a)) ? a : b;
}
static inline double min64(double a, double b) {
    if (a != a || b != b) return a != a ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}

/* An operation in another rounding mode: the volatile copies keep it between the two calls. */
#define LANE_ROUNDED(type, name, operation)                     \
    static inline type name(type x, type y, type z, int mode) { \
        volatile type a = x, b = y, c = z, v;                   \
        fesetround(mode);                                       \
        v = (operation);                                        \
        fesetround(FE_TONEAREST);                               \
        (void)a, (void)b, (void)c;                              \
        return v;                                               \
    }
LANE_ROUNDED(float, fma32_in, fmaf(a, b, c))
LANE_ROUNDED(float, add32_in, a + b)
LANE_ROUNDED(float, mul32_in, a *b)
LANE_ROUNDED(float, div32_in, a / b)
LANE_ROUNDED(float, sqrt32_in, sqrtf(a))
LANE_ROUNDED(double, fma64_in, fma(a, b, c))
LANE_ROUNDED(double, add64_in, a + b)
LANE_ROUNDED(double, mul64_in, a *b)
LANE_ROUNDED(double, div64_in, a / b)
LANE_ROUNDED(double, sqrt64_in, sqrt(a))

/* The hardware's approximations are within about two units of the last place; here they are as near as double is. */
static inline float ex2(float v) { return (float)exp2((double)v); }
static inline float lg2(float v) { return (float)log2((double)v); }
/* A first guess whose lower word is zero. */
static inline double rcp64_approx(double v) {
    uint64_t bits = b64(1 / v);
    return f64(bits & ~UINT64_C(0xffffffff));
}
static inline double rsqrt64_approx(double v) {
    uint64_t bits = b64(1 / sqrt(v));
    return f64(bits & ~UINT64_C(0xffffffff));
}

/* Floats to integers saturate, and NaN becomes 0. */
#define LANE_TO_INT(name, type, from, least, below)                                                                   \
    static inline type name(from v) {                                                                                 \
        return v != v ? 0 : v < (from)(least) ? (type)(least) : v >= (from)(below) ? (type) ~(type)(least) : (type)v; \
    }
LANE_TO_INT(to_s32, int32_t, double, INT32_MIN, 2147483648.0)
LANE_TO_INT(to_s64, int64_t, double, INT64_MIN, 9223372036854775808.0)
LANE_TO_INT(to_u32, uint32_t, double, 0, 4294967296.0)
LANE_TO_INT(to_u64, uint64_t, double, 0, 18446744073709551616.0)

#endif
