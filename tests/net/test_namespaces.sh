#!/bin/bash
# Two hosts: network namespaces of this machine joined by a pair of virtual interfaces, started by mpirun as over ssh. Ranks
# exchange messages and train, and a link that is cut ends the job in time. Where namespaces cannot be made there is nothing to do.
set -eu
build=$1
work=$(mktemp -d)
# shellcheck source=tests/net/two_hosts.sh
. "$2/tests/net/two_hosts.sh"
clean() {
    clean_hosts
    rm -rf "$work"
}
trap clean EXIT
skip() { echo "skipped: ranks in two network namespaces: $1; run: as root with iproute2 and Open MPI"; exit 77; }
if grep -q '^TIDE_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
    echo "skipped: MPI's libraries leak and are not instrumented; net.test_net has sanitizers look at messages; run: make check"
    exit 77
fi
make_hosts
start() { on_hosts "$build/tests/net_ranks" "$@"; }
start exchange >"$work/out" 2>"$work/err" || { cat "$work"/out "$work"/err; exit 1; }
grep -q '^2 ranks agree' "$work/out"

# The command of docs/cluster.md trains there, to the bits of one process.
command=$(sed -n 's/^mpirun -n 2 --host first,second tidemark //p' "$2/docs/cluster.md")
[ -n "$command" ] || { echo "docs/cluster.md has no command for two hosts"; exit 1; }
# shellcheck disable=SC2086
bits() { "$@" "$build/tidemark" $command --steps 3 --test-samples 8 --json --quiet 2>"$work/err" | tee "$work/out" | grep -o '"bits": *"[^"]*"'; }
one=$(bits env)
[ -n "$one" ] && [ "$(bits on_hosts)" = "$one" ] || { echo "two hosts have other bits"; cat "$work"/out "$work"/err; exit 1; }

# Who is there to end is the ranks. mpirun itself may wait for its own daemon behind the cut for minutes: it is ended here.
start steps 2000 20 >"$work/out" 2>"$work/err" &
job=$!
for _ in $(seq 200); do
    grep -q 'step 3' "$work/out" && break
    sleep 0.1
done
begin=$SECONDS
ip -n $b link set tide0 down
ranks_left() { for n in $a $b; do ip netns pids $n; done | xargs -r ps -o comm= -p | grep -c net_ranks || true; }
for _ in $(seq 100); do
    [ "$(ranks_left)" -gt 0 ] || break
    sleep 0.1
done
left=$(ranks_left)
clean_hosts
wait $job 2>/dev/null || true
[ "$left" -eq 0 ] && grep -q 'rank 1 on .*: nothing was heard of it for' "$work/err" ||
    { echo "cut after $((SECONDS - begin)) s: $left ranks are left"; cat "$work"/out "$work"/err; exit 1; }
