/* See pack.h. */
#include "report/pack.h"

#include <stdlib.h>
#include <string.h>

static void put_byte(tide__pack *p, uint8_t byte) {
    if (p->status == TIDE_OK) p->status = tide__vec_push(&p->bytes, byte);
}

static void put_varint(tide__pack *p, uint64_t value) {
    for (; value >= 0x80; value >>= 7) put_byte(p, (uint8_t)(value | 0x80));
    put_byte(p, (uint8_t)value);
}

/* Differences wrap modulo 2^64, and so does the reader's sum. */
static uint64_t zigzag(uint64_t difference) { return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0); }

void tide__pack_column(tide__pack *p, const void *context, tide__pack_number get, size_t n, int delta) {
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t value = get(context, i);
        put_varint(p, delta ? zigzag(value - before) : value);
        before = value;
    }
}

void tide__pack_names(tide__pack *p, const void *context, tide__pack_text get, size_t n) {
    const char *before = "";
    for (size_t i = 0; i < n; i++) {
        const char *name = get(context, i);
        size_t shared = 0, length = strlen(name);
        while (shared < length && name[shared] == before[shared]) shared++;
        put_varint(p, shared);
        put_varint(p, length - shared);
        for (size_t k = shared; k < length; k++) {
            uint8_t c = (uint8_t)name[k];
            put_byte(p, c < 0x20 || c == 0x7f ? '?' : c);
        }
        before = name;
    }
}

void tide__pack_free(tide__pack *p) { tide__vec_free(&p->bytes); }

void tide__base64_write(FILE *stream, const uint8_t *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t b = i + 1 < n ? bytes[i + 1] : 0u, c = i + 2 < n ? bytes[i + 2] : 0u;
        uint32_t group = (uint32_t)bytes[i] << 16 | b << 8 | c;
        char four[4] = {digits[group >> 18], digits[group >> 12 & 63], i + 1 < n ? digits[group >> 6 & 63] : '=',
                        i + 2 < n ? digits[group & 63] : '='};
        fwrite(four, 1, sizeof four, stream);
    }
}
