/* Fuzzes the readers of what a report shows besides its plan: a measured training and a comparison of policies. What is
 * accepted has something in it, and its names end. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/extra.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name) {
    if (!memchr(name, '\0', TIDE__EXTRA_NAME_BYTES)) abort();
}

static void fuzz_measured(const char *text, size_t size) {
    tide__measured m;
    if (tide__measured_read_memory(text, size, "fuzz", &m) != TIDE_OK) return;
    if (m.runs.count == 0) abort();
    check_name(m.model);
    for (size_t i = 0; i < m.runs.count; i++) check_name(m.runs.data[i].policy);
    tide__measured_free(&m);
}

static void fuzz_compared(const char *text, size_t size) {
    tide__compared c;
    if (tide__compared_read_memory(text, size, "fuzz", &c) != TIDE_OK) return;
    if (c.points.count == 0) abort();
    check_name(c.program);
    check_name(c.machine);
    for (size_t i = 0; i < c.points.count; i++) check_name(c.points.data[i].policy);
    tide__compared_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_measured((const char *)data, size);
    fuzz_compared((const char *)data, size);
    return 0;
}
