/* Chooses the importer: by name if the options give one, else by the look of the first line. */
#include "program/import/import.h"

#include <string.h>

#include "base/file.h"
#include "base/options.h"

static const tide__importer *const FORMATS[] = {&tide__import_dtr, &tide__import_singa_access,
                                                &tide__import_singa_malloc};
enum { N_FORMATS = sizeof FORMATS / sizeof *FORMATS };

#define KNOWN_FORMATS "known: dtr, singa-access, singa-malloc"

static const tide__importer *find_by_name(const char *name) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcmp(FORMATS[i]->name, name) == 0) return FORMATS[i];
    return NULL;
}

static const tide__importer *find_by_content(const char *text, size_t size) {
    size_t begin = 0;
    while (begin < size && strchr(" \t\r\n", text[begin]) && text[begin] != '\0') begin++;
    if (begin == size) return NULL;
    const char *newline = memchr(text + begin, '\n', size - begin);
    size_t length = newline ? (size_t)(newline - text) - begin : size - begin;
    for (size_t i = 0; i < N_FORMATS; i++)
        if (FORMATS[i]->recognise(text + begin, length)) return FORMATS[i];
    return NULL;
}

static tide_status choose(const tide__import *in, const tide__importer **out) {
    const char *from = in->options.from;
    const tide__importer *format = from ? find_by_name(from) : find_by_content(in->text, in->size);
    if (!format && from)
        return tide__fail(TIDE_E_ARGUMENT, "\"%.64s\" is not a format that can be imported (" KNOWN_FORMATS ")", from);
    if (!format) return tide__fail(TIDE_E_FORMAT, "%s: not a log that can be imported (" KNOWN_FORMATS ")", in->name);
    *out = format;
    return TIDE_OK;
}

static tide_status take_options(const tide_import_options *given, tide_import_options *out) {
    *out = (tide_import_options){.size = sizeof *out};
    return tide__options_take("tide_import_options", given, sizeof *out, out);
}

/* Replaces a repeating program by several of its iterations: `wanted`, or as many as it takes to place them. */
static tide_status unroll(tide_program **program, uint32_t wanted, uint32_t *steps) {
    *steps = 1;
    if (!tide_program_is_repeating(*program)) return TIDE_OK;
    if (wanted)
        *steps = wanted;
    else
        TIDE_TRY(tide_program_unroll_needed(*program, steps));
    if (*steps == 1) return TIDE_OK;
    tide_program *unrolled;
    TIDE_TRY(tide_program_unroll(*program, *steps, &unrolled));
    tide_program_destroy(*program);
    *program = unrolled;
    return TIDE_OK;
}

tide_status tide__import_memory(const char *text, size_t size, const char *name, const tide_import_options *options,
                                tide_program **out, tide_import_stats *stats) {
    tide__import in = {.text = text, .size = size, .name = name};
    const tide__importer *format = NULL;
    tide_import_stats found = {0};
    tide_program *program = NULL;
    TIDE_TRY(take_options(options, &in.options));
    TIDE_TRY(choose(&in, &format));
    TIDE_TRY(format->read(&in, &program, &found));
    tide_status status = unroll(&program, in.options.unroll, &found.unrolled);
    if (status != TIDE_OK) {
        tide_program_destroy(program);
        return status;
    }
    found.format = format->name;
    found.total_ns = tide_program_cost_ns(program);
    *out = program;
    if (stats) *stats = found;
    return TIDE_OK;
}

tide_status tide__import_stream(const tide__import *in, struct tide__stream *out) {
    const tide__importer *format = NULL;
    TIDE_TRY(choose(in, &format));
    if (!format->read_stream)
        return tide__fail(TIDE_E_FORMAT, "%s: a %s log is not a stream of mallocs and frees", in->name, format->name);
    return format->read_stream(in, out);
}

tide_status tide_program_import_stats(const char *path, const tide_import_options *options, tide_program **out,
                                      tide_import_stats *stats) {
    TIDE_NEED(path, out);
    if (!path || !out) return tide__fail(TIDE_E_ARGUMENT, "import: no path or no output");
    tide__file file;
    TIDE_TRY(tide__file_open(path, &file));
    tide_status status = tide__import_memory(file.text, file.size, path, options, out, stats);
    tide__file_close(&file);
    return status;
}

tide_status tide_program_import(const char *path, const tide_import_options *options, tide_program **out) {
    return tide_program_import_stats(path, options, out, NULL);
}
