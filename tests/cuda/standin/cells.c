/* A cell of the shadow remembers the last write of four bytes and the last reads of up to three streams. An access that
 * does not come after them by the clocks (clocks.c) is a race. (The method is FastTrack's: Flanagan and Freund, PLDI 2009.)
 *
 * Two operations that really run at once may look at the same cells: their fields are atomic, and losing one of two
 * unordered reads only costs a finding. ThreadSanitizer is not told of these atomics (CMakeLists.txt): it would take them for
 * an order between threads that nothing else orders, and a hundred times as long. */
#include "standin.h"

static bool comes_after(const operation *o, uint32_t epoch) {
    return o->before.at[epoch >> EPOCH_CLOCK_BITS] >= (epoch & ((1u << EPOCH_CLOCK_BITS) - 1));
}

static uint32_t load(const uint32_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
static void store(uint32_t *p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }

/* The newest read stands first; an older one of the same stream, or one that is ordered before, makes way. */
static void remember_read(const operation *o, lane_cell *cell, uint32_t me) {
    uint32_t slot = 2;
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t r = load(&cell->read[i]);
        if (r == 0 || comes_after(o, r)) {
            slot = i;
            break;
        }
    }
    store(&cell->read[slot], load(&cell->read[0]));
    __atomic_store_n(&cell->read[0], me, __ATOMIC_SEQ_CST);
}

/* Of two operations that really run at once, each leaves its mark before it looks for that of the other, so one of them sees both. */
bool clocks_touch_cell(const operation *o, lane_cell *cell, bool write, uint32_t *other_out) {
    const uint32_t me = clocks_epoch(o->stream->index, o->clock);
    uint32_t written = load(&cell->written);
    if (write && written == me) return true;
    if (!write && load(&cell->read[0]) != me) {
        remember_read(o, cell, me);
        written = __atomic_load_n(&cell->written, __ATOMIC_SEQ_CST);
    }
    if (write) written = __atomic_exchange_n(&cell->written, me, __ATOMIC_SEQ_CST);
    if (written && !comes_after(o, written)) return *other_out = written, false;
    for (uint32_t i = 0; i < 3 && write; i++) {
        uint32_t r = __atomic_load_n(&cell->read[i], __ATOMIC_SEQ_CST);
        if (r && !comes_after(o, r)) return *other_out = r, false;
        if (r) __atomic_compare_exchange_n(&cell->read[i], &r, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    return true;
}

bool clocks_touch(const operation *o, range *r, uint64_t at, uint64_t size, bool write) {
    uint32_t other = 0;
    char text[64];
    if (!r || !r->cells) return true;
    const uint64_t first = (at - r->base) / 4, last = (at - r->base + size + 3) / 4;
    for (uint64_t i = first; i < last; i++) {
        if (clocks_touch_cell(o, &r->cells[i], write, &other)) continue;
        misuse(MISUSE_RACE, CUDA_ERROR_LAUNCH_FAILED, "operation %u of stream %u %s %#llx and is not ordered after %s",
               o->clock, o->stream->index, write ? "writes" : "reads", (unsigned long long)(r->base + 4 * i),
               clocks_describe(other, text));
        return false;
    }
    return true;
}
