/* See cuda.h. */
#include "support/cuda.h"

#include <stdio.h>
#include <string.h>

#include <tidemark/device.h>

bool is_cuda_built(void) {
    for (uint32_t i = 0; tide_device_name(i); i++)
        if (strcmp(tide_device_name(i), "cuda") == 0) return true;
    return false;
}

bool has_cuda(void) {
    tide_device *device = NULL;
    tide_status status = is_cuda_built() ? tide_device_open("cuda", NULL, &device) : TIDE_E_DEVICE;
    if (status != TIDE_OK)
        fprintf(stderr, "skipped: CUDA, because: %s\n", is_cuda_built() ? tide_last_error() : "built without it");
    tide_device_close(device);
    return status == TIDE_OK;
}
