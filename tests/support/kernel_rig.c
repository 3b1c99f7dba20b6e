/* See kernel_rig.h. */
#include "support/kernel_rig.h"

#include <math.h>
#include <time.h>

#include "base/hash.h"
#include "base/rng.h"
#include "support/test.h"

#define ARENA_BYTES (UINT64_C(64) << 20)
#define GUARD_BYTES 128
#define GUARD 0xcd

static void set(const char *name, const char *value) {
    if (value) assert_int_equal(setenv(name, value, 1), 0);
}

void rig_open(kernel_rig *rig, const rig_config *config) {
    tide_device_options options;
    tide_device_info info;
    tide_device_options_init(&options);
    options.threads = config->threads;
    set("TIDE_OPENCL_PRODUCTS", config->products);
    set("TIDE_OPENCL_LANES", config->lanes);
    assert_ok(tide_device_open(config->device, &options, &rig->device));
    unsetenv("TIDE_OPENCL_PRODUCTS");
    unsetenv("TIDE_OPENCL_LANES");
    assert_ok(tide_device_get_info(rig->device, &info));
    rig->align = info.align_bytes;
    assert_ok(tide_queue_create(rig->device, TIDE_QUEUE_COMPUTE, &rig->queue));
    assert_ok(tide_arena_create(rig->device, ARENA_BYTES, &rig->arena));
    rig->bytes = tide_arena_host(rig->arena);
    rig->is_mirror = !rig->bytes;
    if (rig->is_mirror) rig->bytes = malloc(ARENA_BYTES);
    assert_non_null(rig->bytes);
}

void rig_close(kernel_rig *rig) {
    tide_queue_destroy(rig->queue);
    tide_arena_destroy(rig->arena);
    tide_device_close(rig->device);
    if (rig->is_mirror) free(rig->bytes);
}

static tide_status from_mirror(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy(data, (const unsigned char *)context + position, size_bytes);
    return TIDE_OK;
}

static tide_status to_mirror(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy((unsigned char *)context + position, data, size_bytes);
    return TIDE_OK;
}

void rig_put(kernel_rig *rig, uint64_t from, uint64_t to) {
    if (!rig->is_mirror) return;
    assert_ok(
        tide_copy_in(rig->queue, rig->arena, from, to - from, (tide_io){from_mirror, rig->bytes + from, TIDE_NONE}));
    assert_ok(tide_queue_sync(rig->queue));
}

void rig_get(kernel_rig *rig, uint64_t from, uint64_t to) {
    if (!rig->is_mirror) return;
    assert_ok(
        tide_copy_out(rig->queue, rig->arena, from, to - from, (tide_io){to_mirror, rig->bytes + from, TIDE_NONE}));
    assert_ok(tide_queue_sync(rig->queue));
}

/* ---- inputs ---- */

static double *new_doubles(uint64_t n) {
    double *p = calloc(n, sizeof *p);
    assert_non_null(p);
    return p;
}

/* Reads of `to` (from..) become the writes of another op on the given reads: consistent statistics, indices, masks. */
static void derive(rig_case *c, tide_op_kind kind, const int *reads, const int *to) {
    tide_op_desc d = c->desc;
    double *v[REF_MAX_OPERANDS];
    uint64_t total = 0;
    d.kind = kind;
    ref_spec s = ref_spec_of(&d);
    for (uint32_t i = 0; i < s.n_reads + s.n_writes; i++) total += s.elements[i];
    double *all = new_doubles(total + 1), *next = all;
    for (uint32_t i = 0; i < s.n_reads; next += s.elements[i++]) {
        v[i] = next;
        for (uint64_t k = 0; k < s.elements[i]; k++)
            next[k] = reads[i] >= 0 ? (double)c->plain[reads[i]][k] : 1 - 2 * (double)tide__random_unit(99, i, k);
    }
    for (uint32_t i = s.n_reads; i < s.n_reads + s.n_writes; next += s.elements[i++]) v[i] = next;
    ref_run(&d, &c->args, v);
    next = all;
    for (uint32_t i = 0; i < s.n_reads; i++) next += s.elements[i];
    for (uint32_t i = 0; i < s.n_writes; next += s.elements[s.n_reads + i++])
        for (uint64_t k = 0; to[i] >= 0 && k < s.elements[s.n_reads + i]; k++) c->plain[to[i]][k] = (float)next[k];
    free(all);
}

static void make_positive(rig_case *c, uint32_t operand) {
    for (uint64_t k = 0; k < c->spec.elements[operand]; k++) c->plain[operand][k] = fabsf(c->plain[operand][k]) + 0.1f;
}

static void make_labels(rig_case *c, uint32_t operand) {
    for (uint64_t i = 0; i < c->spec.elements[operand]; i++)
        c->plain[operand][i] = (float)(i * 7 % (uint64_t)c->desc.x.c);
}

/* Of the head of a language model: rows of any of its classes. */
static void make_classes(rig_case *c, uint32_t operand) {
    for (uint64_t i = 0; i < c->spec.elements[operand]; i++)
        c->plain[operand][i] = (float)(i * 7 % (uint64_t)c->desc.y.c);
}

static void make_tokens(rig_case *c) {
    for (uint64_t i = 0; i < c->spec.elements[0]; i++) c->plain[0][i] = (float)(i * 5 % (uint64_t)c->desc.vocabulary);
}

/* Of (N, 4 H): what sigmoid and tanh (the third quarter) can give. */
static void make_gates(rig_case *c, uint32_t operand) {
    int64_t quarter = c->desc.y.c;
    for (int64_t i = 0; i < (int64_t)c->spec.elements[operand]; i++)
        if (i / quarter % 4 != 2) c->plain[operand][i] = fabsf(c->plain[operand][i]);
}

static void make_sense(rig_case *c) {
    switch (c->desc.kind) {
    case TIDE_OP_BN_STATS:
        make_positive(c, 1);
        make_positive(c, 3);
        break;
    case TIDE_OP_BN_INFER: make_positive(c, 4); break;
    case TIDE_OP_BN_BWD: derive(c, TIDE_OP_BN_FWD, (const int[]){0, 2, -1}, (const int[]){-1, 3, 4}); break;
    case TIDE_OP_RELU_BWD: derive(c, TIDE_OP_RELU_FWD, (const int[]){0}, (const int[]){0}); break;
    case TIDE_OP_MAXPOOL_BWD: derive(c, TIDE_OP_MAXPOOL_FWD, (const int[]){-1}, (const int[]){-1, 0}); break;
    case TIDE_OP_SOFTMAX_LOSS_FWD: make_labels(c, 1); break;
    case TIDE_OP_SOFTMAX_LOSS_BWD:
        make_labels(c, 1);
        derive(c, TIDE_OP_SOFTMAX_LOSS_FWD, (const int[]){0, 1}, (const int[]){0, -1});
        break;
    case TIDE_OP_LRN_BWD: derive(c, TIDE_OP_LRN_FWD, (const int[]){0}, (const int[]){1}); break;
    case TIDE_OP_ADAM:
    case TIDE_OP_ADAMW: make_positive(c, 2); break;
    case TIDE_OP_LAYERNORM_BWD:
        derive(c, TIDE_OP_LAYERNORM_FWD, (const int[]){0, 2, -1}, (const int[]){-1, 3, 4});
        break;
    case TIDE_OP_EMBEDDING_FWD:
    case TIDE_OP_EMBEDDING_BWD: make_tokens(c); break;
    case TIDE_OP_ATTENTION_BWD: derive(c, TIDE_OP_ATTENTION_FWD, (const int[]){0}, (const int[]){1, 2}); break;
    case TIDE_OP_HEAD_LOSS:
    case TIDE_OP_HEAD_SCORE: make_classes(c, 2); break;
    case TIDE_OP_LSTM_BWD_GATES: make_gates(c, 0); break;
    default: break;
    }
    if (c->desc.clipped) make_positive(c, c->spec.n_reads - 1);
}

void rig_case_init(rig_case *c, const tide_op_desc *desc, uint64_t seed) {
    *c = (rig_case){.desc = *desc, .spec = ref_spec_of(desc)};
    c->args = (tide_step_args){.seed = seed, .step = 3, .counter = 11, .learning_rate = 0.05f};
    for (uint32_t i = 0; i < c->spec.n_reads + c->spec.n_writes; i++) {
        c->plain[i] = calloc(c->spec.elements[i], sizeof(float));
        assert_non_null(c->plain[i]);
        for (uint64_t k = 0; k < c->spec.elements[i]; k++) c->plain[i][k] = 1 - 2 * tide__random_unit(seed, i, k);
    }
    make_sense(c);
}

void rig_case_deinit(rig_case *c) {
    for (uint32_t i = 0; i < c->spec.n_reads + c->spec.n_writes; i++) free(c->plain[i]);
}

/* ---- running ---- */

typedef struct placement {
    uint32_t n_operands, n_offsets;
    uint64_t offset[REF_MAX_OPERANDS + 1], size[REF_MAX_OPERANDS + 1], end;
} placement;

static uint64_t operand_size(const tide_kernel_info *info, const ref_spec *spec, uint32_t i) {
    uint32_t reads = info->n_reads;
    if (i >= reads) return info->write[i - reads].size_bytes;
    return reads <= TIDE_KERNEL_MAX_OPERANDS ? info->read[i].size_bytes : spec->elements[i] * sizeof(float);
}

static bool shares(const rig_case *c, const rig_options *o, uint32_t write, uint32_t *read) {
    bool first = write == 0 && o->in_place_read >= 0;
    *read = first ? (uint32_t)o->in_place_read : write;
    return first || (o->all_in_place && write < c->spec.n_reads);
}

static placement place(const kernel_rig *rig, const rig_case *c, const tide_kernel_info *info, const rig_options *o) {
    placement p = {.n_operands = info->n_reads + info->n_writes, .end = o->shift + 4096};
    uint64_t workspace_bytes = info->variant[o->variant].workspace_bytes;
    p.n_offsets = p.n_operands + (workspace_bytes > 0);
    for (uint32_t i = 0; i < p.n_offsets; i++) {
        uint32_t read;
        p.size[i] = i < p.n_operands ? operand_size(info, &c->spec, i) : workspace_bytes;
        if (i >= info->n_reads && i < p.n_operands && shares(c, o, i - info->n_reads, &read)) {
            assert_true(p.size[i] == p.size[read]);
            p.offset[i] = p.offset[read];
            continue;
        }
        p.offset[i] = p.end;
        p.end = (p.end + p.size[i] + GUARD_BYTES + rig->align - 1) & ~(rig->align - 1);
    }
    assert_true(p.end <= ARENA_BYTES);
    return p;
}

/* Every byte from the shift to the end that belongs to no operand. */
static void check_guards(const unsigned char *host, const placement *p, uint64_t shift, const tide_op_desc *d) {
    unsigned char *used = calloc(1, p->end - shift);
    for (uint32_t i = 0; i < p->n_offsets; i++) memset(used + (p->offset[i] - shift), 1, p->size[i]);
    for (uint64_t b = shift; b < p->end; b++)
        if (!used[b - shift] && host[b] != GUARD)
            fail_msg("%s, x (%lld, %lld, %lld, %lld) wrote outside its operands, at %llu", tide_op_kind_name(d->kind),
                     (long long)d->x.n, (long long)d->x.c, (long long)d->x.h, (long long)d->x.w, (unsigned long long)b);
    free(used);
}

static bool is_overwritten(const placement *p, uint32_t n_reads, uint32_t read) {
    for (uint32_t i = n_reads; i < p->n_operands; i++)
        if (p->offset[i] == p->offset[read]) return true;
    return false;
}

/* Packing what was unpacked must give the stored bytes again: then the padding is zero. */
static void check_padding(const tide_kernel *kernel, const rig_case *c, const unsigned char *host, const placement *p,
                          uint32_t i) {
    unsigned char *again = malloc(p->size[i]);
    assert_ok(tide_operand_pack(kernel, i, c->plain[i], again));
    if (memcmp(again, host + p->offset[i], p->size[i]) != 0)
        fail_msg("%s: operand %u is not what it unpacks to: padding is not zero", tide_op_kind_name(c->desc.kind), i);
    free(again);
}

static uint64_t collect(const tide_kernel *kernel, rig_case *c, const unsigned char *host, const placement *p) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < p->n_operands; i++) {
        if (i >= c->spec.n_reads) {
            assert_ok(tide_operand_unpack(kernel, i, host + p->offset[i], c->plain[i]));
            hash = tide__hash_bytes(hash, host + p->offset[i], p->size[i]);
        }
        if (i >= c->spec.n_reads || !is_overwritten(p, c->spec.n_reads, i)) check_padding(kernel, c, host, p, i);
    }
    return hash;
}

uint32_t rig_variants(kernel_rig *rig, const rig_case *c) {
    tide_kernel *kernel = NULL;
    tide_kernel_info info;
    assert_ok(tide_kernel_create(rig->device, &c->desc, &kernel));
    assert_ok(tide_kernel_get_info(kernel, &info));
    tide_kernel_destroy(kernel);
    return info.n_variants;
}

uint64_t rig_run(kernel_rig *rig, rig_case *c, const rig_options *options) {
    tide_kernel *kernel = NULL;
    tide_kernel_info info;
    unsigned char *host = rig->bytes;
    assert_ok(tide_kernel_create(rig->device, &c->desc, &kernel));
    assert_ok(tide_kernel_get_info(kernel, &info));
    assert_int_equal(info.n_reads, c->spec.n_reads);
    assert_int_equal(info.n_writes, c->spec.n_writes);
    placement p = place(rig, c, &info, options);
    memset(host + options->shift, GUARD, p.end - options->shift);
    for (uint32_t i = c->spec.n_reads; i < p.n_offsets; i++) memset(host + p.offset[i], 0xff, p.size[i]); /* NaN */
    for (uint32_t i = 0; i < c->spec.n_reads; i++)
        assert_ok(tide_operand_pack(kernel, i, c->plain[i], host + p.offset[i]));
    rig_put(rig, options->shift, p.end);
    assert_ok(tide_kernel_enqueue(kernel, options->variant, rig->queue, rig->arena, p.offset, p.n_offsets, &c->args));
    assert_ok(tide_queue_sync(rig->queue));
    rig_get(rig, options->shift, p.end);
    check_guards(host, &p, options->shift, &c->desc);
    uint64_t hash = collect(kernel, c, host, &p);
    tide_kernel_destroy(kernel);
    return hash;
}

/* ---- timing ---- */

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double rig_time(kernel_rig *rig, const rig_case *c, uint32_t variant, uint64_t *bytes) {
    enum { RUNS = 6 }; /* the first builds what is built late */
    tide_kernel *kernel = NULL;
    tide_kernel_info info;
    const clockid_t clock = rig->is_mirror ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    double best = 1e9;
    assert_ok(tide_kernel_create(rig->device, &c->desc, &kernel));
    assert_ok(tide_kernel_get_info(kernel, &info));
    placement p = place(rig, c, &info, &(rig_options){.in_place_read = -1, .variant = variant});
    for (uint32_t i = 0; i < c->spec.n_reads; i++)
        assert_ok(tide_operand_pack(kernel, i, c->plain[i], rig->bytes + p.offset[i]));
    rig_put(rig, 0, p.end);
    for (int i = 0; i < RUNS; i++) {
        const double begin = seconds(clock);
        assert_ok(tide_kernel_enqueue(kernel, variant, rig->queue, rig->arena, p.offset, p.n_offsets, &c->args));
        assert_ok(tide_queue_sync(rig->queue));
        if (i > 0) best = fmin(best, seconds(clock) - begin);
    }
    tide_kernel_destroy(kernel);
    *bytes = 0;
    for (uint32_t i = 0; i < p.n_operands; i++) *bytes += p.size[i];
    return best;
}

/* ---- comparing ---- */

static void compare_operand(const rig_case *c, uint32_t i, const double *expected) {
    double largest = 0;
    for (uint64_t k = 0; k < c->spec.elements[i]; k++) largest = fmax(largest, fabs(expected[k]));
    for (uint64_t k = 0; k < c->spec.elements[i]; k++) {
        double got = (double)c->plain[i][k], want = expected[k];
        if (fabs(got - want) <= 1e-4 * (fabs(want) + 0.1 * largest)) continue; /* false for NaN */
        fail_msg("%s: x (%lld, %lld, %lld, %lld), operand %u, element %llu: %.9g, expected %.9g",
                 tide_op_kind_name(c->desc.kind), (long long)c->desc.x.n, (long long)c->desc.x.c,
                 (long long)c->desc.x.h, (long long)c->desc.x.w, i, (unsigned long long)k, got, want);
    }
}

void rig_compare(const rig_case *c) {
    double *v[REF_MAX_OPERANDS] = {0};
    uint32_t n = c->spec.n_reads + c->spec.n_writes;
    for (uint32_t i = 0; i < n; i++) {
        v[i] = new_doubles(c->spec.elements[i]);
        for (uint64_t k = 0; i < c->spec.n_reads && k < c->spec.elements[i]; k++) v[i][k] = (double)c->plain[i][k];
    }
    ref_run(&c->desc, &c->args, v);
    for (uint32_t i = c->spec.n_reads; i < n; i++) compare_operand(c, i, v[i]);
    for (uint32_t i = 0; i < n; i++) free(v[i]);
}
