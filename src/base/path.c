/* See path.h. */
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MOST_LINKS = 40, TAG_DIGITS = 16 };
static const char mark[] = ".tmp-";

/* Of the name without its folder; the folder, with its slash, is what stands before. */
static size_t name_at(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* ---- links ---- */

/* What a link says is relative to its own folder. */
static char *step_on(const char *path, const char *target) {
    size_t folder = *target == '/' ? 0 : name_at(path), length = strlen(target);
    char *out = malloc(folder + length + 1);
    if (!out) return NULL;
    memcpy(out, path, folder);
    memcpy(out + folder, target, length + 1);
    return out;
}

tide_status tide__path_follow(const char *path, char **out) {
    char target[PATH_MAX], *at = strdup(path);
    for (int i = 0; at; i++) {
        ssize_t n = readlink(at, target, sizeof target - 1);
        if (n < 0) break; /* no link: it is here */
        target[n] = '\0';
        char *next = step_on(at, target);
        free(at);
        at = next;
        if (at && i == MOST_LINKS) {
            free(at);
            return tide__fail_errno(TIDE_E_IO, ELOOP, "cannot write %s", path);
        }
    }
    if (!at) return tide__fail_memory();
    *out = at;
    return TIDE_OK;
}

/* ---- the folder ---- */

static char *folder_of(const char *path) {
    size_t n = name_at(path);
    return n ? strndup(path, n) : strdup(".");
}

void tide__path_sync_folder(const char *path) {
    char *folder = folder_of(path);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* ---- temporaries ---- */

char *tide__path_temporary(const char *path, unsigned long long tag) {
    size_t size = strlen(path) + sizeof mark + TAG_DIGITS;
    char *out = malloc(size);
    if (out) snprintf(out, size, "%s%s%0*llx", path, mark, TAG_DIGITS, tag);
    return out;
}

static bool is_temporary_of(const char *entry, const char *name) {
    size_t length = strlen(name), marked = length + sizeof mark - 1;
    return strncmp(entry, name, length) == 0 && strncmp(entry + length, mark, sizeof mark - 1) == 0 &&
           strspn(entry + marked, "0123456789abcdef") == TAG_DIGITS && entry[marked + TAG_DIGITS] == '\0';
}

static void remove_unheld(int folder, const char *entry) {
    int fd = openat(folder, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) (void)unlinkat(folder, entry, 0);
    close(fd);
}

void tide__path_remove_leftovers(const char *path) {
    char *folder = folder_of(path);
    DIR *entries = folder ? opendir(folder) : NULL;
    free(folder);
    if (!entries) return;
    for (const struct dirent *e; (e = readdir(entries)) != NULL;)
        if (is_temporary_of(e->d_name, path + name_at(path))) remove_unheld(dirfd(entries), e->d_name);
    closedir(entries);
}
