/* tidemark devices: what this library can train on here, and how fast it is. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "busy.h"
#include "cli.h"
#include "selftest.h"

typedef struct devices_options {
    const char *device, *output, *disk_path;
    uint32_t threads;
    bool measure, selftest, json;
} devices_options;

enum { MAX_DEVICES = 16 };

/* One row: a device, or why it cannot be opened. */
typedef struct found {
    const char *name;
    bool usable;
    tide_device_info info;
    char reason[256];
    tide_status status;
} found;

static tide_status open_device(const char *name, const devices_options *o, tide_device **out) {
    tide_device_options d;
    tide_device_options_init(&d);
    d.threads = o->threads;
    return tide_device_open(name, &d, out);
}

static found look_at(const char *name, const devices_options *o) {
    found f = {.name = name};
    tide_device *device = NULL;
    f.status = open_device(name, o, &device);
    if (f.status == TIDE_OK) f.status = tide_device_get_info(device, &f.info);
    f.usable = f.status == TIDE_OK;
    if (!f.usable) snprintf(f.reason, sizeof f.reason, "%s", tide_last_error());
    tide_device_close(device);
    return f;
}

/* ---- output ---- */

static void print_devices(const found *list, int n) {
    for (int i = 0; i < n; i++) {
        const found *f = &list[i];
        if (!f->usable) {
            printf("%-6s not usable: %s\n", f->name, f->reason);
            continue;
        }
        printf("%-6s %s\n", f->name, f->info.description);
        printf("       %s of memory, offsets in steps of %u bytes, %s\n", show_bytes(f->info.memory_bytes),
               f->info.align_bytes, f->info.has_kernels ? "can train" : "runs plans without computing");
    }
}

static void print_machine(const tide_machine *m) {
    printf("\nmachine %s, %s\n", m->name, m->source);
    printf("  float32 peak       %.1f GFLOP/s, convolutions reach %.0f %%\n", m->flops_per_s / 1e9,
           100 * m->matrix_efficiency);
    printf("  memory             %.1f GB/s, passes over tensors reach %.0f %%\n", m->bytes_per_s / 1e9,
           100 * m->vector_efficiency);
    printf("  launch of an op    %s\n", show_ns(m->launch_ns));
    for (uint32_t i = 0; i < m->n_channels; i++)
        printf("  %-7s%-12s%.2f GB/s after %s, slows ops by %u %%\n", m->tier[m->channel[i].tier].name,
               m->channel[i].out ? "out" : "in", (double)m->channel[i].bytes_per_s / 1e9,
               show_ns(m->channel[i].latency_ns), m->channel[i].drag_percent);
}

static void devices_json(json_out *j, const found *list, int n) {
    json_open(j, "devices", '[');
    for (int i = 0; i < n; i++) {
        const found *f = &list[i];
        json_open(j, NULL, '{');
        json_text(j, "name", f->name);
        json_bool(j, "usable", f->usable);
        if (f->usable) {
            json_text(j, "description", f->info.description);
            json_u64(j, "threads", f->info.threads);
            json_u64(j, "memory_bytes", f->info.memory_bytes);
            json_u64(j, "align_bytes", f->info.align_bytes);
            json_bool(j, "can_train", f->info.has_kernels);
        } else {
            json_text(j, "reason", f->reason);
        }
        json_close(j, '{');
    }
    json_close(j, '[');
}

static void machine_json(json_out *j, const tide_machine *m) {
    json_open(j, "machine", '{');
    json_text(j, "name", m->name);
    json_text(j, "source", m->source);
    json_number(j, "flops_per_s", m->flops_per_s);
    json_number(j, "bytes_per_s", m->bytes_per_s);
    json_number(j, "matrix_efficiency", m->matrix_efficiency);
    json_number(j, "vector_efficiency", m->vector_efficiency);
    json_u64(j, "launch_ns", m->launch_ns);
    json_open(j, "channels", '[');
    for (uint32_t i = 0; i < m->n_channels; i++) {
        json_open(j, NULL, '{');
        json_text(j, "tier", m->tier[m->channel[i].tier].name);
        json_text(j, "direction", m->channel[i].out ? "out" : "in");
        json_u64(j, "bytes_per_s", m->channel[i].bytes_per_s);
        json_u64(j, "latency_ns", m->channel[i].latency_ns);
        json_u64(j, "drag_percent", m->channel[i].drag_percent);
        json_close(j, '{');
    }
    json_close(j, '[');
    json_close(j, '{');
}

static void print_json(const found *list, int n, const tide_machine *m) {
    json_out j;
    json_begin(&j, stdout);
    devices_json(&j, list, n);
    if (m) machine_json(&j, m);
    json_end(&j);
}

/* ---- the command ---- */

static void say(void *context, const char *text) { fprintf(stderr, "measuring: %s\n", text); }

/* A measurement takes long enough to look first whether it can be kept. */
static tide_status check_places(const devices_options *o) {
    if (o->disk_path && access(o->disk_path, R_OK | W_OK | X_OK) != 0)
        return complain(TIDE_E_IO, "--disk-path: cannot use %s: %s", o->disk_path, strerror(errno));
    if (!o->output) return TIDE_OK;
    tide_status status = tide_file_check(o->output, false);
    return status == TIDE_OK ? TIDE_OK : complain(status, "%s", tide_last_error());
}

static tide_status measure(const devices_options *o, tide_machine *out) {
    tide_measure_options options;
    tide_device *device;
    tide_measure_options_init(&options);
    options.disk_path = o->disk_path;
    options.progress = say;
    if (check_places(o) != TIDE_OK) return TIDE_E_IO;
    remark_busy("the figures may be too low"); /* they are of its neighbours, too */
    tide_status status = open_device(o->device ? o->device : "cpu", o, &device);
    if (status != TIDE_OK) return status;
    status = tide_machine_measure(device, &options, out);
    tide_device_close(device);
    if (status == TIDE_OK && o->output) status = tide_machine_write(out, o->output);
    return status;
}

static tide_status open_tested(const devices_options *o, selftest *s) {
    tide_status status = open_device(o->device ? o->device : "cpu", o, &s->device);
    if (status == TIDE_OK) status = tide_device_get_info(s->device, &s->info);
    if (status != TIDE_OK || s->info.has_kernels) return status;
    return complain(TIDE_E_UNSUPPORTED, "device \"%s\" has no kernels to test", s->info.name);
}

/* The text goes to its file when it is complete, or to stdout as it comes. */
static tide_status write_selftest(const devices_options *o, selftest *s) {
    char *text = NULL;
    size_t size = 0;
    s->out = stdout;
    if (o->output) s->out = open_memstream(&text, &size);
    if (!s->out) return complain(TIDE_E_MEMORY, "out of host memory");
    selftest_run(s);
    if (!o->output) return TIDE_OK;
    tide_status status =
        fclose(s->out) == 0 ? tide_file_write(o->output, text, size) : complain(TIDE_E_MEMORY, "out of host memory");
    free(text);
    return status;
}

static int test_device(const devices_options *o) {
    selftest s = {.measures = o->measure, .disk_path = o->disk_path};
    remark_busy("the figures may be too low");
    tide_status status = check_places(o);
    if (status == TIDE_OK) status = open_tested(o, &s);
    if (status == TIDE_OK) status = write_selftest(o, &s);
    tide_device_close(s.device);
    if (status == TIDE_OK && s.failed)
        status = complain(TIDE_E_DEVICE, "%" PRIu32 " of %" PRIu32 " checks failed", s.failed, s.passed + s.failed);
    return status == TIDE_OK ? 0 : report_failure(status);
}

static int run(const devices_options *o) {
    found list[MAX_DEVICES];
    tide_machine machine;
    int n = 0;
    for (uint32_t i = 0; tide_device_name(i) && n < MAX_DEVICES; i++)
        if (!o->device || strcmp(o->device, tide_device_name(i)) == 0) list[n++] = look_at(tide_device_name(i), o);
    if (n == 0) list[n++] = look_at(o->device, o); /* unknown: says which there are */
    if (o->device && !list[0].usable) {
        complain(list[0].status, "%s", list[0].reason);
        return report_failure(list[0].status);
    }
    tide_status status = o->measure ? measure(o, &machine) : TIDE_OK;
    if (status != TIDE_OK) return report_failure(status);
    if (wants_stdout(o->output)) return 0;
    if (o->json) {
        print_json(list, n, o->measure ? &machine : NULL);
        return 0;
    }
    print_devices(list, n);
    if (o->measure) print_machine(&machine);
    return 0;
}

int cmd_devices(int argc, char **argv) {
    devices_options o = {0};
    const arg_option options[] = {
        {"--measure", ARG_FLAG, &o.measure, NULL, "measure this machine: takes a few seconds, wants an idle machine"},
        {"--selftest", ARG_FLAG, &o.selftest, NULL,
         "test the device against the CPU: a text to keep, or to send, see docs/cuda.md; with --measure the profile is "
         "in it"},
        {"--device", ARG_TEXT, &o.device, "NAME", "only this device [all; cpu is measured and tested]"},
        {"--threads", ARG_COUNT, &o.threads, "N", "compute threads of cpu [all cores]"},
        {"--disk-path", ARG_TEXT, &o.disk_path, "FOLDER", "where the disk is measured [$TMPDIR, else /tmp]"},
        {"-o", ARG_TEXT, &o.output, "FILE", "write the profile that --measure found, or the text of --selftest"},
        {"--json", ARG_FLAG, &o.json, NULL, "for programs"},
    };
    const arg_command command = {
        .usage = "devices [options]",
        .summary = "Lists the devices and measures what they and their tiers are capable of.",
        .details = "`--machine FILE` of other commands takes the profile that -o writes.",
        .options = options,
        .n_options = sizeof options / sizeof *options,
    };
    int exit_code;
    if (!args_parse(&command, argc, argv, &exit_code)) return exit_code;
    if ((!o.measure && o.disk_path) || (!o.measure && !o.selftest && o.output)) {
        complain(TIDE_E_ARGUMENT, "--disk-path is for --measure, -o for --measure and --selftest");
        return EXIT_USAGE;
    }
    if (o.selftest && o.json) {
        complain(TIDE_E_ARGUMENT, "--selftest goes without --json");
        return EXIT_USAGE;
    }
    if (o.selftest) return test_device(&o);
    if (check_output(o.output, o.json) != TIDE_OK) return report_failure(TIDE_E_ARGUMENT);
    return run(&o);
}
