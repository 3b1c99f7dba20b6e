#!/bin/bash
# train --checkpoint, --resume, --every, --keep: the same bits after a stop, an interrupt and a kill in mid-step; and a file
# that a reader with nothing but Python's standard library understands.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1
quick='lenet --batch 4 --test-samples 8 --samples 64 --threads 1 --quiet --json'
bits() { sed -n 's/^ *"bits": "\([0-9a-f]*\)".*/\1/p' "$work/out" | sort -u; }
same_bits() { [ "$(bits)" = "$reference" ] || fail "$1: other bits"; }
# Waits until a file is there; a minute is long enough anywhere.
await() { for _ in $(seq 600); do [ -e "$1" ] && return; sleep 0.1; done; fail "$1 never came"; }

# shellcheck disable=SC2086 # $quick is a list of options
{
    run 0 train $quick --steps 7
    reference=$(bits)
    run 0 train $quick --steps 3 --checkpoint c.safetensors
    run 0 train $quick --steps 7 --resume c.safetensors
    same_bits 'resumed'
    run 0 train ${quick/--quiet/} --steps 7 --resume c.safetensors
    err_has 'step 7/7'
    run 0 train $quick --steps 7 --resume c.safetensors --policy none --checkpoint d.safetensors
    same_bits 'resumed under another policy'
    run 0 train $quick --steps 7 --resume c.safetensors --verify-bits
    only_files . c.safetensors d.safetensors err out
    refuse 2 'leaves nothing to do' train $quick --steps 3 --resume c.safetensors
    refuse 3 'its seed is 1' train $quick --steps 7 --resume c.safetensors --seed 2
    refuse 6 'cannot open' train $quick --resume ./nosuch
    refuse 6 'cannot write' train $quick --steps 1 --checkpoint ./nosuch/c
    refuse 2 '--every needs --checkpoint' train $quick --every 2
    refuse 2 'is for one training' train $quick --checkpoint c.safetensors --verify-bits

    # So is how many steps there were to be.
    run 0 train $quick --steps 6 --checkpoint total.safetensors --every 2 --keep 2
    run 0 train $quick --resume total.safetensors.1 --log rest.jsonl
    [ "$(wc -l <rest.jsonl)" = 3 ] || fail 'resumed after step 4 of 6: not two more steps'
    rm -f total.safetensors total.safetensors.1 rest.jsonl

    # The schedule is in the file: nobody has to type it again. What shapes the step has to be the same.
    scheduled='--schedule step --decay-every 2 --decay-factor 0.5 --warmup 2 --learning-rate 0.1'
    run 0 train $quick --steps 7 $scheduled --clip-norm 1 --accumulate 2
    reference=$(bits)
    run 0 train $quick --steps 3 $scheduled --clip-norm 1 --accumulate 2 --checkpoint s.safetensors
    run 0 train $quick --steps 7 --clip-norm 1 --accumulate 2 --resume s.safetensors
    same_bits 'the schedule of the checkpoint'
    err_empty
    run 0 train $quick --steps 7 $scheduled --clip-norm 1 --accumulate 2 --resume s.safetensors
    same_bits 'the same schedule, typed again'
    run 0 train $quick --steps 7 --clip-norm 1 --accumulate 2 --learning-rate 0.01 --resume s.safetensors
    [ "$(bits)" != "$reference" ] || fail 'another learning rate, the same bits'
    refuse 3 'its batch is 8' train $quick --steps 7 --clip-norm 1 --resume s.safetensors
    refuse 3 'its accumulate is 2' train lenet --batch 8 ${quick#* * * } --steps 7 --clip-norm 1 --resume s.safetensors
    refuse 3 'its clip_norm is 1' train $quick --steps 7 --accumulate 2 --resume s.safetensors
    refuse 3 'its weight_decay is 0' train $quick --steps 7 --clip-norm 1 --accumulate 2 --weight-decay 0.5 --resume s.safetensors
    run 0 train $quick --steps 3 --schedule cosine --checkpoint s.safetensors
    run 0 train $quick --steps 4 --resume s.safetensors
    err_has 'ends at step 3'
    run 0 train $quick --steps 4 --schedule cosine --resume s.safetensors
    err_empty

    # Killed in mid-step: what was saved last goes on to the same bits.
    rm -f c.safetensors
    "$tidemark" train $quick --steps 100000000 --checkpoint c.safetensors --every 3 >/dev/null 2>&1 &
    await c.safetensors
    kill -9 $!
    wait $! 2>/dev/null
    steps=$(grep -ao '"step":"[0-9]*"' c.safetensors | tr -dc 0-9)
    [ -n "$steps" ] && [ $((steps % 3)) = 0 ] || fail "the checkpoint is at step \"$steps\""
    run 0 train $quick --steps $((steps + 4))
    reference=$(bits)
    run 0 train $quick --steps $((steps + 4)) --resume c.safetensors
    same_bits 'after a kill'

    # Interrupted: saves, says so, and ends with its own exit code.
    for signal in HUP TERM INT; do
        rm -f c.safetensors
        "$tidemark" train $quick --steps 100000000 --checkpoint c.safetensors --every 3 >out 2>err &
        await c.safetensors
        kill -$signal $!
        wait $!
        code=$?
        [ $code = 11 ] || fail "exit code $code after SIG$signal, expected 11"
        err_has 'saved to c.safetensors'
    done
    steps=$(grep -ao '"step":"[0-9]*"' c.safetensors | tr -dc 0-9)
    grep -qF "interrupted after step $steps;" err || fail 'the message names another step than the file'
    run 0 train $quick --steps $((steps + 2))
    reference=$(bits)
    run 0 train $quick --steps $((steps + 2)) --resume c.safetensors
    same_bits 'after an interrupt'
}

# Where the checkpoint is a link it stays one; what a killed writer left is removed; the last three are kept, each whole.
ln -s aim linked
: >aim.tmp-0123456789abcdef
# shellcheck disable=SC2086 # $quick is a list of options
{
    run 0 train $quick --steps 7 --checkpoint linked --every 2
    [ -L linked ] && [ -f aim ] && [ ! -e aim.tmp-0123456789abcdef ] || fail 'a link, its file, or a leftover'
    run 0 train $quick --steps 9 --checkpoint kept --every 2 --keep 3
    for pair in kept:9 kept.1:8 kept.2:6; do
        grep -aqF "\"step\":\"${pair#*:}\"" "${pair%:*}" || fail "${pair%:*} is not at step ${pair#*:}"
    done
    [ ! -e kept.3 ] && [ ! -e kept.before ] || fail 'more than three checkpoints'
    run 0 train $quick --steps 3 --checkpoint timed --every 1ns --keep 3
    grep -aqF '"step":"1"' timed.2 || fail 'by the clock: not after every step'
    refuse 2 '--keep needs --checkpoint' train $quick --keep 2
    for bad in 0 -1 2x 0s; do refuse 2 'not a number of steps or a time' train $quick --checkpoint x --every "$bad"; done
}

# A budget with a disk tier: killed in mid-step, it leaves nothing behind but its checkpoint, which goes on to the bits of the
# unconstrained training. A file that cannot grow is an error with a text, and so is a full disk under a checkpoint.
# (The recipe's warm-up follows from the number of steps, which differs here.)
budgeted='resnet-cifar:1 --batch 8 --samples 64 --test-samples 8 --threads 1 --quiet --json --warmup 0 --effort low'
mkdir spill
# shellcheck disable=SC2086 # $budgeted is a list of options
{
    "$tidemark" train $budgeted --steps 100000000 --budget 50% --disk-path spill --checkpoint e.safetensors --every 2 >/dev/null 2>&1 &
    await e.safetensors
    kill -9 $!
    wait $! 2>/dev/null
    only_files spill
    steps=$(grep -ao '"step":"[0-9]*"' e.safetensors | tr -dc 0-9)
    run 0 train $budgeted --steps $((steps + 3))
    reference=$(bits)
    run 0 train $budgeted --steps $((steps + 3)) --budget 45% --disk-path spill --resume e.safetensors
    same_bits 'in a budget, after a kill'
    grep -q '"saved_bytes": 0' out && fail 'nothing went to disk'
    (ulimit -f 16 && run 6 train $budgeted --steps 2 --budget 50% --disk-path spill && err_has 'cannot' && exit $failures) || failures=$((failures + 1))
    only_files spill
    refuse 6 'not a regular file' train $budgeted --steps 1 --checkpoint /dev/full
    (ulimit -f 16 && refuse 6 'File too large' train $budgeted --steps 1 --checkpoint full && exit $failures) || failures=$((failures + 1))
    [ -z "$(ls -A | grep full)" ] || fail 'half a checkpoint is left'
}

# Other tools: every array in place, float32, finite.
if command -v python3 >/dev/null; then
    python3 - c.safetensors >read 2>&1 <<'END' || fail "Python: $(tail -1 read)"
import json, math, struct, sys

data = open(sys.argv[1], "rb").read()
(length,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8 : 8 + length])
body = data[8 + length :]
metadata = header.pop("__metadata__")
assert metadata["format"] == "tidemark-checkpoint" and int(metadata["step"]) > 0
assert (8 + length) % 8 == 0
at = 0
for name, array in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    begin, end = array["data_offsets"]
    assert array["dtype"] == "F32" and begin == at, name
    assert end - begin == 4 * math.prod(array["shape"]), name
    assert len(array["shape"]) == (1 if "bias" in name else 2 if "fc" in name else 4), name
    values = struct.unpack("<%df" % ((end - begin) // 4), body[begin:end])
    assert all(math.isfinite(v) for v in values) and (any(values) or "bias" in name), name
    at = end
assert at == len(body) and len(header) > 4
assert any(len(array["shape"]) == 4 for array in header.values())
assert any(name.endswith(".momentum") for name in header)
END
fi
finish
