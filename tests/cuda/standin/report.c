/* Misuse, the timeline and settings. Reports are kept as text and counted by kind; at the end they and the timeline go to
 * the files that the environment names. The timeline is in the format of Chrome's trace viewer, with the calls of
 * each function beside it. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "standin.h"

typedef struct timed {
    char name[64];
    const char *kind;
    uint32_t device, stream;
    uint64_t begin_ns, end_ns, size;
} timed;

static struct {
    pthread_mutex_t lock;
    char **texts;
    timed *times;
    uint32_t n_texts, n_times;
    uint32_t counts[MISUSES];
    uint64_t start_ns;
} reports = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local const char *place_name = "";

void report_set_place(const char *name) { place_name = name; }

uint64_t report_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void *array_grow(void *array, uint32_t count, size_t element) {
    if (count & (count - 1)) return array;
    void *larger = realloc(array, (count ? 2 * (size_t)count : 1) * element);
    if (!larger) abort();
    return larger;
}

/* ---- misuse ---- */

static const char *kind_name(standin_misuse kind) {
    static const char *const names[] = {
#define STANDIN_TEXT(name, text) text,
        STANDIN_MISUSES(STANDIN_TEXT)
#undef STANDIN_TEXT
    };
    return names[kind];
}

CUresult misuse(standin_misuse kind, CUresult error, const char *format, ...) {
    char detail[400], text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "%s: %s: %s", kind_name(kind), place_name, detail);
    pthread_mutex_lock(&reports.lock);
    reports.counts[kind]++;
    reports.texts = array_grow(reports.texts, reports.n_texts, sizeof *reports.texts);
    reports.texts[reports.n_texts++] = strdup(text);
    pthread_mutex_unlock(&reports.lock);
    return error;
}

STANDIN_EXPORT uint32_t standin_misuse_count(standin_misuse kind) {
    pthread_mutex_lock(&reports.lock);
    uint32_t n = kind < MISUSES ? reports.counts[kind] : 0;
    pthread_mutex_unlock(&reports.lock);
    return n;
}

STANDIN_EXPORT const char *standin_report(uint32_t n) {
    pthread_mutex_lock(&reports.lock);
    const char *text = n < reports.n_texts ? reports.texts[n] : NULL;
    pthread_mutex_unlock(&reports.lock);
    return text;
}

/* ---- the timeline ---- */

void report_time(const operation *o, uint64_t begin_ns, uint64_t end_ns) {
    static const char *const kinds[] = {"kernel", "copy", "set", "host", "record", "nothing"};
    if (!the_standin.settings.timeline) return;
    pthread_mutex_lock(&reports.lock);
    reports.times = array_grow(reports.times, reports.n_times, sizeof *reports.times);
    timed *t = &reports.times[reports.n_times++];
    *t = (timed){.kind = kinds[o->kind],
                 .device = o->stream->owner.context->device,
                 .stream = o->stream->index,
                 .begin_ns = begin_ns - reports.start_ns,
                 .end_ns = end_ns - reports.start_ns,
                 .size = o->size};
    snprintf(t->name, sizeof t->name, "%s", o->name);
    pthread_mutex_unlock(&reports.lock);
}

static void write_timeline(FILE *file) {
    fprintf(file, "{\"traceEvents\": [");
    for (uint32_t i = 0; i < reports.n_times; i++) {
        const timed *t = &reports.times[i];
        fprintf(
            file,
            "%s\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": %u, \"tid\": %u, \"ts\": %.3f, \"dur\": "
            "%.3f, \"args\": {\"bytes\": %llu}}",
            i ? "," : "", t->name, t->kind, t->device, t->stream, (double)t->begin_ns / 1e3,
            (double)(t->end_ns - t->begin_ns) / 1e3, (unsigned long long)t->size);
    }
    fprintf(file, "\n],\n\"otherData\": {");
    call_write_counts(file);
    fprintf(file, "\n}}\n");
}

void report_write_files(void) {
    const settings *s = &the_standin.settings;
    pthread_mutex_lock(&reports.lock);
    FILE *file = s->report ? fopen(s->report, "w") : NULL;
    for (uint32_t i = 0; file && i < reports.n_texts; i++) fprintf(file, "%s\n", reports.texts[i]);
    if (file) fclose(file);
    file = s->timeline ? fopen(s->timeline, "w") : NULL;
    if (file) {
        write_timeline(file);
        fclose(file);
    }
    pthread_mutex_unlock(&reports.lock);
}

/* ---- settings ---- */

static uint64_t number(const char *name, uint64_t standard) {
    const char *text = getenv(name);
    char *end = NULL;
    uint64_t v = text ? strtoull(text, &end, 10) : standard;
    if (!text || end == text) return standard;
    return *end == 'K' ? v << 10 : *end == 'M' ? v << 20 : *end == 'G' ? v << 30 : v;
}

static void read_settings(settings *s) {
    const char *cache = getenv("TIDE_STANDIN_CACHE");
    *s = (settings){
        .n_devices = (uint32_t)number("TIDE_STANDIN_DEVICES", 1),
        .version = (uint32_t)number("TIDE_STANDIN_VERSION", 13000),
        .capability = (uint32_t)number("TIDE_STANDIN_CAPABILITY", 120),
        .memory_bytes = number("TIDE_STANDIN_MEMORY", 256 << 20),
        .seed = number("TIDE_STANDIN_SEED", 1),
        .delay_us = (uint32_t)number("TIDE_STANDIN_DELAY_US", 0),
        .copy_mibps = (uint32_t)number("TIDE_STANDIN_COPY_MIBPS", 0),
        .kernel_us = (uint32_t)number("TIDE_STANDIN_KERNEL_US", 0),
        .in_turn = number("TIDE_STANDIN_IN_TURN", 0) != 0,
        .checks = number("TIDE_STANDIN_CHECKS", 1) != 0,
        .report = getenv("TIDE_STANDIN_REPORT"),
        .timeline = getenv("TIDE_STANDIN_TIMELINE"),
        .fail = getenv("TIDE_STANDIN_FAIL"),
        .cache = cache ? cache : STANDIN_CACHE_DIR,
    };
    if (s->n_devices > MAX_DEVICES) s->n_devices = MAX_DEVICES;
}

void report_reset(void) {
    pthread_mutex_lock(&reports.lock);
    for (uint32_t i = 0; i < reports.n_texts; i++) free(reports.texts[i]);
    free(reports.texts);
    free(reports.times);
    reports.texts = NULL, reports.times = NULL;
    reports.n_texts = reports.n_times = 0;
    memset(reports.counts, 0, sizeof reports.counts);
    reports.start_ns = report_now_ns();
    pthread_mutex_unlock(&reports.lock);
    read_settings(&the_standin.settings);
}

uint64_t random_next(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}
