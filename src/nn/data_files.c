/* Data sets in files: what is in a folder or a file, opened, checked and split into a part to learn from and one to test
 * with. The readers are in image_files.c, windows of a text in text.c.
 *
 * Invariant: a set that is open has at least one sample in either part, and all labels are classes. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "nn/bpe.h"
#include "nn/gunzip.h"
#include "nn/images.h"

#define TEST_SEED UINT64_C(0x74657374) /* other windows than those it learned from */
#define MAX_PATH_BYTES 4096

/* What the samples of one part are in `images`. */
typedef struct part {
    const tide__images *images;
    uint64_t first;
} part;

/* Samples as they are, and the set whose files they are in. */
typedef struct resting {
    tide_data inner;
    tide_data_files *set;
} resting;

struct tide_data_files {
    TIDE_VEC(tide__file) files;
    const char *format;                     /* of images; NULL: a text */
    tide__images train_images, test_images; /* the second is empty if part of the first is for testing */
    part train_part, test_part;
    tide_text train_text, test_text;
    resting train_samples, test_samples;
    atomic_uint n_taken; /* samples, since the files were last at rest */
    tide_data train, test;
};

/* ---- paths ---- */

static tide_status join(const char *folder, const char *name, char path[MAX_PATH_BYTES]) {
    int n = snprintf(path, MAX_PATH_BYTES, "%s/%s", folder, name);
    if (n >= 0 && n < MAX_PATH_BYTES) return TIDE_OK;
    return tide__fail(TIDE_E_ARGUMENT, "the path of %s is too long", name);
}

static bool exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* The first of some names that is in the folder; false: none is. */
static bool find_name(const char *folder, const char *const *names, char path[MAX_PATH_BYTES]) {
    for (; *names; names++)
        if (join(folder, *names, path) == TIDE_OK && exists(path)) return true;
    return false;
}

/* In place of a packed file, what it unpacks to. */
static tide_status unpack(const char *path, tide__file *file) {
    tide__file unpacked;
    tide_status status = tide__gunzip(file->text, file->size, &unpacked);
    if (status != TIDE_OK) return tide__fail_in(status, "%s", path);
    tide__file_close(file);
    *file = unpacked;
    return TIDE_OK;
}

/* Maps a file that stays open with the set. */
static tide_status open_file(tide_data_files *f, const char *path, tide__file *out) {
    TIDE_TRY(tide__file_open_regular(path, out));
    tide_status status = tide__is_gzip(out->text, out->size) ? unpack(path, out) : TIDE_OK;
    if (status == TIDE_OK) status = tide__vec_push(&f->files, *out);
    if (status != TIDE_OK) tide__file_close(out);
    return status;
}

/* ---- idx ---- */

static tide_status add_idx(tide_data_files *f, const char *images, const char *labels, tide__images *set) {
    tide__file file;
    tide__image_shape shape;
    tide__image_block block;
    TIDE_TRY(open_file(f, images, &file));
    TIDE_TRY(tide__idx_images(file.text, file.size, images, &shape, &block));
    block.file = file;
    TIDE_TRY(open_file(f, labels, &file));
    TIDE_TRY(tide__idx_labels(file.text, file.size, labels, &block));
    return tide__images_add(set, &shape, &block, images);
}

static const char *const train_images[] = {"train-images-idx3-ubyte", "train-images.idx3-ubyte",
                                           "train-images-idx3-ubyte.gz", NULL},
                         *const train_labels[] = {"train-labels-idx1-ubyte", "train-labels.idx1-ubyte",
                                                  "train-labels-idx1-ubyte.gz", NULL},
                         *const test_images[] = {"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte",
                                                 "t10k-images-idx3-ubyte.gz", NULL},
                         *const test_labels[] = {"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte",
                                                 "t10k-labels-idx1-ubyte.gz", NULL};

static tide_status open_mnist(tide_data_files *f, const char *folder) {
    char images[MAX_PATH_BYTES], labels[MAX_PATH_BYTES];
    (void)find_name(folder, train_images, images);
    if (!find_name(folder, train_labels, labels))
        return tide__fail(TIDE_E_IO, "%s: there are images, but no %s", folder, train_labels[0]);
    TIDE_TRY(add_idx(f, images, labels, &f->train_images));
    if (!find_name(folder, test_images, images)) return TIDE_OK;
    if (!find_name(folder, test_labels, labels))
        return tide__fail(TIDE_E_IO, "%s: there are images to test with, but no %s", folder, test_labels[0]);
    return add_idx(f, images, labels, &f->test_images);
}

/* "x-images-idx3-ubyte" has its labels in "x-labels-idx1-ubyte". */
static tide_status labels_path(const char *images, char out[MAX_PATH_BYTES]) {
    const char *slash = strrchr(images, '/'), *at = strstr(slash ? slash : images, "images");
    if (!at) return tide__fail(TIDE_E_ARGUMENT, "%s: without \"images\" in its name, where are the labels?", images);
    int n = snprintf(out, MAX_PATH_BYTES, "%.*slabels%s", (int)(at - images), images, at + strlen("images"));
    if (n < 0 || n >= MAX_PATH_BYTES) return tide__fail(TIDE_E_ARGUMENT, "%s: too long a path", images);
    char *dims = strstr(out + (at - images), "idx3");
    if (dims) dims[3] = '1';
    return TIDE_OK;
}

static tide_status open_idx_file(tide_data_files *f, const char *path) {
    char labels[MAX_PATH_BYTES];
    TIDE_TRY(labels_path(path, labels));
    return add_idx(f, path, labels, &f->train_images);
}

/* ---- CIFAR-10 and CIFAR-100 ---- */

static tide_status add_cifar(tide_data_files *f, const tide__cifar *format, const char *path, tide__images *set) {
    const tide__image_shape shape = {3, TIDE__CIFAR_SIDE, TIDE__CIFAR_SIDE};
    tide__file file;
    tide__image_block block;
    TIDE_TRY(open_file(f, path, &file));
    TIDE_TRY(tide__cifar_records(format, &file, path, &block));
    return tide__images_add(set, &shape, &block, path);
}

static tide_status open_cifar(tide_data_files *f, const char *folder) {
    char name[32], path[MAX_PATH_BYTES];
    for (int i = 1;; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        TIDE_TRY(join(folder, name, path));
        if (!exists(path)) break;
        TIDE_TRY(add_cifar(f, &tide__cifar_10, path, &f->train_images));
    }
    TIDE_TRY(join(folder, "test_batch.bin", path));
    return exists(path) ? add_cifar(f, &tide__cifar_10, path, &f->test_images) : TIDE_OK;
}

static tide_status open_cifar_100(tide_data_files *f, const char *folder) {
    char path[MAX_PATH_BYTES];
    TIDE_TRY(join(folder, "train.bin", path));
    TIDE_TRY(add_cifar(f, &tide__cifar_100, path, &f->train_images));
    TIDE_TRY(join(folder, "test.bin", path));
    return exists(path) ? add_cifar(f, &tide__cifar_100, path, &f->test_images) : TIDE_OK;
}

/* ---- parts ---- */

static tide_status sample_image(void *context, uint64_t index, float *pixels, int32_t *label) {
    const part *p = context;
    tide__images_sample(p->images, p->first + index, pixels, label);
    return TIDE_OK;
}

static tide_data describe(const char *name, part *p, uint64_t n, uint32_t classes) {
    const tide__image_shape *s = &p->images->shape;
    return (tide_data){.size = sizeof(tide_data),
                       .name = name,
                       .n_samples = n,
                       .channels = s->channels,
                       .height = s->height,
                       .width = s->width,
                       .classes = classes,
                       .labels = 1,
                       .sample = sample_image,
                       .context = p};
}

/* The last tenth is for testing where nothing else is. */
static tide_status finish_images(tide_data_files *f) {
    tide__images *train = &f->train_images, *test = &f->test_images;
    bool held_out = test->n == 0;
    uint64_t n_test = held_out ? (train->n + 9) / 10 : test->n, n_train = held_out ? train->n - n_test : train->n;
    if (n_train == 0) return tide__fail(TIDE_E_FORMAT, "one sample is not enough to learn from and to test with");
    if (!held_out && memcmp(&train->shape, &test->shape, sizeof train->shape) != 0)
        return tide__fail(TIDE_E_FORMAT, "the images to test with have another size");
    tide__images_normalise(train, n_train);
    memcpy(test->mean, train->mean, sizeof test->mean);
    memcpy(test->scale, train->scale, sizeof test->scale);
    uint32_t classes = tide__images_classes(train), others = held_out ? 0 : tide__images_classes(test);
    if (others > classes) return tide__fail(TIDE_E_FORMAT, "label %u is only in the samples to test with", others - 1);
    if (classes < 2) classes = 2;
    f->train_part = (part){.images = train};
    f->test_part = (part){.images = held_out ? train : test, .first = held_out ? n_train : 0};
    f->train = describe(f->format, &f->train_part, n_train, classes);
    f->test = describe(f->format, &f->test_part, n_test, classes);
    return TIDE_OK;
}

typedef struct token_writer {
    FILE *stream;
    const char *path;
} token_writer;

static tide_status write_tokens(void *context, const uint32_t *tokens, size_t n) {
    const token_writer *w = context;
    if (fwrite(tokens, sizeof *tokens, n, w->stream) == n) return TIDE_OK;
    return tide__fail_errno(TIDE_E_IO, errno, "cannot write tokens to %s", w->path);
}

/* A file without a name has them: four bytes each would be a lot of memory. */
static tide_status encode(const tide_tokenizer *tokenizer, const tide__file *text, tide__file *out) {
    char path[MAX_PATH_BYTES];
    int fd;
    TIDE_TRY(tide__scratch_open(NULL, "tokens", path, sizeof path, &fd));
    token_writer w = {fdopen(fd, "r+"), path};
    if (!w.stream) {
        close(fd);
        return tide__fail_memory();
    }
    tide_status status = tide__bpe_encode(tokenizer, text->text, text->size, write_tokens, &w);
    if (status == TIDE_OK && fflush(w.stream) != 0)
        status = tide__fail_errno(TIDE_E_IO, errno, "cannot write tokens to %s", path);
    if (status == TIDE_OK) status = tide__file_open_descriptor(fd, path, out);
    fclose(w.stream);
    return status;
}

/* In place of the text, its tokens. */
static tide_status take_tokens(tide_data_files *f, const tide_tokenizer *tokenizer, tide__file *text) {
    tide__file tokens;
    TIDE_TRY(encode(tokenizer, text, &tokens));
    tide_status status = tide__vec_push(&f->files, tokens);
    if (status == TIDE_OK)
        *text = tokens;
    else
        tide__file_close(&tokens);
    return status;
}

/* tokenizer NULL: bytes. */
static tide_status finish_text(tide_data_files *f, tide__file *file, const tide_tokenizer *tokenizer, uint32_t context,
                               uint64_t seed) {
    if (!context) return tide__fail(TIDE_E_FORMAT, "neither an idx file nor CIFAR-10; a text is for language models");
    if (tokenizer) TIDE_TRY(take_tokens(f, tokenizer, file));
    uint64_t n = tokenizer ? file->size / sizeof(uint32_t) : file->size, n_test = n / 10, n_train = n - n_test;
    if (n_test <= context)
        return tide__fail(TIDE_E_FORMAT, "a text of %llu %s: the last tenth is too short to test %u tokens",
                          (unsigned long long)n, tokenizer ? "tokens" : "bytes", context);
    f->train_text = (tide_text){.seed = seed, .context = context, .n_bytes = n_train};
    f->test_text = (tide_text){.seed = seed ^ TEST_SEED, .context = context, .n_bytes = n_test};
    if (tokenizer) {
        f->train_text.tokens = (const uint32_t *)(const void *)file->text;
        f->test_text.tokens = f->train_text.tokens + n_train;
        f->train_text.vocabulary = f->test_text.vocabulary = tide_tokenizer_size(tokenizer);
    } else {
        f->train_text.bytes = (const unsigned char *)file->text;
        f->test_text.bytes = f->train_text.bytes + n_train;
    }
    TIDE_TRY(tide_data_text(&f->train_text, n_train / context, &f->train));
    return tide_data_text(&f->test_text, n_test / context, &f->test);
}

/* ---- memory ---- */

static void rest(tide_data_files *f) {
    for (size_t i = 0; i < f->files.count; i++) tide__file_rest(&f->files.data[i]);
}

static tide_status sample_and_rest(void *context, uint64_t index, float *pixels, int32_t *labels) {
    const resting *r = context;
    tide_status status = r->inner.sample(r->inner.context, index, pixels, labels);
    if (atomic_fetch_add(&r->set->n_taken, 1) % TIDE__SAMPLES_AT_ONCE == 0) rest(r->set);
    return status;
}

/* Else an epoch would bring all pages of the files into memory, and leave them there. */
static void keep_small(tide_data_files *f, tide_data *data, resting *r) {
    *r = (resting){*data, f};
    data->sample = sample_and_rest;
    data->context = r;
}

/* ---- opening ---- */

static tide_status open_folder(tide_data_files *f, const char *folder) {
    static const char *const cifar[] = {"data_batch_1.bin", NULL}, *const cifar_100[] = {"train.bin", NULL},
                             *const inside[] = {"cifar-10-batches-bin", "cifar-100-binary", NULL};
    char path[MAX_PATH_BYTES], batch[MAX_PATH_BYTES];
    f->format = "idx";
    if (find_name(folder, train_images, path)) return open_mnist(f, folder);
    if (find_name(folder, inside, path)) folder = path; /* as it comes out of its archive */
    f->format = tide__cifar_10.name;
    if (find_name(folder, cifar, batch)) return open_cifar(f, folder);
    f->format = tide__cifar_100.name;
    if (find_name(folder, cifar_100, batch)) return open_cifar_100(f, folder);
    return tide__fail(
        TIDE_E_FORMAT,
        "%s: no data set: neither %s (MNIST), %s (CIFAR-10) nor %s (CIFAR-100), nor folders named by class with "
        "PNG or JPEG pictures in them",
        folder, train_images[0], cifar[0], cifar_100[0]);
}

static bool is_cifar(const tide__file *file, const char *path) {
    size_t length = strlen(path);
    bool named = length > 4 && strcmp(path + length - 4, ".bin") == 0;
    tide__image_block block;
    return named || tide__cifar_records(&tide__cifar_10, file, path, &block) == TIDE_OK;
}

/* With a context it is a text, whatever it looks like. */
static tide_status open_single(tide_data_files *f, const char *path, const tide_tokenizer *tokenizer, uint32_t context,
                               uint64_t seed) {
    tide__file file;
    TIDE_TRY(open_file(f, path, &file));
    if (!context && tide__is_idx(file.text, file.size)) {
        f->format = "idx";
        return open_idx_file(f, path);
    }
    if (!context && is_cifar(&file, path)) {
        f->format = tide__cifar_10.name;
        return add_cifar(f, &tide__cifar_10, path, &f->train_images);
    }
    tide_status status = finish_text(f, &file, tokenizer, context, seed);
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "%s", path);
}

static tide_status open_all(tide_data_files *f, const char *path, const tide_tokenizer *tokenizer, uint32_t context,
                            uint64_t seed) {
    struct stat info;
    if (stat(path, &info) != 0) return tide__fail_errno(TIDE_E_IO, errno, "cannot open %s", path);
    if (context && S_ISDIR(info.st_mode))
        return tide__fail(TIDE_E_ARGUMENT, "%s is a folder; a language model learns from one file of text", path);
    TIDE_TRY(S_ISDIR(info.st_mode) ? open_folder(f, path) : open_single(f, path, tokenizer, context, seed));
    tide_status status = f->format ? finish_images(f) : TIDE_OK;
    if (status != TIDE_OK) return tide__fail_in(status, "%s", path);
    keep_small(f, &f->train, &f->train_samples);
    keep_small(f, &f->test, &f->test_samples);
    rest(f);
    return TIDE_OK;
}

static tide_status open_set(const char *path, const tide_tokenizer *tokenizer, uint32_t context, uint64_t seed,
                            tide_data_files **out) {
    tide_data_files *f = calloc(1, sizeof *f);
    if (!f) return tide__fail_memory();
    tide_status status = open_all(f, path, tokenizer, context, seed);
    if (status == TIDE_OK)
        *out = f;
    else
        tide_data_files_close(f);
    return status;
}

tide_status tide_data_files_open(const char *path, uint32_t context, uint64_t seed, tide_data_files **out) {
    TIDE_NEED(path, out);
    return open_set(path, NULL, context, seed, out);
}

tide_status tide_data_files_open_tokens(const char *path, const tide_tokenizer *tokenizer, uint32_t context,
                                        uint64_t seed, tide_data_files **out) {
    TIDE_NEED(path, tokenizer, out);
    if (context == 0) return tide__fail(TIDE_E_ARGUMENT, "a text by tokens needs a context");
    return open_set(path, tokenizer, context, seed, out);
}

void tide_data_files_close(tide_data_files *f) {
    if (!f) return;
    tide__images_free(&f->train_images);
    tide__images_free(&f->test_images);
    for (size_t i = 0; i < f->files.count; i++) tide__file_close(&f->files.data[i]);
    tide__vec_free(&f->files);
    free(f);
}

const tide_data *tide_data_files_train(const tide_data_files *f) { return &f->train; }
const tide_data *tide_data_files_test(const tide_data_files *f) { return &f->test; }
