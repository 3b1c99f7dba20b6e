/* See file.h. Invariant: the target of a writer is either its old self or the complete new content. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static tide_status read_stream(int fd, const char *path, tide__file *out) {
    char *data = NULL;
    size_t count = 0, capacity = 0;
    for (;;) {
        if (count == capacity) {
            size_t next = capacity ? capacity * 2 : 65536;
            char *grown = realloc(data, next);
            if (!grown) {
                free(data);
                return tide__fail_memory();
            }
            data = grown;
            capacity = next;
        }
        ssize_t n = read(fd, data + count, capacity - count);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            int error = errno;
            free(data);
            return tide__fail_errno(TIDE_E_IO, error, "cannot read %s", path);
        }
        if (n == 0) break;
        count += (size_t)n;
    }
    *out = (tide__file){.text = data, .size = count, .owned = data};
    return TIDE_OK;
}

static tide_status open_descriptor(int fd, const char *path, tide__file *out) {
    struct stat info;
    if (fstat(fd, &info) != 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot read %s", path);
    if (S_ISDIR(info.st_mode)) return tide__fail(TIDE_E_IO, "cannot read %s: it is a folder", path);
    if (!S_ISREG(info.st_mode) || info.st_size == 0) return read_stream(fd, path, out);
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) return read_stream(fd, path, out);
    (void)madvise(map, (size_t)info.st_size, MADV_SEQUENTIAL);
    *out = (tide__file){.text = map, .size = (size_t)info.st_size, .owned = map, .mapped = 1};
    return TIDE_OK;
}

tide_status tide__file_open(const char *path, tide__file *out) {
    if (strcmp(path, "-") == 0) return read_stream(STDIN_FILENO, "standard input", out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot open %s", path);
    tide_status status = open_descriptor(fd, path, out);
    close(fd);
    return status;
}

void tide__file_close(tide__file *file) {
    if (file->mapped)
        munmap(file->owned, file->size);
    else
        free(file->owned);
    *file = (tide__file){0};
}

void tide__file_drop(tide__file *file, size_t end) {
    size_t step = (size_t)1 << 20; /* a multiple of every page size */
    end -= end % step;
    if (!file->mapped || end <= file->dropped) return;
    (void)madvise((char *)file->owned + file->dropped, end - file->dropped, MADV_DONTNEED);
    file->dropped = end;
}

static void writer_free(tide__writer *w) {
    free(w->path);
    free(w->temporary);
    *w = (tide__writer){0};
}

tide_status tide__writer_open(tide__writer *w, const char *path) {
    *w = (tide__writer){0};
    if (strcmp(path, "-") == 0) {
        w->stream = stdout;
        return TIDE_OK;
    }
    size_t length = strlen(path) + sizeof ".tmp-XXXXXX";
    w->path = strdup(path);
    w->temporary = malloc(length);
    if (!w->path || !w->temporary) {
        writer_free(w);
        return tide__fail_memory();
    }
    snprintf(w->temporary, length, "%s.tmp-XXXXXX", path);
    int fd = mkostemp(w->temporary, O_CLOEXEC);
    if (fd < 0) {
        int error = errno;
        writer_free(w);
        return tide__fail_errno(TIDE_E_IO, error, "cannot write %s", path);
    }
    mode_t mask = umask(0);
    umask(mask);
    (void)fchmod(fd, 0666 & ~mask); /* mkstemp gives 0600; the result should look like any other file */
    w->stream = fdopen(fd, "w");
    if (w->stream) return TIDE_OK;
    close(fd);
    unlink(w->temporary);
    writer_free(w);
    return tide__fail_memory();
}

tide_status tide__writer_commit(tide__writer *w) {
    tide_status status = TIDE_OK;
    int failed = ferror(w->stream) || fflush(w->stream) != 0;
    if (!w->path) { /* stdout is not ours to close */
        if (failed) status = tide__fail(TIDE_E_IO, "cannot write standard output");
        writer_free(w);
        return status;
    }
    failed |= fsync(fileno(w->stream)) != 0;
    failed |= fclose(w->stream) != 0;
    if (failed || rename(w->temporary, w->path) != 0) {
        status = tide__fail_errno(TIDE_E_IO, errno, "cannot write %s", w->path);
        unlink(w->temporary);
    }
    writer_free(w);
    return status;
}

void tide__writer_abort(tide__writer *w) {
    if (w->path) {
        fclose(w->stream);
        unlink(w->temporary);
    }
    writer_free(w);
}
