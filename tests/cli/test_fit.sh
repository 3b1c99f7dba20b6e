#!/bin/bash
# fit: what it says fits can be planned, one more does not; limits are ordered; depth is searched where it makes sense.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1

# The number after a limit's name.
largest() { sed -n "s/^  $1  *\([0-9][0-9]*\),.*/\1/p" out | head -1; }

run 0 fit lenet --machine k40c --policy delta --budget 3MiB --max-batch 256
out_has 'fits                   yes'
out_has 'smallest budget'
err_empty
if grep -q deepest out; then fail 'lenet has no depth to search'; fi
plain=$(largest "by liveness alone")
any=$(largest 'at any cost')
[ "$plain" -le "$(largest 'at no cost')" ] || fail 'no cost is at least what fits anyway'
[ "$(largest 'at no cost')" -le "$(largest 'at 10 % more time')" ] || fail 'more time, no smaller a batch'
[ "$(largest 'at 10 % more time')" -le "$any" ] || fail 'any cost, no smaller a batch'
run 0 plan lenet --machine k40c --batch "$plain" --policy liveness --budget 3MiB
refuse 4 'does not fit' plan lenet --machine k40c --batch $((plain + 1)) --policy liveness --budget 3MiB
run 0 plan lenet --machine k40c --batch "$any" --budget 3MiB --policy delta --effort low

refuse 2 'there is no policy "nosuch"' fit lenet --policy nosuch
refuse 2 'it takes nomove' fit lenet --policy hybrid:nosuch
refuse 2 'below the batch' fit lenet --max-batch 3
run 0 fit lenet --machine k40c --budget 3MiB --max-batch 160
any=$(largest 'at any cost')
run 0 plan lenet --machine k40c --batch "$any" --budget 3MiB --effort low
refuse 4 'no budget works below' plan lenet --machine k40c --batch $((any + any / 32 + 1)) --budget 3MiB --effort low

run 0 fit resnet-cifar:1 --machine k40c --policy dtr --batch 4 --budget 8MiB --max-batch 8 --max-depth 3 --json
out_has '"depth_pattern": "resnet-cifar:*"'
out_has '"deepest"'
out_has '"capped": true'
run 0 fit resnet-cifar:1 --machine k40c --policy dtr --batch 4 --budget 8MiB --max-batch 8 --no-depth
if grep -q deepest out; then fail '--no-depth'; fi

# What does not fit: the report, the complaint, exit code 4.
run 4 fit lenet --policy liveness --batch 64 --budget 2MiB --max-batch 64
out_has 'fits                   no'
err_has 'does not fit 2.00 MiB'
run 4 fit lenet --policy delta --budget 1 --max-batch 64 --json
out_has '"fits": false'

# Policy none is judged by itself, though liveness would fit.
run 4 fit lenet --machine k40c --policy none --budget 3MiB --max-batch 64
out_has 'liveness alone would do'
err_has 'does not fit 3.00 MiB'
run 0 fit lenet --machine k40c --policy none --budget 64MiB --max-batch 64
out_has 'fits                   yes'
# Rows come one by one, and two budgets that differ look different.
run 0 fit lenet --machine k40c --policy liveness --budget 8MiB --max-batch 64
sed -n 's/^  smallest budget  *\(.*\) works, \(.*\) does not.*/\1|\2/p' out >smallest
grep -q '|' smallest || fail 'no smallest budget'
[ "$(cut -d'|' -f1 smallest)" != "$(cut -d'|' -f2 smallest)" ] || fail 'two budgets that look the same'

# Mixed precision: half the activations, products at the rate of tensor cores; told where a machine has none.
run 0 plan resnet50 --batch 32 --machine rtx4090 --json
full=$(json_number arena_bytes)
full_ns=$(json_number step_ns)
run 0 plan resnet50 --batch 32 --machine rtx4090 --dtype bf16 --json
err_empty
half=$(json_number arena_bytes)
[ "$((10 * half))" -lt "$((7 * full))" ] && [ "$((10 * half))" -gt "$((5 * full))" ] || fail "bf16 takes $half bytes, f32 $full"
[ "$((10 * $(json_number step_ns)))" -lt "$((7 * full_ns))" ] || fail 'bf16 is no faster'
run 0 fit lenet --machine k40c --policy delta --budget 3MiB --max-batch 256 --dtype f16
[ "$(largest "by liveness alone")" -gt "$plain" ] || fail 'no larger batch in f16'
err_has 'machine k40c states no rate for bf16 and f16'
refuse 2 'is not f32, bf16 or f16' fit lenet --dtype int8
refuse 2 'dtype is for models' plan ./x.program --dtype bf16

# ---- refusals ----
refuse 2 'is below the batch of 32' fit lenet --max-batch 31
refuse 2 'is below the 9 of resnet-cifar:9' fit resnet-cifar:9 --max-depth 8
refuse 2 'only a model can grow' fit ./lenet.jsonl
refuse 2 'budgets are bytes here' fit lenet --budget 50%
refuse 2 'policy manual fits one program' fit lenet --policy manual
refuse 2 'known: none, liveness' fit lenet --policy nosuch --budget 1MiB
refuse 2 'known: mlp' fit nosuch
refuse 2 'neither low, normal nor high' fit lenet --effort much
refuse 2 'is not a whole number' fit lenet --max-batch 0
finish
