/* The reader of csv.h: one pass over the text, then a sort to find double ids. */
#include "plan/place/csv.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/size.h"
#include "base/vec.h"

enum { COL_ID, COL_LOWER, COL_UPPER, COL_SIZE, COL_ALIGNMENT, COL_OFFSET, N_COLUMNS };
#define N_REQUIRED COL_ALIGNMENT

static const char *const column_names[N_COLUMNS] = {"id", "lower", "upper", "size", "alignment", "offset"};

typedef struct field {
    const char *text;
    size_t length;
} field;

typedef struct reader {
    const char *at, *end, *name;
    size_t line;              /* of the current line, from 1 */
    int column_at[N_COLUMNS]; /* which field of a line, or -1 */
    size_t n_fields;
    TIDE_VEC(tide__place_item) items;
    TIDE_VEC(size_t) id_at, lines; /* per item: first byte in id_bytes, line number */
    TIDE_VEC(char) id_bytes;
} reader;

#define FAIL(r, ...) (tide__error_set(__VA_ARGS__), tide__fail_in(TIDE_E_FORMAT, "%s:%zu", (r)->name, (r)->line))

/* For texts in errors: never more than this much of a hostile field. */
static int shown(field f) { return (int)(f.length < 40 ? f.length : 40); }

static field trimmed(const char *from, const char *to) {
    while (from < to && (*from == ' ' || *from == '\t')) from++;
    while (from < to && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r')) to--;
    return (field){from, (size_t)(to - from)};
}

/* The next line that is not blank; false at the end. */
static bool next_line(reader *r, field *line) {
    while (r->at < r->end) {
        const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
        if (!stop) stop = r->end;
        *line = trimmed(r->at, stop);
        r->at = stop < r->end ? stop + 1 : stop;
        r->line++;
        if (line->length) return true;
    }
    return false;
}

/* Cuts the next field off `rest`; false if there is none left. */
static bool next_field(field *rest, field *out) {
    if (!rest->text) return false;
    const char *end = rest->text + rest->length, *comma = memchr(rest->text, ',', rest->length);
    *out = trimmed(rest->text, comma ? comma : end);
    *rest = comma ? (field){comma + 1, (size_t)(end - comma - 1)} : (field){NULL, 0};
    return true;
}

/* ---- the header ---- */

static int find_column(field f) {
    for (int c = 0; c < N_COLUMNS; c++)
        if (strlen(column_names[c]) == f.length && memcmp(column_names[c], f.text, f.length) == 0) return c;
    return -1;
}

static tide_status read_header(reader *r) {
    field line, f;
    for (int c = 0; c < N_COLUMNS; c++) r->column_at[c] = -1;
    if (!next_line(r, &line)) return tide__fail(TIDE_E_FORMAT, "%s: no header line", r->name);
    for (int k = 0; next_field(&line, &f); k++) {
        int c = find_column(f);
        if (c < 0) return FAIL(r, "unknown column \"%.*s\"", shown(f), f.text);
        if (r->column_at[c] >= 0) return FAIL(r, "column \"%s\" comes twice", column_names[c]);
        r->column_at[c] = k;
        r->n_fields++;
    }
    for (int c = 0; c < N_REQUIRED; c++)
        if (r->column_at[c] < 0) return FAIL(r, "column \"%s\" is missing", column_names[c]);
    return TIDE_OK;
}

/* ---- the rows ---- */

/* An empty or absent field is `absent` if its column is optional. */
static tide_status read_number(const reader *r, const field *fields, int column, uint64_t max, uint64_t absent,
                               uint64_t *out) {
    int at = r->column_at[column];
    if (column >= N_REQUIRED && (at < 0 || fields[at].length == 0)) {
        *out = absent;
        return TIDE_OK;
    }
    if (!tide__parse_u64(fields[at].text, fields[at].length, max, out))
        return FAIL(r, "%s \"%.*s\" is not a whole number up to %llu", column_names[column], shown(fields[at]),
                    fields[at].text, (unsigned long long)max);
    return TIDE_OK;
}

static tide_status read_item(const reader *r, const field *fields, tide__place_item *it) {
    uint64_t lower, upper, end;
    TIDE_TRY(read_number(r, fields, COL_LOWER, UINT32_MAX, 0, &lower));
    TIDE_TRY(read_number(r, fields, COL_UPPER, UINT32_MAX, 0, &upper));
    TIDE_TRY(read_number(r, fields, COL_SIZE, UINT64_MAX, 0, &it->size));
    TIDE_TRY(read_number(r, fields, COL_ALIGNMENT, UINT64_MAX, 1, &it->align));
    TIDE_TRY(read_number(r, fields, COL_OFFSET, UINT64_MAX - 1, TIDE__PLACE_FREE, &it->fixed));
    if (lower > upper) return FAIL(r, "upper is below lower");
    if (!tide__is_power_of_two(it->align)) return FAIL(r, "alignment is not a power of two");
    it->begin = (uint32_t)lower;
    it->end = (uint32_t)upper;
    if (it->fixed == TIDE__PLACE_FREE) return TIDE_OK;
    if (it->fixed & (it->align - 1)) return FAIL(r, "offset is not a multiple of the alignment");
    if (!tide__add(it->fixed, it->size, &end)) return FAIL(r, "offset + size does not fit in 64 bits");
    return TIDE_OK;
}

static tide_status keep_id(reader *r, field id) {
    if (id.length == 0) return FAIL(r, "id is empty");
    if (memchr(id.text, 0, id.length)) return FAIL(r, "id holds a zero byte");
    TIDE_TRY(tide__vec_push(&r->id_at, r->id_bytes.count));
    TIDE_TRY(tide__vec_push(&r->lines, r->line));
    TIDE_TRY(tide__vec_reserve(&r->id_bytes, id.length + 1));
    memcpy(r->id_bytes.data + r->id_bytes.count, id.text, id.length);
    r->id_bytes.count += id.length;
    r->id_bytes.data[r->id_bytes.count++] = 0;
    return TIDE_OK;
}

static tide_status read_row(reader *r, field line) {
    field fields[N_COLUMNS], f;
    size_t k = 0;
    for (; next_field(&line, &f); k++) {
        if (k == r->n_fields) return FAIL(r, "more than the header's %zu fields", r->n_fields);
        fields[k] = f;
    }
    if (k < r->n_fields) return FAIL(r, "%zu fields where the header has %zu", k, r->n_fields);
    tide__place_item it = {0};
    TIDE_TRY(read_item(r, fields, &it));
    TIDE_TRY(keep_id(r, fields[r->column_at[COL_ID]]));
    return tide__vec_push(&r->items, it);
}

/* ---- double ids ---- */

typedef struct id_key {
    const char *id;
    size_t line;
} id_key;

static int by_id(const void *a, const void *b) {
    const id_key *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static tide_status check_ids(reader *r) {
    size_t n = r->items.count;
    id_key *keys = malloc((n + 1) * sizeof *keys);
    if (!keys) return tide__fail_memory();
    for (size_t i = 0; i < n; i++) keys[i] = (id_key){r->id_bytes.data + r->id_at.data[i], r->lines.data[i]};
    qsort(keys, n, sizeof *keys, by_id);
    tide_status status = TIDE_OK;
    for (size_t i = 1; i < n && status == TIDE_OK; i++) {
        if (strcmp(keys[i].id, keys[i - 1].id) != 0) continue;
        r->line = keys[i].line;
        status = FAIL(r, "id \"%.40s\" was already on line %zu", keys[i].id, keys[i - 1].line);
    }
    free(keys);
    return status;
}

/* ---- all together ---- */

static tide_status hand_over(reader *r, tide__place_table *out) {
    size_t n = r->items.count;
    char **ids = malloc((n + 1) * sizeof *ids);
    if (!ids) return tide__fail_memory();
    for (size_t i = 0; i < n; i++) ids[i] = r->id_bytes.data + r->id_at.data[i];
    *out = (tide__place_table){n, r->items.data, ids, r->id_bytes.data};
    r->items.data = NULL;
    r->id_bytes.data = NULL;
    return TIDE_OK;
}

static tide_status read_all(reader *r, tide__place_table *out) {
    field line;
    TIDE_TRY(read_header(r));
    while (next_line(r, &line)) TIDE_TRY(read_row(r, line));
    TIDE_TRY(check_ids(r));
    return hand_over(r, out);
}

tide_status tide__place_csv_parse(const char *text, size_t size, const char *name, tide__place_table *out) {
    reader r = {.at = text, .end = text + size, .name = name};
    tide_status status = read_all(&r, out);
    tide__vec_free(&r.items);
    tide__vec_free(&r.id_at);
    tide__vec_free(&r.lines);
    tide__vec_free(&r.id_bytes);
    return status;
}

tide_status tide__place_csv_read(const char *path, tide__place_table *out) {
    tide__file file;
    TIDE_TRY(tide__file_open(path, &file));
    tide_status status = tide__place_csv_parse(file.text, file.size, path, out);
    tide__file_close(&file);
    return status;
}

void tide__place_table_free(tide__place_table *table) {
    free(table->items);
    free(table->ids);
    free(table->id_bytes);
    *table = (tide__place_table){0};
}
