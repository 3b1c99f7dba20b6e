/* Fuzzes the reader of safetensors files. What is accepted must cover its data exactly, and be found by name. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nn/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_array(const tide__safetensors *s, const tide__array *a) {
    char *name = malloc((size_t)a->name_length + 1);
    if (!name) abort();
    memcpy(name, a->name, a->name_length);
    name[a->name_length] = '\0';
    if (strlen(name) == a->name_length && tide__safetensors_find(s, name) != a) abort();
    if (a->begin > a->end || a->end > s->data_bytes) abort();
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide__safetensors s;
    char text[64];
    uint64_t bytes = 0, step;
    if (tide__safetensors_parse(data, size, "fuzz", &s) != TIDE_OK) return 0;
    for (uint32_t i = 0; i < s.n_arrays; i++) {
        check_array(&s, &s.arrays[i]);
        bytes += s.arrays[i].end - s.arrays[i].begin;
    }
    if (bytes != s.data_bytes || s.data_at + s.data_bytes != size) abort();
    (void)tide__safetensors_text(&s, "format", text, sizeof text);
    (void)tide__safetensors_u64(&s, "step", &step);
    tide__safetensors_close(&s);
    return 0;
}
