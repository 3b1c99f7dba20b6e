/* See train_total.h. The unit is what Linux counts under RLIMIT_DATA: private memory that was asked for, touched or not. */
#include "train_total.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIB (UINT64_C(1) << 20)
/* Plans, kernels, pieces of states and of what is packed for disk, alignment of mappings. Of an op its kernel and its place in plans; searches
 * for offsets ask for more than they touch. */
#define ROOM_BYTES (26 * MIB)
#define OP_BYTES (48 * UINT64_C(1024))
#define COPIERS_BYTES (8 * MIB)  /* stacks of the threads that copy: small ones */
#define PICTURE_BYTES (48 * MIB) /* of 12 million pixels, whole, with transparency */
enum { BATCHES = 4 };            /* the one at hand and the next, each also plain or on its way */

/* 0 where the system does not tell. */
static uint64_t data_bytes(void) {
    char line[256];
    uint64_t kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmData:", 7) == 0) kib = strtoull(line + 7, NULL, 10);
    if (f) fclose(f);
    return kib << 10;
}

/* Of a thread that asks for no size. */
static uint64_t stack_bytes(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 8 * MIB;
    return limit.rlim_cur;
}

/* Training and evaluation each have a queue that computes, with OpenMP threads of its own; a thread loads batches. */
static uint64_t stacks_to_come(uint32_t threads) { return (2 * (uint64_t)threads + 1) * stack_bytes() + COPIERS_BYTES; }

static uint64_t sample_bytes(const tide_model *model) {
    tide_shape x = tide_model_input(model);
    return (uint64_t)x.c * (uint64_t)x.h * (uint64_t)x.w * sizeof(float);
}

/* UINT64_MAX: no limit that is known by now. */
static uint64_t ram_bytes(const tide_machine *machine, const tide_budget *host) {
    if (tide_machine_find_tier(machine, TIDE_TIER_RAM) == TIDE_NONE) return 0;
    return host->kind == TIDE_BUDGET_BYTES ? host->bytes : UINT64_MAX;
}

/* Ops of the step, from a program without kernels. */
static tide_status count_ops(const tide_model *model, const tide_step_options *options, uint64_t *n) {
    tide_step *step;
    tide_status status = tide_step_create(model, options, &step);
    if (status != TIDE_OK) return status;
    *n = tide_program_op_count(tide_step_program(step));
    tide_step_destroy(step);
    return TIDE_OK;
}

tide_status share_total(uint64_t total_bytes, tide_trainer_options *options, uint64_t batch, uint32_t decoders) {
    tide_plan_options *plan = &options->plan;
    tide_device_info info;
    uint64_t n_ops;
    tide_status status = tide_device_get_info(options->device, &info);
    if (status == TIDE_OK) status = count_ops(options->model, &options->step, &n_ops);
    if (status != TIDE_OK) return status;
    uint64_t ram = ram_bytes(options->machine, &plan->host_budget);
    if (ram == UINT64_MAX)
        return complain(TIDE_E_ARGUMENT, "--total-budget with RAM tiers needs a --host-budget in bytes");
    uint64_t beside = data_bytes() + stacks_to_come(info.threads) + BATCHES * batch * sample_bytes(options->model) +
                      ram + ROOM_BYTES + n_ops * OP_BYTES + decoders * PICTURE_BYTES;
    if (beside >= total_bytes)
        return complain(TIDE_E_ARGUMENT, "--total-budget is too small: the process takes %.1f MiB beside the arena",
                        (double)beside / (double)MIB);
    plan->arena_budget = (tide_budget){.kind = TIDE_BUDGET_BYTES, .bytes = total_bytes - beside};
    return TIDE_OK;
}
