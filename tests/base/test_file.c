/* Writers: all or nothing for files, straight through for everything else. */
#include "support/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char folder[] = "/tmp/tidemark-file-XXXXXX";
static char path[64];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails if a temporary is left */
}

static void write_file(const char *text) {
    tide__writer w;
    assert_ok(tide__writer_open(&w, path));
    fputs(text, w.stream);
    assert_ok(tide__writer_commit(&w));
}

static void assert_content(const char *text) {
    tide__file file;
    assert_ok(tide__file_open(path, &file));
    assert_int_equal(file.size, strlen(text));
    if (*text) assert_memory_equal(file.text, text, file.size);
    tide__file_close(&file);
}

static void test_all_or_nothing(void **state) {
    (void)state;
    tide__writer w;
    write_file("old");
    assert_ok(tide__writer_open(&w, path));
    fputs("new", w.stream);
    fflush(w.stream);
    assert_content("old");
    tide__writer_abort(&w);
    assert_content("old");
    write_file("new");
    assert_content("new");
    write_file("");
    assert_content("");
}

static void test_permissions(void **state) {
    (void)state;
    mode_t mask = umask(027);
    struct stat info;
    unlink(path);
    write_file("x");
    umask(mask);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
}

static void test_devices(void **state) {
    (void)state;
    tide__writer w;
    struct stat info;
    assert_ok(tide__writer_open(&w, "/dev/null"));
    fputs("gone", w.stream);
    assert_ok(tide__writer_commit(&w));
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode)); /* not replaced by a file */
    assert_ok(tide__writer_open(&w, "/dev/full"));
    fputs("no room", w.stream);
    assert_status(tide__writer_commit(&w), TIDE_E_IO);
    assert_error_has("cannot write /dev/full: No space left");
}

static void test_failures(void **state) {
    (void)state;
    tide__writer w;
    tide__file file;
    assert_status(tide__writer_open(&w, folder), TIDE_E_IO);
    assert_error_has("Is a directory");
    assert_status(tide__writer_open(&w, "/nowhere/at/all"), TIDE_E_IO);
    assert_error_has("cannot write /nowhere/at/all");
    assert_status(tide__file_open(folder, &file), TIDE_E_IO);
    assert_error_has("it is a folder");
    assert_status(tide__file_open("/dev/zero", &file), TIDE_E_IO);
    assert_error_has("cannot read /dev/zero: it is a device");
    assert_status(tide__file_open_regular("-", &file), TIDE_E_IO);
    assert_error_has("cannot open -");
}

static void test_pipes(void **state) {
    (void)state;
    tide__file file;
    int ends[2];
    char name[32];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "text", 4), 4);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    assert_status(tide__file_open_regular(name, &file), TIDE_E_IO);
    assert_error_has("it is not a regular file");
    assert_ok(tide__file_open(name, &file));
    assert_int_equal(file.size, 4);
    assert_memory_equal(file.text, "text", 4);
    tide__file_close(&file);
    close(ends[0]);
}

static void test_links(void **state) {
    (void)state;
    char link_path[80], aim[80];
    struct stat info;
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    snprintf(aim, sizeof aim, "%s/aim", folder);
    assert_int_equal(symlink("aim", link_path), 0); /* to no file yet, relative to its own folder */
    for (int i = 0; i < 2; i++) {
        tide__writer w;
        assert_ok(tide__writer_open(&w, link_path));
        fputs("text", w.stream);
        assert_ok(tide__writer_commit(&w));
        assert_true(lstat(link_path, &info) == 0 && S_ISLNK(info.st_mode));
        assert_true(lstat(aim, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 4);
    }
    unlink(aim);
    unlink(link_path);
    assert_int_equal(symlink("link", link_path), 0);
    tide__writer w;
    assert_status(tide__writer_open(&w, link_path), TIDE_E_IO);
    unlink(link_path);
}

static void touch(const char *name) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fclose(f);
}

/* What a killed writer left goes with the next one; what is being written, and what only looks alike, stays. */
static void test_leftovers(void **state) {
    (void)state;
    char left[96], alike[96];
    tide__writer first, second;
    snprintf(left, sizeof left, "%s.tmp-0123456789abcdef", path);
    snprintf(alike, sizeof alike, "%s.tmp-0123456789abcdeg", path);
    touch(left);
    touch(alike);
    assert_ok(tide__writer_open_regular(&first, path));
    assert_int_equal(access(left, F_OK), -1);
    assert_ok(tide__writer_open_regular(&second, path));
    fputs("first", first.stream);
    assert_ok(tide__writer_commit(&first));
    assert_content("first");
    tide__writer_abort(&second);
    assert_int_equal(unlink(alike), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_or_nothing), cmocka_unit_test(test_permissions), cmocka_unit_test(test_devices),
        cmocka_unit_test(test_failures),       cmocka_unit_test(test_pipes),       cmocka_unit_test(test_links),
        cmocka_unit_test(test_leftovers),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
