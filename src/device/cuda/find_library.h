/* Where NVIDIA's libraries lie: where the system looks for libraries, else in the toolkit's folder. */
#ifndef TIDE_DEVICE_CUDA_FIND_LIBRARY_H
#define TIDE_DEVICE_CUDA_FIND_LIBRARY_H

#include "base/error.h"
#include "device/gpu/library.h"

/* Loads "NAME.MAJOR", or the file that the environment variable `instead` names. TIDE_E_DEVICE, in one line, where it is
 * missing. Where TIDE_CUDA_LIBRARY names another driver, only a file that is named counts: others would call the system's. */
tide_status tide__cuda_library_load(const char *name, int major, const char *instead, const tide__symbol *symbols,
                                    size_t n, void *table);

#endif
