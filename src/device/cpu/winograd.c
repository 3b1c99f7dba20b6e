/* See winograd.h. In the workspace, for a chunk of tiles and some of the output channels at a time, each of the 36 places
 * of a patch a matrix of its own:
 *
 *     forward, backward-data     V [place][tile][input]  *  U [place][strip][input][16]  =  M [place][tile][output]
 *     backward-weights           V [place][input / 8][tile][8] turned  *  W [place][strip][tile][16]
 *                                                                          =  S [place][input][output]
 *
 * where a strip is 16 output channels; backward-data has dy for its input. Places are 16 floats further apart than they
 * need to be, so that the same spot of all places does not fall into the same set of a cache.
 *
 * Chunks depend on shapes only, and every sum goes over blocks of DEPTH terms in order: so bits do not depend on
 * threads. */
#include "device/cpu/winograd.h"

#include "device/cpu/bf16.h"
#include "device/cpu/linear.h"
#include "device/cpu/wide.h"
#include "device/cpu/winograd_math.h"

#define TILE TIDE__WINOGRAD_TILE
#define PLACES TIDE__WINOGRAD_PLACES
#define ROWS TIDE__WINOGRAD_ROWS
#define STRIP TIDE__WINOGRAD_COLUMNS
#define DEPTH 256
#define SPARE 16          /* floats between places */
#define LEAST_CHANNELS 64 /* below, transforms cost more than products save */
#define LEAST_TILES 48
#define CHUNK_FLOATS (INT64_C(1) << 20) /* V and M of a chunk, about: they should stay in a cache */
#define CHUNK_TILES 256                 /* but at least so many, to make use of U */
#define BLOCK_FLOATS (INT64_C(5) << 19) /* U or S at most, about */

/* How the work is cut. inputs, outputs: channels of what is read and written. */
typedef struct cut {
    int64_t inputs, outputs, h, w;
    int64_t across, per_image, tiles;      /* tiles: in a row, in an image, in all */
    int64_t chunk, wide;                   /* tiles and output channels at a time */
    int64_t v_apart, block_apart, m_apart; /* floats from place to place of V, of U or S, of M or W */
    bool weights;                          /* backward-weights */
} cut;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static cut cut_of(const tide_op_desc *d) {
    const bool swapped = d->kind == TIDE_OP_CONV_BWD_DATA;
    cut c = {.inputs = swapped ? d->y.c : d->x.c, .outputs = swapped ? d->x.c : d->y.c, .h = d->x.h, .w = d->x.w};
    c.weights = d->kind == TIDE_OP_CONV_BWD_WEIGHTS;
    c.across = (c.w + TILE - 1) / TILE;
    c.per_image = c.across * ((c.h + TILE - 1) / TILE);
    c.tiles = d->x.n * c.per_image;
    c.wide = c.outputs;
    while (PLACES * c.inputs * c.wide > BLOCK_FLOATS && c.wide % (2 * STRIP) == 0) c.wide /= 2;
    c.chunk = smaller(c.tiles, larger(CHUNK_TILES, CHUNK_FLOATS / (PLACES * (c.inputs + c.wide))));
    c.v_apart = c.chunk * c.inputs + SPARE;
    c.block_apart = c.inputs * c.wide + SPARE;
    c.m_apart = c.chunk * c.wide + SPARE;
    return c;
}

static uint64_t workspace_floats(const cut *c) {
    return (uint64_t)(PLACES * (c->v_apart + c->block_apart + c->m_apart));
}

/* What one call works on. */
typedef struct work {
    cut c;
    tide__values x, dy; /* what is read in patches; backward-weights: the gradient beside it */
    const float *w;     /* weights */
    const float *bias;  /* of forward; NULL: none */
    tide__values y;     /* what is written: y, or dw */
    float *dw;
    float *dbias; /* of backward-weights; NULL: none */
    float *v, *block, *m;
} work;

static tide__tile tile_of(const cut *c, int64_t tile) {
    int64_t at = tile % c->per_image;
    return (tide__tile){c->h, c->w, at / c->across * TILE, at % c->across * TILE};
}

/* Plane `block` (8 channels) of the image of a tile, among `channels`. */
static tide__values plane_of(tide__values v, const cut *c, int64_t channels, int64_t tile, int64_t block) {
    return tide__values_from(v, (tile / c->per_image * (channels / 8) + block) * c->h * c->w * 8);
}

/* ---- forward and backward-data ---- */

static int64_t strip_at(const cut *c, int64_t output, int64_t input) {
    return (output / STRIP * c->inputs + input) * STRIP + output % STRIP;
}

/* U of outputs [first, first + wide). Weights are [O / 8][I / 8][9][8 i][8 o]; forward has 8 o side by side. */
static void transform_windows(const work *k, int64_t first) {
    const cut *c = &k->c;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t o = 0; o < c->wide / 8; o++)
        for (int64_t i = 0; i < c->inputs / 8; i++) {
            const float *block = k->w + ((first / 8 + o) * (c->inputs / 8) + i) * 9 * 64;
            for (int64_t l = 0; l < 8; l++)
                tide__winograd_window(block + l * 8, false, k->block + strip_at(c, o * 8, i * 8 + l), c->block_apart);
        }
}

/* The same for backward-data, where o are the inputs: windows upside down, 8 i side by side. */
static void transform_windows_back(const work *k, int64_t first) {
    const cut *c = &k->c;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t o = 0; o < c->inputs / 8; o++)
        for (int64_t i = 0; i < c->wide / 8; i++) {
            const float *block = k->w + (o * (c->outputs / 8) + first / 8 + i) * 9 * 64;
            float turned[9 * 64];
            for (int p = 0; p < 9; p++)
                for (int a = 0; a < 8; a++)
                    for (int b = 0; b < 8; b++) turned[p * 64 + a * 8 + b] = block[p * 64 + b * 8 + a];
            for (int64_t l = 0; l < 8; l++)
                tide__winograd_window(turned + l * 8, true, k->block + strip_at(c, i * 8, o * 8 + l), c->block_apart);
        }
}

static void transform_patches(const work *k, int64_t first, int64_t n) {
    const cut *c = &k->c;
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < n; t++)
        for (int64_t b = 0; b < c->inputs / 8; b++)
            tide__winograd_patch(plane_of(k->x, c, c->inputs, first + t, b), tile_of(c, first + t),
                                 k->v + t * c->inputs + b * 8, c->v_apart);
}

/* M of one place and strip for n tiles. */
static void multiply_strip(const work *k, int64_t place, int64_t strip, int64_t n) {
    const cut *c = &k->c;
    for (int64_t at = 0; at < c->inputs; at += DEPTH)
        for (int64_t t = 0; t < n; t += ROWS) {
            tide__strip s = {.step = 1, .depth = smaller(DEPTH, c->inputs - at), .n_rows = smaller(ROWS, n - t)};
            for (int64_t i = 0; i < ROWS; i++)
                s.row[i] = k->v + place * c->v_apart + smaller(t + i, n - 1) * c->inputs + at;
            s.b = k->block + place * c->block_apart + (strip * c->inputs + at) * STRIP;
            tide__winograd_multiply(&s, at > 0, k->m + place * c->m_apart + t * c->wide + strip * STRIP, c->wide);
        }
}

static void multiply_places(const work *k, int64_t n) {
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t place = 0; place < PLACES; place++)
        for (int64_t strip = 0; strip < k->c.wide / STRIP; strip++) multiply_strip(k, place, strip, n);
}

static void write_tiles(const work *k, int64_t first_output, int64_t first, int64_t n) {
    const cut *c = &k->c;
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < n; t++)
        for (int64_t b = 0; b < c->wide / 8; b++)
            tide__winograd_tile(k->m + t * c->wide + b * 8, c->m_apart, k->bias ? k->bias + first_output + b * 8 : NULL,
                                tile_of(c, first + t), plane_of(k->y, c, c->outputs, first + t, first_output / 8 + b));
}

/* Patches of a single chunk serve all outputs. */
static void convolve(const work *k, bool back) {
    const cut *c = &k->c;
    for (int64_t output = 0; output < c->outputs; output += c->wide) {
        (back ? transform_windows_back : transform_windows)(k, output);
        for (int64_t t = 0; t < c->tiles; t += c->chunk) {
            int64_t n = smaller(c->chunk, c->tiles - t);
            if (output == 0 || c->chunk < c->tiles) transform_patches(k, t, n);
            multiply_places(k, n);
            write_tiles(k, output, t, n);
        }
    }
}

/* ---- backward-weights ---- */

static void transform_pairs(const work *k, bool patches, int64_t first_output, int64_t first, int64_t n) {
    const cut *c = &k->c;
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < n; t++) {
        tide__tile tile = tile_of(c, first + t);
        for (int64_t b = 0; patches && b < c->inputs / 8; b++)
            tide__winograd_patch(plane_of(k->x, c, c->inputs, first + t, b), tile, k->v + (b * c->chunk + t) * 8,
                                 c->v_apart);
        for (int64_t b = 0; b < c->wide / 8; b++)
            tide__winograd_gradient(plane_of(k->dy, c, c->outputs, first + t, first_output / 8 + b), tile,
                                    k->m + (b / 2 * c->chunk + t) * STRIP + b % 2 * 8, c->m_apart);
    }
}

/* Adds n tiles to S of one place and strip. */
static void add_strip(const work *k, int64_t place, int64_t strip, int64_t n, bool more) {
    const cut *c = &k->c;
    for (int64_t at = 0; at < n; at += DEPTH)
        for (int64_t input = 0; input < c->inputs; input += ROWS) {
            tide__strip s = {.step = 8, .depth = smaller(DEPTH, n - at), .n_rows = smaller(ROWS, c->inputs - input)};
            for (int64_t i = 0; i < ROWS; i++) {
                int64_t from = smaller(input + i, c->inputs - 1);
                s.row[i] = k->v + place * c->v_apart + (from / 8 * c->chunk + at) * 8 + from % 8;
            }
            s.b = k->m + place * c->m_apart + (strip * c->chunk + at) * STRIP;
            tide__winograd_multiply(&s, more || at > 0,
                                    k->block + place * c->block_apart + input * c->wide + strip * STRIP, c->wide);
        }
}

static void add_places(const work *k, int64_t n, bool more) {
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t place = 0; place < PLACES; place++)
        for (int64_t strip = 0; strip < k->c.wide / STRIP; strip++) add_strip(k, place, strip, n, more);
}

static void write_windows(const work *k, int64_t first) {
    const cut *c = &k->c;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t o = 0; o < c->wide / 8; o++)
        for (int64_t i = 0; i < c->inputs / 8; i++) {
            float *block = k->dw + ((first / 8 + o) * (c->inputs / 8) + i) * 9 * 64;
            for (int64_t l = 0; l < 8; l++)
                tide__winograd_window_gradient(k->block + (i * 8 + l) * c->wide + o * 8, c->block_apart, block + l * 8);
        }
}

TIDE__WIDE static void add_pixels(const float *plane, int64_t pixels, double sum[8]) {
    for (int64_t p = 0; p < pixels; p++)
        for (int l = 0; l < 8; l++) sum[l] += (double)plane[p * 8 + l];
}

static void add_plane(tide__values plane, int64_t floats, double sum[8]) {
    float tile[TIDE__TILE_FLOATS];
    for (int64_t at = 0, n; at < floats; at += n) {
        n = tide__tile_of(plane, floats - at);
        add_pixels(tide__values_read(tide__values_from(plane, at), n, tile), n / 8, sum);
    }
}

/* Image by image, pixel by pixel. */
static void sum_bias(const work *k) {
    const cut *c = &k->c;
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < c->outputs / 8; b++) {
        double sum[8] = {0};
        for (int64_t tile = 0; tile < c->tiles; tile += c->per_image)
            add_plane(plane_of(k->dy, c, c->outputs, tile, b), c->h * c->w * 8, sum);
        for (int l = 0; l < 8; l++) k->dbias[b * 8 + l] = (float)sum[l];
    }
}

static void gather_weights(const work *k) {
    const cut *c = &k->c;
    if (k->dbias) sum_bias(k);
    for (int64_t output = 0; output < c->outputs; output += c->wide) {
        for (int64_t t = 0; t < c->tiles; t += c->chunk) {
            int64_t n = smaller(c->chunk, c->tiles - t);
            transform_pairs(k, output == 0 || c->chunk < c->tiles, output, t, n);
            add_places(k, n, t > 0);
        }
        write_windows(k, output);
    }
}

/* ---- kernels ---- */

/* Forward reads x, w and perhaps the bias, backward-data w and dy, backward-weights x and dy. */
static tide_status run(const tide__cpu_kernel *k, const tide__call *call) {
    work a = {.c = cut_of(&k->desc)};
    const bool back = k->desc.kind == TIDE_OP_CONV_BWD_DATA;
    a.v = tide__floats(call, (uint32_t)k->operands.count);
    a.block = a.v + PLACES * a.c.v_apart;
    a.m = a.block + PLACES * a.c.block_apart;
    a.x = tide__values_of(k, call, back ? 1 : 0);
    if (a.c.weights) {
        a.dy = tide__values_of(k, call, 1);
        a.dw = tide__floats(call, k->n_reads);
        a.dbias = k->desc.bias ? tide__floats(call, k->n_reads + 1) : NULL;
        gather_weights(&a);
    } else {
        a.w = tide__floats(call, back ? 0 : 1);
        a.bias = k->desc.bias && !back ? tide__floats(call, 2) : NULL;
        a.y = tide__values_of(k, call, k->n_reads);
        convolve(&a, back);
    }
    return TIDE_OK;
}

bool tide__winograd_is_for(const tide_op_desc *d) {
    if (d->kernel_h != 3 || d->kernel_w != 3 || d->stride != 1 || d->pad_h != 1 || d->pad_w != 1) return false;
    if (d->x.c < LEAST_CHANNELS || d->y.c < LEAST_CHANNELS || d->x.c % STRIP || d->y.c % STRIP) return false;
    int64_t tiles = d->x.n * ((d->x.h + TILE - 1) / TILE) * ((d->x.w + TILE - 1) / TILE);
    return d->x.h > TILE && d->x.w > TILE && tiles >= LEAST_TILES && tide__winograd_works();
}

bool tide__winograd_reads(const tide_op_desc *d, tide__md weights) {
    const dnnl_dims_t dims = {d->y.c, d->x.c, 3, 3};
    tide__mds mds = {0};
    tide__md blocked;
    bool same = tide__md_create(&mds, 4, dims, dnnl_f32, dnnl_OIhw8i8o, &blocked) == TIDE_OK &&
                tide__md_equal(weights, blocked);
    tide__mds_free(&mds);
    return same;
}

tide_status tide__winograd_build(tide__cpu_kernel *k, tide__md weights) {
    const cut c = cut_of(&k->desc);
    k->run = run;
    k->workspace_bytes = workspace_floats(&c) * sizeof(float);
    return tide__linear_declare(k, weights);
}
