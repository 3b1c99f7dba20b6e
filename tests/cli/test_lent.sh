#!/bin/bash
# `mpirun -n N tidemark train --peer-budget SIZE [--lenders N]`: memory of other ranks is a tier like any other, to the same bits, within
# its budget; a rank that only lends and is lost ends the job in time, with one message.
set -eu
build=$1
tidemark=$build/tidemark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if grep -q '^TIDE_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
    echo "skipped: MPI's libraries leak and are not instrumented; tier.test_lent has sanitizers look at lent memory; run: make check"
    exit 77
fi
if [ ! -e "$build/libtidemark-openmpi.so" ] || ! command -v mpirun.openmpi >/dev/null; then
    echo "skipped: memory of other ranks: Open MPI is not installed; run: tools/deps mpi"
    exit 77
fi
fail() { { echo "$*"; cat "$work"/out "$work"/err; } >&2; exit 1; }
ranks() { # how many, then options
    local n=$1
    shift
    timeout 100 mpirun.openmpi --oversubscribe -n "$n" "$tidemark" train lenet --batch 16 --micro 4 --samples 256 \
        --test-samples 8 --threads 1 --effort low --quiet "$@"
}
hash_of() {
    ranks "$@" --json >"$work/out" 2>"$work/err" || fail "train $*: exit code $?"
    grep -oE '"bits": *"[^"]*"' "$work/out"
}
lent() { grep -oE '"lent": *[0-9]+' "$work/out" | grep -oE '[0-9]+'; }

one=$(hash_of 1 --steps 4)
tight="--budget min --disk-budget 0"
for job in "2 --lenders 1 --peer-budget 8MiB" "2 --peer-budget 8MiB" "3 --lenders 1 --peer-budget 8MiB --shard all"; do
    # shellcheck disable=SC2086
    [ "$(hash_of $job $tight --steps 4)" = "$one" ] || fail "$job: other bits than one rank alone"
    [ "$(lent)" -gt 100000 ] && [ "$(lent)" -le $((8 << 20)) ] || fail "$job: $(lent) bytes are lent"
done
# No more than what is lent, half of it to each of two.
hash_of 3 --lenders 1 --peer-budget 200KiB --steps 1 --budget 80% --disk-budget 0 >/dev/null
[ "$(lent)" -le $((100 << 10)) ] || fail "more is used than was lent"

refused() { # exit code, message, then a job
    local code=0 wanted=$1 text=$2
    shift 2
    ranks "$@" --steps 1 >"$work/out" 2>"$work/err" || code=$?
    [ $code -eq "$wanted" ] && grep -q -- "$text" "$work/err" || fail "$*: exit code $code"
}
refused 2 '--peer-budget is for several ranks' 1 --peer-budget 1MiB
refused 2 '--lenders need a --peer-budget' 2 --lenders 1
refused 2 '--peer-budget is in bytes' 2 --peer-budget 50%
refused 2 'of 2 ranks 2 cannot lend only' 2 --lenders 2 --peer-budget 1MiB

# hurt SIGNAL RANK CODE: of two that train and one that lends. SIGTERM saves, and the one that lends waits for that.
hurt() {
    local code=0 pid='' begin
    rm -f "$work/log.csv" "$work/c"
    ranks 3 --lenders 1 --peer-budget 8MiB --budget 70% --disk-budget 0 --steps 100000 --log "$work/log.csv" --checkpoint "$work/c" >"$work/out" 2>"$work/err" &
    local job=$!
    for _ in $(seq 300); do
        [ "$(wc -l 2>/dev/null <"$work/log.csv" || echo 0)" -gt 6 ] && break
        sleep 0.1
    done
    for p in $(pgrep -x tidemark); do
        if grep -qzxF "TMPDIR=$work" "/proc/$p/environ" 2>/dev/null && grep -qzxF "OMPI_COMM_WORLD_RANK=$2" "/proc/$p/environ"; then pid=$p; fi
    done
    [ -n "$pid" ] || fail "no rank $2 to hurt"
    begin=$SECONDS
    if [ "$1" = TERM ]; then
        for p in $(pgrep -x tidemark); do
            if grep -qzxF "TMPDIR=$work" "/proc/$p/environ" 2>/dev/null; then kill -TERM "$p"; fi
        done
    else
        kill "-$1" "$pid"
    fi
    wait $job || code=$?
    [ $((SECONDS - begin)) -le 10 ] || fail "after $1 the job went on for $((SECONDS - begin)) s"
    [ $code -eq "$3" ] || fail "after $1 of rank $2 the exit code is $code instead of $3"
    case $1:$(grep -c '^tidemark:' "$work/err") in
    *:1 | KILL:0) ;; # on a busy machine mpirun kills the others, a second after, before they can speak
    *) fail "after $1: not one message" ;;
    esac
}
export TMPDIR=$work
hurt STOP 2 13
grep -q '^tidemark: rank 2 on .*: nothing was heard of it' "$work/err" || fail "who was stopped is not told"
hurt KILL 2 137 # mpirun's own code for it
hurt STOP 1 13
hurt TERM 2 11
[ -s "$work/c" ] || fail "interrupted: nothing is saved"
