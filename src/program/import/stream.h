/* A recorded stream of what happened to memory blocks, and its way to a repeating program.
 *
 * A format's reader adds events; tide__stream_program finds the iteration and writes it as a program:
 *
 *      Malloc        an op that writes the block's first value (its bytes, not yet initialised)
 *      Mutable       an op that updates the value in place: a `must` pair, old value to new value
 *      Read, Layer   an op that reads the value
 *      Free          an op that reads the last value, which dies there
 *
 * so a block is alive from its Malloc to its Free, both included, and the program's load is the stream's. No op can be
 * re-run. Blocks that outlive the iteration are carries: to themselves if they stay for good, else to the block in
 * whose place they are at the next start (a block that lives three iterations is three blocks of ages 0, 1 and 2). */
#ifndef TIDE_PROGRAM_IMPORT_STREAM_H
#define TIDE_PROGRAM_IMPORT_STREAM_H

#include "base/vec.h"
#include "program/import/import.h"
#include "program/import/names.h"

typedef enum tide__event_kind {
    TIDE__EVENT_MALLOC,
    TIDE__EVENT_FREE,
    TIDE__EVENT_READ,
    TIDE__EVENT_MUTABLE,
    TIDE__EVENT_LAYER
} tide__event_kind;

/* One line of the file, in words. */
typedef struct tide__record {
    tide__event_kind kind;
    const char *block; /* its address or name */
    size_t block_length;
    uint64_t size_bytes; /* ignored if !has_size; must be the block's */
    bool has_size;
    uint64_t t_ns;
} tide__record;

typedef struct tide__event {
    tide__event_kind kind;
    uint32_t block;
    size_t line;
    uint64_t t_ns;
} tide__event;

/* One lifetime of an address. Events are indices into the stream's events. */
typedef struct tide__stream_block {
    uint64_t size_bytes;
    uint32_t name, size;               /* ids in the stream's names and sizes */
    uint32_t malloc_event, free_event; /* free_event: TIDE_NONE if the stream ends first */
    uint32_t last_event;
} tide__stream_block;

typedef struct tide__stream {
    const tide__import *in;
    size_t at, line;                 /* place in the text; number of the current line, from 1 */
    uint64_t first_index;            /* of the first event, in formats that number their lines */
    tide__import_names names, sizes; /* sizes: each number of bytes that occurs */
    TIDE_VEC(uint32_t) live;         /* per name: its block, or TIDE_NONE */
    TIDE_VEC(tide__event) events;
    TIDE_VEC(tide__stream_block) blocks;
    /* Per event, independent of addresses: kind, size, and for all but Mallocs the distance to the block's previous
     * event. */
    TIDE_VEC(uint64_t) symbols;
} tide__stream;

enum { TIDE__MAX_WORDS = 6 };
typedef struct tide__word {
    const char *text;
    size_t length;
} tide__word;

/* Turns the words of a line into a record. n_words is at least 1; a line of more than TIDE__MAX_WORDS counts as one of
 * TIDE__MAX_WORDS. */
typedef tide_status (*tide__line_parser)(tide__stream *stream, const tide__word *words, size_t n_words,
                                         tide__record *record);

/* Reads all lines that are not blank. Refuses, with the line: an event on a block that is not live, a Malloc of one
 * that is, a size that is not the block's, a time before the previous one. On success the caller deinits; `in` must
 * live as long. */
tide_status tide__stream_read(const tide__import *in, tide__line_parser parse, tide__stream *out);
void tide__stream_deinit(tide__stream *stream);

/* The iteration found in the events, as a program. */
tide_status tide__stream_program(const tide__stream *stream, tide_program **out, tide_import_stats *stats);

/* Both. */
tide_status tide__stream_import(const tide__import *in, tide__line_parser parse, tide_program **out,
                                tide_import_stats *stats);

/* TIDE_E_FORMAT with "name:line: " in front. */
#define tide__stream_fail(stream, ...) \
    (tide__error_set(__VA_ARGS__), tide__fail_in(TIDE_E_FORMAT, "%s:%zu", (stream)->in->name, (stream)->line))

#endif
