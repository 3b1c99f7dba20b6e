/* Out of host memory at every single allocation while data sets are opened from files: an error, and nothing is lost. */
#include "support/test.h"

#include <tidemark/train.h>
#include <unistd.h>

#include "support/short_memory.h"

static char folder[] = "/tmp/tidemark-data-memory-XXXXXX";

static void put_file(const char *name, const void *bytes, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void remove_file(const char *name) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

static tide_status open_text(void) {
    tide_data_files *files;
    char path[64];
    snprintf(path, sizeof path, "%s/text", folder);
    tide_status status = tide_data_files_open(path, 2, 1, &files);
    if (status == TIDE_OK) tide_data_files_close(files);
    return status;
}

static tide_status open_both(void *context) {
    (void)context;
    tide_data_files *files;
    float pixels[2];
    int32_t label;
    tide_status status = tide_data_files_open(folder, 0, 1, &files);
    if (status != TIDE_OK) return status;
    const tide_data *test = tide_data_files_test(files);
    assert_ok(test->sample(test->context, 0, pixels, &label));
    assert_int_equal(label, 1);
    tide_data_files_close(files);
    return open_text();
}

static void test_files(void **state) {
    (void)state;
    static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4},
                               labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 0, 1};
    assert_non_null(mkdtemp(folder));
    put_file("train-images-idx3-ubyte", images, sizeof images);
    put_file("train-labels-idx1-ubyte", labels, sizeof labels);
    put_file("text", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", 52);
    exhaust(open_both, NULL);
    remove_file("train-images-idx3-ubyte");
    remove_file("train-labels-idx1-ubyte");
    remove_file("text");
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
