/* One file in a folder of its own, for the tests of a program: set-up and tear-down of its group. */
#ifndef TIDE_TESTS_SCRATCH_FILE_H
#define TIDE_TESTS_SCRATCH_FILE_H

extern char scratch_folder[], scratch_path[64];

int scratch_open(void **state);
int scratch_close(void **state); /* fails if anything else was left there */

#endif
