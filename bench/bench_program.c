/* Program files: reading and writing speed, peak memory against the file's size, and how both grow.
 *
 * The files describe ResNet-like steps: convolution, normalisation and addition per layer, forward and backward, with
 * names as people write them. Every measurement is a child process of its own, so that its peak memory (the mapped
 * file included) is its alone. Exit code 1 when reading is slower than 20 MB/s or takes more than 3 times the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tidemark/program.h>

static void require(tide_status status) {
    if (status == TIDE_OK) return;
    fprintf(stderr, "%s: %s\n", tide_status_name(status), tide_last_error());
    _exit(1);
}

/* ---- a file of n layers ---- */

static tide_id tensor(tide_program_builder *b, const char *what, uint32_t layer, tide_class cls, tide_start start,
                      bool keep) {
    char name[64];
    tide_id id;
    snprintf(name, sizeof name, "layer%u.%s", layer, what);
    tide_tensor t = {name, 802816, TIDE_F32, cls, start, keep};
    require(tide_program_builder_tensor(b, &t, &id));
    return id;
}

/* In place when told so: the first write takes over the first read. */
static void op(tide_program_builder *b, const char *what, uint32_t layer, tide_phase phase, const tide_id *reads,
               tide_id write, int inplace) {
    char name[64];
    snprintf(name, sizeof name, "layer%u.%s", layer, what);
    tide_variant variants[] = {{65536, 12000 + layer % 977, 0}, {0, 23000 + layer % 977, 0}};
    tide_inplace pair = {0, 0, inplace == 2};
    tide_op o = {.name = name, .phase = phase, .rerunnable = true, .n_writes = 1, .writes = &write, .reads = reads};
    while (o.n_reads < 3 && reads[o.n_reads] != TIDE_NONE) o.n_reads++;
    o.n_inplace = inplace != 0;
    o.inplace = &pair;
    o.n_variants = strcmp(what, "conv") == 0 ? 2 : 1;
    o.variants = o.n_variants == 2 ? variants : &(tide_variant){.cost_ns = 3000 + layer % 977};
    require(tide_program_builder_op(b, &o, NULL));
}

typedef struct layer {
    tide_id weight, input, conv, norm;
} layer;

static tide_id forward(tide_program_builder *b, layer *l, uint32_t i, tide_id x) {
    l->weight = tensor(b, "conv.weight", i, TIDE_CLASS_WEIGHT, TIDE_START_PRESENT, false);
    l->input = x;
    l->conv = tensor(b, "conv.out", i, TIDE_CLASS_ACTIVATION, TIDE_START_ABSENT, false);
    l->norm = tensor(b, "norm.out", i, TIDE_CLASS_ACTIVATION, TIDE_START_ABSENT, false);
    tide_id sum = tensor(b, "add.out", i, TIDE_CLASS_ACTIVATION, TIDE_START_ABSENT, false);
    op(b, "conv", i, TIDE_FORWARD, (tide_id[]){x, l->weight, TIDE_NONE}, l->conv, 0);
    op(b, "norm", i, TIDE_FORWARD, (tide_id[]){l->conv, TIDE_NONE}, l->norm, 1);
    op(b, "add", i, TIDE_FORWARD, (tide_id[]){l->norm, x, TIDE_NONE}, sum, 0);
    return sum;
}

static tide_id backward(tide_program_builder *b, const layer *l, uint32_t i, tide_id dy) {
    tide_id dn = tensor(b, "norm.grad", i, TIDE_CLASS_ACTIVATION_GRADIENT, TIDE_START_ABSENT, false);
    tide_id dw = tensor(b, "conv.weight.grad", i, TIDE_CLASS_GRADIENT, TIDE_START_ABSENT, false);
    tide_id dx = tensor(b, "conv.in.grad", i, TIDE_CLASS_ACTIVATION_GRADIENT, TIDE_START_ABSENT, false);
    tide_id w = tensor(b, "conv.weight.new", i, TIDE_CLASS_WEIGHT, TIDE_START_ABSENT, true);
    op(b, "norm.backward", i, TIDE_BACKWARD, (tide_id[]){dy, l->conv, TIDE_NONE}, dn, 1);
    op(b, "conv.backward.weight", i, TIDE_BACKWARD, (tide_id[]){l->input, dn, TIDE_NONE}, dw, 0);
    op(b, "conv.backward.input", i, TIDE_BACKWARD, (tide_id[]){l->weight, dn, TIDE_NONE}, dx, 0);
    op(b, "conv.update", i, TIDE_UPDATE, (tide_id[]){l->weight, dw, TIDE_NONE}, w, 2);
    require(tide_program_builder_carry(b, (tide_carry){w, l->weight}));
    return dx;
}

static tide_program *make(uint32_t n_layers) {
    tide_program_builder *b;
    tide_program *p;
    layer *layers = calloc(n_layers, sizeof *layers);
    if (!layers) _exit(1);
    require(tide_program_builder_create("bench", true, &b));
    tide_id x = tensor(b, "input", 0, TIDE_CLASS_INPUT, TIDE_START_CLIENT, false);
    for (uint32_t i = 0; i < n_layers; i++) x = forward(b, &layers[i], i, x);
    for (uint32_t i = n_layers; i-- > 0;) x = backward(b, &layers[i], i, x);
    require(tide_program_builder_finish(b, &p));
    free(layers);
    return p;
}

/* ---- measurements, each in a process of its own ---- */

typedef struct figures {
    double build_s, write_s, read_s, liveness_s;
    uint32_t ops;
} figures;

/* CPU seconds: busy neighbours on the machine then matter less. */
static double cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void measure_write(const char *path, uint32_t n_layers, figures *f) {
    double start = cpu_s();
    tide_program *p = make(n_layers);
    f->build_s = cpu_s() - start;
    start = cpu_s();
    require(tide_program_write(p, path));
    f->write_s = cpu_s() - start;
    tide_program_destroy(p);
}

static void measure_read(const char *path, uint32_t n_layers, figures *f) {
    tide_program *p;
    (void)n_layers;
    double start = cpu_s();
    require(tide_program_read(path, &p));
    f->read_s = cpu_s() - start;
    f->ops = tide_program_op_count(p);
    tide_program_destroy(p);
}

static void measure_liveness(const char *path, uint32_t n_layers, figures *f) {
    tide_program *p;
    tide_liveness *l;
    (void)n_layers;
    require(tide_program_read(path, &p));
    double start = cpu_s();
    require(tide_liveness_create(p, &l));
    f->liveness_s = cpu_s() - start;
    tide_liveness_destroy(l);
    tide_program_destroy(p);
}

/* Peak resident bytes of the child. */
static double in_child(void (*measure)(const char *, uint32_t, figures *), const char *path, uint32_t n_layers,
                       figures *f) {
    int ends[2], status;
    struct rusage usage;
    if (pipe(ends) != 0) exit(1);
    pid_t child = fork();
    if (child == 0) {
        measure(path, n_layers, f);
        _exit(write(ends[1], f, sizeof *f) == sizeof *f ? 0 : 1);
    }
    if (child < 0 || read(ends[0], f, sizeof *f) != sizeof *f) exit(1);
    if (wait4(child, &status, 0, &usage) != child || status != 0) exit(1);
    close(ends[0]);
    close(ends[1]);
    return (double)usage.ru_maxrss * 1024;
}

static bool report(const char *path, uint32_t n_layers) {
    figures f = {0};
    struct stat info;
    in_child(measure_write, path, n_layers, &f);
    double peak = in_child(measure_read, path, n_layers, &f);
    in_child(measure_liveness, path, n_layers, &f);
    if (stat(path, &info) != 0) exit(1);
    double size = (double)info.st_size, rate = size / f.read_s / 1e6, ratio = peak / size;
    printf("%8u %9u %8.1f %10.0f %11.0f %11.2f %9.1f %10.1f\n", n_layers, f.ops, size / 1e6, rate,
           size / f.write_s / 1e6, ratio, f.build_s * 1e3, f.liveness_s * 1e3);
    return rate >= 20 && (ratio <= 3 || size < 10e6); /* a small file weighs less than the process itself */
}

int main(void) {
    char path[] = "/tmp/tide-bench-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    puts("  layers       ops  file MB  read MB/s  write MB/s  peak / file  build ms  liveness ms");
    fflush(stdout);
    bool good = true;
    for (uint32_t n = 100; n <= 100000; n *= 10) good = report(path, n) && good;
    unlink(path);
    return good ? 0 : 1;
}
