/* A program with messages in between: some ops wait for a value of a peer, some values are sent to one. For tests. */
#ifndef TIDE_TESTS_RANDOM_MESSAGES_H
#define TIDE_TESTS_RANDOM_MESSAGES_H

#include <tidemark/program.h>

/* Takes the program over. */
tide_program *random_messages(tide_program *program, uint64_t *random);

#endif
