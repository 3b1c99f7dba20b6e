/* How OpenMP's threads wait for each other: asleep.
 *
 * GCC's runtime lets a thread that has nothing to do spin for milliseconds at every barrier. As soon as anything else
 * wants a core, the thread that the others wait for does not get one, and a step takes fifty times as long. The runtime
 * reads how long to spin from the environment when it is loaded, which is too early for a library. But it all but gives up
 * spinning (100 rounds, a microsecond or two) while there are more OpenMP threads in the process than cores, asleep or not.
 * So a team keeps as many threads as there are cores, asleep for as long as it is open: with a second thread anywhere else
 * there are more. With OMP_WAIT_POLICY=active it is 1000 rounds. */
#ifndef TIDE_DEVICE_CPU_TEAM_H
#define TIDE_DEVICE_CPU_TEAM_H

#include <tidemark/status.h>

#include <stdint.h>

typedef struct tide__team tide__team;

/* cores: those that this process may use. */
tide_status tide__team_open(uint32_t cores, tide__team **out);
void tide__team_close(tide__team *team); /* NULL is fine */

#endif
