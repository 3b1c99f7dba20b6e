/* See <tidemark/file.h>: base/file.h for clients. */
#include <tidemark/file.h>

#include <stdlib.h>

#include "base/file.h"

struct tide_file {
    tide__file file;
};

tide_status tide_file_open(const char *path, tide_file **out) {
    if (!path || !out) return tide__fail(TIDE_E_ARGUMENT, "a file needs a path and a place for its handle");
    tide_file *f = calloc(1, sizeof *f);
    if (!f) return tide__fail_memory();
    tide_status status = tide__file_open(path, &f->file);
    if (status == TIDE_OK)
        *out = f;
    else
        free(f);
    return status;
}

void tide_file_close(tide_file *f) {
    if (f) tide__file_close(&f->file);
    free(f);
}

const char *tide_file_text(const tide_file *f) { return f->file.text; }
size_t tide_file_size(const tide_file *f) { return f->file.size; }

tide_status tide_file_write(const char *path, const void *bytes, size_t size) {
    tide__writer w;
    if (!path || (!bytes && size)) return tide__fail(TIDE_E_ARGUMENT, "a file needs a path and its bytes");
    TIDE_TRY(tide__writer_open(&w, path));
    if (size) fwrite(bytes, 1, size, w.stream); /* errors are sticky */
    return tide__writer_commit(&w);
}

tide_status tide_file_check(const char *path, bool regular) {
    if (!path) return tide__fail(TIDE_E_ARGUMENT, "a file needs a path");
    return tide__writer_check(path, regular);
}
