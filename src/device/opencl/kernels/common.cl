/* What all families share; stands before each of them. A work item takes runs of RUN elements, 8 at a time. */
#pragma OPENCL FP_CONTRACT OFF /* a product is rounded before it is added to, unless fma() is written */

#define RUN 4096 /* TIDE__RUN in kernel.h */
#define FLOATS(offset) ((global float *)(arena + (offset)))
#define INTS(offset) ((global int *)(arena + (offset)))
#define BYTES(offset) ((global uchar *)(arena + (offset)))

/* Sums go to a wider type where the device has one. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double wide;
typedef double8 wide8;
#define WIDE8(v) convert_double8(v)
#else
typedef float wide;
typedef float8 wide8;
#define WIDE8(v) (v)
#endif

/* One fixed order. */
inline wide sum8(wide8 v) { return ((v.s0 + v.s1) + (v.s2 + v.s3)) + ((v.s4 + v.s5) + (v.s6 + v.s7)); }

inline float largest8(float8 v) {
    float4 a = fmax(v.lo, v.hi);
    float2 b = fmax(a.lo, a.hi);
    return fmax(b.x, b.y);
}

/* tide__opencl_fault: the first finding stays. */
typedef struct {
    int code, value, place, limit;
} fault;

inline void report(global fault *f, int code, int value, int place, int limit) {
    if (atomic_cmpxchg(&f->code, 0, code) != 0) return;
    f->value = value;
    f->place = place;
    f->limit = limit;
}

/* The loop of a work item over its run: `body8` for the 8 elements from i on, `body1` for element i of the rest. */
#define FOR_RUN(n, body8, body1)                                  \
    do {                                                          \
        ulong i = get_global_id(0) * (ulong)RUN;                  \
        const ulong end = i + RUN < (n) ? i + RUN : (n);          \
        for (; i + 8 <= end; i += 8) body8;                       \
        for (; i < end; i++) body1;                               \
    } while (0)
