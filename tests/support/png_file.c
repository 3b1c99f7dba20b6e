/* See png_file.h. The data is one stored block: nothing is compressed. */
#include "support/png_file.h"

#include "support/test.h"

typedef struct bytes {
    unsigned char at[PNG_FILE_MAX_SIDE * (3 * PNG_FILE_MAX_SIDE + 1) + 64];
    uint32_t n;
} bytes;

static void put_u32(bytes *b, uint32_t value) {
    for (int i = 24; i >= 0; i -= 8) b->at[b->n++] = (unsigned char)(value >> i);
}

static uint32_t crc(const unsigned char *data, uint32_t n) {
    uint32_t sum = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        sum ^= data[i];
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~sum;
}

static uint32_t adler(const unsigned char *data, uint32_t n) {
    uint32_t a = 1, b = 0;
    for (uint32_t i = 0; i < n; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* body: the four letters of its name, then its data. */
static void put_chunk(FILE *f, const bytes *body) {
    bytes head = {.n = 0}, tail = {.n = 0};
    put_u32(&head, body->n - 4);
    put_u32(&tail, crc(body->at, body->n));
    fwrite(head.at, 1, head.n, f);
    fwrite(body->at, 1, body->n, f);
    fwrite(tail.at, 1, tail.n, f);
}

static void put_rows(bytes *b, uint32_t width, uint32_t height, uint32_t (*pixel)(uint32_t x, uint32_t y)) {
    for (uint32_t y = 0; y < height; y++) {
        b->at[b->n++] = 0; /* no filter */
        for (uint32_t x = 0; x < width; x++)
            for (int shift = 16; shift >= 0; shift -= 8) b->at[b->n++] = (unsigned char)(pixel(x, y) >> shift);
    }
}

void put_png(const char *path, uint32_t width, uint32_t height, uint32_t (*pixel)(uint32_t x, uint32_t y)) {
    bytes header = {"IHDR", 4}, data = {"IDAT\x78\x01\x01", 7}, end = {"IEND", 4};
    uint32_t size = height * (3 * width + 1), begin;
    assert_true(width <= PNG_FILE_MAX_SIDE && height <= PNG_FILE_MAX_SIDE);
    put_u32(&header, width);
    put_u32(&header, height);
    memcpy(header.at + header.n, "\x08\x02\0\0", 5); /* eight bits, colour */
    header.n += 5;
    const unsigned char length[] = {(unsigned char)size, (unsigned char)(size >> 8), (unsigned char)~size,
                                    (unsigned char)(~size >> 8)};
    memcpy(data.at + data.n, length, sizeof length);
    begin = data.n += sizeof length;
    put_rows(&data, width, height, pixel);
    put_u32(&data, adler(data.at + begin, size));
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, f);
    put_chunk(f, &header);
    put_chunk(f, &data);
    put_chunk(f, &end);
    assert_int_equal(fclose(f), 0);
}
