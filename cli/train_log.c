/* See train_log.h. */
#include "train_log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static void write_head(train_log *log, const char *model, uint64_t batch) {
    if (log->csv)
        fputs("policy,step,loss,rate,step_ns,wait_ns,arena_bytes,tier_bytes\n", log->stream);
    else {
        fputs("{\"tidemark\":\"log\",\"version\":1,\"model\":", log->stream);
        json_string(log->stream, model);
        fprintf(log->stream, ",\"batch\":%" PRIu64 "}\n", batch);
    }
}

static tide_status check_written(train_log *log) {
    errno = 0;
    if (fflush(log->stream) == 0 && !ferror(log->stream)) return TIDE_OK;
    return complain(TIDE_E_IO, "cannot write %s: %s", log->path, strerror(errno ? errno : EIO));
}

enum { LOOK_BACK = 64 << 10 };

/* A full disk may have left a part of a line. What has no line near its end is no log, and stays as it is. */
static bool cut_last_line(FILE *f) {
    char tail[LOOK_BACK];
    struct stat file;
    if (fstat(fileno(f), &file) != 0) return false;
    const off_t first = file.st_size > LOOK_BACK ? file.st_size - LOOK_BACK : 0;
    const ssize_t n = pread(fileno(f), tail, sizeof tail, first);
    if (n < 0) return false;
    const char *last = memrchr(tail, '\n', (size_t)n);
    const off_t end = last ? first + (last - tail) + 1 : file.st_size;
    return (end == file.st_size || ftruncate(fileno(f), end) == 0) && fseeko(f, 0, SEEK_END) == 0;
}

static bool is_regular(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

tide_status log_open(train_log *log, const char *path, const char *model, uint64_t batch, bool resumed) {
    *log = (train_log){.path = path};
    if (!path) return TIDE_OK;
    log->csv = ends_with(path, ".csv");
    resumed = resumed && is_regular(path); /* a pipe has nothing to go on with */
    log->stream = fopen(path, resumed ? "a+" : "w");
    if (!log->stream || (resumed && !cut_last_line(log->stream)))
        return complain(TIDE_E_IO, "--log: cannot write %s: %s", path, strerror(errno));
    if (!resumed || ftell(log->stream) == 0) write_head(log, model, batch);
    return check_written(log);
}

/* JSON has no word for what is not finite; CSV leaves the field empty. */
static void write_number(const train_log *log, double value) {
    if (isfinite(value))
        fprintf(log->stream, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.9g", value);
    else if (!log->csv)
        fputs("null", log->stream);
}

/* Compute's idle time within the step; not known where the device cannot tell how long compute was busy. */
static double wait_ns(const tide_step_report *r) {
    return r->compute_ns && r->compute_ns <= r->step_ns ? (double)(r->step_ns - r->compute_ns) : NAN;
}

static void begin_field(const train_log *log, const char *name) {
    fputc(',', log->stream);
    if (!log->csv) fprintf(log->stream, "\"%s\":", name);
}

tide_status log_step(train_log *log, const log_entry *e) {
    const tide_step_report *r = e->report;
    uint64_t tier_bytes = r->staging_bytes;
    if (!log->stream) return TIDE_OK;
    for (uint32_t t = 0; t < e->n_tiers; t++) tier_bytes += r->tier_bytes[t];
    const struct {
        const char *name;
        double value;
    } fields[] = {{"step", (double)e->step},         {"loss", (double)e->loss}, {"rate", (double)e->rate},
                  {"step_ns", (double)r->step_ns},   {"wait_ns", wait_ns(r)},   {"arena_bytes", (double)r->arena_bytes},
                  {"tier_bytes", (double)tier_bytes}};
    fputs(log->csv ? "" : "{\"policy\":", log->stream);
    json_string(log->stream, e->policy);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        begin_field(log, fields[i].name);
        write_number(log, fields[i].value);
    }
    fputs(log->csv ? "\n" : "}\n", log->stream);
    return check_written(log);
}

void log_close(train_log *log) {
    if (log->stream) fclose(log->stream);
}
