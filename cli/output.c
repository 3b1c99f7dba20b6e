/* How figures look: human units, and JSON for programs. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli.h"

static char *next_buffer(void) {
    static char buffers[8][32];
    static unsigned at;
    return buffers[at++ % 8];
}

const char *show_bytes(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    char *out = next_buffer();
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    snprintf(out, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return out;
}

const char *show_ns(uint64_t ns) {
    char *out = next_buffer();
    if (ns < 1000)
        snprintf(out, 32, "%" PRIu64 " ns", ns);
    else if (ns < 1000000)
        snprintf(out, 32, "%.1f us", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(out, 32, "%.1f ms", (double)ns / 1e6);
    else
        snprintf(out, 32, "%.2f s", (double)ns / 1e9);
    return out;
}

/* ---- JSON ---- */

static void string(FILE *f, const char *text) {
    fputc('"', f);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(f, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(f, "\\u%04x", *c);
        else
            fputc(*c, f);
    }
    fputc('"', f);
}

static void before(json_out *j, const char *key) {
    if (!j->first) fputc(',', j->stream);
    if (j->depth) {
        fputc('\n', j->stream);
        for (int i = 0; i < j->depth; i++) fputs("  ", j->stream);
    }
    j->first = false;
    if (!key) return;
    string(j->stream, key);
    fputs(": ", j->stream);
}

void json_open(json_out *j, const char *key, char bracket) {
    before(j, key);
    fputc(bracket, j->stream);
    j->depth++;
    j->first = true;
}

void json_close(json_out *j, char bracket) {
    j->depth--;
    if (!j->first) {
        fputc('\n', j->stream);
        for (int i = 0; i < j->depth; i++) fputs("  ", j->stream);
    }
    fputc(bracket == '{' ? '}' : ']', j->stream);
    j->first = false;
}

void json_begin(json_out *j, FILE *stream) {
    *j = (json_out){.stream = stream, .first = true};
    json_open(j, NULL, '{');
}

void json_end(json_out *j) {
    json_close(j, '{');
    fputc('\n', j->stream);
}

void json_u64(json_out *j, const char *key, uint64_t value) {
    before(j, key);
    fprintf(j->stream, "%" PRIu64, value);
}

void json_number(json_out *j, const char *key, double value) {
    before(j, key);
    if (isfinite(value))
        fprintf(j->stream, "%.9g", value);
    else
        fputs("null", j->stream);
}

void json_text(json_out *j, const char *key, const char *value) {
    before(j, key);
    string(j->stream, value);
}

void json_bool(json_out *j, const char *key, bool value) {
    before(j, key);
    fputs(value ? "true" : "false", j->stream);
}
