/* Two programs are the same in everything a caller can see, signature included. */
#ifndef TIDE_TESTS_PROGRAM_EQUAL_H
#define TIDE_TESTS_PROGRAM_EQUAL_H

#include <tidemark/program.h>

/* NULL, or the first difference in words (a static text). */
const char *program_difference(const tide_program *p, const tide_program *q);

#define assert_programs_equal(p, q)                                      \
    do {                                                                 \
        const char *difference_ = program_difference((p), (q));          \
        if (difference_) fail_msg("programs differ in %s", difference_); \
    } while (0)

#endif
