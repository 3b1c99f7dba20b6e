/* A grid of groups, a group of lanes. Groups and lanes run one after the other, in an order drawn from the seed: between
 * two barriers every lane runs as far as it can, so what a kernel gets right only by luck of the order comes out wrong or
 * is found by a shadow. A lane that does something wrong ends the launch: its context has an error that stays. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

/* run is first: the functions that lanes call get back here from it. */
typedef struct grid {
    lane_run run;
    const operation *operation;
    lane *lanes;
    uint64_t *slots;
    unsigned char *locals;
    uint32_t n_lanes;
    uint64_t random;
    CUresult result;
    lane_range other; /* touched before the last: kernels have one for data and one for findings */
    jmp_buf failed;
} grid;

/* ---- limits ---- */

CUresult launch_check(function *f, const launch *l) {
    static const uint32_t most_groups[3] = {2147483647, 65535, 65535}, most_lanes[3] = {1024, 1024, 64};
    const ptx_kernel *k = f->kernel;
    uint64_t lanes = 1;
    for (uint32_t i = 0; i < 3; i++) {
        if (l->grid[i] == 0 || l->grid[i] > most_groups[i])
            return misuse(MISUSE_GRID, CUDA_ERROR_INVALID_VALUE, "%s: %u groups in direction %u", k->name, l->grid[i],
                          i);
        if (l->block[i] == 0 || l->block[i] > most_lanes[i])
            return misuse(MISUSE_BLOCK, CUDA_ERROR_INVALID_VALUE, "%s: %u lanes in direction %u", k->name, l->block[i],
                          i);
        if (k->required[0] && l->block[i] != k->required[i])
            return misuse(MISUSE_BLOCK, CUDA_ERROR_INVALID_VALUE, "%s: %u lanes in direction %u, not the required %u",
                          k->name, l->block[i], i, k->required[i]);
        lanes *= l->block[i];
    }
    if (lanes > 1024 || (k->max_lanes && lanes > k->max_lanes))
        return misuse(MISUSE_BLOCK, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "%s: %llu lanes are too many", k->name,
                      (unsigned long long)lanes);
    const uint32_t standard = k->shared_bytes < 49152 ? 49152 - k->shared_bytes : 0;
    const uint32_t most = f->max_dynamic_bytes > standard ? f->max_dynamic_bytes : standard;
    if (l->dynamic_bytes > most)
        return misuse(MISUSE_SHARED_SIZE, CUDA_ERROR_INVALID_VALUE, "%s: %u bytes of dynamic shared memory, of %u",
                      k->name, l->dynamic_bytes, most);
    return CUDA_SUCCESS;
}

/* ---- what lanes do wrong ---- */

static _Noreturn void stop(grid *g, CUresult result) {
    g->result = result;
    longjmp(g->failed, 1);
}

/* "multiply, line 12, group 0 1 0, lane 3" */
static const char *where(const lane *l, uint32_t line, char text[192]) {
    const grid *g = (const grid *)(const void *)l->run;
    snprintf(text, 192, "%s, line %u, group %u %u %u, lane %u", g->operation->name, line, l->run->ctaid[0],
             l->run->ctaid[1], l->run->ctaid[2], l->number);
    return text;
}

static void lane_fail(lane *l, int kind, uint64_t address, uint32_t bytes, uint32_t line) {
    grid *g = (grid *)(void *)l->run;
    char text[192];
    where(l, line, text);
    switch (kind) {
    case LANE_BAD_SHARED:
        misuse(MISUSE_KERNEL_SHARED, CUDA_SUCCESS, "%s: %u bytes at %llu of %u", text, bytes,
               (unsigned long long)address, l->run->shared_bytes);
        stop(g, CUDA_ERROR_ILLEGAL_ADDRESS);
    case LANE_BAD_LOCAL:
        misuse(MISUSE_KERNEL_LOCAL, CUDA_SUCCESS, "%s: %u bytes at %llu of %u", text, bytes,
               (unsigned long long)address, l->run->local_bytes);
        stop(g, CUDA_ERROR_ILLEGAL_ADDRESS);
    case LANE_UNALIGNED:
        misuse(MISUSE_KERNEL_ALIGNMENT, CUDA_SUCCESS, "%s: %u bytes at %#llx", text, bytes,
               (unsigned long long)address);
        stop(g, CUDA_ERROR_MISALIGNED_ADDRESS);
    case LANE_SHARED_RACE:
        misuse(MISUSE_KERNEL_SHARED_RACE, CUDA_SUCCESS, "%s and lane %u: no barrier between them", text, bytes);
        stop(g, CUDA_ERROR_LAUNCH_FAILED);
    default: misuse(MISUSE_KERNEL_TRAP, CUDA_SUCCESS, "%s", text); stop(g, CUDA_ERROR_LAUNCH_FAILED);
    }
}

/* Same group and another phase, or the same lane: a barrier or the program orders them. */
static bool in_conflict(uint64_t other, uint64_t me) {
    if (other == LANE_ATOMS || other == me) return false;
    return other >> 32 != me >> 32 || other >> 12 == me >> 12;
}

static _Noreturn void stop_global_race(lane *l, uint64_t address, uint32_t line) {
    char text[192];
    misuse(MISUSE_KERNEL_GLOBAL_RACE, CUDA_SUCCESS, "%s: another lane or group touches %#llx", where(l, line, text),
           (unsigned long long)address);
    stop((grid *)(void *)l->run, CUDA_ERROR_LAUNCH_FAILED);
}

/* Kernels of two streams may read the same bytes at a time, so cells are read and written as a whole. */
static uint64_t load(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static void store(uint64_t *p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }
static bool is_now(const uint32_t *p, uint32_t epoch) { return __atomic_load_n(p, __ATOMIC_RELAXED) == epoch; }

static void remember_reader(lane_cell *cell, uint64_t me, bool first) {
    const uint64_t last = load(&cell->reader);
    if (first || (last >> 32 == me >> 32 && last >> 12 != me >> 12))
        store(&cell->reader, me);
    else if (last >> 32 != me >> 32)
        store(&cell->reader, LANE_ALL);
    else if (last != me)
        store(&cell->reader, me | LANE_ANY);
}

/* Four bytes: races within the launch, then races with other operations. */
static void touch_cell(lane *l, lane_cell *cell, uint64_t address, lane_access access, bool whole, uint32_t line) {
    const grid *g = (const grid *)(const void *)l->run;
    const uint64_t me = l->run->group_agent | l->number;
    const uint32_t epoch = l->run->epoch;
    const bool mine = is_now(&cell->written, epoch), read = is_now(&cell->read[0], epoch);
    const bool plain = whole && access != LANE_ATOMIC;
    uint32_t other = 0;
    char text[192], who[64];
    if (plain && mine && in_conflict(load(&cell->writer), me)) stop_global_race(l, address, line);
    if (plain && access == LANE_WRITE && read && in_conflict(load(&cell->reader), me))
        stop_global_race(l, address, line);
    if (!clocks_touch_cell(g->operation, cell, access != LANE_READ, &other)) {
        misuse(MISUSE_RACE, CUDA_SUCCESS, "%s: %#llx is touched by %s, which is not ordered before it",
               where(l, line, text), (unsigned long long)address, clocks_describe(other, who));
        stop((grid *)(void *)l->run, CUDA_ERROR_LAUNCH_FAILED);
    }
    if (access == LANE_READ)
        remember_reader(cell, whole ? me : LANE_ATOMS, !read);
    else
        store(&cell->writer, plain ? me : LANE_ATOMS);
}

static bool holds(const lane_range *r, uint64_t address, uint32_t bytes) {
    return address - r->base < r->size && bytes <= r->size - (address - r->base);
}

/* The allocation of an address becomes the one that lanes look at first. */
static void find_range(lane *l, uint64_t address, uint32_t bytes, uint32_t line) {
    grid *g = (grid *)(void *)l->run;
    char text[192];
    const lane_range last = g->run.range;
    if (holds(&g->other, address, bytes)) {
        g->run.range = g->other, g->other = last;
        return;
    }
    pthread_mutex_lock(&the_standin.lock);
    const range *r = memory_find(address);
    const bool freed = r && r->freed, foreign = r && !owner_is(r->owner, g->operation->stream->owner.context);
    if (r && !freed && !foreign) g->run.range = (lane_range){r->base, r->size, r->bytes, r->cells}, g->other = last;
    pthread_mutex_unlock(&the_standin.lock);
    if (freed) {
        misuse(MISUSE_KERNEL_AFTER_FREE, CUDA_SUCCESS, "%s: %#llx", where(l, line, text), (unsigned long long)address);
        stop(g, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    if (!r || foreign || bytes > r->size - (address - r->base)) {
        misuse(MISUSE_KERNEL_BOUNDS, CUDA_SUCCESS, "%s: %u bytes at %#llx", where(l, line, text), bytes,
               (unsigned long long)address);
        stop(g, CUDA_ERROR_ILLEGAL_ADDRESS);
    }
}

static void *lane_touch(lane *l, uint64_t address, uint32_t bytes, lane_access access, uint32_t line) {
    const lane_range *r = &l->run->range;
    if (address & (bytes - 1)) lane_fail(l, LANE_UNALIGNED, address, bytes, line);
    if (!holds(r, address, bytes)) find_range(l, address, bytes, line);
    const uint64_t at = address - r->base;
    for (uint64_t i = at / 4; r->cells && i < (at + bytes + 3) / 4; i++)
        touch_cell(l, r->cells + i, r->base + 4 * i, access, bytes >= 4, line);
    return r->bytes + at;
}

/* ---- orders ---- */

/* i-th of n in an order of its own for every draw: steps that meet every number once. */
typedef struct order {
    uint64_t first, step, n;
} order;

static uint64_t common_divisor(uint64_t a, uint64_t b) { return b ? common_divisor(b, a % b) : a; }

static order draw_order(grid *g, uint64_t n) {
    order o = {.first = random_next(&g->random) % n, .step = 1 + random_next(&g->random) % n, .n = n};
    while (common_divisor(o.step, n) != 1) o.step++;
    return o;
}

static uint64_t nth(order o, uint64_t i) { return (o.first + i * (o.step % o.n)) % o.n; }

/* ---- groups ---- */

/* All lanes of a group must stop at the same barrier. */
static void check_barrier(grid *g, uint32_t n_waiting) {
    const lane *first = NULL;
    char text[192];
    for (uint32_t i = 0; i < g->n_lanes; i++) {
        const lane *l = &g->lanes[i];
        if (l->at == UINT32_MAX) continue;
        if (!first) first = l;
        if (l->barrier == first->barrier && n_waiting == g->n_lanes) continue;
        misuse(MISUSE_KERNEL_BARRIER, CUDA_SUCCESS, "%s: %u of %u lanes are at a barrier, and not all at the same",
               where(first, first->barrier, text), n_waiting, g->n_lanes);
        stop(g, CUDA_ERROR_LAUNCH_FAILED);
    }
}

/* From one barrier to the next; the number of lanes that wait there. */
static uint32_t run_phase(grid *g) {
    const order o = draw_order(g, g->n_lanes);
    uint32_t waiting = 0;
    g->run.phase++;
    for (uint32_t i = 0; i < g->n_lanes; i++) {
        lane *l = &g->lanes[nth(o, i)];
        if (l->at == UINT32_MAX) continue;
        if (g->operation->function->run(l) == LANE_AT_BARRIER)
            waiting++;
        else
            l->at = UINT32_MAX;
    }
    g->run.group_agent = (g->run.group_agent & ~UINT64_C(0xfffff000)) | ((g->run.group_agent + 0x1000) & 0xfffff000);
    return waiting;
}

static void run_group(grid *g, uint64_t number) {
    lane_run *x = &g->run;
    uint32_t waiting;
    x->ctaid[0] = (uint32_t)(number % x->nctaid[0]);
    x->ctaid[1] = (uint32_t)(number / x->nctaid[0] % x->nctaid[1]);
    x->ctaid[2] = (uint32_t)(number / x->nctaid[0] / x->nctaid[1]);
    x->group_agent = number << 32;
    memset(x->shared, 0xa5, x->shared_bytes);
    for (uint32_t i = 0; i < g->n_lanes; i++) g->lanes[i].at = 0;
    while ((waiting = run_phase(g)) > 0) check_barrier(g, waiting);
}

static uint32_t align16(uint32_t v) { return (v + 15) / 16 * 16; }

static void *zeros(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p) abort();
    return p;
}

static void open_lanes(grid *g, const launch *l, const function *f) {
    const uint32_t local_bytes = align16(f->kernel->local_bytes);
    g->n_lanes = l->block[0] * l->block[1] * l->block[2];
    g->lanes = zeros(g->n_lanes, sizeof *g->lanes);
    g->slots = zeros((size_t)g->n_lanes * f->slots, sizeof *g->slots);
    g->locals = zeros(g->n_lanes, local_bytes);
    for (uint32_t i = 0; i < g->n_lanes; i++)
        g->lanes[i] = (lane){.run = &g->run,
                             .number = i,
                             .slots = g->slots + (size_t)i * f->slots,
                             .local = g->locals + (size_t)i * local_bytes,
                             .tid = {i % l->block[0], i / l->block[0] % l->block[1], i / l->block[0] / l->block[1]}};
}

static void open_grid(grid *g, const operation *o) {
    const launch *l = &o->launch;
    const function *f = o->function;
    const uint32_t fixed = align16(f->kernel->shared_bytes);
    *g = (grid){.operation = o, .random = the_standin.settings.seed * 1000003 + o->clock};
    g->run = (lane_run){.parameters = l->parameters,
                        .epoch = clocks_epoch(o->stream->index, o->clock),
                        .dynamic_at = fixed,
                        .shared_bytes = l->dynamic_bytes ? fixed + l->dynamic_bytes : f->kernel->shared_bytes,
                        .local_bytes = f->kernel->local_bytes,
                        .touch = lane_touch,
                        .fail = lane_fail};
    memcpy(g->run.ntid, l->block, sizeof g->run.ntid);
    memcpy(g->run.nctaid, l->grid, sizeof g->run.nctaid);
    memcpy(g->run.globals, f->module->globals, sizeof g->run.globals);
    g->run.shared = zeros(1, g->run.shared_bytes);
    if (the_standin.settings.checks) g->run.shadow = zeros(g->run.shared_bytes, sizeof *g->run.shadow);
    open_lanes(g, l, f);
}

static void close_grid(grid *g) {
    free(g->run.shared);
    free(g->run.shadow);
    free(g->lanes);
    free(g->slots);
    free(g->locals);
}

CUresult launch_run(const operation *o) {
    char error[400] = "";
    if (!module_compile(o->function, error, sizeof error))
        return misuse(MISUSE_IMAGE, CUDA_ERROR_LAUNCH_FAILED, "%s", error);
    grid *g = zeros(1, sizeof *g);
    open_grid(g, o);
    if (setjmp(g->failed) == 0) {
        const uint64_t n = (uint64_t)o->launch.grid[0] * o->launch.grid[1] * o->launch.grid[2];
        const order groups = draw_order(g, n);
        for (uint64_t i = 0; i < n; i++) run_group(g, nth(groups, i));
    }
    const CUresult result = g->result;
    close_grid(g);
    free(g);
    return result;
}
