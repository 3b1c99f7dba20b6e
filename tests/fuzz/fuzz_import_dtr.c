/* Fuzzes the importer of DTR logs. */
#include "fuzz/import_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide_import_options options = {.size = sizeof options, .from = "dtr"};
    import_and_check(data, size, &options);
    return 0;
}
