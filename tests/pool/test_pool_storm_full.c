/* Eight threads on one pool, for minutes: storm.h. */
#include "storm.h"

int main(void) { return storm_main(5000000); /* operations in each of the two storms */ }
