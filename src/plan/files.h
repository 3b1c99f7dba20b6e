/* Plans and machines as text on a stream that somebody else opened and commits; docs/formats.md has the formats. */
#ifndef TIDE_PLAN_FILES_H
#define TIDE_PLAN_FILES_H

#include <stdio.h>

#include <tidemark/plan.h>

void tide__plan_write_stream(const tide_plan *plan, FILE *f);
void tide__machine_write_stream(const tide_machine *machine, FILE *f); /* a valid one */

#endif
