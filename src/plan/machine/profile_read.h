/* What readers of profiles share: one JSON object whose every key is known. */
#ifndef TIDE_PLAN_PROFILE_READ_H
#define TIDE_PLAN_PROFILE_READ_H

#include "base/json.h"

typedef tide_status (*tide__profile_fn)(const tide__json *doc, void *out);
/* Parses the text, then calls `read`; errors begin with the name, and a line where there is one. */
tide_status tide__profile_read(const void *text, size_t size, const char *name_in_errors, tide__profile_fn read,
                               void *out);
tide_status tide__profile_head(const tide__json *doc, const char *format); /* format, version, notes */

tide_status tide__profile_find(const tide__json *doc, uint32_t object, const char *key, uint32_t *out);
tide_status tide__profile_u64(const tide__json *doc, uint32_t object, const char *key, uint64_t max, uint64_t *out);
tide_status tide__profile_u32(const tide__json *doc, uint32_t object, const char *key, uint32_t *out);
/* out: room for TIDE_MACHINE_NAME_BYTES. */
tide_status tide__profile_text(const tide__json *doc, uint32_t object, const char *key, char *out);

#endif
