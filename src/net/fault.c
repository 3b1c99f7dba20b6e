/* The one fault of a job: whose it is, and how ranks tell each other. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "net/net_data.h"
#include "net/unconst.h"

/* What travels in the payload of a FAULT frame. */
typedef struct told {
    uint32_t rank, status;
    uint64_t step;
    char host[TIDE_NET_HOST], why[TIDE_NET_WHY];
} told;

static pthread_mutex_t *lock_of(const tide_net *net) { return tide__net_unconst(&net->lock); }

static void copy_text(char *out, size_t room, const char *text) {
    size_t n = strnlen(text, room - 1);
    memcpy(out, text, n);
    out[n] = 0;
}

void tide__net_fault_set(tide_net *net, uint32_t rank, tide_status status, uint64_t step, const char *why) {
    pthread_mutex_lock(&net->lock);
    if (net->fault.status == TIDE_OK) {
        net->fault = (tide_net_fault_info){.rank = rank, .step = step};
        copy_text(net->fault.host, sizeof net->fault.host, tide_net_host(net, rank));
        copy_text(net->fault.why, sizeof net->fault.why, why);
        net->fault.status = status;
        atomic_store(&net->faulty, true);
        pthread_cond_broadcast(&net->wake);
    }
    pthread_mutex_unlock(&net->lock);
}

void tide__net_blame(tide_net *net, uint32_t rank, const char *format, ...) {
    char why[TIDE_NET_WHY];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    tide__net_fault_set(net, rank, TIDE_E_PEER, rank < net->count ? net->peers[rank].step : 0, why);
}

tide_net_fault_info tide_net_fault(const tide_net *net) {
    pthread_mutex_lock(lock_of(net));
    tide_net_fault_info fault = net->fault;
    pthread_mutex_unlock(lock_of(net));
    return fault;
}

bool tide__net_faulty(const tide_net *net) { return atomic_load(&net->faulty); }

tide_status tide__net_fault_status(const tide_net *net) {
    tide_net_fault_info fault = tide_net_fault(net);
    if (fault.status == TIDE_OK) return TIDE_OK;
    return tide__fail(TIDE_E_PEER, "rank %u on %s, last in step %llu: %s", fault.rank,
                      fault.host[0] ? fault.host : "a host that is not known", (unsigned long long)fault.step,
                      fault.why);
}

void tide__net_fault_to_frame(tide_net *net, tide__net_frame *frame) {
    tide_net_fault_info fault = tide_net_fault(net);
    told t = {.rank = fault.rank, .status = (uint32_t)fault.status, .step = fault.step};
    memcpy(t.host, fault.host, sizeof t.host);
    memcpy(t.why, fault.why, sizeof t.why);
    memcpy(frame->payload, &t, sizeof t);
    frame->size_bytes = sizeof t;
}

void tide__net_fault_from_frame(tide_net *net, const tide__net_frame *frame) {
    told t;
    memcpy(&t, frame->payload, sizeof t);
    t.why[sizeof t.why - 1] = 0;
    tide_status status = t.status ? (tide_status)t.status : TIDE_E_PEER;
    tide__net_fault_set(net, t.rank, status, t.step, t.why);
}
