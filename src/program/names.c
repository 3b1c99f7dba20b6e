/* See names.h. One list per table of the public header, so a word is written in one place only. */
#include "program/names.h"

#define WORD(e, name) name,
static const char *const dtypes[] = {TIDE_DTYPE_TABLE(WORD)};
static const char *const classes[] = {TIDE_CLASS_TABLE(WORD)};
static const char *const phases[] = {TIDE_PHASE_TABLE(WORD)};
static const char *const starts[] = {TIDE_START_TABLE(WORD)};
static const char *const alongs[] = {TIDE_ALONG_TABLE(WORD)};
#undef WORD

#define NAMES(list) \
    { list, sizeof list / sizeof *list }
const tide__names tide__dtype_names = NAMES(dtypes), tide__class_names = NAMES(classes),
                  tide__phase_names = NAMES(phases), tide__start_names = NAMES(starts),
                  tide__along_names = NAMES(alongs);

const char *tide_class_name(tide_class cls) {
    return (unsigned)cls < tide__class_names.count ? tide__class_names.text[cls] : NULL;
}

const char *tide_phase_name(tide_phase phase) {
    return (unsigned)phase < tide__phase_names.count ? tide__phase_names.text[phase] : NULL;
}
