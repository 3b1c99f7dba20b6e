/* See <tidemark/replay.h>: a file's stream through the pool and through the others. */
#include <tidemark/replay.h>

#include "base/file.h"
#include "base/options.h"
#include "pool/compare.h"
#include "pool/replay.h"

_Static_assert(TIDE_REPLAY_N_ONLINE == TIDE__N_ONLINE, "every online allocator has its row");

void tide_replay_options_init(tide_replay_options *options) {
    *options = (tide_replay_options){.size = sizeof *options};
    tide_pool_options_init(&options->pool);
}

static tide_status replay(const tide__import *in, const tide_replay_options *o, tide_replay_result *result,
                          tide_replay_others *others) {
    tide__stream stream;
    TIDE_TRY(tide__import_stream(in, &stream));
    tide_status status = tide__pool_replay(&stream, o, result);
    if (status == TIDE_OK)
        status = tide__compare(&stream, o->pool.alignment, o->limit_bytes, o->pool.plan_seconds, others);
    result->n_events = stream.events.count;
    tide__stream_deinit(&stream);
    return status;
}

tide_status tide_replay_file(const char *path, const tide_replay_options *options, tide_replay_result *result,
                             tide_replay_others *others) {
    tide_replay_options o;
    tide_replay_result played;
    tide_replay_others compared;
    tide__file file;
    tide_replay_options_init(&o);
    if (!path) return tide__fail(TIDE_E_ARGUMENT, "a replay needs a path");
    TIDE_TRY(tide__options_take("tide_replay_options", options, sizeof o, &o));
    TIDE_TRY(tide__result_check("tide_replay_result", result, sizeof played));
    if (others) TIDE_TRY(tide__result_check("tide_replay_others", others, sizeof compared));
    TIDE_TRY(tide__file_open(path, &file));
    tide__import in = {.text = file.text, .size = file.size, .name = path, .options = {.from = o.from}};
    tide_status status = replay(&in, &o, &played, &compared);
    tide__file_close(&file);
    if (status != TIDE_OK) return status;
    tide__result_give(&played, result);
    if (others) tide__result_give(&compared, others);
    return TIDE_OK;
}
