/* Arrays that live and die together. Whoever needs several of one life asks one owner for them, looks once whether all were to
 * be had, and gives all of them back at once:
 *
 *   tide__array(&x->arrays, x->first, n);      // n elements, all bytes zero
 *   tide__array_ones(&x->arrays, x->last, n);  // all bytes 0xff: TIDE_NONE, UINT64_MAX
 *   TIDE_TRY(tide__arrays_check(&x->arrays));
 *   ...
 *   tide__arrays_free(&x->arrays);             // also after a failure, and of an owner that is all zero
 */
#ifndef TIDE_BASE_ARRAYS_H
#define TIDE_BASE_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct tide__arrays {
    struct tide__arrays_block *newest;
    bool failed; /* one of them was not to be had */
} tide__arrays;

/* Never NULL for a count of 0; NULL, and the owner has failed, where memory is short or the size overflows. */
void *tide__arrays_take(tide__arrays *a, size_t count, size_t element_size, int byte);
tide_status tide__arrays_check(const tide__arrays *a);
void tide__arrays_free(tide__arrays *a);

/* Elements may be pointers, whose size clang-tidy takes for a slip. */
#define tide__array(owner, pointer, count) \
    ((pointer) = tide__arrays_take((owner), (count), sizeof *(pointer), 0)) /* NOLINT(bugprone-sizeof-expression) */
#define tide__array_ones(owner, pointer, count) \
    ((pointer) = tide__arrays_take((owner), (count), sizeof *(pointer), 0xff)) /* NOLINT(bugprone-sizeof-expression) */

#endif
