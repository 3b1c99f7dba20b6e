/* Attention: processor time and memory of one forward and one backward by the length of the samples.
 *
 *      bench_attention [DEVICE [LONGEST]]
 *
 * DEVICE: [cpu]; LONGEST: samples double from 256 tokens to this many [4096]. 12 heads of 64, as GPT-2 small has them; one
 * sample from 2048 tokens on, below as many as make 2048. Time is of the whole process, the fastest of some rounds; "pair"
 * divides it by the pairs of a query and a key it sees. Memory is what the two ops read, write and work in, beside what
 * the untiled form would keep: a float for every pair of tokens and head. */
#include <stdio.h>
#include <stdlib.h>

#include <tidemark/device.h>

#include "common.h"

enum { ROUNDS = 3, HEADS = 12, HEAD = 64, WIDTH = HEADS * HEAD, OPERANDS = 8 };
#define MIB (1024.0 * 1024.0)

/* An op whose operands lie one after the other from `next` on, but for those that it shares. */
typedef struct op {
    tide_kernel *kernel;
    uint64_t offsets[OPERANDS];
    uint32_t n;
} op;

static uint64_t place(uint64_t *next, uint64_t bytes) {
    const uint64_t at = *next;
    *next = (at + bytes + 4095) & ~UINT64_C(4095);
    return at;
}

/* shared: UINT64_MAX where an operand is new. */
static op make_op(tide_device *device, tide_op_desc desc, const uint64_t *shared, uint64_t *next) {
    op o = {.n = 0};
    tide_kernel_info info;
    require(tide_kernel_create(device, &desc, &o.kernel));
    require(tide_kernel_get_info(o.kernel, &info));
    for (uint32_t i = 0; i < info.n_reads + info.n_writes; i++) {
        const uint64_t bytes = i < info.n_reads ? info.read[i].size_bytes : info.write[i - info.n_reads].size_bytes;
        o.offsets[o.n++] = shared[i] != UINT64_MAX ? shared[i] : place(next, bytes);
    }
    if (info.variant[0].workspace_bytes) o.offsets[o.n++] = place(next, info.variant[0].workspace_bytes);
    return o;
}

static double run(const op *o, tide_queue *queue, tide_arena *arena) {
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        const double start = cpu_seconds();
        require(tide_kernel_enqueue(o->kernel, 0, queue, arena, o->offsets, o->n, NULL));
        require(tide_queue_sync(queue));
        const double seconds = cpu_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

static void measure(tide_device *device, tide_queue *queue, int64_t context) {
    const uint64_t new[OPERANDS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const int64_t samples = context < 2048 ? 2048 / context : 1, rows = samples * context;
    tide_op_desc d = {.kind = TIDE_OP_ATTENTION_FWD, .x = {rows, 3 * WIDTH, 1, 1}, .y = {rows, WIDTH, 1, 1}};
    d.heads = HEADS;
    d.context = (int32_t)context;
    uint64_t bytes = 0;
    tide_arena *arena;
    const op forward = make_op(device, d, new, &bytes);
    const uint64_t known[OPERANDS] = {forward.offsets[0], forward.offsets[1], forward.offsets[2], UINT64_MAX,
                                      UINT64_MAX};
    d.kind = TIDE_OP_ATTENTION_BWD;
    const op backward = make_op(device, d, known, &bytes);
    require(tide_arena_create(device, bytes, &arena));
    const double there = run(&forward, queue, arena), back = run(&backward, queue, arena);
    const double squares = (double)samples * HEADS * (double)context * (double)context;
    printf("%7lld %8lld %10.1f %10.1f %9.2f %11.1f %12.1f\n", (long long)context, (long long)samples, 1e3 * there,
           1e3 * back, 1e9 * (there + back) / (squares / 2), (double)bytes / MIB, squares * 4 / MIB);
    tide_arena_destroy(arena);
    tide_kernel_destroy(forward.kernel);
    tide_kernel_destroy(backward.kernel);
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "cpu";
    const int64_t longest = argc > 2 ? atoll(argv[2]) : 4096;
    tide_device *device;
    tide_queue *queue;
    require(tide_device_open(name, NULL, &device));
    require(tide_queue_create(device, TIDE_QUEUE_COMPUTE, &queue));
    puts(" tokens  samples forward ms backward ms  pair ns  memory MiB  all pairs MiB");
    for (int64_t context = 256; context <= longest; context *= 2) measure(device, queue, context);
    tide_queue_destroy(queue);
    tide_device_close(device);
    return 0;
}
