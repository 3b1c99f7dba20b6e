/* How figures look: human units, and JSON for programs. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { BUFFER_BYTES = 288 }; /* a verdict and more */

static char *next_buffer(void) {
    static char buffers[8][BUFFER_BYTES];
    static unsigned at;
    return buffers[at++ % 8];
}

/* One unit everywhere, so that figures compare at a glance: MiB = 2^20 bytes. */
const char *show_bytes(uint64_t bytes) {
    char *out = next_buffer();
    double value = (double)bytes / 0x1p20;
    if (bytes > 0 && value < 0.0005)
        snprintf(out, BUFFER_BYTES, "<0.001 MiB");
    else
        snprintf(out, BUFFER_BYTES, "%.*f MiB", bytes == 0 ? 0 : value < 1 ? 3 : value < 100 ? 2 : 1, value);
    return out;
}

/* Names come from files: nothing in them may move a terminal's cursor. */
const char *show_name(const char *name) {
    char *out = next_buffer();
    int n = snprintf(out, BUFFER_BYTES, "%s", name);
    if (n >= BUFFER_BYTES) memcpy(out + BUFFER_BYTES - 4, "...", 4);
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    return out;
}

const char *show_op(const tide_program *program, tide_id op) {
    char *out = next_buffer();
    if (op == TIDE_NONE)
        snprintf(out, BUFFER_BYTES, "no op");
    else if (!*tide_program_op(program, op)->name)
        snprintf(out, BUFFER_BYTES, "op %u", op);
    else
        snprintf(out, BUFFER_BYTES, "op %u \"%.120s\"", op, show_name(tide_program_op(program, op)->name));
    return out;
}

const char *show_recipe(const tide_training_recipe *r) {
    char *out = next_buffer();
    int n = snprintf(out, BUFFER_BYTES, "%s, rate %g per %u samples%s, warm-up %" PRIu64 " steps",
                     optimizer_name(r->optimizer), (double)r->learning_rate, r->base_batch,
                     r->rate_by_root ? " (by the root of the batch)" : "", r->warmup_steps);
    if (r->weight_decay > 0)
        n += snprintf(out + n, (size_t)(BUFFER_BYTES - n), ", weight decay %g", (double)r->weight_decay);
    if (r->clip_norm > 0) snprintf(out + n, (size_t)(BUFFER_BYTES - n), ", clip norm %g", (double)r->clip_norm);
    return out;
}

void svg_text(FILE *f, const char *text) {
    for (; *text; text++) {
        if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
            fprintf(f, "&#%d;", *text);
        else if ((unsigned char)*text >= 0x20)
            fputc(*text, f);
    }
}

bool wants_stdout(const char *output) { return output && strcmp(output, "-") == 0; }

tide_status check_output(const char *output, bool json) {
    return json && wants_stdout(output) ? complain(TIDE_E_ARGUMENT, "--json and -o - both want standard output")
                                        : TIDE_OK;
}

const char *show_ns(uint64_t ns) {
    char *out = next_buffer();
    if (ns < 1000)
        snprintf(out, BUFFER_BYTES, "%" PRIu64 " ns", ns);
    else if (ns < 1000000)
        snprintf(out, BUFFER_BYTES, "%.1f us", (double)ns / 1e3);
    else if (ns < 1000000000)
        snprintf(out, BUFFER_BYTES, "%.1f ms", (double)ns / 1e6);
    else
        snprintf(out, BUFFER_BYTES, "%.2f s", (double)ns / 1e9);
    return out;
}

const char *show_loss(double loss) {
    char *out = next_buffer();
    bool plain = loss == 0 || (fabs(loss) >= 1e-3 && fabs(loss) < 1e4);
    snprintf(out, BUFFER_BYTES, plain ? "%.4f" : "%.2e", loss);
    return out;
}

/* ---- JSON ---- */

/* Bytes of the UTF-8 sequence at c; 0 if it is none (a text that was cut may end in half of one). */
static int sequence(const unsigned char *c) {
    int n = *c < 0x80 ? 1 : *c >= 0xc2 && *c < 0xe0 ? 2 : *c >= 0xe0 && *c < 0xf0 ? 3 : *c >= 0xf0 && *c < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if (c[i] < 0x80 || c[i] >= 0xc0) return 0;
    return n;
}

void json_string(FILE *f, const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    fputc('"', f);
    for (int n; *c; c += n ? n : 1) {
        n = sequence(c);
        if (n == 0)
            fputs("\\ufffd", f);
        else if (*c == '"' || *c == '\\')
            fprintf(f, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(f, "\\u%04x", *c);
        else
            fwrite(c, 1, (size_t)n, f);
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
    json_string(j->stream, key);
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
    json_string(j->stream, value);
}

void json_bool(json_out *j, const char *key, bool value) {
    before(j, key);
    fputs(value ? "true" : "false", j->stream);
}

/* ---- files ---- */

tide_status file_out_begin(file_out *f, const char *path) {
    *f = (file_out){.path = path};
    f->stream = open_memstream(&f->text, &f->size);
    return f->stream ? TIDE_OK : complain(TIDE_E_MEMORY, "out of host memory");
}

tide_status file_out_end(file_out *f) {
    tide_status status = fclose(f->stream) == 0 ? tide_file_write(f->path, f->text, f->size)
                                                : complain(TIDE_E_MEMORY, "out of host memory");
    free(f->text);
    return status;
}
