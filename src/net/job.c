/* The job this process belongs to, by its environment, and the plug-in for the MPI that started it. The library and the
 * command link no MPI: a plug-in does, and is loaded only when a job has more than one rank. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/net_data.h"

/* Who starts jobs, how each says how many ranks there are, and what the plug-ins to try are called. srun sets the last
 * one for every process of a step, not for the script around it. */
static const struct {
    const char *ranks, *plugins[2];
} starters[] = {
    {"OMPI_COMM_WORLD_SIZE", {"libtidemark-openmpi.so", NULL}},
    {"PMI_SIZE", {"libtidemark-mpich.so", "libtidemark-openmpi.so"}},
    {"SLURM_STEP_NUM_TASKS", {"libtidemark-openmpi.so", "libtidemark-mpich.so"}},
};
enum { N_STARTERS = sizeof starters / sizeof *starters };

static uint32_t number_of(const char *name) {
    const char *text = getenv(name);
    char *end;
    if (!text || !*text) return 0;
    unsigned long n = strtoul(text, &end, 10);
    return *end == 0 && n <= 1 << 20 ? (uint32_t)n : 0;
}

static int starter(void) {
    for (int i = 0; i < N_STARTERS; i++)
        if (number_of(starters[i].ranks) > 1) return i;
    return -1;
}

uint32_t tide_net_job_ranks(void) { return starter() < 0 ? 1 : number_of(starters[starter()].ranks); }

/* The folder of this code: of the library, or of a program that has it inside. */
static void own_folder(char *out, size_t room) {
    static const char anchor = 0;
    Dl_info info;
    const char *file = dladdr(&anchor, &info) && info.dli_fname ? info.dli_fname : "";
    const char *slash = strrchr(file, '/');
    snprintf(out, room, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
}

/* Open MPI's own plug-ins look for its symbols among the global ones. */
static void *load(const char *path) { return dlopen(path, RTLD_NOW | RTLD_GLOBAL); }

static void *load_named(const char *name, char *path, size_t room) {
    char folder[2048];
    void *handle = NULL;
    const char *const places[] = {"", "/../lib", ("/../" TIDE_LIB_DIR)};
    own_folder(folder, sizeof folder);
    for (size_t i = 0; i < sizeof places / sizeof *places && !handle; i++) {
        snprintf(path, room, "%s%s/%s", folder, places[i], name);
        handle = load(path);
    }
    return handle ? handle : load(name);
}

static tide_status take_table(void *handle, const char *path, const tide__net_transport **out) {
    const tide__net_transport *table = dlsym(handle, TIDE__NET_TRANSPORT_SYMBOL);
    if (!table || table->version != TIDE__NET_TRANSPORT_VERSION)
        return tide__fail(TIDE_E_UNSUPPORTED, "%s is no MPI plug-in for this version of the library", path);
    *out = table;
    return TIDE_OK;
}

/* It stays loaded: MPI cannot be started twice in a process, and leaves hooks behind that run at its end. */
tide_status tide__net_plugin_load(const char *given, const tide__net_transport **out) {
    char path[4096] = "";
    int s = starter();
    const char *name = given ? given : getenv("TIDE_NET_PLUGIN");
    void *handle = name ? load(name) : NULL;
    for (int i = 0; i < 2 && s >= 0 && !name && !handle && starters[s].plugins[i]; i++)
        handle = load_named(starters[s].plugins[i], path, sizeof path);
    if (!handle)
        return tide__fail(TIDE_E_UNSUPPORTED, "a job of %u ranks needs the MPI plug-in, which cannot be loaded: %s",
                          tide_net_job_ranks(), dlerror());
    return take_table(handle, name ? name : path, out);
}
