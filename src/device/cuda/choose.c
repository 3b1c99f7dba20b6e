/* Which of the GPUs is meant: the driver's numbers, as CUDA_VISIBLE_DEVICES leaves them, or a UUID as nvidia-smi prints
 * it ("GPU-8932f937-...", "MIG-..." for a part of one), from its beginning as far as it is written. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"

#define UUID_TEXT 37

static void uuid_text(const CUuuid *uuid, char out[UUID_TEXT]) {
    size_t n = 0;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out[n++] = '-';
        n += (size_t)snprintf(out + n, UUID_TEXT - n, "%02x", (unsigned)(unsigned char)uuid->bytes[i]);
    }
}

static bool is_uuid(const char *which) { return strncmp(which, "GPU-", 4) == 0 || strncmp(which, "MIG-", 4) == 0; }

static bool begins_with(const char *text, const char *begin) {
    for (; *begin; text++, begin++)
        if (tolower((unsigned char)*begin) != *text) return false;
    return true;
}

static tide_status find_uuid(const tide__cu *cu, const char *which, int n, CUdevice *out) {
    int found = 0;
    for (int i = 0; i < n && which[4]; i++) {
        CUdevice id;
        CUuuid uuid;
        char text[UUID_TEXT];
        if (cu->DeviceGet(&id, i) != CUDA_SUCCESS || cu->DeviceGetUuid(&uuid, id) != CUDA_SUCCESS) continue;
        uuid_text(&uuid, text);
        if (!begins_with(text, which + 4)) continue;
        *out = id;
        found++;
    }
    if (found == 1) return TIDE_OK;
    return tide__fail(TIDE_E_DEVICE, "\"cuda:%s\" is %s", which, found ? "more than one GPU" : "no GPU here");
}

static tide_status find_number(const tide__cu *cu, const char *which, int n, CUdevice *out) {
    char *end;
    const long number = strtol(which, &end, 10);
    if (which[0] < '0' || which[0] > '9' || *end || number >= n)
        return tide__fail(TIDE_E_DEVICE, "no device \"cuda:%s\": CUDA has %d here, counted from 0", which, n);
    return tide__cu_check(cu, cu->DeviceGet(out, (int)number), "find a GPU");
}

tide_status tide__cuda_choose(tide__cuda *cuda, const char *which) {
    const tide__cu *cu = &cuda->cu;
    int n = 0;
    if (!which) which = "0";
    CUresult result = cu->DeviceGetCount(&n);
    TIDE_TRY(tide__cu_check(cu, result, "count the GPUs"));
    TIDE_TRY(is_uuid(which) ? find_uuid(cu, which, n, &cuda->id) : find_number(cu, which, n, &cuda->id));
    result = cu->DeviceGetName(cuda->model, (int)sizeof cuda->model, cuda->id);
    if (result == CUDA_SUCCESS)
        result = cu->DeviceGetAttribute(&cuda->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, cuda->id);
    if (result == CUDA_SUCCESS)
        result = cu->DeviceGetAttribute(&cuda->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, cuda->id);
    return tide__cu_check(cu, result, "describe a GPU");
}
