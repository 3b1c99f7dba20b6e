/* Rates of messages between the ranks of a job, as their steps exchange them: in pairs whose distance doubles, both ways at once,
 * all pairs at the same time. Measured at the start of every job: hosts and links differ from one to the next. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/size.h"
#include "run/measure.h"

#define LARGE_BYTES (UINT64_C(4) << 20)
#define TAG (UINT64_C(1) << 57) /* messages of steps have smaller ones */
enum { SMALL_BYTES = 64, SMALL_ROUNDS = 16, LARGE_ROUNDS = 4 };

static tide_status swap(tide_net *net, uint32_t peer, const char *mine, char *theirs, uint64_t size_bytes) {
    tide_net_ticket out, in;
    TIDE_TRY(tide_net_receive(net, peer, TAG, theirs, size_bytes, NULL, NULL, &in));
    tide_status status = tide_net_send(net, peer, TAG, mine, size_bytes, NULL, NULL, &out);
    if (status == TIDE_OK) status = tide_net_wait(net, out);
    tide_status received = tide_net_wait(net, in); /* if nothing was sent, the job has a fault, which ends it */
    return status == TIDE_OK ? received : status;
}

/* The quickest of a few. */
static tide_status time_swap(tide_net *net, uint32_t peer, char *bytes, uint64_t size_bytes, int rounds, uint64_t *ns) {
    *ns = UINT64_MAX;
    for (int i = 0; i < rounds; i++) {
        uint64_t begin = tide__now_ns();
        TIDE_TRY(swap(net, peer, bytes, bytes + size_bytes, size_bytes));
        *ns = tide__min_u64(*ns, tide__now_ns() - begin);
    }
    return TIDE_OK;
}

/* To the nearest of ten per decade: a plan is found again while the network is much the same. */
static uint64_t coarse(double value) { return (uint64_t)tide__bench_round(pow(10, round(10 * log10(value)) / 10)); }

static tide_status measure(tide_net *net, uint32_t n_ranks, char *bytes, tide_machine *machine) {
    double moving_ns = 0, waiting_ns = 0, levels = 0;
    for (uint32_t far = 1; far < n_ranks; far *= 2, levels++) {
        uint64_t latency, ns;
        TIDE_TRY(time_swap(net, tide_net_rank(net) ^ far, bytes, SMALL_BYTES, SMALL_ROUNDS, &latency));
        TIDE_TRY(time_swap(net, tide_net_rank(net) ^ far, bytes, LARGE_BYTES, LARGE_ROUNDS, &ns));
        waiting_ns += (double)latency;
        moving_ns += ns > latency ? (double)(ns - latency) : 1;
    }
    return tide_machine_add_peers(machine, coarse(levels * (double)LARGE_BYTES * 1e9 / moving_ns),
                                  coarse(waiting_ns / levels));
}

tide_status tide_machine_measure_peers(tide_net *net, uint32_t n_ranks, tide_machine *machine) {
    TIDE_NEED(net, machine);
    if (n_ranks < 2 || (n_ranks & (n_ranks - 1)) || n_ranks > tide_net_count(net) || tide_net_rank(net) >= n_ranks)
        return tide__fail(TIDE_E_ARGUMENT, "rank %u of %u: messages are measured among the first ranks, a power of two",
                          tide_net_rank(net), n_ranks);
    char *bytes = calloc(2, LARGE_BYTES);
    tide_status status = bytes ? measure(net, n_ranks, bytes, machine) : tide__fail_memory();
    free(bytes);
    return status;
}
