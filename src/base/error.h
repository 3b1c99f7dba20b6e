/* Failing with a text: `return tide__fail(TIDE_E_FORMAT, "%s:%zu: ...", ...)`. The text goes to the thread's
 * tide_last_error(). */
#ifndef TIDE_BASE_ERROR_H
#define TIDE_BASE_ERROR_H

#include <stddef.h>

#include <tidemark/status.h>

/* The texts. Call the tide__fail macros below instead. */
void tide__error_set(const char *format, ...) TIDE_PRINTF(1, 2);
void tide__error_prefix(const char *format, ...) TIDE_PRINTF(1, 2);
void tide__error_set_errno(int error, const char *format, ...) TIDE_PRINTF(2, 3);

/* Macros, so that the value is the caller's own `status`: compilers and analysers then see that a failure is never
 * TIDE_OK, and do not fear for outputs that were left untouched. */
static inline tide_status tide__same_status(tide_status status) { return status; }
#define tide__fail(status, ...) (tide__error_set(__VA_ARGS__), tide__same_status(status))

/* Puts "prefix: " before the text of the failure that is being passed on; returns `status`. */
#define tide__fail_in(status, ...) (tide__error_prefix(__VA_ARGS__), tide__same_status(status))

/* tide__fail with ": strerror(error)" appended. */
#define tide__fail_errno(status, error, ...) (tide__error_set_errno((error), __VA_ARGS__), tide__same_status(status))

/* The usual out-of-memory failure. */
#define tide__fail_memory() tide__fail(TIDE_E_MEMORY, "out of host memory")

/* Passes a failure on; inside functions that have nothing to unwind. */
#define TIDE_TRY(expression)                            \
    do {                                                \
        tide_status try_status_ = (expression);         \
        if (try_status_ != TIDE_OK) return try_status_; \
    } while (0)

/* The first lines of public functions: TIDE_E_ARGUMENT if one of these pointers is NULL. */
tide_status tide__error_need(const char *function, const void *const *pointers, size_t n);
#define TIDE_NEED(...)                                                      \
    TIDE_TRY(tide__error_need(__func__, (const void *const[]){__VA_ARGS__}, \
                              sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *)))

/* Passes a failure on through a label that unwinds; needs a local `tide_status status`. */
#define TIDE_TRY_GOTO(expression, label)   \
    do {                                   \
        status = (expression);             \
        if (status != TIDE_OK) goto label; \
    } while (0)

#endif
