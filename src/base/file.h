/* Whole files in, and atomic files out: a writer fills a temporary beside the target and renames it on commit, so
 * that nobody ever sees half a file. A symbolic link stays one: the file behind it is replaced. "-" is stdin or stdout; devices and pipes are written to directly. */
#ifndef TIDE_BASE_FILE_H
#define TIDE_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* The file in memory: mapped where possible, else read. text[size] is not readable. A file that is mapped must not
 * shrink until it is closed. */
typedef struct tide__file {
    const char *text;
    size_t size;
    void *owned; /* what to free: a mapping if mapped, else heap */
    int mapped;
    size_t dropped; /* bytes at the beginning that tide__file_drop has given back */
} tide__file;
/* Pipes and terminals are read to their end, up to TIDE__STREAM_MAX_BYTES; devices, which need not have one, are
 * refused. */
#define TIDE__STREAM_MAX_BYTES ((size_t)1 << 30)
tide_status tide__file_open(const char *path, tide__file *out);
/* Only a regular file will do: "-" is a name, and a pipe is refused without waiting for its writer. */
tide_status tide__file_open_regular(const char *path, tide__file *out);
/* The same as a stream to read from. */
tide_status tide__stream_open_regular(const char *path, FILE **out);
/* The regular file behind a descriptor, which the caller closes. `name` is for messages. */
tide_status tide__file_open_descriptor(int fd, const char *name, tide__file *out);
void tide__file_close(tide__file *file);
/* The caller is done with text[0, end): a mapping gives those pages back, so that a reader's peak memory does not
 * count the file. Cheap enough for every line. */
void tide__file_drop(tide__file *file, size_t end);
/* A mapping gives all its pages back; they come again when they are read. Any thread may read meanwhile. */
void tide__file_rest(const tide__file *file);

/* A file without a name, for bytes that do not fit memory: in `folder`, else $TMPDIR, else /tmp. `path`, for messages, is where it was
 * for a moment: "FOLDER/tidemark-KIND-...". The caller closes *fd. */
tide_status tide__scratch_open(const char *folder, const char *kind, char *path, size_t path_bytes, int *fd);

typedef struct tide__writer {
    FILE *stream;           /* write with fprintf, fputs, fwrite; errors are sticky and reported by commit */
    char *path, *temporary; /* NULL: stdout; NULL: written directly */
} tide__writer;
tide_status tide__writer_open(tide__writer *w, const char *path);
/* Only a regular file, or a new one, will do: "-" is a name, and a pipe is refused without waiting for its reader. Removes
 * what writers of the same file left behind when they were killed. */
tide_status tide__writer_open_regular(tide__writer *w, const char *path);
/* Could a writer be opened there? Nothing is left behind. Pipes and devices, where they will do, are not touched. */
tide_status tide__writer_check(const char *path, bool regular);
tide_status tide__writer_commit(tide__writer *w); /* closes in any case; on failure the target is untouched */
void tide__writer_abort(tide__writer *w);         /* removes the temporary; harmless after commit */

#endif
