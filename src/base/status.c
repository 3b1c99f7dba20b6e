/* Status codes and the thread's last error text. Invariant: a text is set by every failure and by nothing else. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#ifndef TIDE_VERSION
#define TIDE_VERSION "0.0.0"
#endif

static _Thread_local char last_error[1024];

const char *tide_version(void) { return TIDE_VERSION; }

const char *tide_last_error(void) { return last_error; }

const char *tide_status_name(tide_status status) {
    switch (status) {
#define CASE(code, number, exit_code, text) \
    case code: return #code;
        TIDE_STATUS_TABLE(CASE)
#undef CASE
    }
    return "TIDE_E_?";
}

const char *tide_status_text(tide_status status) {
    switch (status) {
#define CASE(code, number, exit_code, text) \
    case code: return text;
        TIDE_STATUS_TABLE(CASE)
#undef CASE
    }
    return "unknown status";
}

int tide_status_exit_code(tide_status status) {
    switch (status) {
#define CASE(code, number, exit_code, text) \
    case code: return exit_code;
        TIDE_STATUS_TABLE(CASE)
#undef CASE
    }
    return 1;
}

/* Texts quote names and keys of hostile files: nothing in them may move a terminal's cursor or fake a line. */
static void hide_controls(void) {
    for (char *c = last_error; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

void tide__error_set(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    hide_controls();
}

void tide__error_prefix(const char *format, ...) {
    char old[sizeof last_error], prefix[256];
    memcpy(old, last_error, sizeof old);
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    /* The text may have to lose its tail: the prefix says where, which matters more. */
    int n = snprintf(last_error, sizeof last_error, "%s: ", prefix);
    size_t used = n < 0 ? 0 : (size_t)n;
    size_t room = sizeof last_error - used - 1, length = strlen(old);
    if (length > room) length = room;
    memcpy(last_error + used, old, length);
    last_error[used + length] = '\0';
    hide_controls();
}

void tide__error_set_errno(int error, const char *format, ...) {
    char what[768], why[128] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const char *text = strerror_r(error, why, sizeof why); /* GNU form: may return a static string */
    tide__error_set("%s: %s", what, text);
}

tide_status tide__error_need(const char *function, const void *const *pointers, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!pointers[i]) return tide__fail(TIDE_E_ARGUMENT, "%s: an argument that must be there is NULL", function);
    return TIDE_OK;
}
