/* See edit_header.h. */
#include "support/edit_header.h"

#include "support/test.h"

enum { MOST = 1 << 18 };

static size_t read_file(const char *path, char *bytes) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t size = fread(bytes, 1, MOST, f);
    assert_true(size > 8 && size < MOST);
    fclose(f);
    return size;
}

static char *replace(const char *text, const char *from, const char *to) {
    static char out[MOST];
    size_t n = 0, used = 0;
    for (const char *at; (at = strstr(text, from)) != NULL; n++, text = at + strlen(from))
        used += (size_t)snprintf(out + used, sizeof out - used, "%.*s%s", (int)(at - text), text, to);
    assert_true(n > 0 && used + strlen(text) < sizeof out);
    strcpy(out + used, text);
    return out;
}

void edit_header(const char *path, const char *from, const char *to) {
    static char bytes[MOST], header[MOST];
    size_t size = read_file(path, bytes), length = (unsigned char)bytes[0] | (size_t)(unsigned char)bytes[1] << 8;
    memcpy(header, bytes + 8, length);
    header[length] = '\0';
    const char *edited = replace(header, from, to);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 0; i < 8; i++) fputc((int)(strlen(edited) >> (8 * i) & 255), f);
    fputs(edited, f);
    fwrite(bytes + 8 + length, 1, size - 8 - length, f);
    assert_int_equal(fclose(f), 0);
}
