/* Safetensors files with another header over the same data: what other tools, and older versions, would have written. */
#ifndef TIDE_TESTS_EDIT_HEADER_H
#define TIDE_TESTS_EDIT_HEADER_H

/* Every `from` in the header becomes `to`; there is at least one. Files of up to 256 KiB. */
void edit_header(const char *path, const char *from, const char *to);

#endif
