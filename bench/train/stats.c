/* Samples, bars and how busy the machine is. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/train.h"

static int missed;

/* ---- samples ---- */

void sample_add(samples *s, double value) {
    if (s->n < MAX_SAMPLES) s->value[s->n++] = value;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static samples sorted(const samples *s) {
    samples copy = *s;
    qsort(copy.value, (size_t)s->n, sizeof *copy.value, by_value);
    return copy;
}

double sample_median(const samples *s) {
    if (s->n == 0) return 0;
    samples by_size = sorted(s);
    return (by_size.value[(s->n - 1) / 2] + by_size.value[s->n / 2]) / 2;
}

static double lower_quartile(const samples *s) { return sorted(s).value[s->n / 4]; }

double sample_quiet_ratio(const samples *a, const samples *b) {
    return a->n && b->n ? lower_quartile(a) / lower_quartile(b) : 0;
}

double sample_smallest(const samples *s) {
    double smallest = s->n ? s->value[0] : 0;
    for (int i = 1; i < s->n; i++)
        if (s->value[i] < smallest) smallest = s->value[i];
    return smallest;
}

double sample_ratio(const samples *a, const samples *b) {
    samples ratios = {.n = 0};
    for (int i = 0; i < a->n && i < b->n; i++) sample_add(&ratios, a->value[i] / b->value[i]);
    return sample_median(&ratios);
}

/* ---- bars ---- */

void bar(const char *what, double value, side good, double limit, const char *unit) {
    bool pass = good == AT_MOST ? value <= limit : value >= limit;
    missed += !pass;
    printf("%s  %-66s %8.2f %s (at %s %.2f)\n", pass ? "PASS" : "MISS", what, value, unit,
           good == AT_MOST ? "most" : "least", limit);
    fflush(stdout);
}

void bar_not_run(const char *what, const char *why) { printf("----  %-66s not run: %s\n", what, why); }

int bars_missed(void) { return missed; }

/* ---- the machine ---- */

/* Ticks of all cores since the start: all, and those with nothing to do. */
static bool read_ticks(double *all, double *idle) {
    double tick[8] = {0};
    FILE *f = fopen("/proc/stat", "r");
    if (!f) return false;
    int n = fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &tick[0], &tick[1], &tick[2], &tick[3], &tick[4], &tick[5],
                   &tick[6], &tick[7]);
    fclose(f);
    *all = 0;
    for (int i = 0; i < n; i++) *all += tick[i];
    *idle = tick[3] + tick[4];
    return n >= 5;
}

double busy_share(void) {
    double all[2], idle[2];
    if (!read_ticks(&all[0], &idle[0])) return -1;
    sleep(1);
    if (!read_ticks(&all[1], &idle[1]) || all[1] <= all[0]) return -1;
    return 1 - (idle[1] - idle[0]) / (all[1] - all[0]);
}
