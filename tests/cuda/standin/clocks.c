/* What happens before what. Every stream has a clock that counts its operations; an operation knows, for each stream, up
 * to which clock everything is complete before it may begin: from its own stream, from the events it waits for, from the
 * default stream's rules, and from what the host had waited for when it was issued. That is fixed when it is issued,
 * whatever the threads do later, so a missing wait is found on every run, also where the timing happens to be kind.
 *
 * A cell of the shadow remembers the last write of four bytes and the last reads of up to three streams. An access that
 * does not come after them by the clocks is a race. (The method is FastTrack's: Flanagan and Freund, PLDI 2009.)
 *
 * Two operations that really run at once may look at the same cells: their fields are atomic, and losing one of two
 * unordered reads only costs a finding. */
#include "standin.h"

enum { CLOCK_BITS = 26 };

void clocks_join(clocks *to, const clocks *from) {
    for (uint32_t i = 0; i < MAX_STREAMS; i++)
        if (from->at[i] > to->at[i]) to->at[i] = from->at[i];
}

uint32_t clocks_epoch(uint32_t index, uint32_t clock) {
    return index << CLOCK_BITS | (clock & ((1u << CLOCK_BITS) - 1));
}

static bool comes_after(const operation *o, uint32_t epoch) {
    return o->before.at[epoch >> CLOCK_BITS] >= (epoch & ((1u << CLOCK_BITS) - 1));
}

const char *clocks_describe(uint32_t epoch, char text[64]) {
    snprintf(text, 64, "operation %u of stream %u", epoch & ((1u << CLOCK_BITS) - 1), epoch >> CLOCK_BITS);
    return text;
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
