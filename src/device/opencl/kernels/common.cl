/* What all families share; stands before each of them.
 *
 * A work group takes a run of elements, a row, a plane or a block. The host sets LANES, the work items of a group: 1 on
 * processors, where one item works on vectors of 8, which is what drivers turn into good code; many on GPUs, where the
 * lanes of a group take elements in turn, so that neighbours read neighbours. Sums have one fixed order for each LANES,
 * and a device has one number of them. */
#pragma OPENCL FP_CONTRACT OFF /* a product is rounded before it is added to, unless fma() is written */

#define KERNEL kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
#define LANE ((int)get_local_id(0))

#define RUN 4096 /* TIDE__RUN in kernel.h */
#define FLOATS(offset) ((global float *)(arena + (offset)))
#define INTS(offset) ((global int *)(arena + (offset)))
#define BYTES(offset) ((global uchar *)(arena + (offset)))

/* ---- what is wrong with data ---- */

/* tide__opencl_fault: the first finding stays. */
typedef struct {
    int code, value, place, limit;
} fault;

/* The first arguments of every kernel. */
#define ARENA global char *arena, global fault *faults
/* First statement: after a fault nothing that follows it on the queue is computed. Kernels that may report one and have
 * barriers go without, as lanes might not agree. */
#define SKIP_AFTER_FAULT \
    if (faults->code != 0) return

inline void report(global fault *f, int code, int value, int place, int limit) {
    if (atomic_cmpxchg(&f->code, 0, code) != 0) return;
    f->value = value;
    f->place = place;
    f->limit = limit;
}

/* ---- sums ---- */

/* They go to a wider type where the device has one. */
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

inline wide sum8(wide8 v) { return ((v.s0 + v.s1) + (v.s2 + v.s3)) + ((v.s4 + v.s5) + (v.s6 + v.s7)); }

inline float largest8(float8 v) {
    float4 a = fmax(v.lo, v.hi);
    float2 b = fmax(a.lo, a.hi);
    return fmax(b.x, b.y);
}

/* All lanes have come here, and what they wrote to local and global memory is seen by the group. */
#if LANES == 1
#define MEET
#else
#define MEET barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#endif

/* Of what the lanes have; all lanes get it. `scratch`: LANES elements of local memory. */
inline wide group_sum(wide v, local wide *scratch) {
#if LANES > 1
    scratch[LANE] = v;
    for (int n = LANES / 2; n > 0; n /= 2) {
        MEET;
        if (LANE < n) scratch[LANE] += scratch[LANE + n];
    }
    MEET;
    v = scratch[0];
    MEET;
#endif
    return v;
}

inline float group_largest(float v, local float *scratch) {
#if LANES > 1
    scratch[LANE] = v;
    for (int n = LANES / 2; n > 0; n /= 2) {
        MEET;
        if (LANE < n) scratch[LANE] = fmax(scratch[LANE], scratch[LANE + n]);
    }
    MEET;
    v = scratch[0];
    MEET;
#endif
    return v;
}

/* ---- loops ---- */

/* Elements [begin, end): `body8` for the 8 from i on, `body1` for element i. Lanes use the second only; element i is
 * always the same lane's. */
#if defined(__clang__) /* LLVM 14 scatters such loops wrongly on processors with AVX-512 */
#define ONE_BY_ONE _Pragma("clang loop vectorize(disable)")
#else
#define ONE_BY_ONE
#endif
#if LANES == 1
#define FOR_RANGE(begin, end, body8, body1)     \
    do {                                        \
        long i = (begin);                       \
        const long end_ = (end);                \
        for (; i + 8 <= end_; i += 8) body8;    \
        for (; i < end_; i++) body1;            \
    } while (0)
#else
#define FOR_RANGE(begin, end, body8, body1)                                       \
    do {                                                                          \
        const long end_ = (end);                                                  \
        ONE_BY_ONE for (long i = (begin) + LANE; i < end_; i += LANES) body1;     \
    } while (0)
#endif

/* A row of n elements; and the run of a group, of n elements in all. */
#define FOR_ROW(n, body8, body1) FOR_RANGE(0, n, body8, body1)
#define FOR_RUN(n, body8, body1)                                                                       \
    FOR_RANGE((long)get_group_id(0) * RUN, min(((long)get_group_id(0) + 1) * RUN, (long)(n)), body8, body1)

/* Every pair of y below h and x below w: the pixels of an image, the elements of a block. */
#if LANES == 1
#define FOR_PAIRS(y, x, h, w)     \
    for (int y = 0; y < (h); y++) \
        for (int x = 0; x < (w); x++)
#else
#define FOR_PAIRS(y, x, h, w)                                 \
    for (int at_ = LANE; at_ < (h) * (w); at_ += LANES)       \
        for (int y = at_ / (w), x = at_ % (w), once_ = 1; once_; once_ = 0)
#endif

/* ---- rows ---- */

/* prob = e^(x - largest) / sum; prob may lie on x. Returns the sum. The scratches have LANES elements. */
inline wide row_softmax(global const float *x, int n, global float *prob, local float *scratch,
                        local wide *wide_scratch, float *largest_out) {
    float8 most = (float8)(x[0]);
    float largest = x[0];
    wide8 lanes = 0;
    wide sum = 0;
    FOR_ROW(n, most = fmax(most, vload8(0, x + i)), largest = fmax(largest, x[i]));
    largest = group_largest(fmax(largest8(most), largest), scratch);
    FOR_ROW(n,
            {
                const float8 e = exp(vload8(0, x + i) - largest);
                vstore8(e, 0, prob + i);
                lanes += WIDE8(e);
            },
            {
                prob[i] = exp(x[i] - largest);
                sum += (wide)prob[i];
            });
    sum = group_sum(sum + sum8(lanes), wide_scratch);
    const float share = (float)(1 / sum);
    FOR_ROW(n, vstore8(vload8(0, prob + i) * share, 0, prob + i), prob[i] *= share);
    *largest_out = largest;
    return sum;
}
