/* Compares the numbers of driver.h with those of the toolkit's cuda.h, where it is there, at compile time. Without it
 * there is nothing to compare. */
#include "driver.h"

#define STANDIN_SAME(name, value) _Static_assert((int)name == (value), #name);
#define STANDIN_SAME_ATTRIBUTE(name, value, answer) STANDIN_SAME(name, value)
STANDIN_ERRORS(STANDIN_SAME)
STANDIN_CONSTANTS(STANDIN_SAME)
STANDIN_ATTRIBUTES(STANDIN_SAME_ATTRIBUTE)
