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

run 0 replay good.txt --deviate-every 1 --seed 3 --json
[ "$(json_number extra)" != 0 ] && [ "$(json_number missing)" != 0 ] || fail 'no deviations'
[ "$(json_number longest_off_events)" -le 42 ] || fail 'more than an iteration to come back'
run 0 replay good.txt --min-block 10KiB --alignment 4KiB --plan-time 0 --from singa-malloc --json
[ "$(json_number period_events)" = 22 ] || fail 'eleven blocks have 10 KiB or more'

stream 12 1 >strange.txt
run 0 replay strange.txt
out_has 'no iteration found'
run 0 replay strange.txt --json
[ "$(json_number plans_made)" = 0 ] || fail 'planned what does not repeat'
: >empty.txt
refuse 3 'empty.txt' replay empty.txt

printf 'Malloc a 10 1\nFree b 2\n' >bad.txt
refuse 3 'bad.txt:2: block b is not live' replay bad.txt
printf 'Malloc a 1152921504606846977 1\n' >huge.txt
refuse 9 'huge.txt:1: ' replay huge.txt
printf '{"INSTRUCTION":"CONSTANT","NAME":"w"}\n' >log.dtr
refuse 3 'not a stream' replay log.dtr
refuse 6 'nosuch' replay ./nosuch.txt
refuse 2 'not percentages' replay good.txt --min-block 10%
refuse 2 'power of two' replay good.txt --alignment 3
refuse 2 'plan_seconds' replay good.txt --plan-time 1e9
finish
