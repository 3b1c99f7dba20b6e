/* The words that files use for the enumerations of <tidemark/program.h>, indexed by enumerator. */
#ifndef TIDE_PROGRAM_NAMES_H
#define TIDE_PROGRAM_NAMES_H

#include <tidemark/program.h>

typedef struct tide__names {
    const char *const *text;
    unsigned count;
} tide__names;

extern const tide__names tide__dtype_names, tide__class_names, tide__phase_names, tide__start_names, tide__along_names;

#endif
