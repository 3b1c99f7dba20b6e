/* See names.h. */
#include "program/import/names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

void tide__names_init(tide__import_names *names) {
    *names = (tide__import_names){.seed = tide__hash_word(tide__now_ns(), (uint64_t)(uintptr_t)names)};
}

void tide__names_free(tide__import_names *names) {
    tide__vec_free(&names->text);
    tide__vec_free(&names->start);
    tide__vec_free(&names->hash);
    free(names->table);
    names->table = NULL;
    names->table_size = 0;
}

const char *tide__names_text(const tide__import_names *names, uint32_t id) {
    return names->text.data + names->start.data[id];
}

static bool is_same(const tide__import_names *names, uint32_t id, uint64_t hash, const char *text, size_t length) {
    size_t begin = names->start.data[id];
    size_t end = id + 1 < names->start.count ? names->start.data[id + 1] : names->text.count;
    if (names->hash.data[id] != hash || end - begin != length + 1) return false;
    return memcmp(names->text.data + begin, text, length) == 0;
}

/* The slot of this name, or the free one where it belongs. The table has free slots. */
static size_t find_slot(const tide__import_names *names, uint64_t hash, const char *text, size_t length) {
    size_t mask = names->table_size - 1, slot = (size_t)hash & mask;
    while (names->table[slot] != 0 && !is_same(names, names->table[slot] - 1, hash, text, length))
        slot = (slot + 1) & mask;
    return slot;
}

static tide_status grow_table(tide__import_names *names) {
    size_t size = names->table_size ? names->table_size * 2 : 64;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table) return tide__fail_memory();
    free(names->table);
    names->table = table;
    names->table_size = size;
    for (size_t id = 0; id < names->start.count; id++) {
        size_t slot = (size_t)names->hash.data[id] & (size - 1);
        while (table[slot] != 0) slot = (slot + 1) & (size - 1);
        table[slot] = (uint32_t)id + 1;
    }
    return TIDE_OK;
}

static tide_status add_name(tide__import_names *names, uint64_t hash, const char *text, size_t length) {
    if (names->start.count >= UINT32_MAX - 1) return tide__fail(TIDE_E_OVERFLOW, "too many names");
    TIDE_TRY(tide__vec_reserve(&names->text, length + 1));
    TIDE_TRY(tide__vec_reserve(&names->start, 1));
    TIDE_TRY(tide__vec_push(&names->hash, hash));
    names->start.data[names->start.count++] = names->text.count;
    memcpy(names->text.data + names->text.count, text, length);
    names->text.data[names->text.count + length] = '\0';
    names->text.count += length + 1;
    return TIDE_OK;
}

tide_status tide__names_intern(tide__import_names *names, const char *text, size_t length, uint32_t *id) {
    uint64_t hash = tide__hash_bytes(names->seed, text, length);
    if (names->start.count * 2 >= names->table_size) TIDE_TRY(grow_table(names));
    size_t slot = find_slot(names, hash, text, length);
    if (names->table[slot] == 0) {
        uint32_t next = (uint32_t)names->start.count;
        TIDE_TRY(add_name(names, hash, text, length));
        names->table[slot] = next + 1;
    }
    *id = names->table[slot] - 1;
    return TIDE_OK;
}
