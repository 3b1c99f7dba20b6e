/* Fuzzes the JSON reader under all file formats: one document, then the same bytes as JSON Lines. What parses must
 * hold the invariant of the node array: every node ends within its parent, and lookups stay inside. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_nodes(const tide__json *doc) {
    size_t n = doc->nodes.count;
    if (n == 0 || doc->nodes.data[0].next != n) abort();
    for (uint32_t i = 0; i < n; i++) {
        const tide__json_node *node = &doc->nodes.data[i];
        if (node->next <= i || node->next > n) abort();
        if (node->type == TIDE__JSON_OBJECT && tide__json_get(doc, i, "a") >= node->next) abort();
    }
}

static void convert(const tide__json *doc, uint32_t node) {
    uint64_t whole = 0;
    double real = 0;
    if (tide__json_u64(doc, node, "fuzz", UINT64_MAX / 2, &whole) == TIDE_OK && whole > UINT64_MAX / 2) abort();
    if (tide__json_double(doc, node, "fuzz", &real) == TIDE_OK && real - real != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tide__json doc = {0};
    if (tide__json_parse(&doc, (const char *)data, size) == TIDE_OK) {
        check_nodes(&doc);
        for (uint32_t i = 0; i < doc.nodes.count && i < 64; i++) convert(&doc, i);
    }
    tide__json_free(&doc);

    tide__lines lines;
    bool more = true;
    tide__lines_init(&lines, (const char *)data, size, "fuzz");
    while (more && tide__lines_next(&lines, &more) == TIDE_OK)
        if (more) check_nodes(&lines.doc);
    tide__lines_free(&lines);
    return 0;
}
