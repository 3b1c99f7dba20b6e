/* See stream.h. This file: lines into events; every event checked against the block it names. */
#include "program/import/stream.h"

#include <stdlib.h>
#include <string.h>

/* A symbol: 3 bits of kind, 29 of size id, 32 of distance. */
enum { KIND_SHIFT = 61, SIZE_SHIFT = 32, MAX_SIZES = 1 << 29 };

/* ---- words ---- */

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static size_t split(const char *line, size_t length, tide__word *words) {
    size_t n = 0;
    for (size_t at = 0; at < length && n < TIDE__MAX_WORDS;) {
        if (is_space(line[at])) {
            at++;
            continue;
        }
        size_t begin = at;
        while (at < length && !is_space(line[at])) at++;
        words[n++] = (tide__word){.text = line + begin, .length = at - begin};
    }
    return n;
}

/* The words of the next line that is not blank; 0 at the end. */
static size_t next_words(tide__stream *stream, tide__word *words) {
    const tide__import *in = stream->in;
    size_t n = 0;
    while (n == 0 && stream->at < in->size) {
        const char *begin = in->text + stream->at;
        const char *newline = memchr(begin, '\n', in->size - stream->at);
        size_t length = newline ? (size_t)(newline - begin) : in->size - stream->at;
        stream->at += length + (newline != NULL);
        stream->line++;
        n = split(begin, length, words);
    }
    return n;
}

/* ---- events ---- */

static tide_status start_block(tide__stream *stream, uint32_t name, const tide__record *record) {
    uint32_t old = stream->live.data[name];
    if (old != TIDE_NONE)
        return tide__stream_fail(stream, "Malloc of %.40s, which is live since line %zu",
                                 tide__names_text(&stream->names, name),
                                 stream->events.data[stream->blocks.data[old].malloc_event].line);
    uint32_t event = (uint32_t)stream->events.count, size;
    TIDE_TRY(tide__names_intern(&stream->sizes, (const char *)&record->size_bytes, sizeof record->size_bytes, &size));
    if (size >= MAX_SIZES) return tide__stream_fail(stream, "too many different sizes");
    tide__stream_block block = {.size_bytes = record->size_bytes,
                                .name = name,
                                .size = size,
                                .malloc_event = event,
                                .free_event = TIDE_NONE,
                                .last_event = event};
    TIDE_TRY(tide__vec_push(&stream->blocks, block));
    stream->live.data[name] = (uint32_t)(stream->blocks.count - 1);
    return TIDE_OK;
}

/* A Read, Mutable, Layer or Free. */
static tide_status check_use(const tide__stream *stream, uint32_t name, const tide__record *record) {
    const char *shown = tide__names_text(&stream->names, name);
    if (stream->live.data[name] == TIDE_NONE) return tide__stream_fail(stream, "block %.40s is not live", shown);
    const tide__stream_block *block = &stream->blocks.data[stream->live.data[name]];
    if (record->has_size && record->size_bytes != block->size_bytes)
        return tide__stream_fail(stream, "block %.40s has %llu bytes, not %llu", shown,
                                 (unsigned long long)block->size_bytes, (unsigned long long)record->size_bytes);
    return TIDE_OK;
}

static tide_status check_order(const tide__stream *stream, const tide__record *record) {
    size_t n = stream->events.count;
    if (n >= TIDE_NONE - 1) return tide__stream_fail(stream, "too many events");
    if (n > 0 && record->t_ns < stream->events.data[n - 1].t_ns)
        return tide__stream_fail(stream, "the time is before that of the previous event");
    return TIDE_OK;
}

static tide_status push_event(tide__stream *stream, uint32_t block, const tide__record *record) {
    tide__stream_block *b = &stream->blocks.data[block];
    uint32_t now = (uint32_t)stream->events.count;
    uint64_t kind = (uint64_t)record->kind;
    uint64_t symbol = kind << KIND_SHIFT | (uint64_t)b->size << SIZE_SHIFT | (now - b->last_event);
    tide__event event = {.kind = record->kind, .block = block, .line = stream->line, .t_ns = record->t_ns};
    b->last_event = now;
    if (record->kind == TIDE__EVENT_FREE) b->free_event = now;
    TIDE_TRY(tide__vec_push(&stream->symbols, symbol));
    return tide__vec_push(&stream->events, event);
}

static tide_status add_event(tide__stream *stream, const tide__record *record) {
    uint32_t name;
    TIDE_TRY(check_order(stream, record));
    TIDE_TRY(tide__names_intern(&stream->names, record->block, record->block_length, &name));
    if (name == stream->live.count) TIDE_TRY(tide__vec_push(&stream->live, TIDE_NONE));
    if (record->kind == TIDE__EVENT_MALLOC)
        TIDE_TRY(start_block(stream, name, record));
    else
        TIDE_TRY(check_use(stream, name, record));
    TIDE_TRY(push_event(stream, stream->live.data[name], record));
    if (record->kind == TIDE__EVENT_FREE) stream->live.data[name] = TIDE_NONE;
    return TIDE_OK;
}

/* ---- the whole ---- */

static tide_status read_events(tide__stream *stream, tide__line_parser parse) {
    tide__word words[TIDE__MAX_WORDS];
    for (size_t n; (n = next_words(stream, words)) > 0;) {
        tide__record record;
        TIDE_TRY(parse(stream, words, n, &record));
        TIDE_TRY(add_event(stream, &record));
    }
    return TIDE_OK;
}

tide_status tide__stream_read(const tide__import *in, tide__line_parser parse, tide__stream *out) {
    tide__stream stream = {.in = in};
    tide__names_init(&stream.names);
    tide__names_init(&stream.sizes);
    tide_status status = read_events(&stream, parse);
    if (status == TIDE_OK)
        *out = stream;
    else
        tide__stream_deinit(&stream);
    return status;
}

void tide__stream_deinit(tide__stream *stream) {
    tide__names_free(&stream->names);
    tide__names_free(&stream->sizes);
    tide__vec_free(&stream->live);
    tide__vec_free(&stream->events);
    tide__vec_free(&stream->blocks);
    tide__vec_free(&stream->symbols);
}

tide_status tide__stream_import(const tide__import *in, tide__line_parser parse, tide_program **out,
                                tide_import_stats *stats) {
    tide__stream stream;
    TIDE_TRY(tide__stream_read(in, parse, &stream));
    tide_status status = tide__stream_program(&stream, out, stats);
    tide__stream_deinit(&stream);
    return status;
}
