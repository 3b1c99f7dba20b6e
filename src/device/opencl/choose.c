/* Which of the platforms' devices is meant. They are numbered through, platform by platform. */
#include <stdlib.h>
#include <string.h>

#include "device/opencl/opencl.h"

#define MAX_PLATFORMS 16
#define MAX_DEVICES 64

typedef struct found {
    cl_platform_id platform;
    cl_device_id id;
} found;

static uint32_t list_devices(const tide__cl *cl, const cl_platform_id *platforms, cl_uint n, found *out) {
    uint32_t count = 0;
    for (cl_uint p = 0; p < n; p++) {
        cl_device_id ids[MAX_DEVICES];
        cl_uint n_ids = 0;
        if (cl->GetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &n_ids) != CL_SUCCESS) continue;
        for (cl_uint i = 0; i < n_ids && i < MAX_DEVICES && count < MAX_DEVICES; i++)
            out[count++] = (found){platforms[p], ids[i]};
    }
    return count;
}

static bool is_gpu(const tide__cl *cl, cl_device_id id) {
    cl_device_type type = 0;
    return cl->GetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL) == CL_SUCCESS && (type & CL_DEVICE_TYPE_GPU);
}

static uint32_t first_gpu(const tide__cl *cl, const found *list, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (is_gpu(cl, list[i].id)) return i;
    return 0;
}

static tide_status parse_number(const char *text, uint32_t n, uint32_t *out) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || value >= n)
        return tide__fail(TIDE_E_DEVICE, "no device \"opencl:%s\": OpenCL has %u here, counted from 0", text, n);
    *out = (uint32_t)value;
    return TIDE_OK;
}

tide_status tide__opencl_choose(tide__opencl *opencl, const char *which) {
    const tide__cl *cl = &opencl->cl;
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint n_platforms = 0;
    found list[MAX_DEVICES];
    uint32_t chosen;
    TIDE_TRY(tide__cl_check(cl->GetPlatformIDs(MAX_PLATFORMS, platforms, &n_platforms), "list its platforms"));
    if (n_platforms > MAX_PLATFORMS) n_platforms = MAX_PLATFORMS;
    uint32_t n = list_devices(cl, platforms, n_platforms, list);
    if (n == 0) return tide__fail(TIDE_E_DEVICE, "OpenCL has a driver but no device here");
    chosen = first_gpu(cl, list, n);
    if (which) TIDE_TRY(parse_number(which, n, &chosen));
    opencl->platform = list[chosen].platform;
    opencl->id = list[chosen].id;
    return TIDE_OK;
}

void tide__opencl_text(const tide__opencl *opencl, cl_device_info what, char *out, size_t size) {
    char text[1024] = "";
    if (opencl->cl.GetDeviceInfo(opencl->id, what, sizeof text - 1, text, NULL) != CL_SUCCESS) text[0] = 0;
    size_t length = strnlen(text, size - 1);
    memcpy(out, text, length);
    out[length] = 0;
}
