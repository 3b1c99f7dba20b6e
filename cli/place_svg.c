/* See place_svg.h. Time goes right, addresses go up; one rectangle per lifetime, its name in a tooltip. */
#include "place_svg.h"

#include <inttypes.h>

#include "cli.h"

enum { WIDTH = 1200, HEIGHT = 700, LEFT = 90, TOP = 30, RIGHT = 20, BOTTOM = 40 };

/* Okabe and Ito's palette without black: apart also for colour-blind eyes. */
static const char *const colours[] = {"#56b4e9", "#e69f00", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"};

typedef struct scale {
    double per_time, per_byte;
    uint32_t first;
} scale;

static scale scale_of(const place_picture *p) {
    uint32_t first = UINT32_MAX, last = 0;
    for (size_t i = 0; i < p->n; i++) {
        tide_buffer b = tide_buffers_get(p->buffers, i);
        if (b.begin < first) first = b.begin;
        if (b.end > last) last = b.end;
        if (b.end2 > last) last = b.end2;
    }
    uint64_t top = p->capacity > p->height ? p->capacity : p->height;
    return (scale){.per_time = last > first ? (double)WIDTH / (last - first) : 1,
                   .per_byte = top ? (double)HEIGHT / (double)top : 1,
                   .first = first == UINT32_MAX ? 0 : first};
}

static void write_box(FILE *f, const place_picture *p, const scale *s, size_t i, uint32_t begin, uint32_t end) {
    tide_buffer b = tide_buffers_get(p->buffers, i);
    if (begin >= end || b.size_bytes == 0) return;
    double x = LEFT + (begin - s->first) * s->per_time, w = (end - begin) * s->per_time;
    double h = (double)b.size_bytes * s->per_byte, y = TOP + HEIGHT - (double)p->offsets[i] * s->per_byte - h;
    fprintf(f, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>", x, y, w, h,
            colours[i % (sizeof colours / sizeof *colours)]);
    svg_text(f, b.name);
    fprintf(f, ": %" PRIu64 " bytes at %" PRIu64 ", [%u, %u)</title></rect>\n", b.size_bytes, p->offsets[i], begin,
            end);
}

static void write_line(FILE *f, const scale *s, uint64_t bytes, const char *what, const char *colour) {
    double y = TOP + HEIGHT - (double)bytes * s->per_byte;
    fprintf(f,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" stroke-width=\"1.5\" stroke-dasharray=\"6 "
            "3\"/>\n",
            LEFT, LEFT + WIDTH, y, y, colour);
    fprintf(f, "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\">%s</text>\n", LEFT - 6, y + 4, show_bytes(bytes));
    fprintf(f, "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\">%s</text>\n", LEFT + WIDTH - 4, y - 4, what);
}

tide_status write_place_svg(const place_picture *p, const char *path) {
    file_out w;
    tide_status status = file_out_begin(&w, path);
    if (status != TIDE_OK) return status;
    scale s = scale_of(p);
    FILE *f = w.stream;
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n",
            LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
    fprintf(f, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<g stroke=\"white\" stroke-width=\"0.3\">\n");
    for (size_t i = 0; i < p->n; i++) {
        tide_buffer b = tide_buffers_get(p->buffers, i);
        write_box(f, p, &s, i, b.begin, b.end);
        write_box(f, p, &s, i, b.begin2, b.end2);
    }
    fprintf(f, "</g>\n");
    write_line(f, &s, p->height, "height", "black");
    if (p->capacity) write_line(f, &s, p->capacity, "capacity", "#d55e00");
    fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"black\"/>\n", LEFT, TOP,
            WIDTH, HEIGHT);
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">time</text>\n", LEFT + WIDTH / 2, TOP + HEIGHT + 24);
    fprintf(f, "<text x=\"20\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 20 %d)\">address</text>\n",
            TOP + HEIGHT / 2, TOP + HEIGHT / 2);
    fprintf(f, "</svg>\n");
    return file_out_end(&w);
}
