/* Values that lie in files and are only ever read: the frozen weights of a published model.
 *
 *      tide_source_add    a value by a number of the client's, and where its bytes are
 *      tide_source_read   the bytes, whenever somebody needs them
 *
 * Nothing is kept in memory. Half precision becomes float32 on the way, which is exact. tide_source_read has the type of a
 * run's input (tide_input_fn, with the source as its context) and of a heap's, so that a plan's LOADs read files.
 * Once all values are there, several threads may read. */
#ifndef TIDEMARK_SOURCE_H
#define TIDEMARK_SOURCE_H

#include <tidemark/program.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tide_source tide_source;

/* How a value lies in its file. */
typedef enum tide_stored {
    TIDE_STORED_AS_IS,
    TIDE_STORED_BF16, /* read as float32 */
    TIDE_STORED_F16,  /* read as float32 */
} tide_stored;

TIDE_API tide_status tide_source_create(tide_source **out);
TIDE_API void tide_source_destroy(tide_source *source); /* NULL is fine */

/* stored_bytes of the file from offset_bytes on are this value. The file is opened once for all its values and must stay as
 * it is. TIDE_E_IO: it cannot be read or is shorter. TIDE_E_ARGUMENT: the number is taken. */
TIDE_API tide_status tide_source_add(tide_source *source, tide_id value, const char *path, uint64_t offset_bytes,
                                     uint64_t stored_bytes, tide_stored stored);
/* Bytes [position, position + size) of a value as it is read; multiples of 4 where it is widened. */
TIDE_API tide_status tide_source_read(void *source, tide_id value, uint64_t position, void *data, uint64_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif
