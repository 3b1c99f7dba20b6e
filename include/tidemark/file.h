/* Whole files, as everything here reads and writes them: "-" is stdin or stdout, and nobody ever sees half a file. */
#ifndef TIDEMARK_FILE_H
#define TIDEMARK_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <tidemark/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A file in memory, mapped where that can be: then it must not shrink until it is closed. Pipes are read to their end, up
 * to 1 GiB; devices are refused. */
typedef struct tide_file tide_file;
TIDE_API tide_status tide_file_open(const char *path, tide_file **out);
TIDE_API void tide_file_close(tide_file *file);             /* NULL is fine */
TIDE_API const char *tide_file_text(const tide_file *file); /* without a zero behind it */
TIDE_API size_t tide_file_size(const tide_file *file);

/* Replaces the file at once when all of it is on disk; on failure it is untouched. Pipes and devices are written to. */
TIDE_API tide_status tide_file_write(const char *path, const void *bytes, size_t size);
/* Could a file be written there? Nothing is left behind. regular: pipes and devices are refused; else they are not
 * touched. */
TIDE_API tide_status tide_file_check(const char *path, bool regular);

#ifdef __cplusplus
}
#endif
#endif
