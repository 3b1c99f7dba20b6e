/* Online: how storages come into the arena and leave it, and how the engine makes room. For online.c. */
#ifndef TIDE_PLAN_DECIDE_ONLINE_ROOM_H
#define TIDE_PLAN_DECIDE_ONLINE_ROOM_H

#include "plan/decide/online/online.h"

/* Off the list of residents; its bytes go to an heir, or by the second one back to the device. */
tide_status tide__online_leave(tide__online *o, tide_id storage, tide__way way);
tide_status tide__online_release_bytes(tide__online *o, tide_id storage, tide__way way);

/* Before the bytes are taken, as the budget is hard: others leave until the device has room for them. TIDE_NONE: a
 * workspace. */
tide_status tide__online_make_room(tide__online *o, tide_id storage, uint64_t bytes);
/* Nothing else may leave: TIDE_E_FIT, with the op at hand. */
tide_status tide__online_fail_full(const tide__online *o, uint64_t bytes);

/* Its bytes are reserved: it comes from its tier. */
tide_status tide__online_load(tide__online *o, tide_id storage);
/* To a tier with room, if none has a copy of it. */
tide_status tide__online_save(tide__online *o, tide_id storage);
/* The room of its copy is free again; an input's stays with the client. */
void tide__online_forget_copy(tide__online *o, tide_id storage);

/* Every run and every move counts; TIDE_E_FIT when there are so many that the step gets nowhere. */
tide_status tide__online_count(tide__online *o);
bool tide__online_thrashes(const tide__online *o);

#endif
