/* Failing with a text: `return tide__fail(TIDE_E_FORMAT, "%s:%zu: ...", ...)`. The text goes to the thread's
 * tide_last_error(). */
#ifndef TIDE_BASE_ERROR_H
#define TIDE_BASE_ERROR_H

#include <tidemark/status.h>

tide_status tide__fail(tide_status status, const char *format, ...) TIDE_PRINTF(2, 3);

/* Puts "prefix: " before the text of the failure that is being passed on; returns `status`. */
tide_status tide__fail_in(tide_status status, const char *format, ...) TIDE_PRINTF(2, 3);

/* tide__fail with ": strerror(error)" appended. */
tide_status tide__fail_errno(tide_status status, int error, const char *format, ...) TIDE_PRINTF(3, 4);

/* The usual out-of-memory failure. */
tide_status tide__fail_memory(void);

/* Passes a failure on; inside functions that have nothing to unwind. */
#define TIDE_TRY(expression)                            \
    do {                                                \
        tide_status try_status_ = (expression);         \
        if (try_status_ != TIDE_OK) return try_status_; \
    } while (0)

/* Passes a failure on through a label that unwinds; needs a local `tide_status status`. */
#define TIDE_TRY_GOTO(expression, label)   \
    do {                                   \
        status = (expression);             \
        if (status != TIDE_OK) goto label; \
    } while (0)

#endif
