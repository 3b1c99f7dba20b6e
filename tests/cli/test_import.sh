#!/bin/bash
# import: streams that repeat and streams that do not, a DTR log, and everything that is neither.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1

# stream COUNT [EXTRA]: iterations of four events over one block that stays and one that comes and goes; EXTRA adds a
# block that only the iteration in the middle has, of another size each time.
stream() {
    awk -v count="$1" -v extra="${2:-0}" '
        function put(op, block, bytes) { print n, op, block, bytes, 1000 * n; n++ }
        BEGIN {
            n = 0
            put("Malloc", "0xa", 4096); put("Mutable", "0xa", 4096)
            for (i = 0; i < count; i++) {
                put("Malloc", "0xb", 8192); put("Read", "0xa", 4096); put("Mutable", "0xb", 8192)
                put("Mutable", "0xa", 4096); put("Free", "0xb", 8192)
                if (extra) { put("Malloc", "0xc", 100 + i * i); put("Free", "0xc", 100 + i * i) }
            }
        }'
}

stream 20 >good.txt
run 0 import good.txt -o good.jsonl
out_has 'from a singa-access log, repeating'
out_has 'iteration          5 events'
err_empty
run 0 plan good.jsonl
run 0 import good.txt --json
[ "$(json_number period_events)" = 5 ] || fail 'the iteration has 5 events'
[ "$(json_number peak_bytes)" = 12288 ] || fail 'the peak is 4096 + 8192 bytes'
run 0 import good.txt --iteration-time 5us --json
[ "$(json_number cost_ns)" = 5000 ] || fail 'the iteration takes 5 us'
# Block b is written, but never read: its bytes need not be kept.
run 0 import good.txt --drop-unread -o dropped.jsonl
cmp -s good.jsonl dropped.jsonl && fail '--drop-unread changes nothing'
run 0 plan dropped.jsonl
run 0 import good.txt --from singa-access
stream 20 | awk '/Malloc/ { print $2, $3, $4, $5 / 1000 } /Free/ { print $2, $3, $5 / 1000 }' >malloc.txt
run 0 import malloc.txt
out_has 'from a singa-malloc log'

cp good.jsonl before.jsonl
stream 12 1 >bad.txt
refuse 8 'bad.txt' import bad.txt -o good.jsonl
same before.jsonl good.jsonl
refuse 8 'bad.txt' import bad.txt
stream 1 >once.txt
refuse 8 'once.txt' import once.txt

cat >log.dtr <<'END'
{"INSTRUCTION":"CONSTANT","NAME":"w"}
{"INSTRUCTION":"MEMORY","NAME":"w","MEMORY":"1000"}
{"INSTRUCTION":"CALL","NAME":"f","ARGS":["w"],"RESULT":["y"],"TIME":"50"}
{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"2000"}
{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}
END
run 0 import log.dtr -o dtr.jsonl
out_has 'from a dtr log, one-shot'
run 0 plan dtr.jsonl
run 0 import log.dtr --json
[ "$(json_number release_peak_bytes)" = 3000 ] || fail 'the peak is 1000 + 2000 bytes'

refuse 2 'is not a format' import good.txt --from csv
refuse 3 'good.txt:1:' import good.txt --from dtr
refuse 3 'log.dtr:1:' import log.dtr --from singa-malloc
refuse 6 'No such file' import nosuch.txt
refuse 6 'cannot write' import good.txt -o nosuch/x.jsonl
sed '6s/4096/4097/' good.txt >size.txt
refuse 3 'size.txt:6:' import size.txt
sed '9s/.*/hello/' good.txt >word.txt
refuse 3 'word.txt:9:' import word.txt
head -3 log.dtr >short.dtr
refuse 3 'short.dtr:' import short.dtr
: >empty.txt
refuse 3 'not a log that can be imported' import empty.txt
head -c 4000 "$tidemark" >garbage
refuse 3 'not a log that can be imported' import garbage
refuse 3 'garbage:' import garbage --from singa-access
refuse 3 'not a log that can be imported' import good.jsonl
finish
