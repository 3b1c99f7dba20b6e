/* PNG files to test with, made of nothing but numbers. */
#ifndef TIDE_TESTS_PNG_FILE_H
#define TIDE_TESTS_PNG_FILE_H

#include <stdint.h>

enum { PNG_FILE_MAX_SIDE = 64 };

/* pixel(x, y) is 0xRRGGBB. */
void put_png(const char *path, uint32_t width, uint32_t height, uint32_t (*pixel)(uint32_t x, uint32_t y));

#endif
