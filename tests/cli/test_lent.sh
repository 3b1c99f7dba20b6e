#!/bin/bash
# `mpirun -n N tidemark train --peer-budget SIZE [--lenders N]`: memory of other ranks is a tier like any other, to the same bits, within
# its budget; a rank that only lends and is lost ends the job in time, with one message.
# shellcheck source=tests/cli/ranks.sh
. "$2/tests/cli/ranks.sh" "$@"
skip_sanitized
need_mpi
ranks() { # how many, then options
    local n=$1
    shift
    timeout 100 mpirun.openmpi --oversubscribe -n "$n" "$tidemark" train lenet --batch 8 --micro 4 --samples 256 \
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

refused() { # exit code, message, then a command
    local code=0 wanted=$1 text=$2
    shift 2
    "$@" --steps 1 >"$work/out" 2>"$work/err" || code=$?
    [ $code -eq "$wanted" ] && grep -q -- "$text" "$work/err" || fail "$*: exit code $code"
}
refused 2 '--peer-budget is for several ranks' "$tidemark" train lenet --peer-budget 1MiB
refused 2 '--lenders need a --peer-budget' "$tidemark" train lenet --lenders 1
refused 2 '--peer-budget is in bytes' "$tidemark" train lenet --peer-budget 50%
refused 2 'of 2 ranks 2 cannot lend only' ranks 2 --lenders 2 --peer-budget 1MiB
refused 2 'rank 1 lends 63 bytes to rank 0: fewer than 64 are of no use' ranks 2 --lenders 1 --peer-budget 63

# hurt SIGNAL RANK CODE: of two that train and one that lends. SIGTERM saves, and the one that lends waits for that.
hurt() {
    local code=0 pid='' begin
    rm -f "$work/log.csv" "$work/c"
    ranks 3 --lenders 1 --peer-budget 8MiB --budget 70% --disk-budget 0 --steps 100000 --log "$work/log.csv" --checkpoint "$work/c" >"$work/out" 2>"$work/err" &
    local job=$!
    for _ in $(seq 600); do
        [ "$(wc -l 2>/dev/null <"$work/log.csv" || echo 0)" -gt 6 ] && break
        sleep 0.1
    done
    for p in $(pgrep -x tidemark); do
        if descends "$p" $job && grep -qzxF "OMPI_COMM_WORLD_RANK=$2" "/proc/$p/environ"; then pid=$p; fi
    done
    [ -n "$pid" ] || fail "no rank $2 to hurt"
    begin=$SECONDS
    if [ "$1" = TERM ]; then
        for p in $(pgrep -x tidemark); do if descends "$p" $job; then kill -TERM "$p"; fi; done
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
hurt STOP 2 13
grep -q '^tidemark: rank 2 on .*: nothing was heard of it' "$work/err" || fail "who was stopped is not told"
[ "${3:-}" = full ] || exit 0
hurt KILL 2 137 # mpirun's own code for it
hurt STOP 1 13
hurt TERM 2 11
[ -s "$work/c" ] || fail "interrupted: nothing is saved"
