/* See progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

void progress_start(progress *p, const char *label, uint64_t first, uint64_t total, const char *unit,
                    uint64_t units_per_step, bool quiet) {
    *p = (progress){
        .label = label, .unit = unit, .first = first, .total = total, .units_per_step = units_per_step, .quiet = quiet};
    p->terminal = isatty(STDERR_FILENO);
    p->start_ns = p->shown_ns = now_ns();
}

/* ---- memory ---- */

enum { BAR_CELLS = 6, LINE_BYTES = 1024 };

/* A share of 1 as a bar, in eighths of a cell; the rest of the whole is pale. */
static void add_bar(FILE *f, double share) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int length = (int)(share * BAR_CELLS * 8 + 0.5), cells = length / 8;
    for (int i = 0; i < cells; i++) fputs("█", f);
    fputs(eighths[length % 8], f);
    for (int i = (length + 7) / 8; i < BAR_CELLS; i++) fputs("░", f);
    fputc(' ', f);
}

static void add_place(FILE *f, const char *name, uint64_t bytes, uint64_t all, bool bars) {
    if (bytes == 0) return;
    fprintf(f, "  %s ", show_name(name));
    if (bars) add_bar(f, (double)bytes / (double)all);
    fputs(show_bytes(bytes), f);
}

static void add_memory(FILE *f, const tide_step_report *r, const tide_machine *m, bool bars) {
    uint64_t all = r->arena_bytes;
    for (uint32_t t = 0; t < m->n_tiers; t++) all += r->tier_bytes[t];
    add_place(f, "arena", r->arena_bytes, all, bars);
    for (uint32_t t = 0; t < m->n_tiers; t++) add_place(f, m->tier[t].name, r->tier_bytes[t], all, bars);
}

/* ---- the line ---- */

/* Characters, not bytes: those that continue a character do not count. */
static size_t width_of(const char *text) {
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Ends the text after so many characters: a line that wraps cannot be drawn over. */
static void cut_line(char *text, size_t width) {
    for (; *text; text++) {
        if (((unsigned char)*text & 0xc0) == 0x80) continue;
        if (width-- == 0) break;
    }
    *text = '\0';
}

static size_t terminal_width(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* "0 s" is said at the end only. */
static void add_time_left(FILE *f, double seconds, bool ended) {
    if (!ended && seconds < 1)
        fputs("  <1 s left", f);
    else if (seconds < 120)
        fprintf(f, "  %.0f s left", seconds);
    else if (seconds < 2 * 3600)
        fprintf(f, "  %.0f min left", seconds / 60);
    else
        fprintf(f, "  %.1f h left", seconds / 3600);
}

static void write_line(const progress *p, uint64_t done, double seconds, float loss, const tide_step_report *report,
                       const tide_machine *machine, bool bars, char line[LINE_BYTES]) {
    FILE *f = fmemopen(line, LINE_BYTES, "w");
    line[0] = '\0';
    if (!f) return;
    double rate = (double)(done * p->units_per_step) / (seconds > 0 ? seconds : 1);
    fprintf(f, "%-10s step %" PRIu64 "/%" PRIu64 "  loss %s  %.*f %s/s", p->label, p->first + done, p->first + p->total,
            show_loss((double)loss), rate < 1 ? 2 : rate < 10, rate, p->unit);
    add_memory(f, report, machine, bars);
    add_time_left(f, seconds / (double)done * (double)(p->total - done), done == p->total);
    fclose(f);
    line[LINE_BYTES - 1] = '\0';
}

/* Ten times a second on a terminal, every five seconds in a log; the last step always. */
void progress_step(progress *p, uint64_t done, float loss, const tide_step_report *report,
                   const tide_machine *machine) {
    uint64_t now = now_ns(), pause = p->terminal ? UINT64_C(100000000) : UINT64_C(5000000000);
    char line[LINE_BYTES];
    if (p->quiet || (done < p->total && now - p->shown_ns < pause)) return;
    p->shown_ns = now;
    double seconds = (double)(now - p->start_ns) / 1e9;
    write_line(p, done, seconds, loss, report, machine, p->terminal, line);
    if (p->terminal && width_of(line) >= terminal_width())
        write_line(p, done, seconds, loss, report, machine, false, line);
    if (p->terminal) cut_line(line, terminal_width() - 1);
    fprintf(stderr, p->terminal ? "\r%s\x1b[K" : "%s\n", line);
    fflush(stderr);
}

void progress_end(progress *p) {
    if (!p->quiet && p->terminal) fputc('\n', stderr);
}
