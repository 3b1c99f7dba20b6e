/* JSON for hostile input: a text becomes a flat array of nodes over the caller's bytes. Strict RFC 8259, UTF-8
 * checked, duplicate keys refused, depth at most 32, no recursion, no allocation once a document is warm; numbers
 * stay text until asked for, so 64-bit integers are exact. About ten times the speed of a tree of heap objects,
 * which is why no library is used here.
 *
 *   {"a":[1,2]}   nodes: 0 object{next 5}  1 string "a"  2 array{next 5}  3 number  4 number
 *
 * Node i's children start at i + 1; the next sibling of i is nodes[i].next; an object's children alternate key,
 * value. */
#ifndef TIDE_BASE_JSON_H
#define TIDE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"

typedef enum tide__json_type {
    TIDE__JSON_NULL,
    TIDE__JSON_FALSE,
    TIDE__JSON_TRUE,
    TIDE__JSON_NUMBER,
    TIDE__JSON_STRING,
    TIDE__JSON_ARRAY,
    TIDE__JSON_OBJECT
} tide__json_type;

typedef struct tide__json_node {
    tide__json_type type;
    uint32_t next;    /* index after this node's last descendant */
    uint32_t count;   /* array: elements; object: members */
    uint32_t length;  /* string (unescaped), number: bytes of text */
    const char *text; /* string, number: not terminated */
} tide__json_node;

typedef struct tide__json {
    TIDE_VEC(tide__json_node) nodes;
    TIDE_VEC(char) scratch; /* unescaped strings; reserved up front so pointers into it stay valid */
    size_t error_at;        /* byte of the text where parsing failed */
} tide__json;

/* The root is node 0. Fails with TIDE_E_FORMAT and a text such as `byte 17: duplicate key "bytes"`. */
tide_status tide__json_parse(tide__json *doc, const char *text, size_t size);
void tide__json_free(tide__json *doc);

/* Lookups: node 0 is never a child, so 0 means "not there". */
uint32_t tide__json_get(const tide__json *doc, uint32_t object, const char *key);
bool tide__json_is(const tide__json *doc, uint32_t node, const char *string); /* a string equal to this */

/* Conversions fail with a text that starts with `what`. A string of digits is not a number. */
tide_status tide__json_u64(const tide__json *doc, uint32_t node, const char *what, uint64_t max, uint64_t *out);
tide_status tide__json_double(const tide__json *doc, uint32_t node, const char *what, double *out); /* finite */
tide_status tide__json_bool(const tide__json *doc, uint32_t node, const char *what, bool *out);
/* Fails if `object` has a key outside the NULL-terminated list, naming it. */
tide_status tide__json_only(const tide__json *doc, uint32_t object, const char *const *keys);

/* Digits of `text` as a number up to `max`; nothing else allowed. For formats that write numbers as strings. */
bool tide__parse_u64(const char *text, size_t length, uint64_t max, uint64_t *out);

/* Writes a string with quotes and escapes. Bytes that are not UTF-8 become U+FFFD. */
void tide__json_write_string(FILE *stream, const char *text);

/* The lines of a JSON Lines text, one parsed object at a time; blank lines are skipped. A line over 4 MiB is refused:
 * its nodes would take many times the memory of its text. */
typedef struct tide__lines {
    const char *text;
    size_t size, at;
    size_t line; /* number of the current line, from 1 */
    const char *name;
    tide__json doc;
} tide__lines;
void tide__lines_init(tide__lines *lines, const char *text, size_t size, const char *name);
void tide__lines_free(tide__lines *lines);
/* *more = false at the end. Errors begin with "name:line: ". */
tide_status tide__lines_next(tide__lines *lines, bool *more);
/* TIDE_E_FORMAT with "name:line: " in front. */
#define tide__lines_fail(lines, ...) (tide__lines_error((lines), __VA_ARGS__), tide__same_status(TIDE_E_FORMAT))
void tide__lines_error(const tide__lines *lines, const char *format, ...) TIDE_PRINTF(2, 3);
/* Puts "name:line: " before a failure of the conversions above; passes TIDE_OK through. */
tide_status tide__lines_check(const tide__lines *lines, tide_status status);

#endif
