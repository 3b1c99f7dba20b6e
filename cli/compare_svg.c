/* The time-memory frontier as SVG: the arena goes right, in percent of the unconstrained one, the step time up, relative
 * to the unconstrained one and on a logarithmic scale, as recomputing and waiting multiply. Each policy has a line with
 * a colour and a shape of its own: the shape also tells policies apart where colours are not seen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

enum { WIDTH = 760, HEIGHT = 460, LEFT = 70, TOP = 44, RIGHT = 210, BOTTOM = 56, N_SHAPES = 5 };

/* Okabe and Ito's palette, without its yellow, which is too pale for lines: apart also for colour-blind eyes. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
enum { N_COLOURS = sizeof colours / sizeof *colours };

typedef struct frame {
    FILE *f;
    double right;     /* percent at the right edge */
    double low, high; /* log of the time ratios at the bottom and the top */
} frame;

static double arena_percent(const comparison *c, const compare_row *r) {
    return c->whole.arena_bytes ? 100 * (double)r->arena_bytes / (double)c->whole.arena_bytes : 100;
}

static double time_ratio(const comparison *c, const compare_row *r) {
    double ratio = c->whole.step_ns ? (double)r->prediction.step_ns / (double)c->whole.step_ns : 1;
    return fmin(fmax(ratio, 0.01), 1e6); /* what no picture could show */
}

static double x_of(const frame *s, double percent) { return LEFT + WIDTH * percent / s->right; }
static double y_of(const frame *s, double ratio) {
    return TOP + HEIGHT * (1 - (log(ratio) - s->low) / (s->high - s->low));
}

/* Policy none needs some times the memory of the others, which a common scale would squeeze into a corner. */
static bool is_shown(const comparison *c, const compare_row *r) { return r->fits && arena_percent(c, r) <= 150; }

/* Room for all points; at least from 1 to 1.1. */
static frame frame_of(const comparison *c, FILE *f) {
    frame s = {.f = f, .right = 100, .low = 0, .high = log(1.1)};
    for (size_t i = 0; i < c->n_rows; i++) {
        if (!is_shown(c, &c->rows[i])) continue;
        double ratio = log(time_ratio(c, &c->rows[i]));
        s.right = fmax(s.right, arena_percent(c, &c->rows[i]));
        s.low = fmin(s.low, ratio);
        s.high = fmax(s.high, ratio);
    }
    double margin = (s.high - s.low) * 0.05;
    s.low -= margin;
    s.high += margin;
    s.right *= 1.04;
    return s;
}

/* ---- axes ---- */

static void write_time_tick(const frame *s, double ratio) {
    double y = y_of(s, ratio);
    fprintf(s->f, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>", LEFT, LEFT + WIDTH, y, y);
    fprintf(s->f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 6, y + 4, ratio);
}

/* As many as are some 24 pixels apart. */
static void write_time_ticks(const frame *s) {
    static const double steps[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
    double low = exp(s->low), high = exp(s->high), last = 1e9;
    size_t k = 0, n = sizeof steps / sizeof *steps;
    for (double tick = 1; tick >= low && tick > 0.05; tick -= 0.1)
        if (tick < 0.95) write_time_tick(s, round(tick * 10) / 10);
    for (double tick = 1; tick <= high;) {
        if (last - y_of(s, tick) >= 24) {
            write_time_tick(s, round(tick * 100) / 100);
            last = y_of(s, tick);
        }
        while (k + 1 < n && last - y_of(s, tick + steps[k]) < 24) k++;
        tick = floor(tick / steps[k] + 1.0001) * steps[k];
    }
}

static void write_arena_ticks(const frame *s) {
    for (int tick = 0; tick <= s->right; tick += 10) {
        double x = x_of(s, tick);
        fprintf(s->f, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/>", x, x, TOP, TOP + HEIGHT);
        fprintf(s->f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d %%</text>\n", x, TOP + HEIGHT + 18, tick);
    }
}

static void write_axes(const comparison *c, const frame *s) {
    write_arena_ticks(s);
    write_time_ticks(s);
    fprintf(s->f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"black\"/>\n", LEFT, TOP,
            WIDTH, HEIGHT);
    fprintf(s->f, "<text x=\"%d\" y=\"24\" font-size=\"15\">", LEFT);
    svg_text(s->f, show_name(tide_program_name(c->program)));
    fputs(" on ", s->f);
    svg_text(s->f, show_name(c->machine->name));
    fprintf(s->f, ": time against memory</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", LEFT + WIDTH / 2,
            TOP + HEIGHT + 42);
    fprintf(s->f, "arena (100 %% = unconstrained, %s)</text>\n", show_bytes(c->whole.arena_bytes));
    fprintf(s->f, "<text x=\"18\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 18 %d)\">", TOP + HEIGHT / 2,
            TOP + HEIGHT / 2);
    fprintf(s->f, "step time (1 = unconstrained, %s)</text>\n", show_ns(c->whole.step_ns));
}

/* ---- lines ---- */

/* A dot, square, diamond, triangle or inverted triangle around (x, y). */
static void write_shape(FILE *f, size_t policy, double x, double y) {
    static const char *const paths[N_SHAPES] = {
        "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
        "m-3.6 -3.6h7.2v7.2h-7.2z",
        "m0 -5l5 5l-5 5l-5 -5z",
        "m0 -4.6l4.6 8h-9.2z",
        "m0 4.6l4.6 -8h-9.2z",
    };
    fprintf(f, "<path d=\"M%.1f %.1f%s\" fill=\"%s\" stroke=\"white\" stroke-width=\"0.8\">", x, y,
            paths[policy % N_SHAPES], colours[policy % N_COLOURS]);
}

/* Where the colours begin again, lines are dashed. */
static const char *stroke_of(size_t policy) {
    static char text[64];
    snprintf(text, sizeof text, "stroke=\"%s\" stroke-width=\"1.8\"%s", colours[policy % N_COLOURS],
             policy / N_COLOURS % 2 ? " stroke-dasharray=\"6 3\"" : "");
    return text;
}

static int by_arena(const void *a, const void *b) {
    const compare_row *x = *(const compare_row *const *)a, *y = *(const compare_row *const *)b;
    if (x->arena_bytes != y->arena_bytes) return x->arena_bytes < y->arena_bytes ? -1 : 1;
    return x->prediction.step_ns < y->prediction.step_ns ? -1 : x->prediction.step_ns > y->prediction.step_ns;
}

static void write_points(const comparison *c, const frame *s, const compare_row **points, size_t n, size_t policy) {
    fprintf(s->f, "<polyline fill=\"none\" %s points=\"", stroke_of(policy));
    for (size_t i = 0; i < n; i++)
        fprintf(s->f, " %.1f,%.1f", x_of(s, arena_percent(c, points[i])), y_of(s, time_ratio(c, points[i])));
    fputs("\"/>\n", s->f);
    for (size_t i = 0; i < n; i++) {
        double percent = arena_percent(c, points[i]), ratio = time_ratio(c, points[i]);
        write_shape(s->f, policy, x_of(s, percent), y_of(s, ratio));
        fputs("<title>", s->f);
        svg_text(s->f, points[i]->policy);
        fprintf(s->f, ": %s (%.1f %%), time %.3f</title></path>\n", show_bytes(points[i]->arena_bytes), percent, ratio);
    }
}

static void write_legend(const frame *s, size_t policy, const char *name, bool empty) {
    double x = LEFT + WIDTH + 18, y = TOP + 12 + 20 * (double)policy;
    fprintf(s->f, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" %s/>", x, x + 24, y, y, stroke_of(policy));
    write_shape(s->f, policy, x + 12, y);
    fprintf(s->f, "</path><text x=\"%.1f\" y=\"%.1f\">", x + 32, y + 4);
    svg_text(s->f, name);
    fprintf(s->f, "%s</text>\n", empty ? " (not below 150 %)" : "");
}

/* The rows of one policy stand together. */
static void write_lines(const comparison *c, const frame *s, const compare_row **points) {
    size_t policy = 0;
    for (size_t i = 0, n = 0; i < c->n_rows; i++) {
        if (is_shown(c, &c->rows[i])) points[n++] = &c->rows[i];
        if (i + 1 < c->n_rows && strcmp(c->rows[i].policy, c->rows[i + 1].policy) == 0) continue;
        qsort(points, n, sizeof(const compare_row *), by_arena);
        if (n) write_points(c, s, points, n, policy);
        write_legend(s, policy++, show_name(c->rows[i].policy), n == 0);
        n = 0;
    }
}

tide_status write_frontier_svg(const comparison *c, const char *path) {
    file_out w;
    const compare_row **points = malloc((c->n_rows + 1) * sizeof(const compare_row *));
    if (!points) return complain(TIDE_E_MEMORY, "out of host memory");
    tide_status status = file_out_begin(&w, path);
    if (status == TIDE_OK) {
        frame s = frame_of(c, w.stream);
        fprintf(s.f,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
                "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
        write_axes(c, &s);
        write_lines(c, &s, points);
        fputs("</svg>\n", s.f);
        status = file_out_end(&w);
    }
    free(points);
    return status;
}
