/* Machines by name: a file, or a profile in the user's folder, in the installed one or in the library itself. */
#include <tidemark/machine.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "plan/machine/profiles.h"

enum { MAX_PATH_BYTES = 4096 };

static tide_status load_path(const char *path, tide_machine *out) {
    tide__file file;
    TIDE_TRY(tide__file_open(path, &file));
    tide_status status = tide_machine_read_memory(file.text, file.size, path, out);
    tide__file_close(&file);
    return status;
}

bool tide__profile_is_path(const char *name) {
    size_t n = strlen(name);
    return strchr(name, '/') || strcmp(name, "-") == 0 || (n > 5 && strcmp(name + n - 5, ".json") == 0);
}

enum { N_FOLDERS = 2 };

/* Where named profiles are, the first that has one wins; "": not given. */
static void find_folders(const char *folders[N_FOLDERS]) {
    const char *own = secure_getenv("TIDEMARK_MACHINES");
    folders[0] = own ? own : "";
    folders[1] = TIDE_MACHINE_DIR;
}

static bool find_file(const char *folder, const char *name, const char *ending, char path[MAX_PATH_BYTES]) {
    int n = *folder ? snprintf(path, MAX_PATH_BYTES, "%s/%s%s", folder, name, ending) : 0;
    return n > 0 && n < MAX_PATH_BYTES && access(path, F_OK) == 0;
}

static int is_profile(const struct dirent *entry) {
    size_t n = strlen(entry->d_name);
    return n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

static bool is_in_earlier(const char *const *folders, size_t n, const char *file_name) {
    char path[MAX_PATH_BYTES];
    for (size_t i = 0; i < n; i++)
        if (find_file(folders[i], file_name, "", path)) return true;
    return false;
}

void tide__profile_append(const char *file_name, char *out, size_t size) {
    const size_t used = strlen(out), n = strlen(file_name) - strlen(".json");
    if (used + n + 3 <= size) snprintf(out + used, size - used, ", %.*s", (int)n, file_name);
}

/* ", " and the name for each profile that only folder n has; what does not fit is left out. */
static void append_names(const char *const *folders, size_t n, char *out, size_t size) {
    struct dirent **entries;
    int count = *folders[n] ? scandir(folders[n], &entries, is_profile, alphasort) : -1;
    for (int i = 0; i < count; i++) {
        if (!is_in_earlier(folders, n, entries[i]->d_name)) tide__profile_append(entries[i]->d_name, out, size);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

const tide__profile *tide__profile_own(const tide__profile *profiles, const char *name) {
    size_t n = strlen(name);
    for (const tide__profile *p = profiles; p->name; p++)
        if (strlen(p->name) == n + 5 && strncmp(p->name, name, n) == 0) return p;
    return NULL;
}

static tide_status fail_unknown(const char *const *folders, const char *name) {
    char known[256] = "default";
    for (size_t i = 0; i < N_FOLDERS; i++) append_names(folders, i, known, sizeof known);
    for (const tide__profile *p = tide__profiles; p->name; p++)
        if (!is_in_earlier(folders, N_FOLDERS, p->name)) tide__profile_append(p->name, known, sizeof known);
    return tide__fail(
        TIDE_E_ARGUMENT,
        "no file and no machine profile named \"%s\"; known: %s (in $TIDEMARK_MACHINES, %s and the library)", name,
        known, TIDE_MACHINE_DIR);
}

tide_status tide_machine_load(const char *name, tide_machine *out) {
    if (!name || !out || !*name) return tide__fail(TIDE_E_ARGUMENT, "machine: no name");
    if (tide__profile_is_path(name)) return load_path(name, out);
    if (strcmp(name, "default") == 0) {
        tide_machine_init_default(out);
        return TIDE_OK;
    }
    const char *folders[N_FOLDERS];
    char path[MAX_PATH_BYTES];
    find_folders(folders);
    for (size_t i = 0; i < N_FOLDERS; i++)
        if (find_file(folders[i], name, ".json", path)) return load_path(path, out);
    const tide__profile *own = tide__profile_own(tide__profiles, name);
    if (own) return tide_machine_read_memory(own->bytes, own->size, own->name, out);
    if (access(name, F_OK) == 0) return load_path(name, out);
    return fail_unknown(folders, name);
}
