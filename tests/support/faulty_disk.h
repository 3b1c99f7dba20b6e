/* A disk that fails when it is told to: an engine of the disk tier that passes requests on to a real one, but lets the
 * n-th call of one kind go wrong. For whole runs, a program whose name contains "disk_faults" is linked such that its
 * own __wrap_tide__disk_engines() stands in for the library's list. */
#ifndef TIDE_TESTS_FAULTY_DISK_H
#define TIDE_TESTS_FAULTY_DISK_H

#include "tier/disk_io.h"

/* What the n-th request comes back with. Benign faults must leave no trace, fatal ones must fail the transfer; a flipped
 * bit is fatal only where checksums look. */
#define FAULT_TABLE(X)                                                                                     \
    X(FAULT_NONE, true)                                                                                    \
    X(FAULT_SHORT, true)      /* half of it moves */                                                       \
    X(FAULT_ODD, true)        /* all but the last byte moves: no whole number of blocks */                 \
    X(FAULT_EINTR, true)      /* nothing moves */                                                          \
    X(FAULT_EAGAIN, true)     /* nothing moves */                                                          \
    X(FAULT_WAIT_EINTR, true) /* the wait after it is interrupted, and the one after that finds no room */ \
    X(FAULT_ENOSPC, false)                                                                                 \
    X(FAULT_EIO, false)                                                                                    \
    X(FAULT_ZERO, false)    /* no bytes and no error: the end of the file, or a full disk */               \
    X(FAULT_STUCK, false)   /* from here on every request is told to try again */                          \
    X(FAULT_PUSH, false)    /* the request is not taken at all */                                          \
    X(FAULT_WAIT, false)    /* the wait after it fails */                                                  \
    X(FAULT_LOST, false)    /* this wait and all after it fail; for memory that nobody needs any more */   \
    X(FAULT_RESERVE, false) /* the n-th reservation finds the disk full */                                 \
    X(FAULT_FLIP, false)    /* a bit of what is read changes */

typedef enum fault_kind {
#define FAULT_MEMBER(name, benign) name,
    FAULT_TABLE(FAULT_MEMBER)
#undef FAULT_MEMBER
        FAULT_COUNT
} fault_kind;
const char *fault_name(fault_kind kind);
bool fault_is_benign(fault_kind kind);

/* From now on the n-th request (from 0) of any lane goes wrong; `inner` does the work. */
void faulty_disk_arm(const tide__disk_engine *inner, fault_kind kind, long n);
/* Whether it has happened, and how many requests there were. */
bool faulty_disk_fired(void);
long faulty_disk_requests(void);

const tide__disk_engine *const *faulty_disk_engines(void);

#endif
