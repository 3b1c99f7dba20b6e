/* See file.h. Invariant: a file that a writer targets is either its old self or the complete new content. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/path.h"

static tide_status read_stream(int fd, const char *path, tide__file *out) {
    char *data = NULL;
    size_t count = 0, capacity = 0;
    for (;;) {
        if (count == TIDE__STREAM_MAX_BYTES) {
            free(data);
            return tide__fail(TIDE_E_IO, "cannot read %s: a stream of %zu MiB or more; write it to a file first", path,
                              TIDE__STREAM_MAX_BYTES >> 20);
        }
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

static tide_status check_kind(int fd, const char *path, bool regular, struct stat *info) {
    if (fstat(fd, info) != 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot read %s", path);
    if (S_ISDIR(info->st_mode)) return tide__fail(TIDE_E_IO, "cannot read %s: it is a folder", path);
    if (S_ISBLK(info->st_mode) || (S_ISCHR(info->st_mode) && !isatty(fd)))
        return tide__fail(TIDE_E_IO, "cannot read %s: it is a device", path);
    if (regular && !S_ISREG(info->st_mode))
        return tide__fail(TIDE_E_IO, "cannot read %s: it is not a regular file", path);
    return TIDE_OK;
}

static tide_status open_descriptor(int fd, const char *path, bool regular, tide__file *out) {
    struct stat info;
    TIDE_TRY(check_kind(fd, path, regular, &info));
    if (!S_ISREG(info.st_mode) || info.st_size == 0) return read_stream(fd, path, out);
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) return read_stream(fd, path, out);
    (void)madvise(map, (size_t)info.st_size, MADV_SEQUENTIAL);
    *out = (tide__file){.text = map, .size = (size_t)info.st_size, .owned = map, .mapped = 1};
    return TIDE_OK;
}

static tide_status open_path(const char *path, bool regular, tide__file *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK : 0));
    if (fd < 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot open %s", path);
    tide_status status = open_descriptor(fd, path, regular, out);
    close(fd);
    return status;
}

/* Read even if it is a file: it need not stand at its beginning. */
static tide_status open_stdin(tide__file *out) {
    struct stat info;
    TIDE_TRY(check_kind(STDIN_FILENO, "standard input", false, &info));
    return read_stream(STDIN_FILENO, "standard input", out);
}

tide_status tide__file_open(const char *path, tide__file *out) {
    return strcmp(path, "-") == 0 ? open_stdin(out) : open_path(path, false, out);
}

tide_status tide__file_open_regular(const char *path, tide__file *out) { return open_path(path, true, out); }

tide_status tide__stream_open_regular(const char *path, FILE **out) {
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot open %s", path);
    tide_status status = check_kind(fd, path, true, &info);
    FILE *stream = status == TIDE_OK ? fdopen(fd, "rb") : NULL;
    if (status == TIDE_OK && !stream) status = tide__fail_memory();
    if (stream)
        *out = stream;
    else
        close(fd);
    return status;
}

tide_status tide__file_open_descriptor(int fd, const char *name, tide__file *out) {
    return open_descriptor(fd, name, true, out);
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

void tide__file_rest(const tide__file *file) {
    if (file->mapped) (void)madvise(file->owned, file->size, MADV_DONTNEED);
}

/* ---- without a name ---- */

tide_status tide__scratch_open(const char *folder, const char *kind, char *path, size_t path_bytes, int *fd) {
    if (!folder) folder = getenv("TMPDIR");
    if (!folder || !folder[0]) folder = "/tmp";
    int n = snprintf(path, path_bytes, "%s/tidemark-%s-XXXXXX", folder, kind);
    if (n < 0 || (size_t)n >= path_bytes)
        return tide__fail(TIDE_E_ARGUMENT, "the path of the %s file is too long", kind);
    int made = mkostemp(path, O_CLOEXEC);
    if (made < 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot create the %s file %s", kind, path);
    if (unlink(path) == 0) return *fd = made, TIDE_OK;
    int error = errno;
    close(made);
    return tide__fail_errno(TIDE_E_IO, error, "cannot unlink the %s file %s", kind, path);
}

static void writer_free(tide__writer *w) {
    free(w->path);
    free(w->temporary);
    *w = (tide__writer){0};
}

/* A new file beside the target, with the permissions any new file gets: mkstemp would make it private, and asking for
 * the umask means changing it for a moment, which other threads would notice. */
static int create_temporary(tide__writer *w, uint64_t i) {
    uint64_t tag = tide__hash_word(tide__hash_word(tide__now_ns(), (uint64_t)getpid()), i);
    free(w->temporary);
    w->temporary = tide__path_temporary(w->path, tag);
    return w->temporary ? open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
}

/* Someone may take a new file for a leftover before it is locked: then there is another try. */
static bool hold(int fd) {
    struct stat info;
    (void)flock(fd, LOCK_EX | LOCK_NB); /* where there are no locks, there are no others to be told */
    return fstat(fd, &info) != 0 || info.st_nlink > 0;
}

static int open_temporary(tide__writer *w) {
    for (uint64_t i = 0; i < 16; i++) {
        int fd = create_temporary(w, i);
        if (fd < 0 && errno != EEXIST) return -1;
        if (fd >= 0 && hold(fd)) return fd;
        if (fd >= 0) close(fd);
    }
    return -1;
}

/* Devices, pipes and the like are written to, never replaced. */
static bool is_special(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static tide_status open_file(tide__writer *w, const char *path) {
    *w = (tide__writer){0};
    TIDE_TRY(tide__path_follow(path, &w->path));
    int fd = is_special(path) ? open(path, O_WRONLY | O_CLOEXEC) : open_temporary(w);
    w->stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (w->stream) return TIDE_OK;
    int error = errno;
    if (fd >= 0) {
        close(fd);
        if (w->temporary) unlink(w->temporary);
    }
    writer_free(w);
    return error == ENOMEM ? tide__fail_memory() : tide__fail_errno(TIDE_E_IO, error, "cannot write %s", path);
}

tide_status tide__writer_open(tide__writer *w, const char *path) {
    if (strcmp(path, "-") != 0) return open_file(w, path);
    *w = (tide__writer){.stream = stdout};
    return TIDE_OK;
}

static tide_status refuse_special(const char *path) {
    return is_special(path) ? tide__fail(TIDE_E_IO, "cannot write %s: it is not a regular file", path) : TIDE_OK;
}

tide_status tide__writer_open_regular(tide__writer *w, const char *path) {
    TIDE_TRY(refuse_special(path));
    TIDE_TRY(open_file(w, path));
    tide__path_remove_leftovers(w->path);
    return TIDE_OK;
}

tide_status tide__writer_check(const char *path, bool regular) {
    tide__writer w;
    if (regular) TIDE_TRY(refuse_special(path));
    if (is_special(path) || (!regular && strcmp(path, "-") == 0)) return TIDE_OK;
    TIDE_TRY(open_file(&w, path));
    tide__writer_abort(&w);
    return TIDE_OK;
}

/* 0, or the errno of the first thing that went wrong. */
static int close_stream(tide__writer *w) {
    errno = 0;
    int error = fflush(w->stream) != 0 || ferror(w->stream) ? (errno ? errno : EIO) : 0;
    if (!w->path) return error; /* stdout is not ours to close */
    if (w->temporary && fsync(fileno(w->stream)) != 0 && !error) error = errno;
    if (fclose(w->stream) != 0 && !error) error = errno;
    return error;
}

tide_status tide__writer_commit(tide__writer *w) {
    tide_status status = TIDE_OK;
    int error = close_stream(w);
    if (!error && w->temporary && rename(w->temporary, w->path) != 0) error = errno;
    if (!error && w->temporary) tide__path_sync_folder(w->path);
    if (error) {
        status = tide__fail_errno(TIDE_E_IO, error, "cannot write %s", w->path ? w->path : "standard output");
        if (w->temporary) unlink(w->temporary);
    }
    writer_free(w);
    return status;
}

void tide__writer_abort(tide__writer *w) {
    if (w->path) {
        fclose(w->stream);
        if (w->temporary) unlink(w->temporary);
    }
    writer_free(w);
}
