/* See safetensors.h. Invariant: nothing of the data is read before the whole header has been found consistent. */
#include "nn/safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/size.h"

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I16", 2}, {"U16", 2}, {"F16", 2},
              {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},     {"F64", 8},     {"I64", 8}, {"U64", 8}};

/* ---- one array ---- */

static tide_status read_dtype(const tide__json *doc, uint32_t node, tide__array *a, uint64_t *bytes) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (!node || !tide__json_is(doc, node, dtypes[i].name)) continue;
        memcpy(a->dtype, dtypes[i].name, strlen(dtypes[i].name) + 1);
        *bytes = dtypes[i].bytes;
        return TIDE_OK;
    }
    return tide__fail(TIDE_E_FORMAT, "no known \"dtype\"");
}

/* The numbers of an array of at most `max`; *n says how many. */
static tide_status read_numbers(const tide__json *doc, uint32_t node, const char *what, uint32_t max, uint64_t *out,
                                uint32_t *n) {
    const tide__json_node *nodes = doc->nodes.data;
    if (!node || nodes[node].type != TIDE__JSON_ARRAY) return tide__fail(TIDE_E_FORMAT, "\"%s\" is not a list", what);
    if (nodes[node].count > max)
        return tide__fail(TIDE_E_FORMAT, "\"%s\" has %u numbers, at most %u", what, nodes[node].count, max);
    *n = 0;
    for (uint32_t child = node + 1; child < nodes[node].next; child = nodes[child].next)
        TIDE_TRY(tide__json_u64(doc, child, what, UINT64_MAX, &out[(*n)++]));
    return TIDE_OK;
}

static tide_status check_size(const tide__array *a, uint64_t element_bytes, uint64_t data_bytes) {
    uint64_t size = element_bytes;
    for (uint32_t i = 0; i < a->rank; i++)
        if (!tide__mul(size, a->shape[i], &size)) return tide__fail(TIDE_E_FORMAT, "\"shape\" is too large");
    if (a->begin > a->end || a->end > data_bytes)
        return tide__fail(TIDE_E_FORMAT, "\"data_offsets\" [%llu, %llu] leave the %llu bytes of data",
                          (unsigned long long)a->begin, (unsigned long long)a->end, (unsigned long long)data_bytes);
    if (a->end - a->begin != size)
        return tide__fail(TIDE_E_FORMAT, "%llu bytes, but its shape and dtype make %llu",
                          (unsigned long long)(a->end - a->begin), (unsigned long long)size);
    return TIDE_OK;
}

static tide_status read_array(const tide__json *doc, uint32_t node, uint64_t data_bytes, tide__array *a) {
    static const char *const keys[] = {"dtype", "shape", "data_offsets", NULL};
    uint64_t element_bytes, offsets[2];
    uint32_t n;
    if (doc->nodes.data[node].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "not an object");
    TIDE_TRY(tide__json_only(doc, node, keys));
    TIDE_TRY(read_dtype(doc, tide__json_get(doc, node, "dtype"), a, &element_bytes));
    TIDE_TRY(
        read_numbers(doc, tide__json_get(doc, node, "shape"), "shape", TIDE__SAFETENSORS_MAX_RANK, a->shape, &a->rank));
    TIDE_TRY(read_numbers(doc, tide__json_get(doc, node, "data_offsets"), "data_offsets", 2, offsets, &n));
    if (n != 2) return tide__fail(TIDE_E_FORMAT, "\"data_offsets\" are not two numbers");
    a->begin = offsets[0];
    a->end = offsets[1];
    return check_size(a, element_bytes, data_bytes);
}

/* ---- all of them ---- */

static int by_place(const void *x, const void *y) {
    const tide__array *a = x, *b = y;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static int compare_names(const char *a, size_t a_length, const char *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : a_length < b_length ? -1 : a_length > b_length;
}

static int by_name(const void *x, const void *y) {
    const tide__array *a = x, *b = y;
    return compare_names(a->name, a->name_length, b->name, b->name_length);
}

/* Every byte of the data belongs to exactly one array. */
static tide_status check_cover(tide__safetensors *s) {
    uint64_t at = 0;
    qsort(s->arrays, s->n_arrays, sizeof *s->arrays, by_place);
    for (uint32_t i = 0; i < s->n_arrays; i++) {
        const tide__array *a = &s->arrays[i];
        if (a->begin != at)
            return tide__fail(TIDE_E_FORMAT, "array \"%.*s\" begins at %llu, the one before it ends at %llu",
                              (int)a->name_length, a->name, (unsigned long long)a->begin, (unsigned long long)at);
        at = a->end;
    }
    if (at != s->data_bytes)
        return tide__fail(TIDE_E_FORMAT, "the arrays have %llu bytes, the file %llu", (unsigned long long)at,
                          (unsigned long long)s->data_bytes);
    return TIDE_OK;
}

static tide_status check_metadata(const tide__json *doc, uint32_t node) {
    const tide__json_node *nodes = doc->nodes.data;
    if (nodes[node].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "\"__metadata__\" is not an object");
    for (uint32_t key = node + 1; key < nodes[node].next; key = nodes[key + 1].next)
        if (nodes[key + 1].type != TIDE__JSON_STRING)
            return tide__fail(TIDE_E_FORMAT, "\"__metadata__\" has something that is not a string");
    return TIDE_OK;
}

static tide_status read_arrays(tide__safetensors *s) {
    const tide__json_node *nodes = s->doc.nodes.data;
    if (nodes[0].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "the header is not an object");
    s->arrays = calloc((size_t)nodes[0].count + 1, sizeof *s->arrays);
    if (!s->arrays) return tide__fail_memory();
    for (uint32_t key = 1; key < nodes[0].next; key = nodes[key + 1].next) {
        if (tide__json_is(&s->doc, key, "__metadata__")) {
            TIDE_TRY(check_metadata(&s->doc, key + 1));
            continue;
        }
        tide__array *a = &s->arrays[s->n_arrays++];
        a->name = nodes[key].text;
        a->name_length = nodes[key].length;
        tide_status status = read_array(&s->doc, key + 1, s->data_bytes, a);
        if (status != TIDE_OK) return tide__fail_in(status, "array \"%.*s\"", (int)a->name_length, a->name);
    }
    TIDE_TRY(check_cover(s));
    qsort(s->arrays, s->n_arrays, sizeof *s->arrays, by_name);
    return TIDE_OK;
}

/* ---- files ---- */

static uint64_t from_little_endian(const unsigned char *bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

/* The size of the header, from the first eight bytes of a file of file_bytes. */
static tide_status check_header(const unsigned char *start, uint64_t file_bytes, tide__safetensors *s) {
    uint64_t header_bytes = from_little_endian(start);
    if (header_bytes > file_bytes - 8 || header_bytes > TIDE__SAFETENSORS_MAX_HEADER)
        return tide__fail(TIDE_E_FORMAT, "a header of %llu bytes in a file of %llu; at most %llu are read",
                          (unsigned long long)header_bytes, (unsigned long long)file_bytes,
                          (unsigned long long)TIDE__SAFETENSORS_MAX_HEADER);
    s->data_at = 8 + header_bytes;
    s->data_bytes = file_bytes - s->data_at;
    return TIDE_OK;
}

static tide_status parse_header(tide__safetensors *s) {
    tide_status status = tide__json_parse(&s->doc, s->header, s->data_at - 8);
    return status == TIDE_OK ? read_arrays(s) : tide__fail_in(status, "header");
}

static tide_status read_exactly(FILE *stream, void *data, size_t size) {
    errno = 0;
    if (fread(data, 1, size, stream) == size) return TIDE_OK;
    if (ferror(stream)) return tide__fail_errno(TIDE_E_IO, errno ? errno : EIO, "cannot read");
    return tide__fail(TIDE_E_FORMAT, "the file ends too early");
}

static tide_status open_stream(FILE *stream, tide__safetensors *s) {
    unsigned char start[8];
    struct stat info;
    if (fstat(fileno(stream), &info) != 0 || !S_ISREG(info.st_mode))
        return tide__fail(TIDE_E_IO, "not an ordinary file");
    TIDE_TRY(read_exactly(stream, start, sizeof start));
    TIDE_TRY(check_header(start, (uint64_t)info.st_size, s));
    s->header = malloc(s->data_at);
    if (!s->header) return tide__fail_memory();
    TIDE_TRY(read_exactly(stream, s->header, s->data_at - 8));
    return parse_header(s);
}

static tide_status copy_header(const void *file, size_t size, tide__safetensors *s) {
    if (size < 8) return tide__fail(TIDE_E_FORMAT, "the file ends too early");
    TIDE_TRY(check_header(file, size, s));
    s->header = malloc(s->data_at);
    if (!s->header) return tide__fail_memory();
    memcpy(s->header, (const char *)file + 8, s->data_at - 8);
    return parse_header(s);
}

static tide_status finish(tide_status status, const char *name, tide__safetensors *s) {
    if (status == TIDE_OK) return TIDE_OK;
    tide__safetensors_close(s);
    return tide__fail_in(status, "%s", name);
}

tide_status tide__safetensors_open(FILE *stream, const char *name, tide__safetensors *out) {
    *out = (tide__safetensors){0};
    return finish(open_stream(stream, out), name, out);
}

tide_status tide__safetensors_parse(const void *file, size_t size, const char *name, tide__safetensors *out) {
    *out = (tide__safetensors){0};
    return finish(copy_header(file, size, out), name, out);
}

tide_status tide__safetensors_visit(const char *path, tide__safetensors_fn fn, void *context) {
    tide__safetensors s;
    FILE *stream;
    TIDE_TRY(tide__stream_open_regular(path, &stream));
    tide_status status = tide__safetensors_open(stream, path, &s);
    if (status == TIDE_OK) {
        status = fn(context, stream, &s);
        if (status != TIDE_OK) status = tide__fail_in(status, "%s", path);
        tide__safetensors_close(&s);
    }
    fclose(stream);
    return status;
}

void tide__safetensors_close(tide__safetensors *s) {
    tide__json_free(&s->doc);
    free(s->arrays);
    free(s->header);
    *s = (tide__safetensors){0};
}

/* ---- looking things up ---- */

const tide__array *tide__safetensors_find(const tide__safetensors *s, const char *name) {
    size_t length = strlen(name);
    uint32_t low = 0, high = s->n_arrays;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_names(s->arrays[middle].name, s->arrays[middle].name_length, name, length);
        if (order == 0) return &s->arrays[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* The node of its value; 0: not there. */
static uint32_t find_metadata(const tide__safetensors *s, const char *key) {
    uint32_t metadata = tide__json_get(&s->doc, 0, "__metadata__");
    return metadata ? tide__json_get(&s->doc, metadata, key) : 0;
}

bool tide__safetensors_has(const tide__safetensors *s, const char *key) { return find_metadata(s, key) != 0; }

tide_status tide__safetensors_text(const tide__safetensors *s, const char *key, char *out, size_t size) {
    uint32_t node = find_metadata(s, key);
    if (!node) return tide__fail(TIDE_E_FORMAT, "\"__metadata__\" has no \"%s\"", key);
    const tide__json_node *value = &s->doc.nodes.data[node];
    if (value->length >= size) return tide__fail(TIDE_E_FORMAT, "\"%s\" of \"__metadata__\" is too long", key);
    memcpy(out, value->text, value->length);
    out[value->length] = '\0';
    return TIDE_OK;
}

tide_status tide__safetensors_u64(const tide__safetensors *s, const char *key, uint64_t *out) {
    char text[32];
    TIDE_TRY(tide__safetensors_text(s, key, text, sizeof text));
    if (tide__parse_u64(text, strlen(text), UINT64_MAX, out)) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "\"%s\" of \"__metadata__\" is not a whole number", key);
}
