/* Clusters: hosts with ranks of one kind, and what messages between them cost. One JSON object (docs/formats.md, "Cluster profiles"),
 * hostile input like a machine's profile. */
#include <tidemark/machine.h>

#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "plan/machine/profile_read.h"
#include "plan/machine/profiles.h"

enum { MOST_RANKS = 1 << 16 };

static tide_status read_link(const tide__json *doc, const char *key, tide_cluster_link *out) {
    static const char *const keys[] = {"bytes_per_s", "latency_ns", NULL};
    uint32_t node;
    TIDE_TRY(tide__profile_find(doc, 0, key, &node));
    if (doc->nodes.data[node].type != TIDE__JSON_OBJECT)
        return tide__fail(TIDE_E_FORMAT, "%s: expected an object", key);
    TIDE_TRY(tide__json_only(doc, node, keys));
    TIDE_TRY(tide__profile_u64(doc, node, "bytes_per_s", UINT64_C(1) << 50, &out->bytes_per_s));
    TIDE_TRY(tide__profile_u64(doc, node, "latency_ns", UINT64_C(1) << 40, &out->latency_ns));
    return out->bytes_per_s ? TIDE_OK : tide__fail(TIDE_E_FORMAT, "%s: a link has a rate", key);
}

static bool is_power_of_two(uint32_t n) { return n > 0 && n <= MOST_RANKS && (n & (n - 1)) == 0; }

static tide_status read_cluster(const tide__json *doc, void *cluster) {
    static const char *const keys[] = {"format", "version",        "name",   "source",  "notes", "machine",
                                       "hosts",  "ranks_per_host", "inside", "between", NULL};
    tide_cluster *c = cluster;
    if (doc->nodes.data[0].type != TIDE__JSON_OBJECT) return tide__fail(TIDE_E_FORMAT, "expected an object");
    TIDE_TRY(tide__profile_head(doc, "tidemark-cluster"));
    TIDE_TRY(tide__json_only(doc, 0, keys));
    TIDE_TRY(tide__profile_text(doc, 0, "name", c->name));
    TIDE_TRY(tide__profile_text(doc, 0, "source", c->source));
    TIDE_TRY(tide__profile_text(doc, 0, "machine", c->machine));
    TIDE_TRY(tide__profile_u32(doc, 0, "hosts", &c->hosts));
    TIDE_TRY(tide__profile_u32(doc, 0, "ranks_per_host", &c->ranks_per_host));
    if (!is_power_of_two(c->hosts) || !is_power_of_two(c->ranks_per_host) || c->hosts > MOST_RANKS / c->ranks_per_host)
        return tide__fail(TIDE_E_FORMAT, "hosts and ranks_per_host are powers of two, of at most %d ranks", MOST_RANKS);
    TIDE_TRY(read_link(doc, "inside", &c->inside));
    return read_link(doc, "between", &c->between);
}

static tide_status fail_unknown(const char *name) {
    char known[256] = "";
    for (const tide__profile *p = tide__clusters; p->name; p++) tide__profile_append(p->name, known, sizeof known);
    return tide__fail(TIDE_E_ARGUMENT, "no file and no cluster profile named \"%s\"; known: %s (in the library)", name,
                      known + 2);
}

tide_status tide_cluster_load(const char *name, tide_cluster *out) {
    TIDE_NEED(name, out);
    tide_cluster c = {0};
    const tide__profile *own = tide__profile_is_path(name) ? NULL : tide__profile_own(tide__clusters, name);
    if (own) {
        TIDE_TRY(tide__profile_read(own->bytes, own->size, own->name, read_cluster, &c));
        *out = c;
        return TIDE_OK;
    }
    if (!tide__profile_is_path(name) && access(name, F_OK) != 0) return fail_unknown(name);
    tide__file file;
    TIDE_TRY(tide__file_open(name, &file));
    tide_status status = tide__profile_read(file.text, file.size, name, read_cluster, &c);
    tide__file_close(&file);
    if (status == TIDE_OK) *out = c;
    return status;
}

/* A rank's share of its host's adapter. */
static double between_rate(const tide_cluster *c) { return (double)c->between.bytes_per_s / c->ranks_per_host; }

tide_status tide_cluster_machine(const tide_cluster *c, const tide_program *program, uint32_t rank, tide_machine *out) {
    TIDE_NEED(c, program, out);
    tide_machine m;
    double bytes = 0, seconds = 0, latency_ns = 0, messages = 0;
    if (c->ranks_per_host == 0 || c->inside.bytes_per_s == 0 || c->between.bytes_per_s == 0)
        return tide__fail(TIDE_E_ARGUMENT, "a cluster has ranks on each host, and links with a rate");
    TIDE_TRY(tide_machine_load(c->machine, &m));
    for (tide_id i = 0; i < tide_program_op_count(program); i++) {
        const tide_op *op = tide_program_op(program, i);
        if (!op->message) continue;
        const bool inside = op->message->peer / c->ranks_per_host == rank / c->ranks_per_host;
        const tide_id tensor = op->message->receives ? op->writes[0] : op->reads[0];
        const double size = (double)tide_program_tensor(program, tensor)->size_bytes;
        bytes += size;
        seconds += size / (inside ? (double)c->inside.bytes_per_s : between_rate(c));
        latency_ns += (double)(inside ? c->inside.latency_ns : c->between.latency_ns);
        messages += 1;
    }
    const double rate = seconds > 0 ? bytes / seconds : (double)c->inside.bytes_per_s;
    TIDE_TRY(tide_machine_add_peers(&m, rate < 1 ? 1 : (uint64_t)rate,
                                    messages > 0 ? (uint64_t)(latency_ns / messages) : 0));
    *out = m;
    return TIDE_OK;
}
