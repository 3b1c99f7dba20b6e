/* What a device has built or measured, kept on disk. Nothing that goes wrong here is a failure: it is built, or measured,
 * anew. */
#ifndef TIDE_DEVICE_GPU_CACHE_H
#define TIDE_DEVICE_GPU_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* device: "opencl", "cuda". NULL when there is nothing of this key, or nothing sound. The caller frees it. */
unsigned char *tide__gpu_cache_read(const char *device, uint64_t key, size_t *size);
void tide__gpu_cache_write(const char *device, uint64_t key, const unsigned char *bytes, size_t size);
/* The first process that has something to keep wins: *record becomes what is on disk. False: it cannot be kept. */
bool tide__gpu_cache_keep(const char *device, uint64_t key, void *record, size_t size);

#endif
