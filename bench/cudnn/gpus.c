/* Three GPUs as cuDNN describes those it finds: data sheets, and the limits of their compute capability in NVIDIA's
 * programming guide. */
#include "cudnn/planned.h"

#define PROPERTIES(name, capability, units, threads, groups, shared, reserved, cache, memory, clock, memory_clock) \
    "{\"deviceName\":\"" name "\",\"deviceVer\":" capability ",\"multiProcessorCount\":" units                     \
    ",\"maxThreadsPerSM\":" threads ",\"maxCtasPerSM\":" groups ",\"maxSharedMemoryPerBlockOptin\":" shared        \
    ",\"reservedSharedMemoryPerBlock\":" reserved ",\"l2CacheSize\":" cache ",\"totalGlobalMem\":" memory          \
    ",\"smClockRateKHz\":" clock ",\"memClockRateKHz\":" memory_clock                                              \
    ",\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"            \
    "\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,\"maxRegistersPerSM\":65536,\"maxThreadsPerBlock\":1024,"   \
    "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"cudaDeviceId\":0,\"driverVer\":13000}"

const planned_gpu planned_gpus[PLANNED_GPUS] = {
    {"a100", PROPERTIES("NVIDIA A100-PCIE-40GB", "800", "108", "2048", "32", "166912", "1024", "41943040",
                        "42949672960", "1410000", "1215000")},
    {"rtx4090", PROPERTIES("NVIDIA GeForce RTX 4090", "890", "128", "1536", "24", "101376", "1024", "75497472",
                           "25769803776", "2520000", "10501000")},
    {"t4",
     PROPERTIES("Tesla T4", "750", "40", "1024", "16", "65536", "0", "4194304", "17179869184", "1590000", "5001000")},
};
