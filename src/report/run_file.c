/* See run_file.h. A record is a sequence of parts, each behind a line that gives its name and its bytes; the parts are
 * files of other formats as they are. So every part has one reader, wherever it comes from. */
#include "report/run_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "plan/files.h"
#include "program/program_data.h"

#define MAX_BEGIN_NS (UINT64_C(1) << 62)

/* ---- writing ---- */

static void write_times(FILE *f, const tide_timeline *t) {
    for (uint32_t i = 0; i < t->n_actions; i++)
        fprintf(f, "{\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 "}\n", t->start_ns[i], t->end_ns[i]);
}

static void write_shapes(FILE *f, const tide_program *p, const tide_shape *shapes) {
    for (uint32_t i = 0; i < tide_program_tensor_count(p); i++) {
        const tide_shape *s = &shapes[i];
        if (s->n > 0)
            fprintf(f, "{\"tensor\":%u,\"shape\":[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]}\n", i,
                    (int64_t)s->n, (int64_t)s->c, (int64_t)s->h, (int64_t)s->w);
    }
}

enum { MACHINE, PROGRAM, PLAN, TIMES, SHAPES, MEASURED, N_PARTS };
static const char *const part_names[N_PARTS] = {"machine", "program", "plan", "times", "shapes", "measured"};

static void write_part(FILE *f, const tide_record_parts *r, int part) {
    switch (part) {
    case MACHINE: tide__machine_write_stream(r->machine, f); break;
    case PROGRAM: tide__program_write_stream(r->program, f); break;
    case PLAN: tide__plan_write_stream(r->plan, f); break;
    case TIMES: write_times(f, r->timeline); break;
    default: write_shapes(f, r->program, r->shapes); break;
    }
}

static void append_part(FILE *f, const char *name, const char *text, size_t size) {
    fprintf(f, "{\"part\":\"%s\",\"bytes\":%zu}\n", name, size);
    fwrite(text, 1, size, f);
}

/* The size stands before the text, so the text is made first. */
static tide_status add_part(FILE *f, const tide_record_parts *r, int part) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return tide__fail_memory();
    write_part(stream, r, part);
    int failed = ferror(stream);
    failed |= fclose(stream);
    if (!failed) append_part(f, part_names[part], text, size);
    free(text);
    return failed ? tide__fail_memory() : TIDE_OK;
}

static tide_status write_parts(FILE *f, const tide_record_parts *r) {
    fputs("{\"tidemark\":\"run\",\"version\":1", f);
    if (r->budget_bytes != UINT64_MAX) fprintf(f, ",\"budget_bytes\":%" PRIu64, r->budget_bytes);
    fputs("}\n", f);
    for (int part = 0; part < MEASURED; part++) TIDE_TRY(add_part(f, r, part));
    return TIDE_OK;
}

tide_status tide_record_begin(const tide_record_parts *record, char **text, size_t *size) {
    tide_record_parts taken = {.size = sizeof taken, .budget_bytes = UINT64_MAX};
    TIDE_TRY(tide__options_take("tide_record_parts", record, sizeof taken, &taken));
    record = &taken;
    if (!taken.machine || !taken.program || !taken.plan || !taken.timeline || !taken.shapes || !text || !size)
        return tide__fail(TIDE_E_ARGUMENT, "a record needs all its parts");
    char *made = NULL;
    size_t made_size = 0;
    FILE *stream = open_memstream(&made, &made_size);
    if (!stream) return tide__fail_memory();
    tide_status status = write_parts(stream, record);
    int failed = ferror(stream);
    failed |= fclose(stream);
    if (status == TIDE_OK && failed) status = tide__fail_memory();
    if (status != TIDE_OK) {
        free(made);
        return status;
    }
    *text = made;
    *size = made_size;
    return TIDE_OK;
}

/* Who they are, then what all but the first have begun. */
static tide_status append_ranks(FILE *f, const tide_record_rank *ranks, uint32_t n) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) return tide__fail_memory();
    for (uint32_t i = 0; i < n; i++) {
        fputs("{\"host\":", stream);
        tide__json_write_string(stream, ranks[i].host);
        fprintf(stream, ",\"begin_ns\":%" PRIu64 "}\n", ranks[i].begin_ns);
    }
    int failed = ferror(stream);
    failed |= fclose(stream);
    if (!failed) append_part(f, "ranks", text, size);
    free(text);
    for (uint32_t i = 1; i < n && !failed; i++) append_part(f, "rank", ranks[i].begun, ranks[i].begun_size);
    return failed ? tide__fail_memory() : TIDE_OK;
}

static tide_status check_rank(const tide_record_rank *rank) {
    TIDE_NEED(rank->begun, rank->host);
    if (strlen(rank->host) >= sizeof((tide__record_rank *)0)->host)
        return tide__fail(TIDE_E_ARGUMENT, "the name of a host has at most %zu bytes",
                          sizeof((tide__record_rank *)0)->host - 1);
    return rank->begin_ns <= MAX_BEGIN_NS ? TIDE_OK : tide__fail(TIDE_E_ARGUMENT, "a rank begins at 2^62 ns at most");
}

tide_status tide_record_write_ranks(const tide_record_rank *ranks, uint32_t n_ranks, const char *measured,
                                    size_t measured_size, const char *path) {
    TIDE_NEED(ranks, measured, path);
    tide__writer w;
    if (n_ranks == 0) return tide__fail(TIDE_E_ARGUMENT, "a record is of one rank at least");
    for (uint32_t i = 0; i < n_ranks; i++) TIDE_TRY(check_rank(&ranks[i]));
    TIDE_TRY(tide__writer_open(&w, path));
    fwrite(ranks[0].begun, 1, ranks[0].begun_size, w.stream);
    tide_status status = n_ranks > 1 ? append_ranks(w.stream, ranks, n_ranks) : TIDE_OK;
    if (status != TIDE_OK) {
        tide__writer_abort(&w);
        return status;
    }
    append_part(w.stream, part_names[MEASURED], measured, measured_size);
    fprintf(w.stream, "{\"end\":{\"parts\":%u}}\n", N_PARTS + (n_ranks > 1 ? n_ranks : 0));
    return tide__writer_commit(&w);
}

tide_status tide_record_write(const char *begun, size_t begun_size, const char *measured, size_t measured_size,
                              const char *path) {
    TIDE_NEED(begun, measured, path);
    const tide_record_rank alone = {.begun = begun, .begun_size = begun_size, .host = ""};
    return tide_record_write_ranks(&alone, 1, measured, measured_size, path);
}

/* ---- reading: the parts that have no reader of their own ---- */

static tide_status read_time(tide__lines *lines, tide_record *r) {
    static const char *const keys[] = {"start_ns", "end_ns", NULL};
    const tide__json *doc = &lines->doc;
    uint64_t start = 0, end = 0, most = (uint64_t)1 << 62;
    TIDE_TRY(tide__json_only(doc, 0, keys));
    TIDE_TRY(tide__json_u64(doc, tide__json_get(doc, 0, keys[0]), keys[0], most, &start));
    TIDE_TRY(tide__json_u64(doc, tide__json_get(doc, 0, keys[1]), keys[1], most, &end));
    if (end < start) return tide__fail(TIDE_E_FORMAT, "it ends before it begins");
    TIDE_TRY(tide__vec_push(&r->start_ns, start));
    return tide__vec_push(&r->end_ns, end);
}

static tide_status read_shape(tide__lines *lines, tide_record *r) {
    static const char *const keys[] = {"tensor", "shape", NULL};
    const tide__json *doc = &lines->doc;
    uint64_t tensor = 0, size[4] = {0};
    uint32_t list = tide__json_get(doc, 0, "shape");
    TIDE_TRY(tide__json_only(doc, 0, keys));
    TIDE_TRY(tide__json_u64(doc, tide__json_get(doc, 0, "tensor"), "tensor", r->shapes.count - 1, &tensor));
    if (!list || doc->nodes.data[list].type != TIDE__JSON_ARRAY || doc->nodes.data[list].count != 4)
        return tide__fail(TIDE_E_FORMAT, "\"shape\" is not a list of four sizes");
    for (uint32_t i = 0; i < 4; i++) /* numbers are one node each */
        TIDE_TRY(tide__json_u64(doc, list + 1 + i, "shape", INT32_MAX, &size[i]));
    r->shapes.data[tensor] = (tide_shape){(int64_t)size[0], (int64_t)size[1], (int64_t)size[2], (int64_t)size[3]};
    return TIDE_OK;
}

static tide_status read_lines(const char *text, size_t size, const char *name, tide_record *r,
                              tide_status (*read)(tide__lines *, tide_record *)) {
    tide__lines lines;
    bool more = true;
    tide__lines_init(&lines, text, size, name);
    tide_status status = tide__lines_next(&lines, &more);
    while (status == TIDE_OK && more) {
        status = tide__lines_check(&lines, read(&lines, r));
        if (status == TIDE_OK) status = tide__lines_next(&lines, &more);
    }
    tide__lines_free(&lines);
    return status;
}

static tide_status read_times(const char *text, size_t size, const char *name, tide_record *r) {
    TIDE_TRY(read_lines(text, size, name, r, read_time));
    if (r->start_ns.count == tide_plan_action_count(r->plan)) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "%s: %zu times for %u actions", name, r->start_ns.count,
                      tide_plan_action_count(r->plan));
}

static tide_status read_shapes(const char *text, size_t size, const char *name, tide_record *r) {
    for (uint32_t i = 0; i < tide_program_tensor_count(r->program); i++)
        TIDE_TRY(tide__vec_push(&r->shapes, ((tide_shape){0})));
    if (size && !r->shapes.count) return tide__fail(TIDE_E_FORMAT, "%s: shapes of a program without tensors", name);
    return read_lines(text, size, name, r, read_shape);
}

static tide_status read_part(int part, const char *text, size_t size, const char *name, tide_record *r) {
    switch (part) {
    case MACHINE: return tide_machine_read_memory(text, size, name, &r->machine);
    case PROGRAM: return tide_program_read_memory(text, size, name, &r->program);
    case PLAN: return tide_plan_read_memory(text, size, name, &r->plan);
    case TIMES: return read_times(text, size, name, r);
    case SHAPES: return read_shapes(text, size, name, r);
    default: return tide__measured_read_memory(text, size, name, &r->measured);
    }
}

/* ---- reading: the file ---- */

typedef struct reader {
    const char *text, *name;
    size_t size, at;
    tide__json doc; /* of the line that was read last */
} reader;

static tide_status next_line(reader *r) {
    if (r->at >= r->size) return tide__fail(TIDE_E_FORMAT, "%s: the record is cut short", r->name);
    const char *from = r->text + r->at, *end = memchr(from, '\n', r->size - r->at);
    size_t length = end ? (size_t)(end - from) : r->size - r->at;
    r->at += length + (end != NULL);
    tide_status status = length > 4096 ? tide__fail(TIDE_E_FORMAT, "a line between parts is too long")
                                       : tide__json_parse(&r->doc, from, length);
    if (status == TIDE_OK && r->doc.nodes.data[0].type != TIDE__JSON_OBJECT)
        status = tide__fail(TIDE_E_FORMAT, "a line between parts is not an object");
    return status == TIDE_E_FORMAT ? tide__fail_in(status, "%s, byte %zu", r->name, r->at - length) : status;
}

static tide_status read_head(reader *r, tide_record *out) {
    static const char *const keys[] = {"tidemark", "version", "budget_bytes", NULL};
    uint64_t version = 0;
    TIDE_TRY(next_line(r));
    if (!tide__json_is(&r->doc, tide__json_get(&r->doc, 0, "tidemark"), "run"))
        return tide__fail(TIDE_E_FORMAT, "%s: not the record of a run", r->name);
    TIDE_TRY(tide__json_only(&r->doc, 0, keys));
    TIDE_TRY(tide__json_u64(&r->doc, tide__json_get(&r->doc, 0, "version"), "version", UINT32_MAX, &version));
    if (version != 1) return tide__fail(TIDE_E_FORMAT, "%s: version %" PRIu64 " is not known", r->name, version);
    uint32_t budget = tide__json_get(&r->doc, 0, "budget_bytes");
    out->budget_bytes = UINT64_MAX;
    return budget ? tide__json_u64(&r->doc, budget, "budget_bytes", UINT64_MAX, &out->budget_bytes) : TIDE_OK;
}

static bool is_part(const reader *r, const char *part) {
    return tide__json_is(&r->doc, tide__json_get(&r->doc, 0, "part"), part);
}

/* The part behind the line at hand. */
static tide_status take_part(reader *r, const char *part, const char **text, size_t *bytes) {
    static const char *const keys[] = {"part", "bytes", NULL};
    uint64_t size = 0;
    if (!is_part(r, part)) return tide__fail(TIDE_E_FORMAT, "%s: part \"%s\" is missing", r->name, part);
    TIDE_TRY(tide__json_only(&r->doc, 0, keys));
    TIDE_TRY(tide__json_u64(&r->doc, tide__json_get(&r->doc, 0, "bytes"), "bytes", UINT64_MAX, &size));
    if (size > r->size - r->at) return tide__fail(TIDE_E_FORMAT, "%s: the record is cut short", r->name);
    *text = r->text + r->at;
    *bytes = size;
    r->at += size;
    return TIDE_OK;
}

static tide_status read_this_part(reader *r, int part, tide_record *out) {
    char name[256];
    const char *text;
    size_t size;
    TIDE_TRY(take_part(r, part_names[part], &text, &size));
    snprintf(name, sizeof name, "%s, part %s", r->name, part_names[part]);
    return read_part(part, text, size, name, out);
}

/* What tide_record_begin writes. */
static tide_status read_begun(reader *r, tide_record *out) {
    TIDE_TRY(read_head(r, out));
    for (int part = 0; part < MEASURED; part++) {
        TIDE_TRY(next_line(r));
        TIDE_TRY(read_this_part(r, part, out));
    }
    return TIDE_OK;
}

/* ---- reading: several ranks ---- */

static tide_status read_rank_line(tide__lines *lines, tide_record *r) {
    static const char *const keys[] = {"host", "begin_ns", NULL};
    const tide__json *doc = &lines->doc;
    tide__record_rank rank = {0};
    TIDE_TRY(tide__json_only(doc, 0, keys));
    uint32_t host = tide__json_get(doc, 0, "host");
    if (!host || doc->nodes.data[host].type != TIDE__JSON_STRING || doc->nodes.data[host].length >= sizeof rank.host)
        return tide__fail(TIDE_E_FORMAT, "\"host\" is not a text of at most %zu bytes", sizeof rank.host - 1);
    memcpy(rank.host, doc->nodes.data[host].text, doc->nodes.data[host].length);
    TIDE_TRY(tide__json_u64(doc, tide__json_get(doc, 0, "begin_ns"), "begin_ns", MAX_BEGIN_NS, &rank.begin_ns));
    return tide__vec_push(&r->ranks, rank);
}

static tide_status read_rank(reader *r, uint32_t i, tide_record *out) {
    char name[256];
    reader begun = {.name = name};
    snprintf(name, sizeof name, "%s, rank %u", r->name, i);
    TIDE_TRY(next_line(r));
    TIDE_TRY(take_part(r, "rank", &begun.text, &begun.size));
    tide_record *rank = out->ranks.data[i].record = calloc(1, sizeof *rank);
    if (!rank) return tide__fail_memory();
    tide_status status = read_begun(&begun, rank);
    tide__json_free(&begun.doc);
    if (status == TIDE_OK && begun.at != begun.size)
        status = tide__fail(TIDE_E_FORMAT, "%s: something else follows the last part", name);
    return status;
}

static tide_status read_ranks(reader *r, tide_record *out) {
    char name[256];
    const char *text;
    size_t size;
    TIDE_TRY(take_part(r, "ranks", &text, &size));
    snprintf(name, sizeof name, "%s, part ranks", r->name);
    TIDE_TRY(read_lines(text, size, name, out, read_rank_line));
    if (out->ranks.count < 2) return tide__fail(TIDE_E_FORMAT, "%s: several ranks are two or more", name);
    for (uint32_t i = 1; i < out->ranks.count; i++) TIDE_TRY(read_rank(r, i, out));
    return TIDE_OK;
}

static tide_status read_all(reader *r, tide_record *out) {
    TIDE_TRY(read_begun(r, out));
    TIDE_TRY(next_line(r));
    if (is_part(r, "ranks")) {
        TIDE_TRY(read_ranks(r, out));
        TIDE_TRY(next_line(r));
    }
    TIDE_TRY(read_this_part(r, MEASURED, out));
    TIDE_TRY(next_line(r));
    if (!tide__json_get(&r->doc, 0, "end") || r->at != r->size)
        return tide__fail(TIDE_E_FORMAT, "%s: something else follows the last part", r->name);
    return TIDE_OK;
}

bool tide_record_is(const void *text, size_t size) {
    static const char head[] = "{\"tidemark\":\"run\"";
    return size >= sizeof head - 1 && memcmp(text, head, sizeof head - 1) == 0;
}

tide_status tide_record_read_memory(const void *text, size_t size, const char *name, tide_record **out) {
    TIDE_NEED(text, out);
    reader r = {.text = text, .size = size, .name = name};
    tide_record *record = calloc(1, sizeof *record);
    if (!record) return tide__fail_memory();
    tide_status status = read_all(&r, record);
    tide__json_free(&r.doc);
    if (status == TIDE_OK)
        *out = record;
    else
        tide_record_destroy(record);
    return status;
}

void tide_record_destroy(tide_record *r) {
    if (!r) return;
    for (size_t i = 0; i < r->ranks.count; i++) tide_record_destroy(r->ranks.data[i].record);
    tide__vec_free(&r->ranks);
    tide_program_destroy(r->program);
    tide_plan_destroy(r->plan);
    tide__vec_free(&r->start_ns);
    tide__vec_free(&r->end_ns);
    tide__vec_free(&r->shapes);
    tide__measured_free(&r->measured);
    free(r);
}

const tide_machine *tide_record_machine(const tide_record *r) { return &r->machine; }
const tide_program *tide_record_program(const tide_record *r) { return r->program; }
const tide_plan *tide_record_plan(const tide_record *r) { return r->plan; }
uint64_t tide_record_budget_bytes(const tide_record *r) { return r->budget_bytes; }

uint32_t tide_record_rank_count(const tide_record *r) { return r->ranks.count ? (uint32_t)r->ranks.count : 1; }

const tide_record *tide_record_of_rank(const tide_record *r, uint32_t rank) {
    if (rank >= tide_record_rank_count(r)) return NULL;
    return rank ? r->ranks.data[rank].record : r;
}
