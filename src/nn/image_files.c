/* Readers of image files: idx (MNIST and its kin) and CIFAR's binary records. See images.h.
 *
 *     idx      0 0 type n_dims | n_dims x 4 bytes, big-endian | data; type 8: unsigned bytes
 *     cifar    records of 1 + 3072 bytes: label, red, green and blue plane of 32 x 32; CIFAR-100: two labels */
#include "base/error.h"
#include "base/size.h"
#include "nn/images.h"

enum { MAX_DIMS = 4, MAX_SIDE = 1 << 16 };

static uint32_t big_endian(const unsigned char *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

bool tide__is_idx(const void *file, size_t size) {
    const unsigned char *b = file;
    return size >= 4 && b[0] == 0 && b[1] == 0 && b[2] >= 8 && b[2] <= 14 && b[3] >= 1 && b[3] <= MAX_DIMS;
}

/* Dimensions and where the data begins; the data is exactly what the dimensions say. */
static tide_status read_header(const unsigned char *b, size_t size, uint32_t dims[MAX_DIMS], uint32_t *n_dims,
                               const unsigned char **data) {
    if (size < 4) return tide__fail(TIDE_E_FORMAT, "byte %zu: the file ends before its header does", size);
    if (b[0] || b[1]) return tide__fail(TIDE_E_FORMAT, "byte 0: not an idx file, which begins with two zeros");
    if (b[2] != 8) return tide__fail(TIDE_E_FORMAT, "byte 2: type 0x%02x; only unsigned bytes (0x08) are read", b[2]);
    if (b[3] == 0 || b[3] > MAX_DIMS)
        return tide__fail(TIDE_E_FORMAT, "byte 3: %u dimensions, 1 to %d are read", b[3], MAX_DIMS);
    uint64_t header = 4 + UINT64_C(4) * b[3], bytes = 1;
    if (size < header) return tide__fail(TIDE_E_FORMAT, "byte %zu: the file ends before its header does", size);
    *n_dims = b[3];
    for (uint32_t i = 0; i < *n_dims; i++) {
        dims[i] = big_endian(b + 4 + UINT64_C(4) * i);
        if (dims[i] == 0) return tide__fail(TIDE_E_FORMAT, "byte %u: a dimension of 0", 4 + 4 * i);
        if (!tide__mul(bytes, dims[i], &bytes)) return tide__fail(TIDE_E_FORMAT, "byte %u: too large", 4 + 4 * i);
    }
    if (bytes != size - header)
        return tide__fail(TIDE_E_FORMAT, "byte %llu: %llu bytes of data, the dimensions say %llu",
                          (unsigned long long)header, (unsigned long long)(size - header), (unsigned long long)bytes);
    *data = b + header;
    return TIDE_OK;
}

static tide_status read_images(const void *file, size_t size, tide__image_shape *shape, tide__image_block *out) {
    uint32_t d[MAX_DIMS], n;
    const unsigned char *data;
    TIDE_TRY(read_header(file, size, d, &n, &data));
    if (n < 3) return tide__fail(TIDE_E_FORMAT, "byte 3: %u dimensions; images have 3 or 4", n);
    uint32_t channels = n == 4 ? d[1] : 1, height = d[n - 2], width = d[n - 1];
    if (channels > TIDE__MAX_CHANNELS)
        return tide__fail(TIDE_E_FORMAT, "byte 8: %u channels, at most %d", channels, TIDE__MAX_CHANNELS);
    if (height > MAX_SIDE || width > MAX_SIDE)
        return tide__fail(TIDE_E_FORMAT, "byte %u: images of %u x %u", 4 * n - 4, height, width);
    *shape = (tide__image_shape){channels, height, width};
    *out = (tide__image_block){.pixels = data, .pixel_stride = (uint64_t)channels * height * width, .n = d[0]};
    return TIDE_OK;
}

tide_status tide__idx_images(const void *file, size_t size, const char *name, tide__image_shape *shape,
                             tide__image_block *out) {
    tide_status status = read_images(file, size, shape, out);
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "%s", name);
}

static tide_status read_labels(const void *file, size_t size, tide__image_block *block) {
    uint32_t d[MAX_DIMS], n;
    const unsigned char *data;
    TIDE_TRY(read_header(file, size, d, &n, &data));
    if (n != 1) return tide__fail(TIDE_E_FORMAT, "byte 3: %u dimensions; labels have 1", n);
    if (d[0] != block->n)
        return tide__fail(TIDE_E_FORMAT, "byte 4: %u labels for %llu images", d[0], (unsigned long long)block->n);
    block->labels = data;
    block->label_stride = 1;
    return TIDE_OK;
}

tide_status tide__idx_labels(const void *file, size_t size, const char *name, tide__image_block *block) {
    tide_status status = read_labels(file, size, block);
    return status == TIDE_OK ? TIDE_OK : tide__fail_in(status, "%s", name);
}

const tide__cifar tide__cifar_10 = {"cifar10", 1, 10}, tide__cifar_100 = {"cifar100", 2, 100};

tide_status tide__cifar_records(const tide__cifar *format, const tide__file *file, const char *name,
                                tide__image_block *out) {
    const unsigned char *b = (const unsigned char *)file->text;
    const size_t size = file->size;
    const size_t record = format->labels + TIDE__CIFAR_PIXELS;
    if (size == 0 || size % record != 0)
        return tide__fail(TIDE_E_FORMAT, "%s: byte %zu: no whole number of records of %zu bytes", name,
                          size - size % record, record);
    for (size_t i = format->labels - 1; i < size; i += record) {
        if (i / record % TIDE__RECORDS_AT_ONCE == 0) tide__file_rest(file);
        if (b[i] >= format->classes)
            return tide__fail(TIDE_E_FORMAT, "%s: byte %zu: record %zu has label %u, there are %u classes", name, i,
                              i / record, b[i], format->classes);
    }
    *out = (tide__image_block){.pixels = b + format->labels,
                               .labels = b + format->labels - 1,
                               .pixel_stride = record,
                               .label_stride = record,
                               .n = size / record,
                               .file = *file};
    return TIDE_OK;
}
