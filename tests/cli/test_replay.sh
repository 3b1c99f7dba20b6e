#!/bin/bash
# replay: streams that repeat, with and without deviations, streams that do not, and everything that is no stream.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1

# stream COUNT [GROW]: iterations of 20 blocks that come and go in a stack, one of which outlives the iteration. GROW
# makes every iteration different.
stream() {
    awk -v count="$1" -v grow="${2:-0}" '
        function take(block, bytes) { print "Malloc", block, bytes, n++ }
        function give(block) { print "Free", block, n++ }
        BEGIN {
            n = 0
            take("weights", 100000)
            for (i = 0; i < count; i++) {
                for (k = 0; k < 20; k++) take("b" k, 1024 * (k + 1) + 4096 * i * i * grow)
                take("m" i, 5000)
                if (i > 0) give("m" (i - 1))
                for (k = 19; k >= 0; k--) give("b" k)
            }
        }'
}

stream 20 >good.txt
run 0 replay good.txt
out_has 'iteration          42 events'
out_has '100.00% of'
err_empty
run 0 replay good.txt --json
[ "$(json_number period_events)" = 42 ] || fail 'the iteration has 42 events'
[ "$(json_number planned)" = "$(json_number watched)" ] || fail 'not all mallocs come from the plan'
[ "$(json_number iterations)" -ge 15 ] || fail 'planned too late'
# weights, 20 blocks and two momenta; then the same, each block at a multiple of 256
[ "$(json_number load_bytes)" = $((100000 + 1024 * 210 + 10000)) ] || fail 'the load is wrong'
[ "$(json_number footprint_bytes)" -le $((100000 + 1024 * 210 + 2 * 5120)) ] || fail 'the footprint is too large'

# Beside it: everyone holds at least the load, and SmartPool's two slots cost nothing here, where momenta meet.
for other in first-fit best-fit cnmem caching smartpool_two_slots smartpool_two_turns placement placement_bound; do
    grep -q "\"$other\": {" "$work/out" || fail "$other is missing"
done
grep -q '"recorded"' "$work/out" && fail 'block names that are no addresses became addresses'
[ "$(json_number stream_load_bytes)" = "$(json_number load_bytes)" ] || fail 'the stream has another load'
! grep -q '"ratio": 0' "$work/out" || fail 'somebody holds less than the load'
run 0 replay good.txt
out_has "like PyTorch's                  2.0 MiB"
out_has 'SmartPool, two slots'
run 0 replay good.txt --limit 1MiB
out_has "like PyTorch's             does not fit"
out_has 'like CnMem                      0.3 MiB'
run 0 replay good.txt --limit 1MiB --json
grep -q '"caching"' "$work/out" && fail 'a figure for what does not fit'

run 0 replay good.txt --deviate-every 1 --seed 3 --json
[ "$(json_number extra)" != 0 ] && [ "$(json_number missing)" != 0 ] || fail 'no deviations'
[ "$(json_number longest_off_events)" -le 42 ] || fail 'more than an iteration to come back'
run 0 replay good.txt --min-block 10KiB --alignment 4KiB --plan-time 0 --from singa-malloc --json
[ "$(json_number period_events)" = 22 ] || fail 'eleven blocks have 10 KiB or more'

printf 'Malloc 0x1000 1000 1\nMalloc 0x1400 24 1\nFree 0x1000 2\nMalloc 0x1200 500 3\n' >addresses.txt
run 0 replay addresses.txt
out_has 'as recorded                     0.0 MiB   1.500'

stream 12 1 >strange.txt
run 0 replay strange.txt
out_has 'no iteration found'
out_has 'first fit'
grep -q 'placed offline' "$work/out" && fail 'placed an iteration that is not there'
run 0 replay strange.txt --json
[ "$(json_number plans_made)" = 0 ] || fail 'planned what does not repeat'
: >empty.txt
refuse 3 'empty.txt' replay empty.txt

printf 'Malloc a 10 1\nFree b 2\n' >bad.txt
refuse 3 'bad.txt:2: block b is not live' replay bad.txt
printf 'Malloc a 1152921504606846977 1\n' >huge.txt
refuse 3 'huge.txt:1: ' replay huge.txt
printf 'Malloc a 18446744073709551615 1\n' >huge.txt
refuse 3 'huge.txt:1: ' replay huge.txt
printf '{"INSTRUCTION":"CONSTANT","NAME":"w"}\n' >log.dtr
refuse 3 'not a stream' replay log.dtr
refuse 6 'nosuch' replay ./nosuch.txt
refuse 2 'not percentages' replay good.txt --min-block 10%
refuse 2 'not percentages' replay good.txt --limit 10%
refuse 2 'power of two' replay good.txt --alignment 3
refuse 2 'plan_seconds' replay good.txt --plan-time 1e9
finish
