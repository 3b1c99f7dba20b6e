/* `tidemark devices --selftest`: one device put to the test, in a text that a stranger can send back. Every finding is a
 * line: "ok", "FAIL", or a figure that judges nothing. No line has anything of the person in it: no paths, names of hosts
 * or serial numbers. docs/cuda.md says what such a text proves. */
#ifndef TIDE_CLI_SELFTEST_H
#define TIDE_CLI_SELFTEST_H

#include <stdio.h>

#include <tidemark/tidemark.h>

typedef struct selftest {
    FILE *out;
    tide_device *device;
    tide_device_info info;
    bool measures;         /* the text ends with the profile of the machine */
    const char *disk_path; /* for that; NULL: the system's temporary folder */
    uint32_t passed, failed;
} selftest;

/* The whole test of an open device; what goes wrong is in the text. */
void selftest_run(selftest *s);

/* ---- lines ---- */

void selftest_head(selftest *s, const char *title);
/* A finding: the status, and whether what came out is right. */
void selftest_check(selftest *s, const char *what, tide_status status, bool right);
void selftest_say(selftest *s, const char *format, ...) TIDE_PRINTF(2, 3);

/* ---- ops (selftest_ops.c) ---- */

/* Classes of labels, tokens of a vocabulary: both are small whole numbers. */
enum { SELFTEST_CLASSES = 10, SELFTEST_OPERANDS = 16 };

/* An op's operands, reads first, plainly. */
typedef struct selftest_operands {
    uint32_t n_reads, n;
    uint64_t elements[SELFTEST_OPERANDS];
    float *plain[SELFTEST_OPERANDS];
} selftest_operands;

/* One variant of an op on numbers that look random. To be freed whatever the status. */
tide_status selftest_run_op(tide_device *device, const tide_op_desc *d, uint32_t variant, selftest_operands *out);
void selftest_free_operands(selftest_operands *r);
/* The largest difference as a share of the largest number of its operand; infinite where the two are not alike. */
double selftest_distance(const selftest_operands *a, const selftest_operands *b, bool *same);

/* ---- parts ---- */

void selftest_contract(selftest *s);  /* device.h, as far as it shows from outside */
void selftest_kernels(selftest *s);   /* against the CPU device, and against themselves */
void selftest_libraries(selftest *s); /* against the device's own kernels; those that pass are used from then on */
void selftest_speed(selftest *s);     /* products, convolutions, copies, both at once */
void selftest_training(selftest *s);  /* the same bits under budgets */
void selftest_memory(selftest *s);    /* an arena too large is refused */

/* ---- bytes between the host and an arena ---- */

/* Sinks and sources of bytes in memory; context: where they lie. */
tide_io selftest_from(const void *bytes);
tide_io selftest_to(void *bytes);
/* Bytes that look random: a function of the seed. */
void selftest_fill(void *bytes, uint64_t size_bytes, uint32_t seed);

#endif
