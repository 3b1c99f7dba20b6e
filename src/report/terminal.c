/* The report in a terminal: figures, the load curve in eighths of a block, and the map of addresses over issue order,
 * one letter or coloured block per cell for the class that fills most of it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/options.h"
#include "base/size.h"
#include "report/report.h"

enum {
    MARGIN = 12, /* for the labels on the left */
    MIN_COLUMNS = 10,
    MAX_COLUMNS = 400,
    CURVE_ROWS = 6,
    MIN_ROWS = 6,
    MAX_ROWS = 60,
    OTHER_LINES = 14, /* what is printed besides the map */
    N_CLASSES = TIDE_CLASS_OTHER + 1,
    LEGEND_ITEM = 22
};

/* Per class: a letter for those without colour, and the nearest to Okabe and Ito's colours in the 256-colour cube. */
static const struct {
    char letter;
    int colour;
} looks[N_CLASSES] = {{'i', 227}, {'w', 25}, {'g', 166}, {'o', 175}, {'a', 74}, {'d', 214}, {'k', 246}, {'x', 36}};

typedef struct canvas {
    const tide_report *r;
    FILE *f;
    bool colour;
    uint32_t columns, rows; /* of the map, without the margin */
} canvas;

static void print_label(const canvas *c, const char *text) { fprintf(c->f, "%*s ", MARGIN - 1, text); }

static const char *bytes_text(uint64_t bytes, char text[24]) {
    double value = (double)bytes / 0x1p20;
    snprintf(text, 24, "%.*f MiB", value < 1 ? 3 : value < 100 ? 2 : 1, value);
    return text;
}

/* The issue index in the middle of a column. */
static uint32_t action_at(const canvas *c, uint32_t column) {
    return (uint32_t)(((uint64_t)column * 2 + 1) * c->r->timeline->n_actions / (2 * (uint64_t)c->columns));
}

static uint32_t column_of(const canvas *c, uint32_t action) {
    return (uint32_t)((uint64_t)action * c->columns / c->r->timeline->n_actions);
}

/* ---- the load curve ---- */

/* Per column the largest load of its actions: of the plan, and of policy liveness. */
static tide_status measure_loads(const canvas *c, uint64_t *after, uint64_t *before) {
    const tide_report *r = c->r;
    uint64_t *change = calloc((size_t)r->timeline->n_actions + 1, sizeof *change), load = 0; /* modulo 2^64 */
    if (!change) return tide__fail_memory();
    for (uint32_t i = 0; i < tide_plan_residency_count(r->plan); i++) {
        change[r->stays[i].begin] += tide_plan_residency(r->plan, i)->size_bytes;
        change[r->stays[i].end] -= tide_plan_residency(r->plan, i)->size_bytes;
    }
    for (uint32_t i = 0; i < r->timeline->n_actions; i++) {
        tide_action a = tide_plan_action(r->plan, i);
        uint32_t column = column_of(c, i);
        load += change[i];
        after[column] = tide__max_u64(after[column], load);
        if (a.kind == TIDE_RUN) before[column] = tide__max_u64(before[column], r->liveness->load_bytes[a.op]);
    }
    free(change);
    for (uint32_t k = 1; k < c->columns; k++) { /* columns without an action, when there are few of those */
        if (!after[k]) after[k] = after[k - 1];
        if (!before[k]) before[k] = before[k - 1];
    }
    return TIDE_OK;
}

static void print_curve_cell(const canvas *c, uint64_t after, uint64_t before, uint64_t low, uint64_t height) {
    static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    uint64_t filled = after <= low ? 0 : tide__min_u64(8, ((after - low) * 8 + height - 1) / height);
    if (filled)
        fputs(eighths[filled], c->f);
    else
        fputs(before > low ? "░" : " ", c->f);
}

static void print_curve(const canvas *c, const uint64_t *after, const uint64_t *before) {
    uint64_t top = 1;
    char text[24];
    for (uint32_t k = 0; k < c->columns; k++) top = tide__max_u64(top, tide__max_u64(after[k], before[k]));
    uint64_t height = (top + CURVE_ROWS - 1) / CURVE_ROWS;
    for (int row = CURVE_ROWS - 1; row >= 0; row--) {
        print_label(c, row == CURVE_ROWS - 1 ? bytes_text(top, text) : "");
        uint32_t end = c->columns; /* without blanks at the end of the line */
        while (end > 0 && tide__max_u64(after[end - 1], before[end - 1]) <= (uint64_t)row * height) end--;
        for (uint32_t k = 0; k < end; k++) print_curve_cell(c, after[k], before[k], (uint64_t)row * height, height);
        fputc('\n', c->f);
    }
}

static tide_status draw_curve(const canvas *c) {
    uint64_t *loads = calloc((size_t)2 * c->columns, sizeof *loads);
    if (!loads) return tide__fail_memory();
    tide_status status = measure_loads(c, loads, loads + c->columns);
    fprintf(c->f, "load    █ this plan   ░ freeing after the last use only\n");
    if (status == TIDE_OK) print_curve(c, loads, loads + c->columns);
    free(loads);
    return status;
}

/* ---- the map ---- */

/* Per cell and class: bytes of the cell's stretch of addresses, at the action in the middle of its column. */
static void fill_cells(const canvas *c, uint64_t height, uint64_t *cells) {
    for (uint32_t i = 0; i < tide_plan_residency_count(c->r->plan); i++) {
        const tide_residency *d = tide_plan_residency(c->r->plan, i);
        const tide_stay *s = &c->r->stays[i];
        uint64_t end = d->offset_bytes + d->size_bytes;
        uint32_t column = column_of(c, s->begin);
        while (column < c->columns && action_at(c, column) < s->begin) column++;
        for (; column < c->columns && action_at(c, column) < s->end; column++)
            for (uint64_t row = d->offset_bytes / height; row < c->rows && row * height < end; row++) {
                uint64_t low = tide__max_u64(d->offset_bytes, row * height);
                uint64_t high = tide__min_u64(end, (row + 1) * height);
                cells[(row * c->columns + column) * N_CLASSES + tide_report_stay_class(c->r, i)] += high - low;
            }
    }
}

static int fullest(const uint64_t *cell, uint64_t height) { /* a class; -1: most of it is free */
    int best = 0;
    uint64_t used = 0;
    for (int k = 0; k < N_CLASSES; k++) {
        used += cell[k];
        if (cell[k] > cell[best]) best = k;
    }
    return used * 2 < height ? -1 : best;
}

static void print_map_cell(const canvas *c, int cls) {
    if (cls < 0)
        fputs(c->colour ? " " : "·", c->f);
    else if (c->colour)
        fprintf(c->f, "\x1b[38;5;%dm█\x1b[0m", looks[cls].colour);
    else
        fputc(looks[cls].letter, c->f);
}

static void print_map(const canvas *c, uint64_t height, const uint64_t *cells) {
    char text[24];
    for (uint32_t row = c->rows; row-- > 0;) {
        print_label(c, row + 1 == c->rows ? bytes_text(tide_plan_arena_bytes(c->r->plan), text) : "");
        for (uint32_t k = 0; k < c->columns; k++)
            print_map_cell(c, fullest(&cells[((size_t)row * c->columns + k) * N_CLASSES], height));
        fputc('\n', c->f);
    }
}

static void print_legend(const canvas *c) {
    uint32_t width = c->columns + MARGIN, per_line = width > LEGEND_ITEM ? width / LEGEND_ITEM : 1;
    for (uint32_t k = 0; k < N_CLASSES; k++) {
        bool last = (k + 1) % per_line == 0 || k + 1 == N_CLASSES;
        print_map_cell(c, (int)k);
        fprintf(c->f, " %-*s", last ? 0 : LEGEND_ITEM - 2, tide_class_name((tide_class)k));
        if (last) fputc('\n', c->f);
    }
}

static tide_status draw_map(const canvas *c) {
    uint64_t *cells = calloc((size_t)c->rows * c->columns * N_CLASSES, sizeof *cells);
    uint64_t arena = tide_plan_arena_bytes(c->r->plan), height = arena / c->rows + (arena % c->rows != 0);
    if (!cells) return tide__fail_memory();
    fprintf(c->f, "addresses over issue order (%u actions)\n", c->r->timeline->n_actions);
    if (height) {
        fill_cells(c, height, cells);
        print_map(c, height, cells);
        print_legend(c);
    }
    free(cells);
    return TIDE_OK;
}

/* ---- the whole ---- */

static void print_name(FILE *f, const char *name) { /* nothing from a file may move the cursor */
    for (; *name; name++) fputc((unsigned char)*name < 0x20 || *name == 0x7f ? '?' : *name, f);
}

static void print_figures(const canvas *c) {
    const tide_prediction *p = &c->r->timeline->prediction;
    char arena[24], peak[24], budget[24];
    print_name(c->f, tide_program_name(c->r->program));
    fprintf(c->f, ", policy ");
    print_name(c->f, tide_plan_policy(c->r->plan));
    fprintf(c->f, ": step %.3f ms", (double)p->step_ns / 1e6);
    if (c->r->ran) fprintf(c->f, ", measured %.3f ms", (double)c->r->ran->timeline->prediction.step_ns / 1e6);
    fprintf(c->f, "\narena %s", bytes_text(tide_plan_arena_bytes(c->r->plan), arena));
    if (c->r->budget_bytes != UINT64_MAX) fprintf(c->f, " of %s", bytes_text(c->r->budget_bytes, budget));
    if (c->r->whole_bytes)
        fprintf(c->f, " (%.1f %% of the unconstrained)",
                100.0 * (double)tide_plan_arena_bytes(c->r->plan) / (double)c->r->whole_bytes);
    fprintf(c->f, ", peak %s\n", bytes_text(p->peak_bytes, peak));
}

static uint32_t clamp(uint32_t value, uint32_t low, uint32_t high) {
    return value < low ? low : value > high ? high : value;
}

static tide_status draw(const canvas *c) {
    print_figures(c);
    if (c->r->timeline->n_actions == 0) return TIDE_OK;
    TIDE_TRY(draw_curve(c));
    return draw_map(c);
}

tide_status tide_report_write_terminal(const tide_report *r, const tide_report_terminal *terminal, const char *path) {
    TIDE_NEED(r, path);
    tide_report_terminal taken = {.size = sizeof taken, .columns = 80, .rows = 24};
    TIDE_TRY(tide__options_take("tide_report_terminal", terminal, sizeof taken, &taken));
    terminal = &taken;
    tide__writer w;
    TIDE_TRY(tide__writer_open(&w, path));
    canvas c = {.r = r, .f = w.stream, .colour = terminal->colour};
    c.columns = clamp(terminal->columns > MARGIN ? terminal->columns - MARGIN : 0, MIN_COLUMNS, MAX_COLUMNS);
    c.rows = clamp(terminal->rows > OTHER_LINES ? terminal->rows - OTHER_LINES : 0, MIN_ROWS, MAX_ROWS);
    tide_status status = draw(&c);
    if (status == TIDE_OK) return tide__writer_commit(&w);
    tide__writer_abort(&w);
    return status;
}
