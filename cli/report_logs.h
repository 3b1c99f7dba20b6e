/* tidemark report of training logs: the losses of one run or of several over the steps, in one picture. */
#ifndef TIDE_CLI_REPORT_LOGS_H
#define TIDE_CLI_REPORT_LOGS_H

#include "cli.h"

enum { MAX_LOGS = 8 };

/* Whether the first line of the file says that it is a log in JSON Lines; false if it cannot be read. */
bool is_log(const char *path);
/* A page that needs no other file. */
tide_status report_logs(const char *const *paths, uint32_t n, const char *output);

#endif
