/* Ranks that are threads of one process: what tests stand on, and a job of one rank. */
#ifndef TIDE_NET_LOCAL_H
#define TIDE_NET_LOCAL_H

#include "net/net_data.h"

/* The transport of such ranks; its `start` is a tide__net_seat. Tests wrap it. */
extern const tide__net_transport tide__net_local;

typedef struct tide__net_hub tide__net_hub;
typedef struct tide__net_seat {
    tide__net_hub *hub;
    uint32_t rank;
} tide__net_seat;

tide_status tide__net_hub_create(uint32_t count, tide__net_hub **out);
void tide__net_hub_release(tide__net_hub *hub); /* the creator's share; the last open rank frees it */

/* out[count]: all ranks, open. */
tide_status tide__net_open_local(uint32_t count, const tide_net_options *options, tide_net **out);
/* The same over `transport`, which has the seats of a hub as its start. */
tide_status tide__net_open_seats(uint32_t count, const tide_net_options *options, const tide__net_transport *transport,
                                 tide_net **out);

#endif
