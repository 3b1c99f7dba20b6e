/* The runtime: follows a verified plan on a device with its tiers, or decides as it goes (online).
 *
 * A client hands over a program, a plan and one closure per op. The closure enqueues the op's kernels on the queue
 * it is given and never waits. With a plan nothing is searched, decided or allocated inside a step. Without one an
 * online policy decides whenever memory is short; a step that cannot fit fails at the first op that cannot, with
 * TIDE_E_FIT. */
#ifndef TIDEMARK_RUN_H
#define TIDEMARK_RUN_H

#include <tidemark/device.h>
#include <tidemark/net.h>
#include <tidemark/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_run tide_run;

/* What a closure is given. Offsets are into the arena: reads, writes, then the workspace if the variant has one. */
typedef struct tide_call {
    tide_id op;
    uint32_t variant;
    bool rerun;
    tide_queue *queue;
    tide_arena *arena;
    const uint64_t *offsets;
    uint32_t n_offsets;
    const tide_step_args *args;
    void *memory; /* the run's own, for tide_call_launch */
} tide_call;
typedef tide_status (*tide_op_fn)(void *context, const tide_call *call);

/* For closures that compute on the host: enqueues fn, which will find its operands (reads, writes, then the workspace)
 * at these addresses. They and the call may be gone by the time that fn runs, the context must not. Devices whose arena
 * the host can see. */
typedef tide_status (*tide_operands_fn)(void *context, void *const *operands);
TIDE_API tide_status tide_call_launch(const tide_call *call, tide_operands_fn fn, void *context);

/* Fills `data` with bytes [position, position + size) of a CLIENT tensor; called on a copy thread. */
typedef tide_status (*tide_input_fn)(void *context, tide_id tensor, uint64_t position, void *data, uint64_t size_bytes);

/* Sends, or fills, `data`: bytes [position, position + size) of a message of the program; returns when that is done. Called on a copy
 * thread, for one direction after the other, and for both at once. */
typedef tide_status (*tide_message_fn)(void *context, const tide_message *message, uint64_t position, void *data,
                                       uint64_t size_bytes);

typedef struct tide_run_options {
    size_t size; /* sizeof(tide_run_options) */
    tide_device *device;
    const tide_program *program;
    const tide_machine *machine;
    const tide_plan *plan; /* verified again here; borrowed until tide_run_destroy; NULL: online */
    tide_budgets budgets;
    uint64_t
        arena_bytes; /* with a plan, at least so many, for plans that tide_run_follow may bring; 0: what it needs */
    tide_op_fn op;   /* NULL: all steps are pulled */
    void *op_context;
    tide_input_fn input;
    void *input_context;
    const char *disk_path; /* folder of the spill file; NULL: the system's temporary folder */
    bool disk_checksums;   /* what comes back from disk must be what went there [true]; 0.2 s of a core per GB */
    /* Another run on the same device that rests between two steps: this one then lives in its arena, which must be
     * large enough, and goes first. Values that are in the way wait on the disk tier, within its budget. Meanwhile the
     * other can be read, but neither stepped nor written to. NULL: an arena of its own. */
    tide_run *host;
    const char *online; /* without a plan: the policy that decides as it goes, "delta", "cache" or "dtr" */
    bool
        journal; /* online: what a step did goes through the verifier afterwards. The default of debug builds (no NDEBUG) */
    tide_message_fn message; /* of programs with messages, which need a plan */
    void *message_context;
    /* Steps end with all of their transfers. Else a step ends when all is computed: what is still on its way out goes on
     * while the next begins, where the verifier has proved that for two steps in a row [false]. */
    bool step_barrier;
    bool
        disk_packing; /* zeros are not written to disk where that pays, which is measured as they go [true]; values come
                          back to the bit, and have as much room there as they have without */
    const tide_loan *loan; /* whose memory tiers of kind LENT are; borrowed; NULL: there are none */
} tide_run_options;
TIDE_API void tide_run_options_init(tide_run_options *options);
/* What a plan may use of these budgets: the device's pinned memory (device_info) comes off the host's RAM. A run does
 * the same to its own, so it is given those that hold for the host as a whole. TIDE_E_TIER_FULL: there is not even room
 * for that. */
TIDE_API tide_status tide_run_budgets(const tide_device *device, const tide_machine *machine, tide_budgets *budgets);
/* A tier of so many bytes in the memory of another rank, which lends at least as much: the machine with it, and with the rates that a
 * few transfers now show. */
TIDE_API tide_status tide_machine_measure_loan(const tide_loan *loan, uint64_t capacity_bytes, tide_machine *machine);
/* The machine with channels to the other ranks, at the rate that a few messages between the first `n_ranks` of the job now show: each of
 * these calls it, at the same time. As it was if it has such. TIDE_E_ARGUMENT: they are one, or no power of two. */
TIDE_API tide_status tide_machine_measure_peers(tide_net *net, uint32_t n_ranks, tide_machine *machine);
/* All that steps need: the arena, the tiers that the plan uses, queues and events. The options are copied, what they point
 * to is borrowed until tide_run_destroy. */
TIDE_API tide_status tide_run_create(const tide_run_options *options, tide_run **out);
TIDE_API void tide_run_destroy(tide_run *run); /* NULL is fine; waits for what is under way */

/* Between steps: the bytes of a value of the start map (before a step) or the end map (after one). For a repeating
 * program a carried value answers to both of its ids. */
TIDE_API tide_status tide_run_write(tide_run *run, tide_id tensor, const void *data, uint64_t size_bytes);
TIDE_API tide_status tide_run_read(tide_run *run, tide_id tensor, void *data, uint64_t size_bytes);
/* The same for size_bytes of it from position_bytes on, so that values of any size go through small buffers. */
TIDE_API tide_status tide_run_write_part(tide_run *run, tide_id tensor, uint64_t position_bytes, const void *data,
                                         uint64_t size_bytes);
TIDE_API tide_status tide_run_read_part(tide_run *run, tide_id tensor, uint64_t position_bytes, void *data,
                                        uint64_t size_bytes);
/* Between steps: from now on a step also reads this value of its end, behind its last op, so that the host waits for both
 * at once. `data` is borrowed until tide_run_destroy, filled when a step is done, and of no meaning after one that fails. */
TIDE_API tide_status tide_run_watch(tide_run *run, tide_id tensor, void *data, uint64_t size_bytes);

/* Between steps: what the arena holds no value in goes back to the system until the next step takes it again, for a while in
 * which something else needs memory. Nothing else changes. */
TIDE_API tide_status tide_run_rest(tide_run *run);

/* Of an online run that has stepped: what each op took, measured; NULL if it follows a plan. */
TIDE_API const uint64_t *tide_run_costs(const tide_run *run);

/* Between steps of an online run, or of one that follows another plan: from the next one on it follows this plan, which is
 * verified here and borrowed until tide_run_destroy or the next tide_run_follow. Values go to where the plan starts with
 * them, through the arena, which stays as it is, and the tiers, within the budgets; those that no step carries on are
 * forgotten. TIDE_E_FIT or TIDE_E_TIER_FULL: there is no way there, and the run goes on as before. Any other failure
 * poisons it once values may have moved. */
TIDE_API tide_status tide_run_follow(tide_run *run, const tide_plan *plan);

/* ---- plans that are kept ---- */

/* From a folder: the plan of this step for this machine and these options (but for the policy "manual", whose file may have
 * changed), verified; NULL if there is none that can be used. */
TIDE_API tide_plan *tide_plan_recall(const char *folder, const tide_program *program, const tide_machine *machine,
                                     const tide_plan_options *options);
TIDE_API tide_status tide_plan_remember(const char *folder, const tide_program *program, const tide_machine *machine,
                                        const tide_plan_options *options, const tide_plan *plan);

typedef struct tide_step_report {
    uint64_t step_ns;    /* measured, first enqueue to the end of compute, or of all transfers with a barrier */
    uint64_t compute_ns; /* measured busy time of the compute queue, where the device can tell; else 0 */
    uint64_t arena_bytes;
    uint64_t tier_bytes[TIDE_MACHINE_MAX_TIERS]; /* reserved */
    uint64_t staging_bytes;                      /* of the host, beside tier_bytes: pinned, and for packing */
    uint64_t saved_bytes, loaded_bytes;
    uint64_t relocated_bytes; /* inside the arena, as the plan says */
    uint32_t n_actions, n_reruns;
    uint64_t disk_written_bytes,
        disk_read_bytes; /* what moved for saved and loaded bytes of disk tiers, without zeros */
} tide_step_report;
/* One step; report may be NULL. One that fails on its way poisons the run, which refuses everything from then on
 * (TIDE_E_POISONED): half of the weights may be new. A one-shot program steps once. */
TIDE_API tide_status tide_run_step(tide_run *run, const tide_step_args *args, tide_step_report *report);
/* The same, with the time of every action as the device's events tell it; for single steps, as it takes two events per
 * action. Of runs that follow a plan. */
TIDE_API tide_status tide_run_step_traced(tide_run *run, const tide_step_args *args, tide_step_report *report,
                                          tide_timeline **out);

/* ---- steps that the client computes ----
 * For runtimes with kernels of their own, on devices whose arena the host sees ("host"). The run moves bytes and keeps the
 * order; the client computes each op when it is handed over, at the addresses that the plan gives it.
 *
 *      tide_run_pull_begin(run);
 *      while (tide_run_pull(run, &call) == TIDE_OK && call.op != TIDE_NONE) compute(&call);
 *      tide_run_pull_end(run, &report);
 *
 * Of runs that follow a plan. The same rules as for tide_run_step: a failure poisons the run, and that of a transfer may be
 * told only at the end. */
TIDE_API tide_status tide_run_pull_begin(tide_run *run);
/* The op that was handed over before is computed. Begins the transfers that come before the next one, waits for those it
 * needs, and hands it over: op, variant, rerun, arena and offsets of *call. An op of TIDE_NONE: all are computed. */
TIDE_API tide_status tide_run_pull(tide_run *run, tide_call *call);
TIDE_API tide_status tide_run_pull_end(tide_run *run, tide_step_report *report); /* waits; report may be NULL */
/* Gives the step up, which poisons the run: all transfers come to an end, and every value that is somewhere can be rescued
 * until tide_run_destroy. computed: the op that was handed over last is complete; else its writes have no value. */
TIDE_API tide_status tide_run_pull_stop(tide_run *run, bool computed);
/* The bytes of a value where a pulled step was given up. TIDE_E_ARGUMENT: it is neither in the arena nor in a tier; then it
 * was not computed yet, is dead, or was to be computed again. */
TIDE_API tide_status tide_run_rescue(tide_run *run, tide_id tensor, void *data, uint64_t size_bytes);

/* Where the run's values lie; tide_arena_host gives the address that offsets count from. */
TIDE_API tide_arena *tide_run_arena(tide_run *run);

/* ---- measuring ---- */
typedef struct tide_measure_options {
    size_t size;           /* sizeof(tide_measure_options) */
    const char *name;      /* of the machine; NULL: the device's */
    const char *disk_path; /* folder of the disk tier; NULL: the system's temporary folder */
    uint64_t disk_bytes;   /* of the file that is written and read there; 0: the machine gets no disk tier */
    uint64_t arena_bytes;  /* at least 16 MiB; tensors of less than 192 MiB in all may stay in a cache and look fast */
    uint64_t time_ns;      /* about what the measurement may take, but every kernel runs four times */
    void (*progress)(void *context, const char *text); /* what is measured next, and remarks; NULL: silent */
    void *progress_context;
} tide_measure_options;
TIDE_API void tide_measure_options_init(tide_measure_options *options); /* 64 MiB of disk, 192 MiB, 4 s */
/* The machine that this device and the host's tiers make up; method in docs/costs.md. Needs a device with kernels that
 * nobody else uses meanwhile, the arena, and 64 MiB (or half of a smaller arena) for a RAM tier. */
TIDE_API tide_status tide_machine_measure(tide_device *device, const tide_measure_options *options, tide_machine *out);

#ifdef __cplusplus
}
#endif
#endif
