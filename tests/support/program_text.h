/* A program as text, one op per line, so that tests can state a whole step by hand:
 *
 *     relu1: fc1 -> relu1 (0>0)          may take over the bytes of its first read
 *     fc1.weight.sgd: ... -> ... (0=0) once   must; not re-runnable
 *     drop: x -> y m random 0            counter 0 */
#ifndef TIDE_TESTS_PROGRAM_TEXT_H
#define TIDE_TESTS_PROGRAM_TEXT_H

#include <tidemark/program.h>

/* Freed with free(). */
char *program_text(const tide_program *p);

#endif
