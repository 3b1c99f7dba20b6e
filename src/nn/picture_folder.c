/* Folders of pictures as data sets: a folder per class, listed and sorted when it is opened, decoded when a sample is asked for.
 * See pictures.h.
 *
 * Invariant: a folder that is open has at least one picture in either part, and its order is that of the names alone. */
#include <tidemark/pictures.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/options.h"
#include "base/vec.h"
#include "nn/picture_sample.h"

#define MAX_PATH_BYTES 4096
enum { TEST_SHARE = 10 }; /* every so many pictures one is to test with */

typedef struct labelled {
    size_t path; /* in the folder's names */
    uint32_t label;
} labelled;

/* One part of the folder. */
typedef struct gallery {
    const tide_picture_folder *folder;
    TIDE_VEC(labelled) pictures;
    tide_data data;
} gallery;

struct tide_picture_folder {
    TIDE_VEC(char) names; /* zero-terminated, one after the other */
    TIDE_VEC(size_t) classes;
    tide__picture_rule rule;
    bool augments;
    uint32_t threads;
    gallery train, test;
};

/* ---- folders ---- */

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_picture(const char *name) {
    static const char *const ends[] = {".png", ".jpg", ".jpeg"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
        if (strcasecmp(dot, ends[i]) == 0) return true;
    return false;
}

static tide_status join(const char *folder, const char *name, char path[MAX_PATH_BYTES]) {
    int n = snprintf(path, MAX_PATH_BYTES, "%s/%s", folder, name);
    return n >= 0 && n < MAX_PATH_BYTES ? TIDE_OK : tide__fail(TIDE_E_ARGUMENT, "%s: too long a path", folder);
}

static int is_shown(const struct dirent *entry) { return entry->d_name[0] != '.'; }
static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

/* What to do with an entry of a folder; *done ends the walk. */
typedef tide_status (*visit_fn)(void *context, const char *path, const char *name, bool *done);

/* In the order of their names. */
static tide_status visit_entries(const char *folder, visit_fn fn, void *context) {
    struct dirent **entries;
    char path[MAX_PATH_BYTES];
    tide_status status = TIDE_OK;
    bool done = false;
    int n = scandir(folder, &entries, is_shown, by_name);
    if (n < 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot list %s", folder);
    for (int i = 0; i < n; i++) {
        if (status == TIDE_OK && !done) status = join(folder, entries[i]->d_name, path);
        if (status == TIDE_OK && !done) status = fn(context, path, entries[i]->d_name, &done);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static tide_status find_picture(void *found, const char *path, const char *name, bool *done) {
    if (is_picture(name) && !is_folder(path)) *(bool *)found = *done = true;
    return TIDE_OK;
}

static tide_status find_class(void *found, const char *path, const char *name, bool *done) {
    (void)name;
    if (is_folder(path)) TIDE_TRY(visit_entries(path, find_picture, found));
    *done = *(bool *)found;
    return TIDE_OK;
}

static bool has_classes(const char *path) {
    bool found = false;
    return visit_entries(path, find_class, &found) == TIDE_OK && found;
}

/* The folder in `folder` by the first of some names that has classes; false: none has. */
static bool find_part(const char *folder, const char *const *names, char path[MAX_PATH_BYTES]) {
    for (; *names; names++)
        if (join(folder, *names, path) == TIDE_OK && has_classes(path)) return true;
    return false;
}

static const char *const train_names[] = {"train", NULL}, *const test_names[] = {"val", "test", NULL};

bool tide_picture_folder_is(const char *path) {
    char train[MAX_PATH_BYTES];
    return path && (find_part(path, train_names, train) || has_classes(path));
}

/* ---- listing ---- */

typedef struct listing {
    tide_picture_folder *folder;
    gallery *gallery;
    uint32_t label;
    bool adds_classes; /* else they are those that are there */
} listing;

static tide_status add_name(tide_picture_folder *f, const char *name, size_t *at) {
    size_t size = strlen(name) + 1;
    TIDE_TRY(tide__vec_reserve(&f->names, size));
    *at = f->names.count;
    memcpy(f->names.data + f->names.count, name, size);
    f->names.count += size;
    return TIDE_OK;
}

static tide_status add_picture(void *context, const char *path, const char *name, bool *done) {
    listing *l = context;
    labelled one = {.label = l->label};
    (void)done;
    if (!is_picture(name) || is_folder(path)) return TIDE_OK;
    TIDE_TRY(add_name(l->folder, path, &one.path));
    return tide__vec_push(&l->gallery->pictures, one);
}

static tide_status find_label(const tide_picture_folder *f, const char *path, const char *name, uint32_t *label) {
    for (*label = 0; *label < f->classes.count; (*label)++)
        if (strcmp(f->names.data + f->classes.data[*label], name) == 0) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "%s: there is no class of this name to learn from", path);
}

static tide_status add_class(void *context, const char *path, const char *name, bool *done) {
    listing *l = context;
    size_t at;
    (void)done;
    if (!is_folder(path)) return TIDE_OK;
    if (!l->adds_classes) {
        TIDE_TRY(find_label(l->folder, path, name, &l->label));
        return visit_entries(path, add_picture, l);
    }
    if (l->folder->classes.count >= INT32_MAX) return tide__fail(TIDE_E_FORMAT, "%s: too many classes", path);
    l->label = (uint32_t)l->folder->classes.count;
    TIDE_TRY(add_name(l->folder, name, &at));
    TIDE_TRY(tide__vec_push(&l->folder->classes, at));
    return visit_entries(path, add_picture, l);
}

/* Every tenth picture goes over, so that all classes are tested; the last, where there are fewer. */
static tide_status hold_out(gallery *train, gallery *test) {
    size_t n = train->pictures.count, kept = 0, every = n < TEST_SHARE ? n : TEST_SHARE;
    for (size_t i = 0; i < n; i++) {
        labelled one = train->pictures.data[i];
        if (i % every == every - 1)
            TIDE_TRY(tide__vec_push(&test->pictures, one));
        else
            train->pictures.data[kept++] = one;
    }
    train->pictures.count = kept;
    return TIDE_OK;
}

static tide_status list_pictures(tide_picture_folder *f, const char *path) {
    char part[MAX_PATH_BYTES];
    listing train = {.folder = f, .gallery = &f->train, .adds_classes = true};
    listing test = {.folder = f, .gallery = &f->test};
    bool split = find_part(path, train_names, part);
    TIDE_TRY(visit_entries(split ? part : path, add_class, &train));
    if (split && find_part(path, test_names, part)) TIDE_TRY(visit_entries(part, add_class, &test));
    if (f->test.pictures.count == 0 && f->train.pictures.count) TIDE_TRY(hold_out(&f->train, &f->test));
    if (f->train.pictures.count && f->test.pictures.count && f->classes.count >= 2) return TIDE_OK;
    return tide__fail(TIDE_E_FORMAT, "%s: %zu classes with %zu pictures to learn from and %zu to test with are too few",
                      path, f->classes.count, f->train.pictures.count, f->test.pictures.count);
}

/* ---- samples ---- */

static const char *path_of(const gallery *g, uint64_t index, int32_t *label) {
    *label = (int32_t)g->pictures.data[index].label;
    return g->folder->names.data + g->pictures.data[index].path;
}

static tide_status sample(void *context, uint64_t index, float *pixels, int32_t *label) {
    const gallery *g = context;
    return tide__picture_look(path_of(g, index, label), &g->folder->rule, pixels);
}

static tide_status vary(void *context, uint64_t index, uint64_t draw, float *pixels, int32_t *label) {
    const gallery *g = context;
    return tide__picture_learn(path_of(g, index, label), &g->folder->rule, draw, pixels);
}

static void describe(tide_picture_folder *f, gallery *g) {
    g->folder = f;
    g->data = (tide_data){.size = sizeof g->data,
                          .name = "pictures",
                          .n_samples = g->pictures.count,
                          .channels = f->rule.channels,
                          .height = f->rule.height,
                          .width = f->rule.width,
                          .classes = (uint32_t)f->classes.count,
                          .labels = 1,
                          .sample = sample,
                          .vary = f->augments ? vary : NULL,
                          .threads = f->threads,
                          .context = g};
}

/* ---- life ---- */

void tide_picture_folder_options_init(tide_picture_folder_options *o) {
    *o = (tide_picture_folder_options){.size = sizeof *o, .least_area = 0.08f};
}

tide_status tide_picture_folder_open(const char *path, const tide_picture_folder_options *options,
                                     tide_picture_folder **out) {
    tide_picture_folder_options o;
    tide_picture_folder_options_init(&o);
    TIDE_NEED(path, out);
    TIDE_TRY(tide__options_take("tide_picture_folder_options", options, sizeof o, &o));
    tide__picture_rule rule = {o.channels, o.height, o.width, o.seed, o.least_area};
    TIDE_TRY(tide__picture_check_rule(&rule));
    tide_picture_folder *f = calloc(1, sizeof *f);
    if (!f) return tide__fail_memory();
    f->rule = rule;
    f->augments = !o.no_augment;
    f->threads = o.threads;
    tide_status status = list_pictures(f, path);
    if (status != TIDE_OK) {
        tide_picture_folder_close(f);
        return status;
    }
    describe(f, &f->train);
    describe(f, &f->test);
    *out = f;
    return TIDE_OK;
}

void tide_picture_folder_close(tide_picture_folder *f) {
    if (!f) return;
    tide__vec_free(&f->names);
    tide__vec_free(&f->classes);
    tide__vec_free(&f->train.pictures);
    tide__vec_free(&f->test.pictures);
    free(f);
}

uint32_t tide_picture_folder_classes(const tide_picture_folder *f) { return (uint32_t)f->classes.count; }

const char *tide_picture_folder_class(const tide_picture_folder *f, uint32_t i) {
    return i < f->classes.count ? f->names.data + f->classes.data[i] : NULL;
}

const tide_data *tide_picture_folder_train(const tide_picture_folder *f) { return &f->train.data; }
const tide_data *tide_picture_folder_test(const tide_picture_folder *f) { return &f->test.data; }
