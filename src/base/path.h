/* Where a file really lies, and the folder around it: what writing a file safely needs besides its bytes. */
#ifndef TIDE_BASE_PATH_H
#define TIDE_BASE_PATH_H

#include "base/error.h"

/* The path behind symbolic links, also where the last one leads to no file yet; *out is freed with free(). */
tide_status tide__path_follow(const char *path, char **out);
/* A rename in the folder of `path` is on disk after this, where the file system can say so. */
void tide__path_sync_folder(const char *path);

/* "PATH.tmp-0123456789abcdef", for a tag; freed with free(), NULL without memory. Whoever writes to such a file holds a lock
 * (flock) on it, which ends with the process. */
char *tide__path_temporary(const char *path, unsigned long long tag);
/* Removes the temporaries of `path` that nobody holds any more: their writers were killed. */
void tide__path_remove_leftovers(const char *path);

#endif
