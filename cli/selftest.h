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
    uint32_t passed, failed;
} selftest;

/* The whole test of an open device; what goes wrong is in the text. */
void selftest_run(selftest *s);

/* ---- lines ---- */

void selftest_head(selftest *s, const char *title);
/* A finding: the status, and whether what came out is right. */
void selftest_check(selftest *s, const char *what, tide_status status, bool right);
void selftest_say(selftest *s, const char *format, ...) TIDE_PRINTF(2, 3);

/* ---- parts ---- */

void selftest_contract(selftest *s); /* device.h, as far as it shows from outside */
void selftest_kernels(selftest *s);  /* against the CPU device, and against themselves */
void selftest_speed(selftest *s);    /* products, convolutions, copies, both at once */
void selftest_training(selftest *s); /* the same bits under budgets */
void selftest_memory(selftest *s);   /* an arena too large is refused */

/* ---- bytes between the host and an arena ---- */

/* Sinks and sources of bytes in memory; context: where they lie. */
tide_io selftest_from(const void *bytes);
tide_io selftest_to(void *bytes);
/* Bytes that look random: a function of the seed. */
void selftest_fill(void *bytes, uint64_t size_bytes, uint32_t seed);

#endif
