/* The journal of an online step: what it did, as a plan, so that the verifier can judge it afterwards. It sees what the
 * device was told and what the host has waited for, and nothing of the engine's reasons.
 *
 * A value that compaction moves inside the arena goes, in the journal, out to a tier of its own and back in. */
#ifndef TIDE_RUN_JOURNAL_H
#define TIDE_RUN_JOURNAL_H

#include "run/run_data.h"

struct tide__run_online;
typedef struct tide__journal tide__journal;

/* At the beginning of a step: its places are the start map. */
tide_status tide__journal_open(struct tide__run_online *online, tide__journal **out);
void tide__journal_close(tide__journal *journal); /* NULL is fine */

/* For all that follow: NULL keeps no journal. What cannot be noted for want of memory is told at the end. */

/* The host knows that the latest move of a storage, a run (by its action), or everything is complete. */
void tide__journal_saw_move(tide__journal *j, tide_id storage);
void tide__journal_saw_run(tide__journal *j, uint32_t action);
void tide__journal_saw_all(tide__journal *j);
/* The next action of this queue waits for the latest move of a storage, or for a run. */
void tide__journal_wait(tide__journal *j, uint32_t queue, tide_id storage);
void tide__journal_wait_run(tide__journal *j, uint32_t queue, uint32_t action);

/* Just before they are enqueued. A run is known by its action, which is returned. */
uint32_t tide__journal_run(tide__journal *j, tide_id op);
void tide__journal_move(tide__journal *j, tide_id storage, uint32_t tier, uint32_t queue, bool out);

/* Its bytes in the arena, or its slot in a tier, belong to nobody from here on. */
void tide__journal_release(tide__journal *j, tide_id storage);
void tide__journal_give_slot(tide__journal *j, tide_id storage);
/* `write` will be made where `read` is. */
void tide__journal_inherit(tide__journal *j, tide_id read, tide_id write);
/* It was moved inside the arena, while everything rested; its place says where it is now. */
void tide__journal_shift(tide__journal *j, tide_id storage);

/* After the step: TIDE_E_INTERNAL if the verifier rejects what was done. */
tide_status tide__journal_check(tide__journal *j, const tide_program *program);

#endif
