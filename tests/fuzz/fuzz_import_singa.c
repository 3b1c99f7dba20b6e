/* Fuzzes the importers of SINGA streams, chosen by content, with the stream's times and with even ones. */
#include "fuzz/import_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide_import_options even = {.size = sizeof even, .iteration_time_ns = 1000};
    import_and_check(data, size, NULL);
    import_and_check(data, size, &even);
    return 0;
}
