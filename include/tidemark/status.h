/* Status codes: one table for the enum, the names, the texts and the exit codes of the command.
 *
 * Every fallible function of the library returns a tide_status. On failure its outputs are untouched and a
 * detail text ("program.jsonl:17: tensor 4 is read before it is written") waits in tide_last_error(), which is
 * thread-local and stays valid until the next failure on the same thread. */
#ifndef TIDEMARK_STATUS_H
#define TIDEMARK_STATUS_H

#include <stdbool.h>

#if defined(__GNUC__)
#define TIDE_API __attribute__((visibility("default")))
#define TIDE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TIDE_API
#define TIDE_PRINTF(fmt, args)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* X(code, number, exit code of the command, text). Numbers are part of the ABI: append, never renumber. */
#define TIDE_STATUS_TABLE(X)                                                                  \
    X(TIDE_OK, 0, 0, "success")                                                               \
    X(TIDE_E_INTERNAL, 1, 1, "internal error: an invariant of the library was broken")        \
    X(TIDE_E_ARGUMENT, 2, 2, "invalid argument")                                              \
    X(TIDE_E_FORMAT, 3, 3, "malformed input file")                                            \
    X(TIDE_E_FIT, 4, 4, "does not fit the budget")                                            \
    X(TIDE_E_PLAN, 5, 5, "the plan was rejected by the verifier")                             \
    X(TIDE_E_IO, 6, 6, "input/output error")                                                  \
    X(TIDE_E_DEVICE, 7, 7, "device error or device not available")                            \
    X(TIDE_E_REPEAT, 8, 8, "the stream does not repeat")                                      \
    X(TIDE_E_MEMORY, 9, 9, "out of host memory")                                              \
    X(TIDE_E_OVERFLOW, 10, 3, "a size does not fit in 64 bits")                               \
    X(TIDE_E_UNSUPPORTED, 11, 10, "not supported here")                                       \
    X(TIDE_E_TIER_FULL, 12, 4, "a tier's byte budget is exhausted")                           \
    X(TIDE_E_CANCELLED, 13, 11, "cancelled")                                                  \
    X(TIDE_E_POISONED, 14, 1, "the run failed in mid-step and must resume from a checkpoint") \
    X(TIDE_E_DIVERGED, 15, 12, "the training diverged: a loss or a weight is not finite")     \
    X(TIDE_E_PEER, 16, 13, "a rank of the job was lost, or sent bytes that it did not mean")

typedef enum tide_status {
#define TIDE_STATUS_ENUM(code, number, exit_code, text) code = number,
    TIDE_STATUS_TABLE(TIDE_STATUS_ENUM)
#undef TIDE_STATUS_ENUM
} tide_status;

/* "TIDE_E_FIT"; "TIDE_E_?" for a number outside the table. Never NULL. */
TIDE_API const char *tide_status_name(tide_status status);

/* The one-line text of the table. Never NULL. */
TIDE_API const char *tide_status_text(tide_status status);

/* The documented exit code of the `tidemark` command for this status. */
TIDE_API int tide_status_exit_code(tide_status status);

/* Is this the answer that there is no way within these budgets, and no failure? Everything goes on as before then. */
static inline bool tide_status_is_misfit(tide_status status) {
    return status == TIDE_E_FIT || status == TIDE_E_TIER_FULL;
}

/* Detail text of the last failure on this thread; "" if there was none. Never NULL. */
TIDE_API const char *tide_last_error(void);

/* "major.minor.patch" of the library. */
TIDE_API const char *tide_version(void);

#ifdef __cplusplus
}
#endif
#endif
