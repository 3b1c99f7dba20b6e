#!/bin/bash
# `tidemark train --supervise`: ranks that are killed at random cost a restart with fewer ranks, never a bit; other failures
# are not tried again.
# shellcheck source=tests/cli/ranks.sh
. "$2/tests/cli/ranks.sh" "$@"
refused() { # what it says, then options
    local code=0 text=$1
    shift
    "$tidemark" train lenet "$@" >"$work/out" 2>"$work/err" || code=$?
    [ $code -eq 2 ] && grep -q -- "$text" "$work/err" || fail "$*: exit code $code"
}
refused 'power of two' --supervise 3 --checkpoint "$work/c"
refused 'needs --checkpoint' --supervise 2
refused 'need --supervise' --restarts 2

skip_sanitized
need_mpi
kills=${TIDE_TEST_KILLS:-2}
steps=${TIDE_TEST_STEPS:-60}
options=(lenet --batch 16 --micro 4 --samples 256 --test-samples 8 --threads 1 --steps "$steps" --json --quiet)
train() { timeout 300 "$tidemark" train "${options[@]}" "$@"; }
bits() { grep -oE '"bits": *"[^"]*"' "$1"; }
train >"$work/one" 2>"$work/err" || fail "one process: exit code $?"

train --shard all --supervise 4 --restarts 30 --launcher "mpirun.openmpi --oversubscribe" --checkpoint "$work/c" --every 1 \
    >"$work/out" 2>"$work/err" &
job=$!
code=0 killed=0
for _ in $(seq 600); do
    [ $killed -lt "$kills" ] && kill -0 $job 2>/dev/null || break
    sleep 0.$((RANDOM % 9 + 1))
    # Only ranks at work, those with a checkpoint behind them: each kill is to cost one restart.
    [ -s "$work/c" ] && [ "$(grep -c 'restart .* of at most' "$work/err" || true)" -eq $killed ] || continue
    ranks=()
    for p in $(pgrep -x tidemark); do
        if descends "$p" $job && grep -qz '^OMPI_COMM_WORLD_RANK=' "/proc/$p/environ" 2>/dev/null; then ranks+=("$p"); fi
    done
    [ ${#ranks[@]} -gt 0 ] || continue
    if kill -KILL "${ranks[RANDOM % ${#ranks[@]}]}" 2>/dev/null; then
        killed=$((killed + 1))
        for _ in $(seq 100); do
            [ "$(grep -c 'restart .* of at most' "$work/err" || true)" -lt $killed ] && kill -0 $job 2>/dev/null || break
            sleep 0.1
        done
    fi
done
wait $job || code=$?
[ $code -eq 0 ] || fail "supervised: exit code $code"
[ "$(bits "$work/out")" = "$(bits "$work/one")" ] || fail "after $killed kills the bits are others"
[ $killed -gt 0 ] && grep -q 'restart 1 of at most 30, with 2 ranks' "$work/err" || fail "nothing was restarted"
