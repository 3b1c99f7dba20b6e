/* See scratch_file.h. */
#include "support/scratch_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char scratch_folder[] = "/tmp/tidemark-test-XXXXXX", scratch_path[64];

int scratch_open(void **state) {
    (void)state;
    if (!mkdtemp(scratch_folder)) return -1;
    snprintf(scratch_path, sizeof scratch_path, "%s/file", scratch_folder);
    return 0;
}

int scratch_close(void **state) {
    (void)state;
    unlink(scratch_path);
    return rmdir(scratch_folder);
}
