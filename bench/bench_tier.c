/* The disk tier: bytes per second each way, what they cost in CPU time, and how much a computation beside them suffers.
 *
 *      bench_tier [FOLDER [MIB]]
 *
 * FOLDER: where the spill file goes [$TMPDIR, else /tmp]; MIB: its size [1024]. Rates are of the real clock and need an
 * idle machine; CPU seconds are of this whole process. The computation is a loop of multiply-adds on all cores, without
 * and with transfers both ways at full speed; of several rounds the fastest counts. */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "common.h"
#include "tier/disk_io.h"
#include "tier/tier.h"

#define MIB (UINT64_C(1) << 20)
enum { BLOCK = 4096, ROUNDS = 3 };

/* ---- rates ---- */

typedef struct setting {
    const char *name;
    const tide__disk_engine *engines[2];
    bool checksums;
} setting;

typedef struct buffer {
    char *bytes;
    uint64_t size;
} buffer;

static buffer new_buffer(uint64_t size) {
    char *bytes = mmap(NULL, size + 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) exit(1);
    bytes += 2 * MIB - (uintptr_t)bytes % (2 * MIB);
    madvise(bytes, size, MADV_HUGEPAGE);
    memset(bytes, 1, size);
    return (buffer){bytes, size};
}

static tide__tier *open_tier(const setting *s, const char *folder, uint64_t capacity) {
    tide__tier *tier;
    const tide__tier_options o = {.kind = TIDE_TIER_DISK,
                                  .capacity_bytes = capacity,
                                  .block_bytes = BLOCK,
                                  .path = folder,
                                  .checksums = s->checksums,
                                  .engines = s->engines};
    if (tide__tier_open(&o, &tier) == TIDE_OK) return tier;
    printf("%-22s %s\n", s->name, tide_last_error());
    return NULL;
}

/* The whole file, as tensors of `piece` bytes, from or to one buffer. */
static void move_all(tide__tier *tier, bool out, uint64_t capacity, uint64_t piece, buffer b) {
    for (uint64_t at = 0; at + piece <= capacity; at += piece) {
        tide__tier_slot slot = {tier, at};
        char *data = b.bytes + at % (b.size - piece + 1) / BLOCK * BLOCK;
        require(out ? tide__tier_save(&slot, 0, data, piece) : tide__tier_load(&slot, 0, data, piece));
    }
}

static void print_rate(tide__tier *tier, const setting *s, bool out, uint64_t capacity, uint64_t piece, buffer b) {
    double best = 0, cpu = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = tide__now_ns();
        double cpu_start = cpu_seconds();
        move_all(tier, out, capacity, piece, b);
        double rate = (double)capacity / (double)(tide__now_ns() - start);
        if (rate > best) {
            best = rate;
            cpu = (cpu_seconds() - cpu_start) * 1e9 / (double)capacity;
        }
    }
    printf("%-22s %-6s %-6s %6.0f MiB %8.2f GB/s %8.3f CPU s/GB\n", s->name,
           tide__tier_get_stats(tier).direct ? "direct" : "cached", out ? "write" : "read", (double)piece / (double)MIB,
           best, cpu);
}

static void measure_rates(const setting *s, const char *folder, uint64_t capacity, buffer b) {
    static const uint64_t pieces[] = {64 * MIB, 8 * MIB, 1 * MIB};
    tide__tier *tier = open_tier(s, folder, capacity);
    if (!tier) return;
    move_all(tier, true, capacity, 64 * MIB, b); /* the first write to a reserved block costs more */
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        print_rate(tier, s, true, capacity, pieces[i], b);
        print_rate(tier, s, false, capacity, pieces[i], b);
    }
    tide__tier_destroy(tier);
}

/* ---- beside a computation ---- */

typedef struct mover {
    tide__tier *tier;
    bool out;
    buffer buffer;
    uint64_t from, size;
    atomic_bool *stop;
    uint64_t moved;
} mover;

static void *move_until_told(void *context) {
    mover *m = context;
    while (!atomic_load(m->stop)) {
        tide__tier_slot slot = {m->tier, m->from + m->moved % m->size};
        require(m->out ? tide__tier_save(&slot, 0, m->buffer.bytes, 64 * MIB)
                       : tide__tier_load(&slot, 0, m->buffer.bytes, 64 * MIB));
        m->moved += 64 * MIB;
    }
    return NULL;
}

static volatile float sink;

/* ns of a fixed amount of arithmetic in registers, on all cores, with a barrier every few microseconds, as kernels
 * have them. */
static uint64_t compute(void) {
    uint64_t start = tide__now_ns();
    float total = 0;
#pragma omp parallel reduction(+ : total)
    for (int round = 0; round < 400; round++) {
        float x[32];
        for (int k = 0; k < 32; k++) x[k] = (float)k;
        for (int i = 0; i < 40000; i++)
            for (int k = 0; k < 32; k++) x[k] = x[k] * 0.999f + 0.5f;
        for (int k = 0; k < 32; k++) total += x[k];
#pragma omp barrier
    }
    sink = total;
    return tide__now_ns() - start;
}

static uint64_t best_compute(void) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        uint64_t ns = compute();
        if (ns < best) best = ns;
    }
    return best;
}

static void measure_beside(const setting *s, const char *folder, uint64_t capacity) {
    atomic_bool stop = false;
    tide__tier *tier = open_tier(s, folder, capacity);
    if (!tier) return;
    uint64_t half = capacity / 2 / (64 * MIB) * (64 * MIB);
    mover movers[2];
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) movers[i] = (mover){tier, i == 1, new_buffer(64 * MIB), i ? half : 0, half, &stop, 0};
    move_all(tier, true, capacity, 64 * MIB, movers[0].buffer); /* reading what was never written costs no disk */
    uint64_t alone = best_compute(), start = tide__now_ns();
    for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, move_until_told, &movers[i]);
    uint64_t beside = best_compute(), spent = tide__now_ns() - start;
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    printf("%-22s compute alone %7.1f ms, beside %7.1f ms: %+5.1f %%, at %.2f GB/s read and %.2f GB/s written\n",
           s->name, (double)alone * 1e-6, (double)beside * 1e-6, 100 * ((double)beside / (double)alone - 1),
           (double)movers[0].moved / (double)spent, (double)movers[1].moved / (double)spent);
    for (int i = 0; i < 2; i++) munmap(movers[i].buffer.bytes, movers[i].buffer.size);
    tide__tier_destroy(tier);
}

int main(int argc, char **argv) {
    const setting settings[] = {{"io_uring", {&tide__disk_uring, NULL}, false},
                                {"io_uring, checksums", {&tide__disk_uring, NULL}, true},
                                {"threads", {&tide__disk_threads, NULL}, false}};
    const char *folder = argc > 1 ? argv[1] : NULL;
    uint64_t capacity = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1024) * MIB;
    if (capacity < 128 * MIB || capacity > UINT64_C(1) << 50) {
        fprintf(stderr, "usage: bench_tier [FOLDER [MIB]], at least 128 MiB\n");
        return 2;
    }
    buffer b = new_buffer(256 * MIB);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) measure_rates(&settings[i], folder, capacity, b);
    munmap(b.bytes, b.size);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) measure_beside(&settings[i], folder, capacity);
    return 0;
}
