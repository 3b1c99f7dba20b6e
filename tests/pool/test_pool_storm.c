/* Eight threads on one pool, for seconds: storm.h. */
#include "storm.h"

int main(void) { return storm_main(400000); /* operations in each of the two storms */ }
