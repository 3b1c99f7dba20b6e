/* A heap of a fixed size whose blocks may wait on disk: for runtimes that allocate as they go, before any plan exists.
 *
 *      tide_heap_allocate   a block, pinned             least recently used blocks that are not pinned make room
 *      tide_heap_unpin      it may leave from now on
 *      tide_heap_pin        it is there again, perhaps elsewhere
 *      tide_heap_release
 *      tide_heap_borrow     a block of bytes that lie elsewhere: read when it is pinned, dropped when it leaves
 *
 * The bytes of blocks in memory never exceed arena_bytes, those on disk never disk_bytes. Whoever holds addresses learns
 * from `moved` that a block has left or come back. Calls may come from several threads; `moved` is called under the heap's
 * lock and must not call the heap. */
#ifndef TIDEMARK_HEAP_H
#define TIDEMARK_HEAP_H

#include <tidemark/program.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_heap tide_heap;

/* address NULL: the block waits on disk, or where it was borrowed. */
typedef void (*tide_heap_moved_fn)(void *context, uint64_t block, void *address);

/* Fills `data` with bytes [position, position + size) of a borrowed value; tide_source_read is one. */
typedef tide_status (*tide_heap_read_fn)(void *context, tide_id value, uint64_t position, void *data,
                                         uint64_t size_bytes);

typedef struct tide_heap_options {
    size_t size; /* sizeof(tide_heap_options) */
    uint64_t arena_bytes;
    uint64_t disk_bytes;      /* reserved when the first block leaves; 0: none ever does */
    const char *disk_path;    /* folder of the spill file; NULL: the system's temporary folder; copied */
    tide_heap_moved_fn moved; /* NULL: nobody asks */
    void *moved_context;
    tide_heap_read_fn read; /* NULL: nothing can be borrowed */
    void *read_context;
} tide_heap_options;
TIDE_API void tide_heap_options_init(tide_heap_options *options);
TIDE_API tide_status tide_heap_create(const tide_heap_options *options, tide_heap **out);
TIDE_API void tide_heap_destroy(tide_heap *heap); /* and all its blocks; NULL is fine */

/* TIDE_E_FIT: what is pinned leaves no such stretch. TIDE_E_TIER_FULL: what would have to leave has no room on disk. */
TIDE_API tide_status tide_heap_allocate(tide_heap *heap, uint64_t size_bytes, uint64_t *block, void **address);
/* A block of a value that `read` knows, not there yet and not pinned. It must not be written to. */
TIDE_API tide_status tide_heap_borrow(tide_heap *heap, tide_id value, uint64_t size_bytes, uint64_t *block);
/* Pins count. A block that is not there comes back first. */
TIDE_API tide_status tide_heap_pin(tide_heap *heap, uint64_t block, void **address);
TIDE_API void tide_heap_unpin(tide_heap *heap, uint64_t block);
/* All that may leave does, as far as there is room on disk, and the memory of what is free goes back to the system. */
TIDE_API tide_status tide_heap_rest(tide_heap *heap);
/* Pinned or not. */
TIDE_API void tide_heap_release(tide_heap *heap, uint64_t block);

typedef struct tide_heap_stats {
    uint64_t peak_bytes;                /* the most bytes of blocks in memory at a time */
    uint64_t saved_bytes, loaded_bytes; /* to and from disk so far */
} tide_heap_stats;
TIDE_API tide_heap_stats tide_heap_get_stats(tide_heap *heap);

#ifdef __cplusplus
}
#endif
#endif
