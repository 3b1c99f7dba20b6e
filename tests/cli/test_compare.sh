#!/bin/bash
# compare: every policy and budget gets a row, what it prints is what `plan` says, and `report` reads its JSON.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1

run 0 compare lenet --machine k40c --budgets 100%,80%,10%,min --effort low --svg frontier.svg
err_empty
for policy in none liveness cache delta dtr autoswap capuchin superneurons hybrid; do out_has "$policy "; done
[ "$(grep -c '100%' out)" -ge 9 ] || fail 'a row per policy for 100%'
out_has 'does not fit: proved to need'
out_has 'does not fit: needs'
grep -q '</svg>' frontier.svg || fail 'the picture is complete'
grep -q 'superneurons' frontier.svg || fail 'the picture has a legend'
only_files . frontier.svg out err

# The same figures as `plan`, by bytes and by percentage.
run 0 compare lenet --machine k40c --policies autoswap --budgets 80% --json
cp out one.json
arena=$(json_number arena_bytes) # the first is the unconstrained one
step=$(sed -n 's/^ *"step_ns": \([0-9]*\),$/\1/p' out | tail -1)
run 0 plan lenet --machine k40c --json
[ "$(json_number arena_bytes)" = "$arena" ] || fail 'unconstrained is policy liveness without a budget'
run 0 plan lenet --machine k40c --policy autoswap --budget 80% --json
[ "$(json_number step_ns)" = "$step" ] || fail 'compare and plan predict the same time'
run 0 report lenet --machine k40c --compare one.json -o page.html

# min: the budget works.
run 0 compare lenet --machine k40c --policies 'superneurons:cost;liveness' --budgets min --json
budget=$(json_number budget_bytes)
run 0 plan lenet --machine k40c --policy superneurons:cost --budget "$budget"

# Programs from files, also without ops or costs.
run 0 model lenet -o lenet.jsonl
run 0 compare lenet.jsonl --policies liveness,delta --budgets 100%,min
printf '%s\n' '{"tidemark":"program","version":1,"kind":"one-shot"}' '{"end":{"tensors":0,"ops":0,"carries":0}}' >none.jsonl
run 0 compare none.jsonl --svg none.svg

run 0 compare lenet --machine k40c --policies autoswap --budgets 80% --host-budget 1 --disk-budget 1
out_has 'does not fit'

# Long names make their column wider: every row has its budget in the same place.
run 0 compare lenet --policies 'superneurons:memory,noswap;liveness' --budgets 100%
[ "$(grep -o '^.*   *100% ' out | awk '{print length}' | sort -u | wc -l)" = 1 ] || fail 'columns shift'

# ---- refusals ----
refuse 2 'is not a size' compare lenet --budgets 100%,half
refuse 2 'nothing fits into 0%' compare lenet --budgets 0%
refuse 2 'nothing fits into 0MiB' compare lenet --budgets 100%,0MiB
refuse 2 'is empty' compare lenet --budgets 100%,,90%
refuse 2 'is empty' compare lenet --policies ''
refuse 2 'listed twice' compare lenet --policies dtr,delta,dtr
refuse 2 'known: none, liveness' compare lenet --policies nosuch
refuse 2 'manual needs a decisions file' compare lenet --policies liveness,manual
refuse 2 'neither low, normal nor high' compare lenet --effort much
refuse 2 '--json and -o - both' compare lenet --json --svg -
refuse 2 'is for models' compare lenet.jsonl --batch 8
refuse 2 'unexpected argument' compare lenet vgg16
refuse 6 'cannot write' compare lenet --policies liveness --budgets 100% --svg ./nosuch/x.svg
refuse 6 'No such file' compare ./nosuch.jsonl

# A budget below the largest op is refused at once, and says that it is a bound.
run 4 plan lenet --policy hybrid --budget 1000 --json
out_has '"is_bound": true'
err_has 'no budget works below'
bound=$(json_number needed_bytes)
refuse 4 'alone needs' plan lenet --policy delta --budget $((bound - 1))
finish
