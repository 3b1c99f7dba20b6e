/* What happens before what. Every stream has a clock that counts its operations; an operation knows, for each stream, up
 * to which clock everything is complete before it may begin: from its own stream, from the events it waits for, from the
 * default stream's rules, and from what the host had waited for when it was issued. That is fixed when it is issued,
 * whatever the threads do later, so a missing wait is found on every run, also where the timing happens to be kind. */
#include "standin.h"

void clocks_join(clocks *to, const clocks *from) {
    for (uint32_t i = 0; i < MAX_STREAMS; i++)
        if (from->at[i] > to->at[i]) to->at[i] = from->at[i];
}

uint32_t clocks_epoch(uint32_t index, uint32_t clock) {
    return index << EPOCH_CLOCK_BITS | (clock & ((1u << EPOCH_CLOCK_BITS) - 1));
}

const char *clocks_describe(uint32_t epoch, char text[64]) {
    snprintf(text, 64, "operation %u of stream %u", epoch & ((1u << EPOCH_CLOCK_BITS) - 1), epoch >> EPOCH_CLOCK_BITS);
    return text;
}
