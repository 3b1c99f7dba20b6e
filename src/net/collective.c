/* Barrier, broadcast and gathering for setting up: plain messages through rank 0 or the root, with tags of their own.
 * They are few and small, so the plainest way is good enough. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "net/net_data.h"
#include "net/unconst.h"

static uint64_t next_tag(tide_net *net) { return (UINT64_C(1) << 63) + net->n_collectives++; }

/* Bytes of every rank to the root: all[r * size_bytes]. */
static tide_status gather(tide_net *net, uint32_t root, uint64_t tag, void *mine, uint64_t size_bytes, char *all) {
    tide_net_ticket ticket;
    if (net->rank != root) {
        TIDE_TRY(tide__net_post_send(net, root, tag, mine, size_bytes, NULL, NULL, &ticket));
        return tide_net_wait(net, ticket);
    }
    for (uint32_t r = 0; r < net->n_among; r++) {
        if (r == root) {
            if (size_bytes) memcpy(all + r * size_bytes, mine, size_bytes);
            continue;
        }
        TIDE_TRY(tide__net_post_receive(net, r, tag, all + r * size_bytes, size_bytes, NULL, NULL, &ticket));
        TIDE_TRY(tide_net_wait(net, ticket));
    }
    return TIDE_OK;
}

static tide_status spread(tide_net *net, uint32_t root, uint64_t tag, void *data, uint64_t size_bytes) {
    tide_net_ticket ticket;
    if (net->rank != root) {
        TIDE_TRY(tide__net_post_receive(net, root, tag, data, size_bytes, NULL, NULL, &ticket));
        return tide_net_wait(net, ticket);
    }
    for (uint32_t r = 0; r < net->n_among; r++) {
        if (r == root) continue;
        TIDE_TRY(tide__net_post_send(net, r, tag, data, size_bytes, NULL, NULL, &ticket));
        TIDE_TRY(tide_net_wait(net, ticket));
    }
    return TIDE_OK;
}

tide_status tide_net_among(tide_net *net, uint32_t count) {
    TIDE_NEED(net);
    if (count == 0 || count > net->count)
        return tide__fail(TIDE_E_ARGUMENT, "%u ranks are not among %u", count, net->count);
    net->n_among = count;
    return TIDE_OK;
}

tide_status tide_net_broadcast(tide_net *net, uint32_t root, void *data, uint64_t size_bytes) {
    TIDE_NEED(net, data);
    if (root >= net->n_among) return tide__fail(TIDE_E_ARGUMENT, "there is no rank %u to broadcast from", root);
    return spread(net, root, next_tag(net), data, size_bytes);
}

tide_status tide_net_allgather(tide_net *net, const void *mine, uint64_t size_bytes, void *all) {
    TIDE_NEED(net, mine, all);
    uint64_t total;
    if (!tide__mul(size_bytes, net->n_among, &total)) return tide__fail(TIDE_E_OVERFLOW, "bytes of all ranks");
    TIDE_TRY(gather(net, 0, next_tag(net), tide__net_unconst(mine), size_bytes, all));
    return spread(net, 0, next_tag(net), all, total);
}

tide_status tide_net_barrier(tide_net *net) {
    TIDE_NEED(net);
    char nothing[1];
    TIDE_TRY(gather(net, 0, next_tag(net), nothing, 0, nothing));
    return spread(net, 0, next_tag(net), nothing, 0);
}
