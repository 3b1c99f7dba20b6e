/* The command `tidemark`: chooses a command and returns its exit code. */
#include <stdlib.h> /* defines __GLIBC__, where it is */
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli.h"

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"model", "what one training step of a model does to memory", cmd_model},
    {"plan", "plan a step inside a byte budget, prove and predict it", cmd_plan},
    {"compare", "policies times budgets: arena, time, moves, re-runs; a time-memory frontier", cmd_compare},
    {"explain", "why the peak is where it is, and why a plan moves or re-runs what", cmd_explain},
    {"fit", "whether a model fits a machine, and how large it could be", cmd_fit},
    {"simulate", "predict a plan: step time, waits, load", cmd_simulate},
    {"verify", "prove a plan safe, or say which rule it breaks", cmd_verify},
    {"place", "offsets for buffers with lifetimes, and a map of them", cmd_place},
    {"import", "turn another tool's log into a program", cmd_import},
    {"replay", "run a recorded stream of mallocs and frees through the pool", cmd_replay},
    {"devices", "list the devices, measure this machine into a profile", cmd_devices},
    {"train", "train a model from a plan, inside a byte budget", cmd_train},
    {"predict", "classes of images, or text, with the weights of a file", cmd_predict},
    {"report", "show what a plan does to memory: a page, the terminal, or for other viewers", cmd_report},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

/* Every exit code once, in order, with all it may mean. */
static void print_exit_codes(FILE *stream) {
    static const struct {
        tide_status status;
        int code;
    } rows[] = {
#define ROW(code, number, exit_code, text) {code, exit_code},
        TIDE_STATUS_TABLE(ROW)
#undef ROW
    };
    enum { N_ROWS = sizeof rows / sizeof *rows };
    for (int code = 0; code < N_ROWS; code++) {
        bool first = true;
        for (int i = 0; i < N_ROWS; i++) {
            if (rows[i].code != code) continue;
            if (first) fprintf(stream, "  %2d  ", code);
            fprintf(stream, first ? "%s" : "; %s", tide_status_text(rows[i].status));
            first = false;
        }
        if (!first) fputc('\n', stream);
    }
}

static void print_usage(FILE *stream) {
    fprintf(stream, "usage: tidemark COMMAND [options]\n\n"
                    "Trains neural networks past the memory of the device.\n\ncommands:\n");
    for (int i = 0; i < N_COMMANDS; i++) fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream,
            "\n`tidemark help COMMAND` tells more. Sizes: 512MiB, 4GB, 2G, 60%% (of the unconstrained arena).\n\n"
            "exit codes:\n");
    print_exit_codes(stream);
}

/* A report that could not be written is a failure, e.g. on a full disk. */
static int check_stdout(int exit_code) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return exit_code;
    fprintf(stderr, "tidemark: cannot write standard output\n");
    return exit_code ? exit_code : tide_status_exit_code(TIDE_E_IO);
}

static int no_command(const char *name) {
    tide_nearest near = tide_nearest_begin(name, strlen(name));
    for (int i = 0; i < N_COMMANDS; i++) tide_nearest_offer(&near, commands[i].name, strlen(commands[i].name));
    fprintf(stderr, "tidemark: there is no command \"%s\"; ", name);
    if (near.best)
        fprintf(stderr, "did you mean %s?\n", near.best);
    else
        fputs("`tidemark --help` lists them\n", stderr);
    return EXIT_USAGE;
}

static int run_command(int argc, char **argv) {
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, argv[0]) == 0) return commands[i].run(argc, argv);
    return no_command(argv[0]);
}

static int help_with(char *command) {
    char option[] = "--help", *argv[] = {command, option, NULL};
    return run_command(2, argv);
}

static int run(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 && argc == 3) return help_with(argv[2]);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tidemark %s\n", tide_version());
        return 0;
    }
    return run_command(argc - 1, argv + 1);
}

/* Large blocks go back to the system as they are freed, and pages of them that nobody touches never come. By itself the C library
 * takes blocks up to the largest that was ever freed from the heap, where both is lost: tens of MB of a planner's. */
static void map_large_blocks(void) {
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
}

int main(int argc, char **argv) {
    map_large_blocks();
    return check_stdout(run(argc, argv));
}
