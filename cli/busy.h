/* Remarks about the processor, on standard error: what a user should know before believing times. */
#ifndef CLI_BUSY_H
#define CLI_BUSY_H

#include <stdint.h>

/* Those that this process may use. */
uint32_t count_cores(void);
/* More threads than cores compute the same, but slower. */
void remark_threads(uint32_t threads);
/* Before work begins: others are at work already. so: what that means for the command's figures. */
void remark_busy(const char *so);

#endif
