/* Losses over the steps, for <tidemark/report.h>. Every policy of every log is a curve: what was measured, pale, and its moving average, bold. Losses
 * that are not finite are gaps. Logs are hostile input: fields are checked, texts escaped. */
#include <tidemark/report.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/vec.h"

enum { WIDTH = 860, HEIGHT = 380, LEFT = 64, TOP = 16, BOTTOM = 44, MARGIN = 16, NAME_BYTES = 96, MAX_CURVES = 32 };

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"};
enum { N_COLOURS = sizeof colours / sizeof *colours };

typedef struct point {
    uint64_t step, step_ns, arena_bytes;
    double loss, smooth; /* NAN: not finite; NAN: none so far */
    double weight; /* of the moving average: the newest tenth counts most, and the first values no more than others */
} point;

typedef struct curve {
    char name[NAME_BYTES], policy[NAME_BYTES];
    uint32_t log; /* which of the files */
    TIDE_VEC(point) points;
} curve;

typedef struct curves {
    curve curve[MAX_CURVES];
    uint32_t n;
    uint64_t last_step;
    double low, high; /* of the finite losses */
} curves;

/* ---- reading ---- */

bool tide_log_is(const char *path) {
    tide__file file;
    if (!path || tide__file_open_regular(path, &file) != TIDE_OK) return false;
    const char *end = memchr(file.text, '\n', file.size);
    size_t length = end ? (size_t)(end - file.text) : file.size;
    bool found = memmem(file.text, length, "\"tidemark\":\"log\"", 16) != NULL;
    tide__file_close(&file);
    return found;
}

static void copy_text(const tide__json *doc, uint32_t node, char out[NAME_BYTES]) {
    bool text = node && doc->nodes.data[node].type == TIDE__JSON_STRING;
    snprintf(out, NAME_BYTES, "%.*s", text ? (int)doc->nodes.data[node].length : 0,
             text ? doc->nodes.data[node].text : "");
}

/* That of the policy in this log, which is made when it comes up first. NULL: there are too many. */
static curve *curve_of(curves *all, uint32_t log, const char *model, const char *policy) {
    for (uint32_t i = 0; i < all->n; i++)
        if (all->curve[i].log == log && strcmp(all->curve[i].policy, policy) == 0) return &all->curve[i];
    if (all->n == MAX_CURVES) return NULL;
    curve *c = &all->curve[all->n++];
    c->log = log;
    snprintf(c->policy, sizeof c->policy, "%s", policy);
    snprintf(c->name, sizeof c->name, "%s", model);
    return c;
}

static tide_status read_point(const tide__json *doc, point *p) {
    const struct {
        const char *key;
        uint64_t *out;
    } figures[] = {{"step", &p->step}, {"step_ns", &p->step_ns}, {"arena_bytes", &p->arena_bytes}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        uint32_t node = tide__json_get(doc, 0, figures[i].key);
        if (!node) return tide__fail(TIDE_E_FORMAT, "\"%s\" is missing", figures[i].key);
        TIDE_TRY(tide__json_u64(doc, node, figures[i].key, (uint64_t)1 << 53, figures[i].out));
    }
    uint32_t loss = tide__json_get(doc, 0, "loss");
    p->loss = NAN;
    if (!loss) return tide__fail(TIDE_E_FORMAT, "\"loss\" is missing");
    return doc->nodes.data[loss].type == TIDE__JSON_NULL ? TIDE_OK : tide__json_double(doc, loss, "loss", &p->loss);
}

static void stretch(curves *all, const point *p) {
    if (p->step > all->last_step) all->last_step = p->step;
    if (!isfinite(p->loss)) return;
    all->low = fmin(all->low, p->loss);
    all->high = fmax(all->high, p->loss);
}

/* A training that was resumed took some steps again: what came of them before is forgotten. */
static tide_status add_point(curve *c, point *p) {
    while (c->points.count && c->points.data[c->points.count - 1].step >= p->step) c->points.count--;
    const point *before = c->points.count ? &c->points.data[c->points.count - 1] : NULL;
    double sum = before && before->weight > 0 ? before->smooth * before->weight : 0;
    p->weight = before ? before->weight : 0;
    if (isfinite(p->loss)) {
        sum = 0.9 * sum + 0.1 * p->loss;
        p->weight = 0.9 * p->weight + 0.1;
    }
    p->smooth = p->weight > 0 ? sum / p->weight : NAN;
    return tide__vec_push(&c->points, *p);
}

static tide_status read_line(tide__lines *lines, uint32_t log, const char *model, curves *all) {
    char policy[NAME_BYTES];
    point p;
    TIDE_TRY(tide__lines_check(lines, read_point(&lines->doc, &p)));
    copy_text(&lines->doc, tide__json_get(&lines->doc, 0, "policy"), policy);
    curve *c = curve_of(all, log, model, policy);
    if (!c) return tide__lines_fail(lines, "more than %d curves", MAX_CURVES);
    stretch(all, &p);
    return add_point(c, &p);
}

static tide_status read_lines(tide__lines *lines, uint32_t log, curves *all) {
    char model[NAME_BYTES] = "";
    bool more = false;
    TIDE_TRY(tide__lines_next(lines, &more)); /* the head, which tide_log_is has seen */
    if (more) copy_text(&lines->doc, tide__json_get(&lines->doc, 0, "model"), model);
    for (;;) {
        TIDE_TRY(tide__lines_next(lines, &more));
        if (!more) return TIDE_OK;
        TIDE_TRY(read_line(lines, log, model, all));
    }
}

/* Without a last line that is still being written, or never was to its end. */
static size_t whole_lines(const tide__file *file) {
    size_t n = file->size;
    if (n == 0 || file->text[n - 1] == '}') return n;
    while (n > 0 && file->text[n - 1] != '\n') n--;
    return n;
}

static tide_status read_log(const char *path, uint32_t log, curves *all) {
    tide__file file;
    tide__lines lines;
    tide_status status = tide__file_open_regular(path, &file);
    if (status != TIDE_OK) return status;
    tide__lines_init(&lines, file.text, whole_lines(&file), path);
    status = read_lines(&lines, log, all);
    tide__lines_free(&lines);
    tide__file_close(&file);
    return status;
}

/* ---- drawing ---- */

static double x_of(const curves *a, uint64_t step) {
    return LEFT + (double)WIDTH * (double)(step - 1) / (a->last_step > 1 ? (double)(a->last_step - 1) : 1);
}
static double y_of(const curves *a, double loss) { return TOP + HEIGHT * (1 - (loss - a->low) / (a->high - a->low)); }

/* 1, 2 or 5 times a power of ten: about `n` of them in the range. */
static double nice_step(double range, int n) {
    double raw = range / n, power = pow(10, floor(log10(raw))), share = raw / power;
    return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}

/* Steps are chosen so that there are fewer. */
enum { MAX_TICKS = 40 };

static void write_axes(FILE *f, const curves *a) {
    double step = nice_step(a->high - a->low, 6);
    double first = ceil(a->low / step);
    for (int k = 0; k < MAX_TICKS && (first + k) * step <= a->high; k++) {
        double tick = (first + k) * step, y = y_of(a, tick);
        fprintf(f, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, LEFT + WIDTH, y, y);
        fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 4,
                fabs(tick) < step / 1e6 ? 0 : tick);
    }
    step = fmax(1, nice_step((double)a->last_step, 8));
    for (int k = 1; k < MAX_TICKS && k * step <= (double)a->last_step; k++)
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n", x_of(a, (uint64_t)(k * step)),
                TOP + HEIGHT + 18, k * step);
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n", LEFT + WIDTH / 2, TOP + HEIGHT + 38);
    fprintf(f, "<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">loss</text>\n",
            TOP + HEIGHT / 2);
}

/* At most two points per pixel, the least and the greatest of it: a million steps make no larger a page. */
static void write_path(FILE *f, const curves *a, const curve *c, bool smooth, const char *style) {
    size_t stride = c->points.count / WIDTH + 1;
    bool pen = false;
    fprintf(f, "<path fill=\"none\" %s d=\"", style);
    for (size_t i = 0; i < c->points.count; i += stride) {
        double low = NAN, high = NAN;
        for (size_t k = i; k < i + stride && k < c->points.count; k++) {
            double y = smooth ? c->points.data[k].smooth : c->points.data[k].loss;
            low = fmin(low, y);
            high = fmax(high, y);
        }
        double x = x_of(a, c->points.data[i].step);
        if (isfinite(low)) fprintf(f, "%c%.1f %.1f", pen ? 'L' : 'M', x, y_of(a, high));
        if (isfinite(low) && low < high) fprintf(f, "L%.1f %.1f", x, y_of(a, low));
        pen = isfinite(low);
    }
    fputs("\"/>\n", f);
}

static void write_picture(FILE *f, const curves *a) {
    char style[96];
    fprintf(f, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"loss over steps\">\n", LEFT + WIDTH + MARGIN,
            TOP + HEIGHT + BOTTOM);
    write_axes(f, a);
    for (int smooth = 0; smooth < 2; smooth++)
        for (uint32_t i = 0; i < a->n; i++) {
            snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"%s\" opacity=\"%s\"", colours[i % N_COLOURS],
                     smooth ? "2" : "1", smooth ? "1" : "0.25");
            write_path(f, a, &a->curve[i], smooth != 0, style);
        }
    fputs("</svg>\n", f);
}

/* ---- the table ---- */

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t median_ns(const curve *c) {
    uint64_t *times = malloc((c->points.count + 1) * sizeof *times), median = 0;
    for (size_t i = 0; times && i < c->points.count; i++) times[i] = c->points.data[i].step_ns;
    if (times) qsort(times, c->points.count, sizeof *times, by_value);
    if (times) median = times[c->points.count / 2];
    free(times);
    return median;
}

/* Paths and names come from files and callers. */
static void write_text(FILE *f, const char *text) {
    for (; *text; text++) {
        if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
            fprintf(f, "&#%d;", *text);
        else if ((unsigned char)*text >= 0x20)
            fputc(*text, f);
    }
}

static void write_row(FILE *f, const curve *c, const char *path, const char *colour) {
    const point *first = &c->points.data[0], *last = &c->points.data[c->points.count - 1];
    fprintf(f, "<tr><td><i style=\"background:%s\"></i>", colour);
    write_text(f, path);
    fputs("</td><td>", f);
    write_text(f, c->name);
    fputs("</td><td>", f);
    write_text(f, c->policy);
    fprintf(f, "</td><td>%llu</td><td>%.4g</td><td>%.4g</td><td>%.1f ms</td><td>%.2f MiB</td></tr>\n",
            (unsigned long long)last->step, first->loss, last->smooth, (double)median_ns(c) / 1e6,
            (double)last->arena_bytes / 0x1p20);
}

static const char page_head[] =
    "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
    "content=\"width=device-width\">\n"
    "<title>Tidemark: losses</title>\n<style>\n"
    ":root{color-scheme:light dark;--ink:#15202b;--muted:#56636f;--line:#dce2e8;--bg:#fff}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--muted:#98a6b3;--line:#2b3743;--bg:#161e26}}\n"
    "body{margin:24px auto;max-width:1000px;padding:0 16px;background:var(--bg);color:var(--ink);"
    "font:14px/1.45 system-ui,sans-serif;font-variant-numeric:tabular-nums}\n"
    "h1{font-size:22px;margin:0 0 12px}svg text{fill:var(--muted);font-size:12px}.grid{stroke:var(--line)}\n"
    "table{border-collapse:collapse;margin-top:16px;width:100%}th{color:var(--muted);font-weight:400}\n"
    "th,td{text-align:right;padding:5px 8px;border-bottom:1px solid var(--line)}\n"
    "th:nth-child(-n+3),td:nth-child(-n+3){text-align:left;overflow-wrap:anywhere}\n"
    "i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:7px}\n</style>\n"
    "<h1>Loss over the steps</h1>\n";

static void write_page(FILE *f, const curves *a, const char *const *paths) {
    fputs(page_head, f);
    write_picture(f, a);
    fputs("<table><tr><th>log</th><th>model</th><th>policy</th><th>steps</th><th>first loss</th><th>last loss, "
          "smoothed</th>"
          "<th>median step</th><th>arena</th></tr>\n",
          f);
    for (uint32_t i = 0; i < a->n; i++) write_row(f, &a->curve[i], paths[a->curve[i].log], colours[i % N_COLOURS]);
    fputs("</table></html>\n", f);
}

/* A little air around the curves. */
static void frame(curves *a) {
    double air = a->high > a->low ? 0.04 * (a->high - a->low) : fmax(fabs(a->high), 1) * 0.04;
    a->low -= air;
    a->high += air;
}

tide_status tide_log_report(const char *const *paths, uint32_t n, const char *output) {
    TIDE_NEED(paths, output);
    if (n == 0 || n > TIDE_MAX_LOGS) return tide__fail(TIDE_E_ARGUMENT, "%u logs, not 1 to %d", n, TIDE_MAX_LOGS);
    curves *all = calloc(1, sizeof *all);
    tide__writer w;
    if (!all) return tide__fail_memory();
    all->low = INFINITY;
    all->high = -INFINITY;
    tide_status status = TIDE_OK;
    for (uint32_t i = 0; i < n && status == TIDE_OK; i++) status = read_log(paths[i], i, all);
    if (status == TIDE_OK && !(all->low <= all->high))
        status = tide__fail(TIDE_E_FORMAT, "%s: there is no finite loss in it", paths[0]);
    if (status == TIDE_OK) status = tide__writer_open(&w, output);
    if (status == TIDE_OK) {
        frame(all);
        write_page(w.stream, all, paths);
        status = tide__writer_commit(&w);
    }
    for (uint32_t i = 0; i < all->n; i++) tide__vec_free(&all->curve[i].points);
    free(all);
    return status;
}
