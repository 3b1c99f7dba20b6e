/* SINGA access streams, one access of a device block per line:
 *
 *      index op block bytes ns          op = Malloc, Free, Read, Mutable or Layer
 *
 * as recorded for AutoSwap (Zhang et al. 2019, arXiv 1903.06631). Indices count without a gap, so a missing line is
 * noticed; `bytes` is the size of the whole block in every line. */
#include <string.h>

#include "base/json.h"
#include "program/import/stream.h"

static bool is_word(tide__word word, const char *text) {
    return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

static bool parse_kind(tide__word word, tide__event_kind *out) {
    static const struct {
        const char *text;
        tide__event_kind kind;
    } kinds[] = {{"Malloc", TIDE__EVENT_MALLOC},
                 {"Free", TIDE__EVENT_FREE},
                 {"Read", TIDE__EVENT_READ},
                 {"Mutable", TIDE__EVENT_MUTABLE},
                 {"Layer", TIDE__EVENT_LAYER}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_word(word, kinds[i].text)) {
            *out = kinds[i].kind;
            return true;
        }
    return false;
}

static bool recognise(const char *line, size_t length) {
    const char *space = memchr(line, ' ', length);
    uint64_t index;
    return space && tide__parse_u64(line, (size_t)(space - line), UINT64_MAX, &index);
}

static tide_status check_index(tide__stream *stream, tide__word word) {
    uint64_t index, expected = stream->first_index + stream->events.count;
    if (!tide__parse_u64(word.text, word.length, UINT64_MAX, &index))
        return tide__stream_fail(stream, "the index is not a number");
    if (stream->events.count == 0) {
        stream->first_index = index;
    } else if (index != expected) {
        return tide__stream_fail(stream, "index %llu where %llu is next", (unsigned long long)index,
                                 (unsigned long long)expected);
    }
    return TIDE_OK;
}

static tide_status parse_line(tide__stream *stream, const tide__word *words, size_t n, tide__record *record) {
    if (n != 5) return tide__stream_fail(stream, "expected: index op block bytes ns");
    TIDE_TRY(check_index(stream, words[0]));
    *record = (tide__record){.block = words[2].text, .block_length = words[2].length, .has_size = true};
    if (!parse_kind(words[1], &record->kind))
        return tide__stream_fail(stream, "\"%.*s\" is not Malloc, Free, Read, Mutable or Layer",
                                 words[1].length > 40 ? 40 : (int)words[1].length, words[1].text);
    if (!tide__parse_u64(words[3].text, words[3].length, UINT64_MAX, &record->size_bytes))
        return tide__stream_fail(stream, "the size is not a number of bytes");
    if (!tide__parse_u64(words[4].text, words[4].length, UINT64_MAX, &record->t_ns))
        return tide__stream_fail(stream, "the time is not a number of ns");
    return TIDE_OK;
}

static tide_status read_access(const tide__import *in, tide_program **out, tide_import_stats *stats) {
    return tide__stream_import(in, parse_line, out, stats);
}

static tide_status read_stream(const tide__import *in, tide__stream *out) {
    return tide__stream_read(in, parse_line, out);
}

const tide__importer tide__import_singa_access = {"singa-access", recognise, read_access, read_stream};
