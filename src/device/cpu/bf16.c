/* See bf16.h. */
#include "device/cpu/bf16.h"

#include "device/cpu/wide.h"

/* ---- numbers ---- */

TIDE__WIDE void tide__bf16_widen(const uint16_t *from, int64_t n, float *to) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] = tide__float_of(from[i]);
}

TIDE__WIDE void tide__bf16_round(const float *from, int64_t n, uint16_t *to) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] = tide__bf16_of(from[i]);
}

typedef struct conversion {
    const void *from;
    void *to;
} conversion;

static void widen_range(const void *context, int64_t begin, int64_t end) {
    const conversion *c = context;
    tide__bf16_widen((const uint16_t *)c->from + begin, end - begin, (float *)c->to + begin);
}

static void round_range(const void *context, int64_t begin, int64_t end) {
    const conversion *c = context;
    tide__bf16_round((const float *)c->from + begin, end - begin, (uint16_t *)c->to + begin);
}

void tide__bf16_widen_all(const uint16_t *from, int64_t n, float *to) {
    tide__for_ranges(n, widen_range, &(conversion){from, to});
}

void tide__bf16_round_all(const float *from, int64_t n, uint16_t *to) {
    tide__for_ranges(n, round_range, &(conversion){from, to});
}

/* ---- stored values ---- */

tide__values tide__values_of(const tide__cpu_kernel *k, const tide__call *call, uint32_t operand) {
    return (tide__values){tide__at(call, operand), k->operands.data[operand].type == dnnl_bf16};
}

const float *tide__values_read(tide__values v, int64_t n, float *tile) {
    if (!v.is_bf16) return (const float *)(const void *)v.data;
    tide__bf16_widen((const uint16_t *)(const void *)v.data, n, tile);
    return tile;
}

void tide__values_stored(tide__values v, int64_t n, const float *tile) {
    if (v.is_bf16) tide__bf16_round(tile, n, (uint16_t *)(void *)v.data);
}

/* ---- ops on single numbers ---- */

typedef struct tiles {
    tide__values a, b, out;
    tide__range_fn fn;
} tiles;

static void run_tiles(const void *context, int64_t begin, int64_t end) {
    const tiles *t = context;
    float a[TIDE__TILE_FLOATS], b[TIDE__TILE_FLOATS];
    for (int64_t at = begin; at < end; at += TIDE__TILE_FLOATS) {
        const int64_t n = tide__tile_of(t->a, end - at);
        tide__pointwise o = {tide__values_read(tide__values_from(t->a, at), n, a), NULL, a};
        if (t->b.data) o.b = tide__values_read(tide__values_from(t->b, at), n, b);
        t->fn(&o, 0, n);
        tide__values_stored(tide__values_from(t->out, at), n, a);
    }
}

void tide__run_pointwise(const tide__cpu_kernel *k, const tide__call *call, tide__range_fn fn,
                         tide__range_fn short_fn) {
    const bool two = k->n_reads > 1, is_bf16 = k->operands.data[0].type == dnnl_bf16;
    const int64_t n = (int64_t)(k->operands.data[0].size_bytes / (is_bf16 ? 2 : 4));
    if (!is_bf16) {
        const tide__pointwise o = {tide__floats(call, 0), two ? tide__floats(call, 1) : NULL,
                                   tide__floats(call, k->n_reads)};
        tide__for_ranges(n, fn, &o);
        return;
    }
    if (short_fn) {
        const tide__pointwise_bf16 o = {tide__at(call, 0), two ? tide__at(call, 1) : NULL, tide__at(call, k->n_reads)};
        tide__for_ranges(n, short_fn, &o);
        return;
    }
    tiles t = {.a = tide__values_of(k, call, 0), .out = tide__values_of(k, call, k->n_reads), .fn = fn};
    if (two) t.b = tide__values_of(k, call, 1);
    tide__for_ranges(n, run_tiles, &t);
}
