/* SINGA malloc/free streams, one call of the device allocator per line:
 *
 *      Malloc ptr bytes ms
 *      Free ptr ms
 *
 * as recorded for SmartPool (Zhang et al. 2019, arXiv 1903.06631). They say nothing of accesses, so the program is
 * good for placement only. */
#include <string.h>

#include "base/json.h"
#include "base/size.h"
#include "program/import/stream.h"

static bool begins_with(const char *text, size_t length, const char *word) {
    size_t n = strlen(word);
    return length > n && memcmp(text, word, n) == 0 && (text[n] == ' ' || text[n] == '\t');
}

static bool recognise(const char *line, size_t length) {
    return begins_with(line, length, "Malloc") || begins_with(line, length, "Free");
}

static tide_status parse_time(const tide__stream *stream, tide__word word, uint64_t *t_ns) {
    uint64_t ms;
    if (tide__parse_u64(word.text, word.length, UINT64_MAX, &ms) && tide__mul(ms, 1000000, t_ns)) return TIDE_OK;
    return tide__stream_fail(stream, "the time is not a number of ms");
}

static tide_status parse_line(tide__stream *stream, const tide__word *words, size_t n, tide__record *record) {
    bool is_malloc = words[0].length == 6 && memcmp(words[0].text, "Malloc", 6) == 0;
    bool is_free = words[0].length == 4 && memcmp(words[0].text, "Free", 4) == 0;
    if (!(is_malloc && n == 4) && !(is_free && n == 3))
        return tide__stream_fail(stream, "expected: Malloc ptr bytes ms, or: Free ptr ms");
    *record = (tide__record){.kind = is_malloc ? TIDE__EVENT_MALLOC : TIDE__EVENT_FREE,
                             .block = words[1].text,
                             .block_length = words[1].length,
                             .has_size = is_malloc};
    if (is_malloc && !tide__parse_u64(words[2].text, words[2].length, UINT64_MAX, &record->size_bytes))
        return tide__stream_fail(stream, "the size is not a number of bytes");
    return parse_time(stream, words[n - 1], &record->t_ns);
}

static tide_status read_malloc(const tide__import *in, tide_program **out, tide_import_stats *stats) {
    return tide__stream_import(in, parse_line, out, stats);
}

static tide_status read_stream(const tide__import *in, tide__stream *out) {
    return tide__stream_read(in, parse_line, out);
}

const tide__importer tide__import_singa_malloc = {"singa-malloc", recognise, read_malloc, read_stream};
