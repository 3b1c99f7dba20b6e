/* Fuzzes the reader of program files. What it accepts must be a program that survives the round trip through a file
 * unchanged, and whose liveness holds together. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "program/program_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_of(const tide_program *p, size_t *size) {
    char *text = NULL;
    FILE *f = open_memstream(&text, size);
    if (!f) abort();
    tide__program_write_stream(p, f);
    if (fclose(f) != 0) abort();
    return text;
}

static void check_round_trip(const tide_program *p) {
    size_t size = 0, size_again = 0;
    char *text = text_of(p, &size);
    tide_program *q = NULL;
    if (tide_program_read_memory(text, size, "again", &q) != TIDE_OK) abort();
    char *again = text_of(q, &size_again);
    if (size != size_again || memcmp(text, again, size) != 0) abort();
    tide_signature a = tide_program_signature(p), b = tide_program_signature(q);
    if (memcmp(&a, &b, sizeof a) != 0) abort();
    tide_program_destroy(q);
    free(text);
    free(again);
}

static void check_liveness(const tide_program *p) {
    tide_liveness *l = NULL;
    tide_gap *gaps = NULL;
    size_t n = 0;
    if (tide_liveness_create(p, &l) != TIDE_OK || tide_liveness_gaps(p, &gaps, &n) != TIDE_OK) abort();
    if (l->largest_op_bytes > l->floor_bytes || l->floor_bytes > l->peak_bytes) abort();
    for (size_t i = 0; i < n; i++) {
        if (gaps[i].before_op < gaps[i].after_op + 2) abort();
        if (gaps[i].after_op < l->first[gaps[i].tensor] || gaps[i].before_op > l->last[gaps[i].tensor]) abort();
    }
    tide_liveness_destroy(l);
    free(gaps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide_program *p = NULL;
    if (tide_program_read_memory(data, size, "fuzz", &p) != TIDE_OK) {
        if (p || !strstr(tide_last_error(), "fuzz:")) abort();
        return 0;
    }
    check_round_trip(p);
    check_liveness(p);
    tide_program_destroy(p);
    return 0;
}
