/* Parts of bench_train: the bars it prints, the quiet of the machine, PyTorch as another process, our own trainers and
 * the bare loop over their kernels. Times are seconds of the wall clock, one step each. */
#ifndef TIDE_BENCH_TRAIN_TRAIN_H
#define TIDE_BENCH_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include <tidemark/train.h>

#include "common.h"

/* ---- samples (stats.c) ---- */

enum { MAX_SAMPLES = 64 };
typedef struct samples {
    double value[MAX_SAMPLES];
    int n;
} samples;
void sample_add(samples *s, double value);
double sample_median(const samples *s);
double sample_smallest(const samples *s);
/* Median of a[i] / b[i]: what the machine does besides hits both of a round alike. */
double sample_ratio(const samples *a, const samples *b);
/* Lower quartile of a by that of b: for small differences, where the machine only ever adds. */
double sample_quiet_ratio(const samples *a, const samples *b);

/* One line: PASS or MISS, what, the value and the bar. Below or above it is good. */
typedef enum side { AT_MOST, AT_LEAST } side;
void bar(const char *what, double value, side good, double limit, const char *unit);
void bar_not_run(const char *what, const char *why); /* counts as neither */
int bars_missed(void);

/* Share of the cores that others used during a second, 0 to 1; negative if it cannot be told. */
double busy_share(void);

/* ---- PyTorch (torch.c) ---- */

typedef struct torch {
    pid_t pid; /* 0: not there */
    FILE *to, *from;
    char version[64];
    samples seconds, cpu;
    double peak_bytes; /* of what training adds to the process */
} torch;
/* arguments: of torch_step.py. `trimmed`: its allocator gives memory back at once, so that the peak is one of tensors.
 * false if the library is not there. */
bool torch_open(const char *python, const char *arguments, bool trimmed, torch *t);
void torch_step(torch *t);
void torch_close(torch *t);

/* ---- we (ours.c) ---- */

typedef struct ours {
    const char *spec;
    uint32_t batch;
    tide_device *device;
    tide_machine machine; /* measured */
    tide_model *model;
    tide_step_options step;
    tide_digits digits;
    tide_text text;
    tide_data drawn, data; /* data: of images, the first of those drawn over and over, since drawing takes cores too */
    float *pixels;
    int32_t *labels;
} ours;
void ours_open(const char *spec, uint32_t batch, uint32_t threads, tide_optimizer optimizer, ours *o);
void ours_close(ours *o);

typedef struct entry {
    tide_trainer *trainer;
    samples seconds, cpu, exposed;
} entry;
/* arena_bytes UINT64_MAX: unconstrained. The machine has no RAM tier in it: it saves nothing here. */
void entry_open(const ours *o, const char *policy, tide_train_mode mode, uint64_t arena_bytes, entry *e);
void entry_step(entry *e);
void entry_step_timed(const ours *o, entry *e); /* exposed: what of the step was not computing */
uint64_t entry_arena(const entry *e);
void entry_close(entry *e);
void print_kinds(const ours *o, entry *e, int steps); /* where the time of a step goes */

/* ---- the same kernels without a runtime (bare.c) ---- */

typedef struct bare bare;
bare *bare_open(const ours *o);
double bare_step(bare *b); /* seconds */
void bare_close(bare *b);
/* Microseconds of all threads per action of a plan whose kernels do nothing. */
double empty_action_us(const ours *o);

#endif
