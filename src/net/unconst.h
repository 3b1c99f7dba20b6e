/* Bytes that are only read, in a struct that also has bytes to be written; and locks of what is read. Nobody writes through it. */
#ifndef TIDE_NET_UNCONST_H
#define TIDE_NET_UNCONST_H

#include <string.h>

static inline void *tide__net_unconst(const void *p) {
    void *out;
    memcpy(&out, &p, sizeof out);
    return out;
}

#endif
