/* tidemark train --supervise N: starts N ranks by a launcher, and again with the ranks that are left when one is lost. */
#ifndef TIDE_CLI_TRAIN_SUPERVISE_H
#define TIDE_CLI_TRAIN_SUPERVISE_H

#include "train_options.h"

/* Of a process that is no rank itself; returns the exit code of the command. */
int supervise(int argc, char **argv, const train_options *o);

#endif
