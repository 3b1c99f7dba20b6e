/* Importers: other tools' logs become programs. One file per format; import.c chooses. A format reads a text it does
 * not own and that may be hostile; its errors begin with "name:line: ". */
#ifndef TIDE_PROGRAM_IMPORT_IMPORT_H
#define TIDE_PROGRAM_IMPORT_IMPORT_H

#include <tidemark/program.h>

#include "base/error.h"

struct tide__stream;

/* What a format is given. */
typedef struct tide__import {
    const char *text;
    size_t size;
    const char *name; /* of the file, in errors */
    tide_import_options options;
    /* dtr: per tensor, the op after which the log releases its last name, TIDE_NONE if never; to be freed with free(),
     * whether the import succeeds or not. NULL: nobody asks. */
    uint32_t **releases;
} tide__import;

typedef struct tide__importer {
    const char *name; /* as in tide_import_options.from */
    /* True if the first line that is not blank looks like this format. */
    bool (*recognise)(const char *line, size_t length);
    tide_status (*read)(const tide__import *in, tide_program **out, tide_import_stats *stats);
    /* The events themselves (stream.h); NULL: the format has no events on blocks. */
    tide_status (*read_stream)(const tide__import *in, struct tide__stream *out);
} tide__importer;

extern const tide__importer tide__import_dtr, tide__import_singa_access, tide__import_singa_malloc;

/* tide_program_import_stats for a text in memory; `options` and `stats` may be NULL. */
tide_status tide__import_memory(const char *text, size_t size, const char *name, const tide_import_options *options,
                                tide_program **out, tide_import_stats *stats);

/* The stream in a text, whatever its format; the caller deinits. It need not repeat. `in` must live as long. */
tide_status tide__import_stream(const tide__import *in, struct tide__stream *out);

#endif
