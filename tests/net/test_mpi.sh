#!/bin/bash
# Jobs of real ranks, on this machine alone, under every MPI that has a plug-in and a launcher here: messages arrive, and a
# rank that is killed, stopped or fails ends the whole job in time, with one message that names it.
set -eu
build=$1
ranks=$build/tests/net_ranks
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
if grep -q '^TIDE_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
    echo "skipped: MPI's libraries leak and are not instrumented; net.test_net has sanitizers look at messages; run: make check"
    exit 77
fi

fail() { echo "$*"; cat "$work"/*; exit 1; }

start() { # how many ranks, then what each runs
    case $mpi in
    openmpi) timeout 60 mpirun.openmpi --oversubscribe -n "$@" ;;
    mpich) timeout 60 mpiexec.mpich -n "$@" ;;
    esac
}

exchange() {
    for n in 2 4; do
        start "$n" "$ranks" exchange >"$work/out" 2>"$work/err" || fail "$mpi: $n ranks do not exchange messages"
        grep -q "^$n ranks agree" "$work/out" || fail "$mpi: $n ranks do not agree"
    done
}

# hurt SIGNAL PATTERN: the second of three ranks gets the signal in mid-training.
hurt() {
    rm -f "$work"/*
    start 3 "$ranks" steps 1000 20 >"$work/out" 2>"$work/err" &
    local job=$! pid='' code=0 begin
    for _ in $(seq 300); do
        grep -q "step 3" "$work/out" 2>/dev/null && break
        sleep 0.1
    done
    for p in $(pgrep -x net_ranks); do # the one of rank 1 of this very job
        if descends "$p" "$job" && grep -qzxE '(OMPI_COMM_WORLD_RANK|PMI_RANK)=1' "/proc/$p/environ"; then pid=$p; fi
    done
    [ -n "$pid" ] || fail "$mpi: no rank 1 to hurt"
    begin=$SECONDS
    kill "-$1" "$pid"
    wait "$job" || code=$?
    [ $((SECONDS - begin)) -le 10 ] || fail "$mpi: after $1 the job went on for $((SECONDS - begin)) s"
    [ "$code" -ne 0 ] && [ "$code" -ne 124 ] || fail "$mpi: after $1 the job ended with $code"
    [ "$1" = KILL ] || [ "$mpi" = mpich ] || [ "$code" -eq 13 ] || fail "$mpi: after $1 the job ended with $code instead of 13"
    # MPICH kills the other ranks at once when one was killed, and says so itself: they have no time for a last word.
    [ "$mpi $1" = "mpich KILL" ] || [ "$(grep -cE "$2" "$work/err")" -eq 1 ] || fail "$mpi: after $1 there is not one message '$2'"
    ! grep -q "all steps" "$work/out" || fail "$mpi: the job did not notice $1"
}

# Is process $1 a child, grandchild, ... of process $2?
descends() {
    local p=$1
    while [ "${p:-0}" -gt 1 ]; do
        [ "$p" -ne "$2" ] || return 0
        p=$(awk '/^PPid:/ { print $2 }' "/proc/$p/status" 2>/dev/null || true)
    done
    return 1
}

fails_by_itself() {
    rm -f "$work"/*
    local code=0
    start 3 "$ranks" fail >"$work/out" 2>"$work/err" || code=$?
    # MPICH's exit code is that of whatever it killed.
    [ "$code" -eq 6 ] || [ "$mpi" = mpich ] && [ "$code" -ne 0 ] || fail "$mpi: a rank without a disk ends the job with $code instead of 6"
    [ "$(grep -c 'ranks: rank 2 on .*, last in step 7: its disk is full' "$work/err")" -eq 1 ] ||
        fail "$mpi: not one message of the rank without a disk"
}

# Without a plug-in a job of several ranks is refused, by exit code 10.
refusal() {
    local code=0
    TIDE_NET_PLUGIN=$work/none.so OMPI_COMM_WORLD_SIZE=2 "$ranks" exchange 2>"$work/err" || code=$?
    [ "$code" -eq 10 ] && grep -q 'a job of 2 ranks needs the MPI plug-in' "$work/err" || fail "no refusal: $code"
}
refusal

tested=0
for mpi in openmpi mpich; do
    launcher=$([ $mpi = openmpi ] && echo mpirun.openmpi || echo mpiexec.mpich)
    if [ ! -e "$build/libtidemark-$mpi.so" ] || ! command -v "$launcher" >/dev/null; then
        echo "skipped: jobs of several ranks under $mpi: it is not installed; run: tools/deps mpi"
        continue
    fi
    export TIDE_NET_PLUGIN=$build/libtidemark-$mpi.so
    exchange
    hurt STOP 'rank 1 on .*, last in step [0-9]+: nothing was heard of it for'
    hurt KILL 'rank 1 on .*, last in step [0-9]+: '
    fails_by_itself
    tested=$((tested + 1))
done
[ "$tested" -gt 0 ] || exit 77
