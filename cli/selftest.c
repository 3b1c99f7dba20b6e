/* See selftest.h: the list of parts, and their lines. */
#include "selftest.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void selftest_head(selftest *s, const char *title) { fprintf(s->out, "\n%s\n", title); }

void selftest_check(selftest *s, const char *what, tide_status status, bool right) {
    const bool ok = status == TIDE_OK && right;
    ok ? s->passed++ : s->failed++;
    if (status != TIDE_OK)
        fprintf(s->out, "  FAIL  %s: %s\n", what, tide_last_error());
    else
        fprintf(s->out, "  %s  %s\n", ok ? "ok  " : "FAIL", what);
    fflush(s->out);
}

void selftest_say(selftest *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("        ", s->out);
    vfprintf(s->out, format, args);
    fputc('\n', s->out);
    va_end(args);
    fflush(s->out);
}

/* ---- bytes ---- */

static tide_status read_bytes(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy(data, (const unsigned char *)context + position, size_bytes);
    return TIDE_OK;
}

static tide_status write_bytes(void *context, uint64_t position, void *data, uint64_t size_bytes) {
    memcpy((unsigned char *)context + position, data, size_bytes);
    return TIDE_OK;
}

tide_io selftest_from(const void *bytes) {
    tide_io io = {.fn = read_bytes, .channel = TIDE_NONE};
    memcpy(&io.context, &bytes, sizeof bytes); /* the source only reads */
    return io;
}

tide_io selftest_to(void *bytes) { return (tide_io){.fn = write_bytes, .context = bytes, .channel = TIDE_NONE}; }

void selftest_fill(void *bytes, uint64_t size_bytes, uint32_t seed) {
    unsigned char *b = bytes;
    for (uint64_t i = 0; i < size_bytes; i++) b[i] = (unsigned char)((i * 2654435761u + seed * 40503u) >> 13);
}

/* ---- the test ---- */

/* "cuda:0", but not the UUID that somebody may have written instead of a number. */
static void print_device(const selftest *s) {
    const char *number = strchr(s->info.name, ':');
    const int length = number && strspn(number + 1, "0123456789") == strlen(number + 1)
                           ? (int)strlen(s->info.name)
                           : (int)strcspn(s->info.name, ":");
    fprintf(s->out, "tidemark %s, self-test 1\n", tide_version());
    fprintf(s->out, "device   %.*s: %s\n", length, s->info.name, s->info.description);
    fprintf(s->out, "memory   %.1f MiB, offsets in steps of %u bytes, %s\n", (double)s->info.memory_bytes / 0x1p20,
            s->info.align_bytes, s->info.host_visible ? "shared with the host" : "of its own");
    if (s->info.staging_bytes)
        fprintf(s->out, "pinned   %.1f MiB of the host's memory\n", (double)s->info.staging_bytes / 0x1p20);
    if (s->info.flops_per_s > 0)
        fprintf(s->out, "peak     %.0f GFLOP/s by its data sheet\n", s->info.flops_per_s / 1e9);
}

/* As --measure writes it, under the device's name without a number or UUID. */
static void print_profile(selftest *s) {
    char name[sizeof s->info.name], *text = NULL;
    size_t size = 0;
    tide_machine machine;
    tide_measure_options options;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(s->info.name, ":"), s->info.name);
    tide_measure_options_init(&options);
    options.name = name;
    options.disk_path = s->disk_path;
    selftest_head(s, "machine");
    tide_status status = tide_machine_measure(s->device, &options, &machine);
    if (status == TIDE_OK) status = tide_machine_write_memory(&machine, &text, &size);
    selftest_check(s, "measured; other commands take what follows by --machine FILE", status, true);
    if (status == TIDE_OK) fprintf(s->out, "\n%.*s", (int)size, text);
    free(text);
}

void selftest_run(selftest *s) {
    print_device(s);
    selftest_contract(s);
    selftest_kernels(s);
    selftest_libraries(s);
    selftest_training(s);
    selftest_speed(s);
    selftest_memory(s);
    if (s->measures) print_profile(s);
    fprintf(s->out, "\n%" PRIu32 " checks passed, %" PRIu32 " failed\n", s->passed, s->failed);
}
