/* Runs one kernel on a device, from plain inputs to plain outputs, with everything around it under watch: guard zones
 * between operands stay untouched, reads are not written, workspaces and outputs start as garbage, padding ends as
 * zero. Includes inputs that make sense for each op kind. */
#ifndef TIDE_TESTS_KERNEL_RIG_H
#define TIDE_TESTS_KERNEL_RIG_H

#include "support/ref_ops.h"

typedef struct kernel_rig {
    tide_device *device;
    tide_queue *queue;
    tide_arena *arena;
    uint64_t align; /* bytes, of offsets */
    /* The arena itself, or what the host has of one that it cannot see: rig_put() and rig_get() move bytes then. */
    unsigned char *bytes;
    bool is_mirror;
} kernel_rig;

/* Which device; what the state of tests points to. */
typedef struct rig_config {
    const char *device;
    uint32_t threads;
    const char *products, *lanes; /* opencl: TIDE_OPENCL_PRODUCTS and TIDE_OPENCL_LANES, NULL: not set */
} rig_config;

void rig_open(kernel_rig *rig, const rig_config *config);
void rig_close(kernel_rig *rig);
/* Bytes [from, to) of rig->bytes to and from the device, from a multiple of 4096 on. */
void rig_put(kernel_rig *rig, uint64_t from, uint64_t to);
void rig_get(kernel_rig *rig, uint64_t from, uint64_t to);

/* One op with its operands in plain order; reads first, then writes. */
typedef struct rig_case {
    tide_op_desc desc;
    tide_step_args args;
    ref_spec spec;
    float *plain[REF_MAX_OPERANDS];
} rig_case;

/* Inputs from a seed: a function of the case alone, not of a device. */
void rig_case_init(rig_case *c, const tide_op_desc *desc, uint64_t seed);
void rig_case_deinit(rig_case *c);

/* Runs the case and fills its writes. shift: where in the arena it lies, a multiple of 4096. in_place_read: the read
 * that write 0 takes the place of, or -1. all_in_place: write i lies on read i. Returns a hash of the stored outputs:
 * equal hashes, equal bits. */
typedef struct rig_options {
    uint64_t shift;
    int in_place_read;
    bool all_in_place;
    uint32_t variant;
} rig_options;
uint32_t rig_variants(kernel_rig *rig, const rig_case *c); /* how many its kernel has */
uint64_t rig_run(kernel_rig *rig, rig_case *c, const rig_options *options);

/* Processor seconds of the fastest of some runs, or real ones where the device is not the processor; *bytes: what its
 * reads and writes have. */
double rig_time(kernel_rig *rig, const rig_case *c, uint32_t variant, uint64_t *bytes);

/* Fails the test unless the case's writes are those of the reference code, within 1e-4. */
void rig_compare(const rig_case *c);

#endif
