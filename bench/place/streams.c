/* Streams of mallocs and frees: the pool's own figures, and what others make of them.
 *
 * Without recordings two nets are made up, one of which updates its weights through blocks that outlive the
 * iteration. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "place/bench.h"
#include "pool/compare.h"
#include "pool/replay.h"

enum { SEEDS = 20, MADE_ITERATIONS = 20 };

/* ---- ns per pair on the plan ---- */

/* The stream's end is left out, and its last iteration goes on for ever. A free takes the address that the malloc
 * `distance` events before it got. */
typedef struct looper {
    tide_pool *pool;
    uint64_t *sizes;     /* per event of the stream; 0: a free */
    uint32_t *distances; /* of a free to its malloc */
    void **addresses;    /* ring, per event that was played */
    size_t n, period, mask;
    size_t at, played; /* next event of the stream; events so far */
    uintptr_t next;
} looper;

static tide_status loop_alloc(void *context, uint64_t size_bytes, uint64_t alignment, void **out) {
    looper *l = context;
    l->next = (l->next + alignment - 1) & ~(alignment - 1);
    *out = (void *)l->next; /* NOLINT(performance-no-int-to-ptr): nobody dereferences it */
    l->next += size_bytes;
    return TIDE_OK;
}

static void loop_free(void *context, void *block, uint64_t size_bytes) {
    (void)context;
    (void)block;
    (void)size_bytes;
}

static void loop_event(looper *l) {
    size_t at = l->at++, i = l->played++;
    if (l->at == l->n) l->at -= l->period;
    if (l->sizes[at])
        require(tide_pool_malloc(l->pool, l->sizes[at], &l->addresses[i & l->mask]));
    else
        require(tide_pool_free(l->pool, l->addresses[(i - l->distances[at]) & l->mask]));
}

static void loop_init(looper *l, const tide__requests *requests, size_t end, size_t period) {
    tide_pool_options options;
    size_t *malloced = require_memory(calloc(requests->n_blocks + (size_t)1, sizeof *malloced));
    tide_pool_options_init(&options);
    options.backing = (tide_pool_backing){.alloc = loop_alloc, .free = loop_free, .context = l};
    *l = (looper){.n = end, .period = period, .mask = 1, .next = 1 << 20};
    l->sizes = require_memory(calloc(end + 1, sizeof *l->sizes));
    l->distances = require_memory(calloc(end + 1, sizeof *l->distances));
    for (size_t i = 0; i < end; i++) {
        const tide__online_request *r = &requests->list.data[i];
        l->sizes[i] = r->size;
        if (r->size) malloced[r->block] = i;
        l->distances[i] = (uint32_t)(i - malloced[r->block]);
        while (l->mask < l->distances[i]) l->mask = 2 * l->mask + 1;
    }
    l->addresses = require_memory(calloc(l->mask + 1, sizeof *l->addresses)); /* NOLINT(bugprone-sizeof-expression) */
    require(tide_pool_create(&options, &l->pool));
    free(malloced);
}

static void loop_deinit(looper *l) {
    tide_pool_destroy(l->pool);
    free(l->sizes);
    free(l->distances);
    free(l->addresses);
}

/* The best of a few runs of about 4 * 10^5 pairs, with the loop around them. */
static double pair_ns(const tide__requests *requests, size_t end, size_t period) {
    looper l;
    double best = 1e9;
    loop_init(&l, requests, end, period);
    size_t run = (800000 / period + 1) * period;
    while (l.played < end + 2 * period) loop_event(&l);
    for (int k = 0; k < 5; k++) {
        double start = cpu_seconds();
        for (size_t i = 0; i < run; i++) loop_event(&l);
        double ns = (cpu_seconds() - start) * 1e9 / ((double)run / 2);
        if (ns < best) best = ns;
    }
    loop_deinit(&l);
    return best;
}

/* ---- the pool ---- */

typedef struct noisy_result {
    double share, worst;
    uint64_t off_events, n_deviations;
} noisy_result;

/* The worst of a few seeds: a malloc added or left out about every two iterations. */
static noisy_result replay_noisy(const tide__stream *stream, tide_replay_options options) {
    noisy_result worst = {.share = 1, .worst = 1};
    options.deviate_every = 2;
    for (options.seed = 1; options.seed <= SEEDS; options.seed++) {
        tide_replay_result r;
        require(tide__pool_replay(stream, &options, &r));
        double share = r.n_watched ? (double)r.n_planned / (double)r.n_watched : 0;
        if (share < worst.share) worst.share = share;
        if (r.worst_share < worst.worst) worst.worst = r.worst_share;
        if (r.longest_off_events > worst.off_events) worst.off_events = r.longest_off_events;
        worst.n_deviations += r.n_extra + r.n_missing;
    }
    return worst;
}

static void bench_pool(const char *name, const tide__stream *stream, const tide_replay_others *c) {
    tide_replay_options options = {0};
    tide_replay_result r;
    tide__requests requests;
    tide_pool_options_init(&options.pool);
    require(tide__pool_replay(stream, &options, &r));
    noisy_result noisy = replay_noisy(stream, options);
    require(tide__requests_of_stream(stream, &requests));
    double ns = c->repeats ? pair_ns(&requests, c->offline.end_event, c->offline.period_events) : 0;
    tide__requests_deinit(&requests);
    double period = r.stats.period_events ? r.stats.period_events : 1;
    double at = (double)r.stats.first_plan_event / period, share = r.n_watched ? ratio(r.n_planned, r.n_watched) : 0;
    printf("%-18.18s %6.0f %7.1f %8.2f %9.1f %7.4f %9.1f %8.2f %8.2f %6" PRIu64 " %8.1f\n", name, period, at,
           100 * share, (double)r.peak_held_bytes / 0x1p20, ratio(r.peak_held_bytes, r.peak_live_bytes),
           (double)r.learn_peak_held_bytes / 0x1p20, 100 * noisy.share, 100 * noisy.worst, noisy.off_events, ns);
    fflush(stdout);
    bar(r.n_iterations > 0 && at <= 4, "%s: planned after %.1f iterations (bar 4)", name, at);
    bar(r.n_iterations > 0 && share >= 0.99, "%s: %.2f %% served from the plan (bar 99 %%)", name, 100 * share);
    bar((double)noisy.off_events <= period && noisy.share >= 0.9,
        "%s: %" PRIu64 " mallocs added or left out: off the plan for at most %" PRIu64
        " events (bar %.0f: one iteration)",
        name, noisy.n_deviations, noisy.off_events, period);
    bar(ns > 0 && ns < 60, "%s: %.1f ns for a malloc and its free (bar 60 ns)", name, ns);
}

/* ---- the others ---- */

static void print_ratio(uint64_t bytes, const tide_replay_others *c) {
    if (bytes)
        printf(" %9.4f", ratio(bytes, c->load_bytes));
    else
        printf(" %9s", "-");
}

/* What the paper says of its own recordings. */
static void judge_published(const char *name, const tide_replay_others *c) {
    static const struct {
        const char *part;
        double two_slots, two_turns; /* 0: not published */
    } published[] = {{"free_alex", 1.002, 0}, {"free_vgg", 1.051, 1.020}, {"free_resnet", 1.005, 0}};
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        if (!strstr(name, published[i].part)) continue;
        double slots = ratio(c->offline.two_slots_bytes, c->load_bytes),
               turns = ratio(c->offline.two_turns_bytes, c->load_bytes);
        bar(slots > published[i].two_slots - 0.001 && slots < published[i].two_slots + 0.001,
            "%s: SmartPool, two slots, %.4f (published %.3f)", name, slots, published[i].two_slots);
        if (published[i].two_turns > 0)
            bar(turns > published[i].two_turns - 0.001 && turns < published[i].two_turns + 0.001,
                "%s: SmartPool, two turns, %.4f (published %.3f)", name, turns, published[i].two_turns);
    }
}

static tide_replay_others bench_others(const char *name, const tide__stream *stream) {
    tide_replay_others c;
    double start = cpu_seconds();
    require(tide__compare(stream, 256, 0, 1, &c));
    double seconds = cpu_seconds() - start;
    printf("%-18.18s %9.1f", name, (double)c.load_bytes / 0x1p20);
    print_ratio(c.offline.bound_bytes, &c);
    print_ratio(c.offline.engine_bytes, &c);
    print_ratio(c.offline.two_slots_bytes, &c);
    print_ratio(c.offline.two_turns_bytes, &c);
    for (int k = 0; k < TIDE_REPLAY_N_ONLINE; k++) print_ratio(c.online[k].peak_held_bytes, &c);
    print_ratio(c.recorded_bytes, &c);
    printf(" %8.3f\n", seconds);
    fflush(stdout);
    bar(c.repeats && c.offline.engine_optimal, "%s: placed at %.4f of the proved bound, %.4f of the load (bar 1.0000)",
        name, ratio(c.offline.engine_bytes, c.offline.bound_bytes), ratio(c.offline.engine_bytes, c.load_bytes));
    judge_published(name, &c);
    return c;
}

static void print_others_header(void) {
    printf("\n== streams: what is held, / load (256 B alignment; up to 1 s of search)\n");
    printf("%-18s %9s %9s %9s %9s %9s", "stream", "load MiB", "bound", "ours", "2 slots", "2 turns");
    for (int k = 0; k < TIDE_REPLAY_N_ONLINE; k++) printf(" %9s", tide__online_kinds[k]->name);
    printf(" %9s %8s\n", "recorded", "cpu s");
}

static void print_pool_header(void) {
    printf("\n== the pool: iterations until planned; %% served; with a malloc added or left out every 2 iterations\n");
    printf("%-18s %6s %7s %8s %9s %7s %9s %8s %8s %6s %8s\n", "stream", "period", "planned", "served %", "held MiB",
           "/ load", "learning", "noisy %", "worst %", "off", "ns/pair");
}

/* ---- which streams ---- */

typedef struct source {
    const char *name;
    tide__file file; /* of a recording */
    char *text;      /* of a made one */
    tide__import in;
    tide__stream stream;
    tide_replay_others others;
} source;

static void open_source(source *s) {
    s->in.name = s->name;
    require(tide__import_stream(&s->in, &s->stream));
}

/* A net's iterations; with `momenta` each layer replaces a block of the iteration before. */
static void make_net(source *s, uint32_t layers, bool momenta) {
    size_t size;
    unsigned time = 0;
    FILE *f = require_memory(open_memstream(&s->text, &size));
    for (uint32_t i = 0; i < layers; i++) fprintf(f, "Malloc w%u %u %u\n", i, 4096 * (1 + i % 13), time++);
    for (uint32_t turn = 0; turn < MADE_ITERATIONS; turn++) {
        for (uint32_t i = 0; i < layers; i++) {
            fprintf(f, "Malloc y%u %u %u\n", i, 4096 * (1 + i * 7 % 97), time++);
            fprintf(f, "Malloc s %u %u\nFree s %u\n", 512 * (1 + i * 5 % 31), time, time);
        }
        for (uint32_t i = layers; i-- > 0;) {
            fprintf(f, "Malloc g%u %u %u\n", i, 4096 * (1 + i * 7 % 97), time++);
            if (i + 1 < layers) fprintf(f, "Free g%u %u\n", i + 1, time);
            if (momenta) fprintf(f, "Malloc m%u_%u %u %u\n", i, turn, 4096 * (1 + i % 13), time);
            if (momenta && turn > 0) fprintf(f, "Free m%u_%u %u\n", i, turn - 1, time);
            fprintf(f, "Free y%u %u\n", i, time);
        }
        fprintf(f, "Free g0 %u\n", time++);
    }
    if (fclose(f) != 0) exit(1);
    s->name = momenta ? "made, momenta" : "made";
    s->in = (tide__import){.text = s->text, .size = size};
    open_source(s);
}

static void read_recording(source *s, const char *path) {
    require(tide__file_open(path, &s->file));
    s->name = file_name(path);
    s->in = (tide__import){.text = s->file.text, .size = s->file.size};
    open_source(s);
}

static void close_source(source *s) {
    tide__stream_deinit(&s->stream);
    if (!s->text) tide__file_close(&s->file);
    free(s->text);
}

void bench_streams(const char *const *paths, size_t n) {
    size_t count = n ? n : 2;
    source *sources = require_memory(calloc(count, sizeof *sources));
    for (size_t i = 0; i < n; i++) read_recording(&sources[i], paths[i]);
    for (size_t i = n; i < count; i++) make_net(&sources[i], 100, i > 0);
    print_others_header();
    for (size_t i = 0; i < count; i++) sources[i].others = bench_others(sources[i].name, &sources[i].stream);
    print_pool_header();
    for (size_t i = 0; i < count; i++) bench_pool(sources[i].name, &sources[i].stream, &sources[i].others);
    for (size_t i = 0; i < count; i++) close_source(&sources[i]);
    free(sources);
}
