"""The public C headers, as far as the package calls them: declarations for cffi, and the library itself.

The text repeats include/tidemark/*.h; a test has the compiler compare the two, field by field.
"""

from __future__ import annotations

import os
from pathlib import Path

import cffi

ffi = cffi.FFI()
ffi.cdef("""
typedef int tide_status;
const char *tide_status_name(tide_status status);
const char *tide_last_error(void);
const char *tide_version(void);
void free(void *memory);

/* ---- program.h ---- */
typedef uint32_t tide_id;
typedef struct tide_program tide_program;
typedef struct tide_program_builder tide_program_builder;
typedef struct { const char *name; uint64_t size_bytes; int dtype, cls, start; bool keep; } tide_tensor;
typedef struct { uint32_t read, write; bool must; } tide_inplace;
typedef struct { uint64_t workspace_bytes, cost_ns; uint32_t bits_class; } tide_variant;
typedef struct {
    const char *name; int phase; bool rerunnable, random; uint64_t counter;
    uint32_t n_reads, n_writes, n_inplace, n_variants;
    const tide_id *reads, *writes; const tide_inplace *inplace; const tide_variant *variants;
    const void *message, *split;
} tide_op;
typedef struct { tide_id from, to; } tide_carry;
tide_status tide_program_builder_create(const char *name, bool repeating, tide_program_builder **out);
void tide_program_builder_destroy(tide_program_builder *b);
tide_status tide_program_builder_tensor(tide_program_builder *b, const tide_tensor *tensor, tide_id *out);
tide_status tide_program_builder_op(tide_program_builder *b, const tide_op *op, tide_id *out);
tide_status tide_program_builder_carry(tide_program_builder *b, tide_carry carry);
tide_status tide_program_builder_keep(tide_program_builder *b, tide_id tensor);
tide_status tide_program_builder_finish(tide_program_builder *b, tide_program **out);
void tide_program_destroy(tide_program *p);
const char *tide_program_name(const tide_program *p);
bool tide_program_is_repeating(const tide_program *p);
uint32_t tide_program_tensor_count(const tide_program *p);
uint32_t tide_program_op_count(const tide_program *p);
uint32_t tide_program_carry_count(const tide_program *p);
const tide_tensor *tide_program_tensor(const tide_program *p, tide_id tensor);
const tide_op *tide_program_op(const tide_program *p, tide_id op);
const tide_carry *tide_program_carry(const tide_program *p, uint32_t i);
uint64_t tide_program_cost_ns(const tide_program *p);
tide_status tide_program_read(const char *path, tide_program **out);
tide_status tide_program_write(const tide_program *p, const char *path);
typedef struct {
    uint32_t n_tensors, n_ops; uint32_t *first, *last; uint64_t *load_bytes; uint64_t peak_bytes; tide_id peak_op;
    uint64_t largest_op_bytes; tide_id largest_op; uint64_t resident_bytes, floor_bytes; tide_id floor_op;
    uint64_t total_bytes;
} tide_liveness;
tide_status tide_liveness_create(const tide_program *p, tide_liveness **out);
void tide_liveness_destroy(tide_liveness *l);

/* ---- machine.h ---- */
typedef struct { char name[64]; int kind; uint64_t capacity_bytes; uint32_t block_bytes; } tide_machine_tier;
typedef struct {
    uint32_t tier; bool out; uint64_t bytes_per_s, latency_ns; uint32_t share, drag_percent;
} tide_machine_channel;
typedef struct {
    char name[64]; char source[64]; uint64_t memory_bytes, reserve_bytes; uint32_t align_bytes;
    double flops_per_s, bytes_per_s; uint64_t launch_ns; double matrix_efficiency, vector_efficiency, half_flops_per_s;
    uint32_t n_tiers, n_channels; tide_machine_tier tier[9]; tide_machine_channel channel[18];
} tide_machine;
tide_status tide_machine_load(const char *name, tide_machine *out);
tide_status tide_machine_write(const tide_machine *m, const char *path);
void tide_machine_without(const tide_machine *m, int kind, tide_machine *out);
uint32_t tide_machine_find_tier(const tide_machine *m, int kind);

/* ---- plan.h ---- */
typedef struct tide_plan tide_plan;
typedef struct {
    int kind; uint32_t queue; tide_id op; uint32_t variant; tide_id copy; uint32_t n_uses, n_waits;
    const tide_id *uses; const uint32_t *waits;
} tide_action;
typedef struct {
    tide_id tensor; uint64_t offset_bytes, size_bytes; uint32_t begin, end; bool at_start, at_end;
} tide_residency;
typedef struct {
    tide_id tensor; uint32_t tier; uint64_t offset_bytes, size_bytes; uint32_t begin, end; bool at_start, at_end;
} tide_copy;
typedef struct {
    uint64_t step_ns, compute_ns, recomputed_ns, exposed_ns, moved_bytes, transfer_ns, peak_bytes;
    uint64_t relocated_bytes, relocated_ns;
} tide_prediction;
void tide_plan_destroy(tide_plan *plan);
uint32_t tide_plan_action_count(const tide_plan *plan);
uint32_t tide_plan_residency_count(const tide_plan *plan);
uint32_t tide_plan_copy_count(const tide_plan *plan);
tide_action tide_plan_action(const tide_plan *plan, uint32_t i);
const tide_residency *tide_plan_residency(const tide_plan *plan, tide_id id);
const tide_copy *tide_plan_copy(const tide_plan *plan, tide_id id);
uint64_t tide_plan_arena_bytes(const tide_plan *plan);
uint64_t tide_plan_tier_bytes(const tide_plan *plan, uint32_t tier);
const char *tide_plan_policy(const tide_plan *plan);
bool tide_plan_is_reordered(const tide_plan *plan);
const tide_prediction *tide_plan_prediction(const tide_plan *plan);
typedef struct { uint64_t arena_bytes; uint64_t tier_bytes[9]; } tide_budgets;
void tide_budgets_init(tide_budgets *b);
typedef struct { int kind; uint64_t bytes; double share; } tide_budget;
typedef struct {
    size_t size; const char *policy; const char *decisions; tide_budgets budgets; bool bits_any; int effort;
    void (*trying)(void *self, uint64_t budget_bytes); void *trying_self; void *progress, *progress_self;
    tide_budget arena_budget, host_budget, disk_budget; int order;
} tide_plan_options;
void tide_plan_options_init(tide_plan_options *options);
typedef struct {
    uint64_t needed_bytes; tide_id op; bool is_bound; uint64_t bound_bytes; tide_id bound_op; uint32_t tier;
    uint64_t tier_needed_bytes, tier_has_bytes; tide_id tier_tensor;
} tide_fit_report;
tide_status tide_plan_create(const tide_program *program, const tide_machine *machine, const tide_plan_options *options,
                             tide_fit_report *fit, tide_plan **out);
tide_status tide_plan_frontier(const tide_program *program, const tide_machine *machine,
                               const tide_plan_options *options, const uint64_t *budgets, size_t n,
                               tide_fit_report *fits, tide_plan **plans);
typedef struct { uint64_t bound_bytes, failed_bytes, works_bytes; tide_id op; uint32_t tried; } tide_smallest;
tide_status tide_plan_smallest(const tide_program *program, const tide_machine *machine,
                               const tide_plan_options *options, double tolerance, tide_smallest *out);
tide_status tide_plan_read(const char *path, tide_plan **out);
tide_status tide_plan_write(const tide_plan *plan, const char *path);
typedef struct { uint32_t action; char rule[32]; char message[256]; } tide_verdict;
tide_status tide_plan_verify(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                             const tide_budgets *budgets, tide_verdict *verdict);
typedef struct {
    uint32_t n_actions; uint64_t *start_ns, *end_ns; size_t n_points; uint64_t *t_ns, *load_bytes;
    tide_prediction prediction;
} tide_timeline;
tide_status tide_plan_simulate(const tide_plan *plan, const tide_program *program, const tide_machine *machine,
                               tide_timeline **out);
void tide_timeline_destroy(tide_timeline *timeline);

/* ---- report.h ---- */
typedef struct tide_report tide_report;
typedef struct {
    int kind; tide_id tensor, before, after; uint32_t tier, out, in; uint64_t from_ns, to_ns, cost_ns, wait_ns;
    uint32_t last_run, next_run; bool at_peak;
} tide_choice;
typedef struct {
    size_t size; const void *shapes; uint64_t budget_bytes, whole_bytes, whole_ns; const void *record;
} tide_report_options;
void tide_report_options_init(tide_report_options *options);
tide_status tide_report_create(const tide_program *program, const tide_machine *machine, const tide_plan *plan,
                               const tide_report_options *options, tide_report **out);
void tide_report_destroy(tide_report *report);
const tide_choice *tide_report_choices(const tide_report *report, size_t *n);
uint32_t tide_report_peak_action(const tide_report *report);
tide_status tide_report_write_html(const tide_report *report, const char *path);
tide_status tide_report_write_perfetto(const tide_report *report, const char *path);
tide_status tide_report_write_memory_viz(const tide_report *report, const char *path);

/* ---- place.h ---- */
typedef struct tide_buffers tide_buffers;
typedef struct {
    const char *name; uint64_t size_bytes, align_bytes, fixed_offset; uint32_t begin, end, begin2, end2;
} tide_buffer;
tide_status tide_buffers_create(const tide_buffer *buffers, size_t n, tide_buffers **out);
tide_status tide_buffers_read_csv(const char *path, tide_buffers **out);
tide_status tide_buffers_of_program(const tide_program *program, const tide_machine *machine, tide_buffers **out);
void tide_buffers_destroy(tide_buffers *buffers);
size_t tide_buffers_count(const tide_buffers *buffers);
tide_buffer tide_buffers_get(const tide_buffers *buffers, size_t i);
typedef struct {
    size_t size; uint64_t capacity_bytes, seed; double seconds; const char *algorithm;
} tide_place_options;
void tide_place_options_init(tide_place_options *options);
typedef struct {
    size_t size; uint64_t height_bytes, lower_bound_bytes; bool optimal; const char *algorithm;
} tide_place_result;
tide_status tide_buffers_place(const tide_buffers *buffers, const tide_place_options *options, uint64_t *offsets,
                               tide_place_result *result);

/* ---- pool.h ---- */
typedef struct tide_pool tide_pool;
typedef struct {
    tide_status (*alloc)(void *context, uint64_t size_bytes, uint64_t alignment, void **out);
    void (*free)(void *context, void *block, uint64_t size_bytes); void *context;
} tide_pool_backing;
typedef struct {
    size_t size; tide_pool_backing backing; uint64_t min_block_bytes, alignment; uint32_t max_plans, max_period_events;
    double plan_seconds;
} tide_pool_options;
void tide_pool_options_init(tide_pool_options *options);
tide_status tide_pool_create(const tide_pool_options *options, tide_pool **out);
void tide_pool_destroy(tide_pool *pool);
tide_status tide_pool_malloc(tide_pool *pool, uint64_t size_bytes, void **out);
tide_status tide_pool_free(tide_pool *pool, void *block);
typedef struct {
    uint64_t n_mallocs, n_frees, n_watched, n_planned, n_fallbacks, n_conflicts, n_iterations, n_deviations, n_returns;
    uint64_t longest_off_events, n_plans_made, n_plans_dropped, first_plan_event, plan_ns, live_bytes, peak_live_bytes;
    uint64_t held_bytes, peak_held_bytes, region_bytes; uint32_t n_plans, period_events; uint64_t plan_bytes;
    uint64_t plan_load_bytes; const char *plan_algorithm;
} tide_pool_stats;
void tide_pool_get_stats(tide_pool *pool, tide_pool_stats *out);
void tide_pool_reset_peaks(tide_pool *pool);

/* ---- device.h, run.h ---- */
typedef struct tide_device tide_device;
typedef struct tide_arena tide_arena;
typedef struct tide_run tide_run;
typedef struct {
    size_t size; uint32_t threads; uint64_t reserve_bytes; const tide_machine *machine; void *memory;
    uint64_t memory_bytes; int libraries;
} tide_device_options;
tide_status tide_device_open(const char *name, const tide_device_options *options, tide_device **out);
void tide_device_close(tide_device *device);
void *tide_arena_host(tide_arena *arena);
void tide_arena_discard(tide_arena *arena, uint64_t offset, uint64_t size_bytes);
typedef struct {
    size_t size; tide_device *device; const tide_program *program; const tide_machine *machine; const tide_plan *plan;
    tide_budgets budgets; uint64_t arena_bytes; void *op, *op_context, *input, *input_context; const char *disk_path;
    bool disk_checksums; tide_run *host; const char *online; bool journal;
    void *message, *message_context; bool step_barrier, disk_packing; void *loan;
} tide_run_options;
typedef struct {
    tide_id op; uint32_t variant; bool rerun; void *queue; tide_arena *arena; const uint64_t *offsets;
    uint32_t n_offsets; const void *args; void *memory;
} tide_call;
typedef struct {
    uint64_t step_ns, compute_ns, arena_bytes, tier_bytes[9], staging_bytes, saved_bytes, loaded_bytes;
    uint64_t relocated_bytes;
    uint32_t n_actions, n_reruns;
    uint64_t disk_written_bytes, disk_read_bytes;
} tide_step_report;
void tide_run_options_init(tide_run_options *options);
tide_status tide_run_create(const tide_run_options *options, tide_run **out);
void tide_run_destroy(tide_run *run);
tide_status tide_run_write(tide_run *run, tide_id tensor, const void *data, uint64_t size_bytes);
tide_status tide_run_read(tide_run *run, tide_id tensor, void *data, uint64_t size_bytes);
tide_status tide_run_pull_begin(tide_run *run);
tide_status tide_run_pull(tide_run *run, tide_call *call);
tide_status tide_run_pull_end(tide_run *run, tide_step_report *report);
tide_status tide_run_pull_stop(tide_run *run, bool computed);
tide_status tide_run_rescue(tide_run *run, tide_id tensor, void *data, uint64_t size_bytes);
tide_arena *tide_run_arena(tide_run *run);

/* ---- heap.h ---- */
typedef struct tide_heap tide_heap;
typedef struct {
    size_t size; uint64_t arena_bytes, disk_bytes; const char *disk_path; void *moved, *moved_context, *read;
    void *read_context;
} tide_heap_options;
typedef struct { uint64_t peak_bytes, saved_bytes, loaded_bytes; } tide_heap_stats;
void tide_heap_options_init(tide_heap_options *options);
tide_status tide_heap_create(const tide_heap_options *options, tide_heap **out);
void tide_heap_destroy(tide_heap *heap);
tide_status tide_heap_allocate(tide_heap *heap, uint64_t size_bytes, uint64_t *block, void **address);
tide_status tide_heap_pin(tide_heap *heap, uint64_t block, void **address);
void tide_heap_unpin(tide_heap *heap, uint64_t block);
void tide_heap_release(tide_heap *heap, uint64_t block);
tide_status tide_heap_borrow(tide_heap *heap, tide_id value, uint64_t size_bytes, uint64_t *block);
tide_status tide_heap_rest(tide_heap *heap);
tide_heap_stats tide_heap_get_stats(tide_heap *heap);

/* ---- source.h ---- */
typedef struct tide_source tide_source;
tide_status tide_source_create(tide_source **out);
void tide_source_destroy(tide_source *source);
tide_status tide_source_add(tide_source *source, tide_id value, const char *path, uint64_t offset_bytes,
                            uint64_t stored_bytes, int stored);
tide_status tide_source_read(void *source, tide_id value, uint64_t position, void *data, uint64_t size_bytes);
""")

NONE = 0xFFFFFFFF
UNLIMITED = 0xFFFFFFFFFFFFFFFF


def _find_library() -> str:
    """$TIDEMARK_LIBRARY, else the one in this package, else the system's."""
    asked = os.environ.get("TIDEMARK_LIBRARY")
    if asked:
        return asked
    own = Path(__file__).parent / "lib" / "libtidemark.so"
    return str(own) if own.exists() else "libtidemark.so.0.2"


lib = ffi.dlopen(_find_library())
