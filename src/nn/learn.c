/* Learn, then plan: the first step ran online and measured every op; from the second on a plan is followed that was
 * made from those measurements. Values cross over through a checkpoint on disk, one at a time, because the two arenas
 * must not exist at once. Where no plan fits the budget, the training stays online. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "nn/trainer.h"

static tide_status plan_from_costs(tide_trainer *t, tide_plan **plan) {
    tide_program *measured;
    TIDE_TRY(tide_program_with_costs(t->network.program, tide_run_costs(t->network.run), &measured));
    tide_status status = tide_plan_create(measured, &t->network.machine, &t->options.plan, NULL, plan);
    tide_program_destroy(measured);
    return status;
}

/* A name that nobody has, in the folder for spilled bytes. */
static tide_status make_path(const tide_trainer *t, char *path, size_t size) {
    const char *folder = t->options.disk_path ? t->options.disk_path : getenv("TMPDIR");
    int n = snprintf(path, size, "%s/tidemark-XXXXXX", folder && *folder ? folder : "/tmp");
    if (n < 0 || (size_t)n >= size) return tide__fail(TIDE_E_ARGUMENT, "the path of the disk folder is too long");
    int fd = mkstemp(path);
    if (fd < 0) return tide__fail(TIDE_E_IO, "no file can be made in the disk folder: %s", path);
    close(fd);
    return TIDE_OK;
}

static tide_status cross_over(tide_trainer *t, const char *path, tide_plan *plan) {
    tide_status status = tide_trainer_save(t, path);
    if (status != TIDE_OK) {
        tide_plan_destroy(plan);
        return status;
    }
    t->spoiled = true; /* until the values are back */
    TIDE_TRY(tide__network_follow(&t->options, plan, &t->network));
    return tide_trainer_load(t, path);
}

tide_status tide__trainer_settle(tide_trainer *t) {
    char path[4096];
    tide_plan *plan;
    tide_status status = plan_from_costs(t, &plan);
    if (status == TIDE_E_FIT || status == TIDE_E_TIER_FULL) {
        t->options.mode = TIDE_MODE_ONLINE;
        return TIDE_OK;
    }
    TIDE_TRY(status);
    status = make_path(t, path, sizeof path);
    if (status != TIDE_OK) {
        tide_plan_destroy(plan);
        return status;
    }
    status = cross_over(t, path, plan);
    unlink(path);
    return status;
}
