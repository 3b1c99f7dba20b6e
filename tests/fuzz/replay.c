/* Replays a fuzzing corpus without a fuzzer, so that every build tests what fuzzing has found.
 *
 * replay FOLDER feeds each file of the folder to LLVMFuzzerTestOneInput: as it is, cut short, and with single bits
 * flipped. Where the damage falls is a pure function of the bytes, so a failure repeats; its file, its kind and its
 * place are known from the last line printed before a crash when REPLAY_VERBOSE is set. A missing or empty folder is
 * an error: a target without seeds tests nothing. */
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CUTS = 24, FLIPS = 40 };

/* Exactly `size` bytes on the heap, so that a sanitizer sees a read past the end. */
static void feed(const char *name, const char *kind, const uint8_t *data, size_t size, size_t flip_bit) {
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) abort();
    if (size) memcpy(copy, data, size);
    if (flip_bit / 8 < size) copy[flip_bit / 8] ^= (uint8_t)(1u << flip_bit % 8);
    if (getenv("REPLAY_VERBOSE")) fprintf(stderr, "%s: %s, %zu bytes, bit %zu\n", name, kind, size, flip_bit);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void feed_damaged(const char *name, const uint8_t *data, size_t size) {
    feed(name, "whole", data, size, SIZE_MAX);
    if (!size) return;
    uint64_t seed = tide__hash_bytes(0, data, size);
    for (uint64_t i = 0; i < CUTS; i++) feed(name, "cut", data, (size_t)(tide__hash_word(seed, i) % size), SIZE_MAX);
    for (uint64_t i = 0; i < FLIPS; i++)
        feed(name, "flipped", data, size, (size_t)(tide__hash_word(seed, CUTS + i) % (size * 8)));
}

/* The bytes of a file, to be freed by the caller; NULL on failure. */
static uint8_t *slurp(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    size_t capacity = 1 << 16, count = 0;
    uint8_t *data = malloc(capacity);
    while (data) {
        count += fread(data + count, 1, capacity - count, file);
        if (count < capacity) break;
        uint8_t *larger = realloc(data, capacity *= 2);
        if (!larger) free(data);
        data = larger;
    }
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed) {
        free(data);
        return NULL;
    }
    *size = count;
    return data;
}

static bool replay_file(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    size_t size = 0;
    uint8_t *data = slurp(path, &size);
    if (!data) {
        fprintf(stderr, "replay: cannot read %s\n", path);
        return false;
    }
    feed_damaged(name, data, size);
    free(data);
    return true;
}

static int not_hidden(const struct dirent *entry) { return entry->d_name[0] != '.'; }

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    struct dirent **entries = NULL;
    int n = scandir(argv[1], &entries, not_hidden, alphasort);
    if (n <= 0) {
        fprintf(stderr, "replay: no seeds in %s\n", argv[1]);
        return 1;
    }
    bool ok = true;
    for (int i = 0; i < n; i++) {
        ok = replay_file(argv[1], entries[i]->d_name) && ok;
        free(entries[i]);
    }
    free(entries);
    printf("%d seeds, each whole, %d times cut and %d times flipped\n", n, CUTS, FLIPS);
    return ok ? 0 : 1;
}
