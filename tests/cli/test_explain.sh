#!/bin/bash
# explain: the peak is that of `model` and `plan`, gaps are counted completely, tensors are found by name and number.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1

run 0 explain lenet
out_has 'the peak: 1.57 MiB at op 25 "pool1.bwd"'
out_has 'waits for op 32 "fc1.weight.momentum"'
out_has 'in 0 it moves, in 0 it is run again'
out_has '... and'
err_empty
run 0 explain lenet --top 1000
if grep -q '\.\.\. and' out; then fail 'everything is listed'; fi

# The peak is what lies there.
run 0 explain resnet-cifar:1 --json
sum=$(awk '/"there"/ { on = 1 } /"gaps"/ { on = 0 } on && /"bytes"/ { gsub(/[^0-9]/, ""); s += $0 } END { printf "%d", s }' out)
[ "$(json_number bytes)" = "$sum" ] || fail "the bytes of the peak, $(json_number bytes), are those listed, $sum"
run 0 model resnet-cifar:1 --json
[ "$(json_number peak_bytes)" = "$sum" ] || fail 'the peak of liveness is that of the model'

# Decisions of a plan, by hand and by policies.
run 0 explain lenet --machine k40c --policy autoswap --budget 85%
out_has 'is loaded again'
out_has 'are in a tier, too'
run 0 explain lenet --machine k40c --policy cache --budget 75% --host-budget 200kB --top 100
out_has 'moves to disk'
out_has 'moves to ram'
run 0 explain lenet --machine k40c --policy capuchin --budget 70%
out_has 'moves to ram'
out_has 'of transfers'
run 0 explain lenet --machine k40c --policy dtr --tensor pool1
out_has 'read by     op 23 "conv2.bwd-weights"'
run 0 explain resnet-cifar:1 --batch 8 --machine k40c --policy capuchin --budget 80% --tensor relu --json
out_has '"decision": "rerun"'
cp out named
run 0 explain resnet-cifar:1 --batch 8 --machine k40c --policy capuchin --budget 80% --tensor '#12' --json
same out named

# A chain is told with all its ops; transfers that compute waits for do not hide.
run 0 explain resnet-cifar:2 --batch 32 --machine k40c --policy checkpoint --budget 75% --top 400
out_has 're-running 5 ops costs'
run 0 explain resnet-cifar:2 --batch 32 --machine k40c --policy cache --budget 40% --top 400
out_has 'compute waits'
if grep 'compute waits' out | grep -q 'hide in'; then fail 'hidden and waited for'; fi

printf '%s\n' '{"tidemark":"program","version":1,"kind":"one-shot"}' '{"end":{"tensors":0,"ops":0,"carries":0}}' >none.jsonl
run 0 explain none.jsonl
run 0 explain none.jsonl --json

# ---- refusals ----
refuse 2 'has no "nosuch"' explain lenet --tensor nosuch
refuse 2 'has no "#999"' explain lenet --tensor '#999'
refuse 2 'neither low, normal nor high' explain lenet --effort much
refuse 2 'known: none, liveness' explain lenet --policy nosuch
refuse 4 'does not fit' explain lenet --budget 40%
refuse 2 'is not a whole number' explain lenet --top 0
refuse 2 'is for models' explain none.jsonl --batch 8
finish
