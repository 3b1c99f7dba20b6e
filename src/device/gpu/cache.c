/* What a device has built or measured, on disk: $XDG_CACHE_HOME (or ~/.cache)/tidemark/DEVICE/KEY.bin, a header and bytes.
 *
 * The folder is the user's, so its files may be damaged or old: header, size and a hash of the content must agree, or
 * the file counts as missing and is written anew. Files appear whole (base/file.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "device/gpu/cache.h"

#define MAGIC UINT64_C(0x31304c434b4d4454) /* "TDMKCL01" */

typedef struct header {
    uint64_t magic, key, size, hash;
} header;

/* "" and false where there is no home. */
static bool folder_path(const char *device, char *out, size_t size, bool create) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = cache && cache[0] == '/' ? snprintf(out, size, "%s", cache)
            : home && home[0] == '/' ? snprintf(out, size, "%s/.cache", home)
                                     : -1;
    const char *const parts[] = {"", "/tidemark", "/", device};
    for (size_t i = 0; n > 0 && i < sizeof parts / sizeof parts[0]; i++) {
        if ((size_t)n + strlen(parts[i]) + 1 > size) return false;
        n += snprintf(out + n, size - (size_t)n, "%s", parts[i]);
        if (create && i != 2) mkdir(out, 0700); /* fails where it exists */
    }
    return n > 0;
}

static bool file_path(const char *device, uint64_t key, bool create, char *out, size_t size) {
    char folder[1024];
    if (!folder_path(device, folder, sizeof folder, create)) return false;
    return snprintf(out, size, "%s/%016llx.bin", folder, (unsigned long long)key) < (int)size;
}

static bool is_sound(const header *h, uint64_t key, const tide__file *file) {
    return h->magic == MAGIC && h->key == key && h->size == file->size - sizeof *h && h->size > 0 &&
           h->hash == tide__hash_bytes(key, file->text + sizeof *h, file->size - sizeof *h);
}

unsigned char *tide__gpu_cache_read(const char *device, uint64_t key, size_t *size) {
    char path[1100];
    tide__file file;
    header h;
    unsigned char *binary = NULL;
    struct stat info;
    if (!file_path(device, key, false, path, sizeof path) || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return NULL;
    if (tide__file_open(path, &file) != TIDE_OK) return NULL;
    if (file.size > sizeof h) {
        memcpy(&h, file.text, sizeof h);
        if (is_sound(&h, key, &file)) binary = malloc(h.size);
        if (binary) memcpy(binary, file.text + sizeof h, h.size);
        *size = binary ? h.size : 0;
    }
    tide__file_close(&file);
    return binary;
}

bool tide__gpu_cache_keep(const char *device, uint64_t key, void *record, size_t size) {
    char path[1100], fresh[1200];
    size_t stored_size = 0;
    tide__writer w;
    const header h = {MAGIC, key, size, tide__hash_bytes(key, record, size)};
    if (!file_path(device, key, true, path, sizeof path)) return false;
    snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
    if (tide__writer_open(&w, fresh) != TIDE_OK) return false;
    fwrite(&h, sizeof h, 1, w.stream);
    fwrite(record, size, 1, w.stream);
    if (tide__writer_commit(&w) != TIDE_OK) return false;
    (void)link(fresh, path); /* fails where another process was first */
    unlink(fresh);
    unsigned char *stored = tide__gpu_cache_read(device, key, &stored_size);
    const bool kept = stored && stored_size == size;
    if (kept) memcpy(record, stored, size);
    if (!kept) unlink(path); /* damaged: the next process measures anew */
    free(stored);
    return kept;
}

void tide__gpu_cache_write(const char *device, uint64_t key, const unsigned char *binary, size_t size) {
    char path[1100];
    tide__writer w;
    const header h = {MAGIC, key, size, tide__hash_bytes(key, binary, size)};
    if (!file_path(device, key, true, path, sizeof path) || tide__writer_open(&w, path) != TIDE_OK) return;
    fwrite(&h, sizeof h, 1, w.stream);
    fwrite(binary, size, 1, w.stream);
    (void)tide__writer_commit(&w); /* a file that could not be written is missing, and is built again */
}
