/* JPEG by libjpeg-turbo, which can decode at half, a quarter or an eighth of the size for less time and memory. See picture.h.
 *
 * The library reports errors by a call that must not return: it jumps back to where decoding began. */
#include <setjmp.h>
#include <stdio.h> /* before jpeglib.h, which needs it */

#include <jerror.h>
#include <jpeglib.h>
#include <stdlib.h>

#include "base/error.h"
#include "nn/picture.h"

typedef struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf back;
    char why[JMSG_LENGTH_MAX];
} decoder;

static void jump_back(j_common_ptr jpeg) {
    decoder *d = jpeg->client_data;
    jpeg->err->format_message(jpeg, d->why);
    longjmp(d->back, 1);
}

/* The library warns and goes on with grey where the file ends too early; nobody should learn from that. */
static void note(j_common_ptr jpeg, int level) {
    if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF) jump_back(jpeg);
}

static void open_decoder(decoder *d) {
    d->jpeg.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = jump_back;
    d->errors.emit_message = note;
    d->jpeg.client_data = d;
}

static void begin(decoder *d, const void *file, size_t size) {
    jpeg_create_decompress(&d->jpeg);
    jpeg_mem_src(&d->jpeg, file, (unsigned long)size);
    (void)jpeg_read_header(&d->jpeg, TRUE);
}

static void read_rows(decoder *d, unsigned char *rgb) {
    size_t row_bytes = (size_t)d->jpeg.output_width * 3;
    while (d->jpeg.output_scanline < d->jpeg.output_height) {
        JSAMPROW row = rgb + d->jpeg.output_scanline * row_bytes;
        (void)jpeg_read_scanlines(&d->jpeg, &row, 1);
    }
    (void)jpeg_finish_decompress(&d->jpeg);
}

/* Everything that may jump; `out` outlives the jump. False: out of memory. */
static bool decode_all(decoder *d, const void *file, size_t size, uint32_t shrink, tide__picture *out) {
    begin(d, file, size);
    d->jpeg.out_color_space = JCS_RGB;
    d->jpeg.scale_num = 1;
    d->jpeg.scale_denom = shrink;
    (void)jpeg_start_decompress(&d->jpeg);
    out->width = d->jpeg.output_width;
    out->height = d->jpeg.output_height;
    out->rgb = malloc((size_t)out->width * out->height * 3);
    if (!out->rgb) return false;
    read_rows(d, out->rgb);
    return true;
}

static tide_status measure(const void *file, size_t size, uint32_t *width, uint32_t *height) {
    decoder d = {0};
    open_decoder(&d);
    if (setjmp(d.back) != 0) {
        jpeg_destroy_decompress(&d.jpeg);
        return tide__fail(TIDE_E_FORMAT, "JPEG: %s", d.why);
    }
    begin(&d, file, size);
    *width = d.jpeg.image_width;
    *height = d.jpeg.image_height;
    jpeg_destroy_decompress(&d.jpeg);
    return TIDE_OK;
}

static tide_status decode(const void *file, size_t size, uint32_t shrink, tide__picture *out) {
    decoder d = {0};
    open_decoder(&d);
    if (setjmp(d.back) != 0) {
        jpeg_destroy_decompress(&d.jpeg);
        return tide__fail(TIDE_E_FORMAT, "JPEG: %s", d.why);
    }
    bool decoded = decode_all(&d, file, size, shrink, out);
    jpeg_destroy_decompress(&d.jpeg);
    return decoded ? TIDE_OK : tide__fail_memory();
}

const tide__picture_format tide__picture_jpeg = {"JPEG", measure, decode};
