# shellcheck shell=bash
# Two hosts for scripts that are called with the build folder: network namespaces of this machine joined by a pair of virtual interfaces.
# Addresses are from the block for documentation, inside the namespaces only. Whoever sources it says what `skip REASON` does, and has
# $build and $work; clean_hosts belongs into its trap.
a=tide-a-$$ b=tide-b-$$
clean_hosts() {
    for n in $a $b; do
        for p in $(ip netns pids $n 2>/dev/null); do kill -9 "$p" 2>/dev/null || true; done
        ip netns del $n 2>/dev/null || true
    done
}
make_hosts() {
    [ -e "$build/libtidemark-openmpi.so" ] && command -v mpirun.openmpi >/dev/null || skip "Open MPI is not installed"
    [ "$(id -u)" -eq 0 ] && command -v ip >/dev/null || skip "only root makes them"
    ip netns add $a 2>/dev/null && ip netns add $b 2>/dev/null || skip "the system refuses"
    ip link add tide0 netns $a type veth peer name tide0 netns $b 2>/dev/null || skip "the system refuses veth"
    ip -n $a addr add 192.0.2.1/24 dev tide0
    ip -n $b addr add 192.0.2.2/24 dev tide0
    for n in $a $b; do ip -n $n link set lo up && ip -n $n link set tide0 up; done
    # What mpirun calls instead of ssh: HOST COMMAND...
    printf '#!/bin/bash\nshift\nexec ip netns exec %s sh -c "$*"\n' $b >"$work/rsh"
    chmod +x "$work/rsh"
}
# link_rate MBIT: what passes each way in a second.
link_rate() {
    for n in $a $b; do tc -n $n qdisc replace dev tide0 root tbf rate "$1mbit" burst 128kb latency 5ms; done
}
# on_hosts COMMAND...: a rank on each.
on_hosts() {
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TIDE_NET_PLUGIN=$build/libtidemark-openmpi.so \
        OMPI_MCA_plm_rsh_agent=$work/rsh OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=tide0 OMPI_MCA_oob_tcp_if_include=tide0 \
        ip netns exec $a timeout 100 mpirun.openmpi -x TIDE_NET_PLUGIN -n 2 --host 192.0.2.1,192.0.2.2 "$@"
}
