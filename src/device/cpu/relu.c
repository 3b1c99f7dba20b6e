/* ReLU, forward and backward, over stored numbers: any write may lie exactly on a read, and zero padding stays zero. Backward asks of y
 * only whether it is above zero. So forward may write that as a bit per number (tide_op_desc.signs), and y need not stay.
 *
 * Bits are made of flags, a byte per number, which compilers turn into vector code; eight flags are one product. */
#include "device/cpu/bf16.h"
#include "device/cpu/view.h"
#include "device/cpu/wide.h"

/* ---- numbers ---- */

/* Written so that NaN comes through: a diverging run should look like one. */
TIDE__WIDE static void relu_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise *o = context;
    const float *x = o->a;
    float *y = o->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

TIDE__WIDE static void relu_backward_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise *o = context;
    const float *y = o->a, *dy = o->b;
    float *dx = o->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        float slope = dy[i]; /* read in any case: then there is no branch */
        dx[i] = y[i] > 0 ? slope : 0;
    }
}

/* bf16 is compared as it lies: 0x8000 is -0, from 0xff81 on it is NaN; 0x7f80 is infinity. */
TIDE__WIDE static void relu_bf16_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise_bf16 *o = context;
    const uint16_t *x = o->a;
    uint16_t *y = o->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) y[i] = x[i] > 0x8000 && x[i] <= 0xff80 ? 0 : x[i];
}

TIDE__WIDE static void relu_backward_bf16_range(const void *context, int64_t begin, int64_t end) {
    const tide__pointwise_bf16 *o = context;
    const uint16_t *y = o->a, *dy = o->b;
    uint16_t *dx = o->out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        uint16_t slope = dy[i];
        dx[i] = y[i] > 0 && y[i] <= 0x7f80 ? slope : 0;
    }
}

/* ---- flags: 1 for a number above zero ---- */

TIDE__WIDE static void flag_floats(const float *y, int64_t n, uint8_t *flag) {
    for (int64_t i = 0; i < n; i++) flag[i] = y[i] > 0;
}

TIDE__WIDE static void flag_bf16(const uint16_t *y, int64_t n, uint8_t *flag) {
    for (int64_t i = 0; i < n; i++) flag[i] = y[i] > 0 && y[i] <= 0x7f80;
}

TIDE__WIDE static void pass_floats(const uint8_t *flag, const float *dy, int64_t n, float *dx) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float slope = dy[i];
        dx[i] = flag[i] ? slope : 0;
    }
}

TIDE__WIDE static void pass_bf16(const uint8_t *flag, const uint16_t *dy, int64_t n, uint16_t *dx) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        uint16_t slope = dy[i];
        dx[i] = flag[i] ? slope : 0;
    }
}

/* Flag i of eight goes to bit i: of the product's summands only these reach the highest byte. */
static uint8_t bits_of(const uint8_t *flag) {
    uint64_t word;
    memcpy(&word, flag, sizeof word);
    return (uint8_t)(word * UINT64_C(0x0102040810204080) >> 56);
}

/* And back: every byte of a word keeps its bit, which then moves to its lowest place. */
static void flags_of(uint8_t bits, uint8_t *flag) {
    const uint64_t kept = bits * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    const uint64_t word = (kept + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
    memcpy(flag, &word, sizeof word);
}

/* ---- ranges with signs; they begin at a multiple of 8 ---- */

typedef struct with_signs {
    tide__values from, to;
    uint8_t *signs;
} with_signs;

static void relu_signs_range(const void *context, int64_t begin, int64_t end) {
    const with_signs *o = context;
    uint8_t flag[TIDE__TILE_FLOATS];
    for (int64_t at = begin; at < end; at += TIDE__TILE_FLOATS) {
        const int64_t n = end - at < TIDE__TILE_FLOATS ? end - at : TIDE__TILE_FLOATS;
        const void *x = tide__values_from(o->from, at).data;
        void *y = tide__values_from(o->to, at).data;
        if (o->to.is_bf16) {
            relu_bf16_range(&(tide__pointwise_bf16){x, NULL, y}, 0, n);
            flag_bf16(y, n, flag);
        } else {
            relu_range(&(tide__pointwise){x, NULL, y}, 0, n);
            flag_floats(y, n, flag);
        }
        if (n % 8) memset(flag + n, 0, (size_t)(8 - n % 8));
        for (int64_t i = 0; i < n; i += 8) o->signs[(at + i) / 8] = bits_of(flag + i);
    }
}

static void pass_signs_range(const void *context, int64_t begin, int64_t end) {
    const with_signs *o = context;
    uint8_t flag[TIDE__TILE_FLOATS];
    for (int64_t at = begin; at < end; at += TIDE__TILE_FLOATS) {
        const int64_t n = end - at < TIDE__TILE_FLOATS ? end - at : TIDE__TILE_FLOATS;
        const void *dy = tide__values_from(o->from, at).data;
        void *dx = tide__values_from(o->to, at).data;
        for (int64_t i = 0; i < n; i += 8) flags_of(o->signs[(at + i) / 8], flag + i);
        if (o->to.is_bf16)
            pass_bf16(flag, dy, n, dx);
        else
            pass_floats(flag, dy, n, dx);
    }
}

/* ---- kernels ---- */

static int64_t stored_numbers(const tide__cpu_kernel *k) {
    const tide__view v = tide__view_of(&k->desc.x);
    return tide__view_size(&v);
}

static tide_status run_forward(const tide__cpu_kernel *k, const tide__call *call) {
    tide__run_pointwise(k, call, relu_range, relu_bf16_range);
    return TIDE_OK;
}

static tide_status run_backward(const tide__cpu_kernel *k, const tide__call *call) {
    tide__run_pointwise(k, call, relu_backward_range, relu_backward_bf16_range);
    return TIDE_OK;
}

static tide_status run_forward_signs(const tide__cpu_kernel *k, const tide__call *call) {
    const with_signs o = {tide__values_of(k, call, 0), tide__values_of(k, call, 1), tide__at(call, 2)};
    tide__for_ranges(stored_numbers(k), relu_signs_range, &o);
    return TIDE_OK;
}

static tide_status run_backward_signs(const tide__cpu_kernel *k, const tide__call *call) {
    const with_signs o = {tide__values_of(k, call, 1), tide__values_of(k, call, 2), tide__at(call, 0)};
    tide__for_ranges(stored_numbers(k), pass_signs_range, &o);
    return TIDE_OK;
}

static tide_status add_signs(tide__cpu_kernel *k, tide__access access) {
    return tide__add_vector(k, access, (stored_numbers(k) + 7) / 8, dnnl_u8);
}

tide_status tide__build_relu(tide__cpu_kernel *k, const tide_op_desc *source) {
    const tide_shape *x = &source->x;
    if (source->kind == TIDE_OP_RELU_FWD) {
        k->run = source->signs ? run_forward_signs : run_forward;
        TIDE_TRY(tide__add_activation(k, TIDE__READ, *x));
        TIDE_TRY(tide__add_activation(k, TIDE__WRITE, *x));
        return source->signs ? add_signs(k, TIDE__WRITE) : TIDE_OK;
    }
    k->run = source->signs ? run_backward_signs : run_backward;
    TIDE_TRY(source->signs ? add_signs(k, TIDE__READ) : tide__add_activation(k, TIDE__READ, *x));
    TIDE_TRY(tide__add_activation(k, TIDE__READ, *x));
    return tide__add_activation(k, TIDE__WRITE, *x);
}
