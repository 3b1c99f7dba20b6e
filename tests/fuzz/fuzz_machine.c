/* Fuzzes the reader of machine profiles. What is accepted must be valid and usable. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <tidemark/machine.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide_machine m;
    if (tide_machine_read_memory(data, size, "fuzz", &m) != TIDE_OK) return 0;
    if (tide_machine_validate(&m) != TIDE_OK) abort();
    for (uint32_t i = 0; i < m.n_channels; i++) {
        if (tide_machine_queue(&m, m.channel[i].tier, m.channel[i].out) != i + 1) abort();
        if (tide_machine_transfer_ns(&m, i, UINT64_MAX) < m.channel[i].latency_ns) abort();
    }
    return 0;
}
