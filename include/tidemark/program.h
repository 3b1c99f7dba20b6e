/* A program: what one training step does to memory. Ops in execution order, over tensors.
 *
 * A tensor is one *value*: present at the start, or written by exactly one op. Sharing bytes is a result of
 * placement, never a property of tensors. A program is immutable once built; ids are dense indices from 0.
 *
 *        tensor 0 (weight, at the start) ───┐
 *        tensor 1 (input, in client tier) ──┴─▶ op 0 ──▶ tensor 2 ──▶ op 1 ──▶ tensor 3 ...
 *
 * Units: bytes and nanoseconds. All functions are thread-safe on distinct objects; a const tide_program may be
 * read from many threads. */
#ifndef TIDEMARK_PROGRAM_H
#define TIDEMARK_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tidemark/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t tide_id;
#define TIDE_NONE UINT32_MAX

typedef struct tide_program tide_program;
typedef struct tide_program_builder tide_program_builder;

/* X(enumerator, name in files). */
#define TIDE_DTYPE_TABLE(X) \
    X(TIDE_F32, "f32")      \
    X(TIDE_U8, "u8") X(TIDE_I32, "i32") X(TIDE_BYTES, "bytes") X(TIDE_BF16, "bf16") X(TIDE_F16, "f16")
#define TIDE_CLASS_TABLE(X)                                  \
    X(TIDE_CLASS_INPUT, "input")                             \
    X(TIDE_CLASS_WEIGHT, "weight")                           \
    X(TIDE_CLASS_GRADIENT, "gradient")                       \
    X(TIDE_CLASS_OPTIMIZER, "optimizer")                     \
    X(TIDE_CLASS_ACTIVATION, "activation")                   \
    X(TIDE_CLASS_ACTIVATION_GRADIENT, "activation-gradient") \
    X(TIDE_CLASS_WORKSPACE, "workspace")                     \
    X(TIDE_CLASS_OTHER, "other")
#define TIDE_PHASE_TABLE(X) X(TIDE_FORWARD, "forward") X(TIDE_BACKWARD, "backward") X(TIDE_UPDATE, "update")
#define TIDE_START_TABLE(X)                                                                             \
    X(TIDE_START_ABSENT, "absent")   /* written by an op of this step */                                \
    X(TIDE_START_PRESENT, "present") /* exists when the step starts, where the plan's start map says */ \
    X(TIDE_START_CLIENT, "client")   /* waits in the read-only client tier; a LOAD brings it in */

#define TIDE_ALONG_TABLE(X)                                                                                           \
    X(TIDE_ALONG_WHOLE, "whole") /* a read that every part needs all of, or what a `must` pair makes of it in turn */ \
    X(TIDE_ALONG_CUT, "cut")     /* a part of the op has a part of it */                                              \
    X(TIDE_ALONG_SUM, "sum")     /* a write: the sum of what the parts of the op write */                             \
    X(TIDE_ALONG_PARTS, "parts") /* the op takes all of it in parts, wherever each of them lies */

#define TIDE_ENUM_MEMBER(e, name) e,
typedef enum tide_dtype { TIDE_DTYPE_TABLE(TIDE_ENUM_MEMBER) } tide_dtype;
typedef enum tide_class { TIDE_CLASS_TABLE(TIDE_ENUM_MEMBER) } tide_class;
typedef enum tide_phase { TIDE_PHASE_TABLE(TIDE_ENUM_MEMBER) } tide_phase;
/* The words that files use: "activation", "forward"; NULL if there is no such class or phase. */
TIDE_API const char *tide_class_name(tide_class cls);
TIDE_API const char *tide_phase_name(tide_phase phase);
typedef enum tide_start { TIDE_START_TABLE(TIDE_ENUM_MEMBER) } tide_start;
typedef enum tide_along { TIDE_ALONG_TABLE(TIDE_ENUM_MEMBER) } tide_along;
#undef TIDE_ENUM_MEMBER

typedef struct tide_tensor {
    const char *name; /* for people; may be "", need not be unique; never NULL in a built program */
    uint64_t size_bytes;
    tide_dtype dtype;
    tide_class cls;
    tide_start start;
    bool keep; /* needed at the end of the step */
} tide_tensor;

/* reads[read] and writes[write] of one op: `must` = the kernel updates the bytes of the read in place (the read
 * value is destroyed: no later op may read it and it cannot be kept); otherwise the write may take over the bytes of
 * the read if that value dies there. Both tensors have the same size. A write is in one pair at most; a read may be
 * in several `may` pairs (one of them at most can come true) or in one `must` pair. */
typedef struct tide_inplace {
    uint32_t read, write; /* positions in reads[] and writes[], not tensor ids */
    bool must;
} tide_inplace;

/* One implementation of an op. Two variants with the same bits class give the same bits. */
typedef struct tide_variant {
    uint64_t workspace_bytes;
    uint64_t cost_ns;
    uint32_t bits_class;
} tide_variant;

/* A message between the ranks of a job, as an op that computes nothing: it sends the one tensor that it reads, or receives
 * the one that it writes. It runs once, on a channel to peers, beside compute. Both sides give it the same number, and the
 * numbers in a program ascend: all ranks take messages in one order, so that none waits for another in a circle. */
typedef struct tide_message {
    bool receives;
    uint32_t peer;   /* the rank at the other end */
    uint64_t number; /* below 2^48 */
} tide_message;

/* How an op may be cut: `units` (samples, rows, heads) that it works on one by one, lying one behind the other in every operand
 * that is cut, each as large as the next. In parts, it runs once for each part, with the units of that part. An op whose operands
 * are none of them cut runs once, and only says which of them it takes in parts. No operand of a random op is cut: its parts would
 * all draw the same numbers. tide_program_split cuts programs. */
typedef struct tide_split {
    uint32_t units;
    uint32_t bits_class;  /* of the results in parts: those of variant 0 where they keep the bits. Sums rarely do */
    bool cut_workspace;   /* a part of the op needs a part of the workspace; false: all of it */
    uint64_t sum_cost_ns; /* of adding the sums of two parts, per write */
    const tide_along *reads, *writes; /* per operand */
} tide_split;

typedef struct tide_op {
    const char *name;
    tide_phase phase;
    /* false: a side effect; runs exactly once. A plan may run ops in another order, within their dependencies
     * (tide_plan_options.order). Ops that run once and have no `must` pair keep their order among themselves, as their effects
     * are not in the values; in a program in which no op may run again (a log of accesses, say) all ops keep theirs. */
    bool rerunnable;
    bool random;      /* draws from the counter-based generator at `counter`; a re-run replays it */
    uint64_t counter; /* 0 in a built program when not random */
    uint32_t n_reads, n_writes, n_inplace, n_variants; /* n_variants >= 1; variants[0] is the default */
    const tide_id *reads, *writes;                     /* no tensor twice in one list */
    const tide_inplace *inplace;
    const tide_variant *variants;
    const tide_message *message; /* NULL: it computes */
    const tide_split *split;     /* NULL: it takes its operands whole */
} tide_op;

/* Of a repeating program: the value `from` at the end of this step is the value `to` at the start of the next. */
typedef struct tide_carry {
    tide_id from, to;
} tide_carry;

/* ---- building ----
 * The builder copies everything it is given; a name of NULL is "". A failed call leaves the builder usable and
 * unchanged. Ids count from 0 in order of the calls; the id outputs may be NULL. An op is refused (TIDE_E_ARGUMENT)
 * when it reads what does not exist yet or was destroyed, or writes what exists; a program whose bytes (tensors and
 * each op's largest workspace) or costs add up to 2^62 or more is refused too (TIDE_E_OVERFLOW), so sums over a built
 * program cannot overflow. */
TIDE_API tide_status tide_program_builder_create(const char *name, bool repeating, tide_program_builder **out);
TIDE_API void tide_program_builder_destroy(tide_program_builder *b); /* NULL is fine */
TIDE_API tide_status tide_program_builder_tensor(tide_program_builder *b, const tide_tensor *tensor, tide_id *out);
TIDE_API tide_status tide_program_builder_op(tide_program_builder *b, const tide_op *op, tide_id *out);
TIDE_API tide_status tide_program_builder_carry(tide_program_builder *b, tide_carry carry);
/* Marks a tensor as needed at the end (known late when differentiating). */
TIDE_API tide_status tide_program_builder_keep(tide_program_builder *b, tide_id tensor);
/* Validates the whole and hands the program over; destroys the builder on success only. Checks what single calls
 * cannot: every tensor that is kept or read exists by then, each PRESENT tensor of a repeating program is the `to`
 * of exactly one carry, each carry's `from` is kept, no kept value was destroyed by a `must` pair. */
TIDE_API tide_status tide_program_builder_finish(tide_program_builder *b, tide_program **out);
TIDE_API void tide_program_destroy(tide_program *p); /* NULL is fine */

/* ---- reading: pointers live as long as the program; an id out of range gives NULL ---- */
TIDE_API const char *tide_program_name(const tide_program *p);
TIDE_API bool tide_program_is_repeating(const tide_program *p);
TIDE_API uint32_t tide_program_tensor_count(const tide_program *p);
TIDE_API uint32_t tide_program_op_count(const tide_program *p);
TIDE_API uint32_t tide_program_carry_count(const tide_program *p);
TIDE_API const tide_tensor *tide_program_tensor(const tide_program *p, tide_id tensor);
TIDE_API const tide_op *tide_program_op(const tide_program *p, tide_id op);
TIDE_API const tide_carry *tide_program_carry(const tide_program *p, uint32_t i);
TIDE_API tide_id tide_program_producer(const tide_program *p, tide_id tensor); /* TIDE_NONE if not written */
/* Ops that send or receive. */
TIDE_API uint32_t tide_program_message_count(const tide_program *p);
/* Of a job, rank by rank: every message has a sender and a receiver that agree on its number and bytes. TIDE_E_ARGUMENT names
 * the first that does not. */
TIDE_API tide_status tide_program_match_messages(const tide_program *const *ranks, uint32_t n_ranks);
/* Sum of the default variants' costs. */
TIDE_API uint64_t tide_program_cost_ns(const tide_program *p);

/* The same program, the default variant of op i costing cost_ns[i]; the others in the same ratio to it as before. The
 * signature is the same: plans for one are plans for the other. */
TIDE_API tide_status tide_program_with_costs(const tide_program *p, const uint64_t *cost_ns, tide_program **out);

/* Equal for equal steps: independent of names, costs, addresses and of the order in which tensors were declared. */
typedef struct tide_signature {
    uint64_t word[2];
} tide_signature;
TIDE_API tide_signature tide_program_signature(const tide_program *p);

/* ---- files: JSON Lines, format in docs/formats.md ---- */
TIDE_API tide_status tide_program_read(const char *path, tide_program **out); /* "-" is stdin */
TIDE_API tide_status tide_program_read_memory(const void *text, size_t size, const char *name_in_errors,
                                              tide_program **out);
TIDE_API tide_status tide_program_write(const tide_program *p, const char *path); /* "-" is stdout */

/* ---- liveness ----
 * Instants: op i is instant i; a tensor is alive in [first, last] (closed: it occupies memory while op `last` runs),
 * from its first use to its last. A write and a read are uses; so is instant 0 for PRESENT tensors and the last
 * instant for kept ones. So a CLIENT tensor is alive from the first op that reads it, a value that nobody reads at its
 * writing op only, and an unused PRESENT tensor at instant 0 only. A program without ops has no instants: nothing is
 * alive and every figure but total_bytes is 0. */
typedef struct tide_liveness {
    uint32_t n_tensors, n_ops;
    uint32_t *first, *last; /* per tensor; TIDE_NONE in both if the tensor is never alive */
    /* Per op: the tensors alive + the workspace of variant 0. Where a read of a `may` or `must` pair dies (its last
     * use, and not kept), its bytes count once for both; with several pairs of one read, for one of them. */
    uint64_t *load_bytes;
    uint64_t peak_bytes; /* the largest load: a lower bound of the arena when nothing moves and nothing is re-run */
    tide_id peak_op;     /* the first op at the peak; TIDE_NONE for an empty program, like the other ops below */
    /* Lower bound of any budget, whatever moves: max over ops of reads + writes + the op's smallest workspace, where
     * each read that is in a pair and the write it is paired with count once. */
    uint64_t largest_op_bytes;
    tide_id largest_op;
    /* Bytes in use over the whole step: PRESENT tensors that are kept themselves, or are taken over in place, from
     * pair to pair, by a value that is kept (weights under `must` updates). Each chain counts once. */
    uint64_t resident_bytes;
    uint64_t floor_bytes; /* lower bound when those never leave: max over ops of resident + the op's other operands */
    tide_id floor_op;
    uint64_t total_bytes; /* sum of all tensors' bytes: what `none` would take without sharing */
} tide_liveness;
TIDE_API tide_status tide_liveness_create(const tide_program *p, tide_liveness **out);
TIDE_API void tide_liveness_destroy(tide_liveness *l); /* NULL is fine */

/* One stretch between two consecutive uses of a tensor by ops. The write counts as a use; start and end of the step
 * do not, so there is no gap before the first use of a PRESENT tensor or after the last one of a kept tensor. */
typedef struct tide_gap {
    tide_id tensor, after_op, before_op;
} tide_gap;
/* All gaps with before_op > after_op + 1, ordered by tensor, then time; *out is freed with free(). */
TIDE_API tide_status tide_liveness_gaps(const tide_program *p, tide_gap **out, size_t *n_out);

/* ---- unrolling ----
 * `steps` steps of a repeating program as one. Names get "#0", "#1" ... appended. */
TIDE_API tide_status tide_program_unroll(const tide_program *p, uint32_t steps, tide_program **out);
/* A carried value and its successor have one place, so the one must be dead when the other is born. The fewest steps
 * over which that is so; 1 for ordinary training steps. */
TIDE_API tide_status tide_program_unroll_needed(const tide_program *p, uint32_t *steps);

/* ---- in parts ----
 * The program with its values cut into `parts` equal parts along the units of its ops, as far as these say that they may be
 * (tide_op.split): parts are values of their own, named "x@0", "x@1" ..., which a plan places, moves and drops one by one.
 *
 *     a value is cut where all ops that use it take it cut or in parts;
 *     an op is cut where all that it writes cut is cut, and its units are a multiple of `parts`;
 *     sums over the parts go by a binary tree over them in order: a node over n of them has the largest power of two below n on its left;
 *     a `must` pair of whole values goes from part to part, each going on with what the one before left.
 *
 * Ops that follow one another go through part by part, all of the one before the next. Without bits_any, ops whose bits would be
 * others in parts stay whole. TIDE_E_ARGUMENT if nothing can be cut so, or into more than 4096. One part: the same step. */
TIDE_API tide_status tide_program_split(const tide_program *p, uint32_t parts, bool bits_any, tide_program **out);
/* The most units of an op that may be cut; 1: there is none. */
TIDE_API uint32_t tide_program_units(const tide_program *p);

/* ---- imports of other tools' logs ---- */
typedef struct tide_import_options {
    size_t size;                /* sizeof(tide_import_options) */
    const char *from;           /* "dtr", "singa-access", "singa-malloc"; NULL: chosen by content */
    uint64_t iteration_time_ns; /* singa: spread evenly over the ops instead of the stream's own times; 0 = off */
    uint32_t unroll;            /* iterations in the program of a repeating stream; 0: as few as can be planned */
    /* singa: bytes that nothing reads are not kept. A Free needs none; blocks of an iteration that are written but
     * never read (scratch) hold nothing between two accesses. */
    bool drop_unread;
} tide_import_options;
/* What an import saw, beyond the program itself. */
typedef struct tide_import_stats {
    const char *format;          /* as in tide_import_options.from; static */
    uint64_t release_peak_bytes; /* largest load when memory is freed where the log frees it, not at the last use */
    uint64_t total_ns;           /* of all ops of the program */
    /* Streams (singa); all 0 for a one-shot log. Events count from 0 in the order of the file. */
    uint64_t n_events;      /* in the whole stream */
    uint64_t period_events; /* in one iteration: the ops of the program */
    uint64_t repeat_begin;  /* first event of the repetition; before it is warm-up */
    uint64_t repeat_end;    /* first event after it; (end - begin) / period iterations were seen */
    uint64_t cut;           /* the event that became op 0 */
    uint32_t unrolled;      /* iterations in the program */
} tide_import_stats;

/* "-" is stdin; `options` may be NULL. Malformed logs are refused with "file:line: "; a stream that does not repeat
 * with TIDE_E_REPEAT and the line where it stops repeating. */
TIDE_API tide_status tide_program_import(const char *path, const tide_import_options *options, tide_program **out);
/* The same; `stats` may be NULL. */
TIDE_API tide_status tide_program_import_stats(const char *path, const tide_import_options *options, tide_program **out,
                                               tide_import_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
