/* Placement problems as CSV: a header with the columns id, lower, upper, size and optionally alignment and offset, in
 * any order, then one buffer per line. Lifetimes are half-open [lower, upper). An empty alignment is 1, an empty
 * offset is free. No quoting; spaces around a field are ignored; blank lines and a final CR are skipped.
 *
 * Files are hostile input: every refusal names file and line. */
#ifndef TIDE_PLAN_PLACE_CSV_H
#define TIDE_PLAN_PLACE_CSV_H

#include "plan/place/place.h"

typedef struct tide__place_table {
    size_t n;
    tide__place_item *items;
    char **ids;     /* per item; distinct */
    char *id_bytes; /* what they point into */
} tide__place_table;

/* `name` is the file's name, for errors. On failure `out` is untouched. */
tide_status tide__place_csv_parse(const char *text, size_t size, const char *name, tide__place_table *out);
tide_status tide__place_csv_read(const char *path, tide__place_table *out);
void tide__place_table_free(tide__place_table *table);

#endif
