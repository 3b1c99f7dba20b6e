/* What memory of another rank moves beside a raw socket between the same two processes, in the same run: `mpirun -n 2 bench_peer [ADDRESS]`.
 * Rank 1 lends and listens at ADDRESS (127.0.0.1); rank 0 saves, loads, and sends the same bytes through the socket, in turns. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tidemark/net.h>

#include "base/clock.h"
#include "tier/tier.h"

enum { ROUNDS = 7, BYTES = 64 << 20, PORT = 47181, PIECE = 1 << 20 };

static int failed(const char *what) {
    fprintf(stderr, "bench_peer: %s: %s\n", what, tide_last_error());
    return 1;
}

/* ---- the socket ---- */

static int all(int fd, char *data, size_t size, bool sends) {
    for (size_t at = 0; at < size;) {
        size_t piece = size - at < PIECE ? size - at : PIECE;
        ssize_t n = sends ? send(fd, data + at, piece, 0) : recv(fd, data + at, piece, 0);
        if (n <= 0) return 1;
        at += (size_t)n;
    }
    return 0;
}

static int open_socket(const char *address, bool listens, tide_net *net) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM, 0), other = -1;
    inet_pton(AF_INET, address, &at.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    bool ready = !listens || (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0);
    if (tide_net_barrier(net) != TIDE_OK || !ready) return -1;
    if (!listens) return connect(fd, (struct sockaddr *)&at, sizeof at) == 0 ? fd : -1;
    other = accept(fd, NULL, NULL);
    close(fd);
    return other;
}

/* A byte back says that all has arrived, as the tier's answer does. */
static int pass(int fd, char *data, bool sends) {
    char byte = 1;
    return all(fd, data, BYTES, sends) || all(fd, &byte, 1, !sends);
}

/* ---- rank 0 ---- */

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double rate(uint64_t *ns) {
    qsort(ns, ROUNDS, sizeof *ns, by_value);
    const uint64_t median = ns[ROUNDS / 2];
    return (double)BYTES / (double)median;
}

static int measure(tide_net *net, int fd, char *data) {
    uint64_t ns[3][ROUNDS], begin;
    const tide_loan loan = {net, 1};
    const tide__tier_options o = {.kind = TIDE_TIER_LENT, .capacity_bytes = BYTES, .block_bytes = 1, .loan = &loan};
    tide__tier *tier;
    if (tide__tier_open(&o, &tier) != TIDE_OK) return failed("open");
    tide__tier_slot slot = {.tier = tier};
    for (int i = -1; i < ROUNDS; i++) { /* the first touches everything */
        int k = i < 0 ? 0 : i;
        begin = tide__now_ns();
        if (tide__tier_save(&slot, 0, data, BYTES) != TIDE_OK) return failed("save");
        ns[0][k] = tide__now_ns() - begin;
        begin = tide__now_ns();
        if (tide__tier_load(&slot, 0, data, BYTES) != TIDE_OK) return failed("load");
        ns[1][k] = tide__now_ns() - begin;
        begin = tide__now_ns();
        if (pass(fd, data, true)) return failed("the socket");
        ns[2][k] = tide__now_ns() - begin;
    }
    double save = rate(ns[0]), load = rate(ns[1]), raw = rate(ns[2]);
    printf("save %.2f GB/s, load %.2f GB/s, raw socket %.2f GB/s: %.0f %% and %.0f %%\n", save, load, raw,
           100 * save / raw, 100 * load / raw);
    tide__tier_destroy(tier);
    return tide_loan_return(&loan) == TIDE_OK ? 0 : failed("return");
}

static int run(const char *host, char *data) {
    tide_net *net;
    tide_lender *lender = NULL;
    const uint64_t budgets[2] = {BYTES, 0};
    int code = 0;
    if (tide_net_open(NULL, &net) != TIDE_OK) return failed("joining");
    if (tide_net_count(net) != 2) return failed("two ranks are needed");
    memset(data, 1, BYTES);
    bool lends = tide_net_rank(net) == 1;
    int fd = open_socket(host, lends, net);
    if (fd < 0) return failed("the socket");
    if (lends && tide_lender_open(net, budgets, &lender) != TIDE_OK) return failed("lending");
    if (lends)
        for (int i = -1; i < ROUNDS && !code; i++) code = pass(fd, data, false);
    else
        code = measure(net, fd, data);
    if (code) tide_net_fail(net, TIDE_E_IO, "the benchmark failed");
    if (lender) (void)tide_lender_close(lender);
    tide_net_close(net);
    close(fd);
    return code;
}

int main(int argc, char **argv) {
    char *data = malloc(BYTES);
    int code = data ? run(argc > 1 ? argv[1] : "127.0.0.1", data) : failed("memory");
    free(data);
    return code;
}
