#!/bin/bash
# Plans for clusters that are not there: bytes per rank follow the formulas of docs/cluster.md, the fastest that fits is named, and
# files are hostile input.
set -eu
build=$1
source=$2
tidemark=$build/tidemark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { { echo "$*"; cat "$work"/out "$work"/err; } >&2; exit 1; }
ask() {
    "$tidemark" "$@" >"$work/out" 2>"$work/err" || fail "$*: exit code $?"
}
number() { # of plan $1, key $2
    grep -oE "\"$2\": *[0-9]+" "$work/out" | sed -n "$1p" | grep -oE '[0-9]+$'
}
near() { # $1 within 2 % of $2
    [ $((($1 > $2 ? $1 - $2 : $2 - $1) * 50)) -le "$2" ]
}

# Weights and optimizer state of ResNet-50 by Adam: 12 bytes per parameter, 4 + 8 / R, 12 / R; no weight is larger than a share.
ask plan resnet50 --micro 1 --optimizer adam --cluster 8xa100-nvlink --ranks 4 --json
all=$(number 1 states_bytes)
near "$(number 2 states_bytes)" $((all / 3 + all * 2 / 3 / 4)) || fail "optimizer state is not shared by four"
near "$(number 3 states_bytes)" $((all / 4)) || fail "weights are not shared by four"
[ "$(number 3 arena_bytes)" -lt "$(number 1 arena_bytes)" ] || fail "sharing saves nothing"
[ "$(grep -cE '"fastest": *true' "$work/out")" -eq 1 ] || fail "not one is the fastest"

# Many ranks cost no more to plan than two: each is like the others.
ask plan lenet --micro 1 --cluster 64xcpu-10gbe --ranks 1024 --shard optimizer
ask fit lenet --micro 8 --cluster 8xrtx4090-10gbe --budget 16MiB
grep -q 'does not fit' "$work/out" || fail "all batches fit"
ask compare lenet --micro 8 --cluster 8xrtx4090-10gbe --shard none
[ "$(grep -c 'hybrid\|liveness\|checkpoint\|superneurons' "$work/out")" -eq 4 ] || fail "not four policies"

refused() { # what it says, then a program of sed on a profile
    local code=0
    sed "$2" "$source/clusters/64xcpu-10gbe.json" >"$work/c.json"
    "$tidemark" plan lenet --cluster "$work/c.json" >"$work/out" 2>"$work/err" || code=$?
    [ $code -eq 3 ] && grep -q "$1" "$work/err" || fail "$2: exit code $code"
}
refused 'not a cluster profile' 's/tidemark-cluster/other/'
refused 'powers of two' 's/"hosts": 64/"hosts": 63/'
refused 'a link has a rate' 's/"bytes_per_s": 1125000000/"bytes_per_s": 0/'
refused 'color' 's/"hosts": 64/"hosts": 64, "color": 1/'
for where in nowhere "$work/nowhere.json" ""; do
    code=0
    "$tidemark" plan lenet --cluster "$where" >"$work/out" 2>"$work/err" || code=$?
    case $where in
    nowhere) [ $code -eq 2 ] && grep -q 'named "nowhere"; known: .*8xa100-nvlink.*8xrtx4090-10gbe' "$work/err" ;;
    */*) [ $code -eq 6 ] ;;
    *) [ $code -eq 2 ] ;;
    esac || fail "--cluster \"$where\": exit code $code"
done
# What means nothing for a cluster is refused, not ignored.
beside() {
    local code=0
    "$tidemark" "$@" --cluster 64xcpu-10gbe >"$work/out" 2>"$work/err" || code=$?
    [ $code -eq 2 ] && grep -q 'does not go with --cluster' "$work/err" || fail "$*: exit code $code"
}
beside plan lenet --parts 2
beside plan lenet --machine k40c
beside plan lenet -o x.plan
beside compare lenet --budgets 50%
beside compare lenet --policies liveness
beside fit lenet --max-depth 3
code=0
"$tidemark" plan lenet --cluster 8xrtx4090-10gbe --ranks 1 --shard all >"$work/out" 2>"$work/err" || code=$?
[ $code -eq 2 ] && grep -q 'is for several ranks' "$work/err" || fail "--shard of one rank: $code"
code=0
"$tidemark" plan lenet --shard all >"$work/out" 2>"$work/err" || code=$?
[ $code -eq 2 ] && grep -q 'need --cluster' "$work/err" || fail "--shard alone: $code"
