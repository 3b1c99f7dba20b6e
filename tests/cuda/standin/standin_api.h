/* What tests ask the stand-in beside CUDA's own functions. They are found by dlsym like those. */
#ifndef TIDE_TESTS_CUDA_STANDIN_API_H
#define TIDE_TESTS_CUDA_STANDIN_API_H

#include <stdbool.h>
#include <stdint.h>

/* What the stand-in reports: a call or a kernel that is wrong, whether or not real hardware would notice. The second
 * column names it in reports. */
#define STANDIN_MISUSES(X)                                                                                     \
    X(MISUSE_NOT_INITIALISED, "not-initialised")   /* a call before cuInit */                                  \
    X(MISUSE_NO_CONTEXT, "no-context")             /* no context is current */                                 \
    X(MISUSE_WRONG_CONTEXT, "wrong-context")       /* memory, stream, event or module of another context */    \
    X(MISUSE_RELEASED_CONTEXT, "released-context") /* released more often than retained, or used afterwards */ \
    X(MISUSE_BAD_HANDLE, "bad-handle")             /* never was one */                                         \
    X(MISUSE_DESTROYED, "destroyed")               /* used after its destruction */                            \
    X(MISUSE_BAD_VALUE, "bad-value")               /* NULL, no bytes, unknown flags */                         \
    X(MISUSE_UNPINNED, "unpinned")                 /* an asynchronous copy from or to pageable memory */       \
    X(MISUSE_COPY_BOUNDS, "copy-bounds")           /* beyond an allocation */                                  \
    X(MISUSE_COPY_OVERLAP, "copy-overlap")         /* a copy onto itself */                                    \
    X(MISUSE_ADDRESS, "address")                   /* no device memory */                                      \
    X(MISUSE_AFTER_FREE, "after-free")             /* device or pinned memory used after it was freed */       \
    X(MISUSE_DOUBLE_FREE, "double-free")                                                                       \
    X(MISUSE_BAD_FREE, "bad-free")         /* not the beginning of an allocation */                            \
    X(MISUSE_REGISTRATION, "registration") /* registered twice, or unregistered though it is not */            \
    X(MISUSE_BUSY_MEMORY, "busy-memory")   /* freed or unregistered while work on it may run */                \
    X(MISUSE_BUSY_MODULE, "busy-module")   /* unloaded while a kernel of it may run */                         \
    X(MISUSE_MEMSET_ALIGNMENT, "memset-alignment")                                                             \
    X(MISUSE_GRID, "grid")                   /* over the limits, or empty */                                   \
    X(MISUSE_BLOCK, "block")                 /* over the limits of device or kernel, or empty */               \
    X(MISUSE_SHARED_SIZE, "shared-size")     /* more shared memory than there is or was asked for */           \
    X(MISUSE_ARGUMENTS, "arguments")         /* missing, or of another size than the kernel's */               \
    X(MISUSE_EVENT_TIMING, "event-timing")   /* times of events that have none */                              \
    X(MISUSE_IN_CALLBACK, "in-callback")     /* CUDA called from a host function */                            \
    X(MISUSE_AFTER_ERROR, "after-error")     /* new work after an error that stays was returned */             \
    X(MISUSE_LEAK, "leak")                   /* left over at the end */                                        \
    X(MISUSE_KERNEL_BOUNDS, "kernel-bounds") /* a lane outside of global memory */                             \
    X(MISUSE_KERNEL_AFTER_FREE, "kernel-after-free")                                                           \
    X(MISUSE_KERNEL_ALIGNMENT, "kernel-alignment")                                                             \
    X(MISUSE_KERNEL_SHARED, "kernel-shared") /* a lane outside of shared memory */                             \
    X(MISUSE_KERNEL_LOCAL, "kernel-local")   /* a lane outside of its own memory */                            \
    X(MISUSE_KERNEL_TRAP, "kernel-trap")                                                                       \
    X(MISUSE_KERNEL_BARRIER, "kernel-barrier")         /* some lanes meet, others are elsewhere or gone */     \
    X(MISUSE_KERNEL_SHARED_RACE, "kernel-shared-race") /* two lanes, one word, no barrier between */           \
    X(MISUSE_KERNEL_GLOBAL_RACE, "kernel-global-race") /* the same in global memory, also between groups */    \
    X(MISUSE_RACE, "race")                             /* two operations without order on the same bytes */    \
    X(MISUSE_SOURCE_CHANGED, "source-changed")         /* the host wrote to what a pending copy reads */       \
    X(MISUSE_IMAGE, "image")                           /* a module the stand-in does not understand */

typedef enum standin_misuse {
#define STANDIN_MEMBER(name, text) name,
    STANDIN_MISUSES(STANDIN_MEMBER)
#undef STANDIN_MEMBER
        MISUSES
} standin_misuse;

/* How often something was reported since the last reset. */
uint32_t standin_misuse_count(standin_misuse kind);
/* The n-th report, "kind: call: text"; NULL: there are fewer. Valid until the reset. */
const char *standin_report(uint32_t n);
/* Waits for all streams, reports what is left over (MISUSE_LEAK), and writes the files the environment asks for. Happens
 * by itself when the process ends. */
void standin_finish(void);
/* As if the process had just started: everything is released, reports are gone, the environment is read again. */
void standin_reset(void);
/* Calls of a function since the reset; NULL: of all. */
uint64_t standin_calls(const char *name);

#endif
