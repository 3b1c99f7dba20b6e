/* Memory that free() has kept for later goes back to the system, where the C library can do that. For moments after which
 * much less is needed than before. */
#ifndef TIDE_BASE_MEMORY_H
#define TIDE_BASE_MEMORY_H

#include <stdlib.h> /* defines __GLIBC__, where it is */

#ifdef __GLIBC__
#include <malloc.h>
static inline void tide__memory_give_back(void) { (void)malloc_trim(0); }
#else
static inline void tide__memory_give_back(void) {}
#endif

#endif
