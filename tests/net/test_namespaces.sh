#!/bin/bash
# Two hosts: network namespaces of this machine joined by a pair of virtual interfaces, started by mpirun as over ssh. Ranks
# exchange messages, and a link that is cut ends the job in time. Where namespaces cannot be made there is nothing to do.
set -eu
build=$1
a=tide-a-$$ b=tide-b-$$ # addresses are from the block for documentation, inside the namespaces only
work=$(mktemp -d)
clean() {
    ip netns del $a 2>/dev/null || true
    ip netns del $b 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
skip() { echo "skipped: ranks in two network namespaces: $1; run: as root with iproute2 and Open MPI"; exit 77; }
[ -e "$build/libtidemark-openmpi.so" ] && command -v mpirun.openmpi >/dev/null || skip "Open MPI is not installed"
[ "$(id -u)" -eq 0 ] && command -v ip >/dev/null || skip "only root makes them"
ip netns add $a 2>/dev/null && ip netns add $b 2>/dev/null || skip "the system refuses"
ip link add tide0 netns $a type veth peer name tide0 netns $b 2>/dev/null || skip "the system refuses veth"
ip -n $a addr add 192.0.2.1/24 dev tide0
ip -n $b addr add 192.0.2.2/24 dev tide0
for n in $a $b; do ip -n $n link set lo up && ip -n $n link set tide0 up; done

# What mpirun calls instead of ssh: HOST COMMAND...
cat >"$work/rsh" <<END
#!/bin/bash
shift
exec ip netns exec $b sh -c "\$*"
END
chmod +x "$work/rsh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if grep -q '^TIDE_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
    echo "skipped: MPI's libraries leak and are not instrumented; net.test_net has sanitizers look at messages; run: make check"
    exit 77
fi
start() {
    ip netns exec $a timeout 60 mpirun.openmpi --mca plm_rsh_agent "$work/rsh" --mca btl tcp,self \
        -x TIDE_NET_PLUGIN="$build/libtidemark-openmpi.so" --mca btl_tcp_if_include tide0 --mca oob_tcp_if_include tide0 --host 192.0.2.1,192.0.2.2 -n 2 \
        "$build/tests/net_ranks" "$@"
}
start exchange >"$work/out" 2>"$work/err" || { cat "$work"/out "$work"/err; exit 1; }
grep -q '^2 ranks agree' "$work/out"

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
for n in $a $b; do for p in $(ip netns pids $n); do kill -9 "$p" 2>/dev/null || true; done; done
wait $job 2>/dev/null || true
[ "$left" -eq 0 ] && grep -q 'rank 1 on .*: nothing was heard of it for' "$work/err" ||
    { echo "cut after $((SECONDS - begin)) s: $left ranks are left"; cat "$work"/out "$work"/err; exit 1; }
