/* tidemark place: offsets for buffers with lifetimes, as low as they go, and a picture of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tidemark/place.h>

#include "cli.h"
#include "place_svg.h"

typedef struct place_options {
    size_arg capacity;
    double seconds;
    uint64_t seed;
    const char *algorithm, *svg, *output;
    bool json;
} place_options;

/* From a CSV file, or what a program has to place under policy liveness. */
typedef struct buffers {
    tide_buffers *all;
    size_t n;
    tide_program *program;
} buffers;

static bool is_csv(const char *path) {
    size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".csv") == 0;
}

static tide_status load_items(const char *path, buffers *b) {
    tide_machine machine;
    tide_machine_init_default(&machine);
    tide_status status = tide_program_read(path, &b->program);
    return status == TIDE_OK ? tide_buffers_of_program(b->program, &machine, &b->all) : status;
}

static tide_status load_buffers(const char *path, buffers *b) {
    tide_status status = is_csv(path) ? tide_buffers_read_csv(path, &b->all) : load_items(path, b);
    if (status == TIDE_OK) b->n = tide_buffers_count(b->all);
    return status;
}

static void free_buffers(buffers *b) {
    tide_buffers_destroy(b->all);
    tide_program_destroy(b->program);
}

static void print_json(const buffers *b, const uint64_t *offsets, const tide_place_result *r) {
    json_out j;
    json_begin(&j, stdout);
    json_u64(&j, "buffers", b->n);
    json_u64(&j, "height", r->height_bytes);
    json_u64(&j, "lower_bound", r->lower_bound_bytes);
    json_bool(&j, "optimal", r->optimal);
    json_text(&j, "algorithm", r->algorithm);
    json_open(&j, "offsets", '{');
    for (size_t i = 0; i < b->n; i++) json_u64(&j, tide_buffers_get(b->all, i).name, offsets[i]);
    json_close(&j, '{');
    json_end(&j);
}

static void print_human(const buffers *b, const tide_place_result *r) {
    printf("buffers            %zu\n", b->n);
    printf("height             %" PRIu64 " bytes (%s)\n", r->height_bytes, show_bytes(r->height_bytes));
    printf("lower bound        %" PRIu64 " bytes", r->lower_bound_bytes);
    if (r->lower_bound_bytes) printf(", ratio %.4f", (double)r->height_bytes / (double)r->lower_bound_bytes);
    printf("\nproved             %s\n",
           r->optimal ? "optimal: no placement is lower" : "nothing lower than the bound exists");
    printf("found by           %s\n", r->algorithm);
}

/* The same columns as were read, with the offset. */
static tide_status write_csv(const buffers *b, const uint64_t *offsets, const char *path) {
    file_out w;
    tide_status status = file_out_begin(&w, path);
    if (status != TIDE_OK) return status;
    fprintf(w.stream, "id,lower,upper,size,offset\n");
    for (size_t i = 0; i < b->n; i++) {
        tide_buffer item = tide_buffers_get(b->all, i);
        fprintf(w.stream, "%s,%u,%u,%" PRIu64 ",%" PRIu64 "\n", item.name, item.begin, item.end, item.size_bytes,
                offsets[i]);
    }
    return file_out_end(&w);
}

static int place(const buffers *b, const place_options *o) {
    uint64_t *offsets = calloc(b->n + 1, sizeof *offsets), capacity = size_arg_bytes(&o->capacity, 0);
    tide_place_options options;
    tide_place_result result = {.size = sizeof result};
    tide_place_options_init(&options);
    options.capacity_bytes = o->capacity.given ? capacity : 0;
    options.seed = o->seed;
    options.seconds = o->seconds;
    options.algorithm = o->algorithm;
    tide_status status = offsets ? tide_buffers_place(b->all, &options, offsets, &result) : TIDE_E_MEMORY;
    if (status == TIDE_OK && o->svg) {
        place_picture picture = {b->all, offsets, b->n, result.height_bytes, o->capacity.given ? capacity : 0};
        status = write_place_svg(&picture, o->svg);
    }
    if (status == TIDE_OK && o->output) status = write_csv(b, offsets, o->output);
    int exit_code = status == TIDE_OK ? 0 : report_failure(status);
    if (exit_code == 0) {
        if (o->json)
            print_json(b, offsets, &result);
        else
            print_human(b, &result);
        if (o->capacity.given && result.height_bytes > capacity) {
            fprintf(stderr, "tidemark: no placement within %" PRIu64 " bytes was found%s\n", capacity,
                    result.lower_bound_bytes > capacity ? "; none exists: the lower bound is above it" : "");
            exit_code = tide_status_exit_code(TIDE_E_FIT);
        }
    }
    free(offsets);
    return exit_code;
}

int cmd_place(int argc, char **argv) {
    place_options o = {.seconds = 1};
    const char *path = NULL;
    const arg_option options[] = {
        {"--capacity", ARG_SIZE, &o.capacity, "SIZE",
         "stop when it fits; exit code 4 if it does not [as low as possible]"},
        {"--time", ARG_NUMBER, &o.seconds, "S", "seconds for the search; 0: fast heuristics only [1]"},
        {"--seed", ARG_U64, &o.seed, "N", "of the search [0]"},
        {"--algorithm", ARG_TEXT, &o.algorithm, "NAME", TIDE_PLACE_ALGORITHMS " [auto]"},
        {"--svg", ARG_TEXT, &o.svg, "FILE", "draw the map of addresses over time"},
        {"-o", ARG_TEXT, &o.output, "FILE", "write the buffers with their offsets (CSV)"},
        {"--json", ARG_FLAG, &o.json, NULL, "for programs"},
    };
    const arg_command command = {
        .usage = "place FILE [options]",
        .summary = "Gives buffers with lifetimes and sizes offsets, in as little memory as the load allows.",
        .details = "FILE is a CSV with the columns id,lower,upper,size[,alignment][,offset] (name ends in .csv), or a\n"
                   "program file, whose residencies under policy liveness are placed.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .positional = &path,
        .min_positional = 1,
        .max_positional = 1};
    int exit_code;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    if (o.capacity.budget.kind == TIDE_BUDGET_SHARE) {
        fprintf(stderr, "tidemark: --capacity takes bytes, not a percentage\n");
        return EXIT_USAGE;
    }
    buffers b = {0};
    tide_status status = load_buffers(path, &b);
    exit_code = status == TIDE_OK ? place(&b, &o) : report_failure(status);
    free_buffers(&b);
    return exit_code;
}
