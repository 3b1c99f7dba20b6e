#!/bin/bash
# train: small networks for a few steps, under several policies, budgets and thread counts, to the same bits.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1
quick='--steps 3 --batch 4 --test-samples 8 --samples 64 --threads 1'
low="$quick --effort low" # where the plan is not the subject

bits() { sed -n 's/^ *"bits": "\([0-9a-f]*\)".*/\1/p' "$work/out" | sort -u; }
one() { [ "$(bits | wc -l)" = 1 ] || fail "$1: different bits"; }

# shellcheck disable=SC2086 # $quick is a list of options
{
    run 0 train lenet $quick --compare none,liveness --json
    one 'none and liveness'
    [ "$(grep -c '"same_bits": true' "$work/out")" = 2 ] || fail 'not reported as the same bits'
    reference=$(bits)
    run 0 train lenet $quick
    out_has 'liveness'
    err_has 'step 3/3'
    run 0 train lenet $quick --quiet
    err_empty
    run 0 train lenet $quick --verify-bits --quiet
    out_has '(reference)'
    out_has 'yes'
    run 0 train lenet $quick --quiet --bits any --record any.run
    out_has 'bits may differ'
    grep -q '"policy":"liveness",.*"bits":"any"' any.run || fail 'the record does not say that bits may differ'
    run 0 train lenet $quick --compare none,liveness --bits any --json
    out_has '"bits_may_differ": true'
    refuse 2 'leave --verify-bits out' train lenet $quick --bits any --verify-bits
    refuse 2 'is neither same nor any' train lenet $quick --bits some
    run 0 train lenet $quick --verify-bits --json
    out_has '"bits_may_differ": false'
    grep -q '"policy": "none"' "$work/out" || fail 'liveness is compared with itself'
    run 0 train lenet $quick --schedule cosine --warmup 1 --optimizer adamw --clip-norm 1 --accumulate 2 --compare none,liveness --json
    one 'a schedule'
    [ "$(bits)" != "$reference" ] || fail 'a schedule changes nothing'
    run 0 train lenet ${quick#* * } --epochs 2 --schedule step --decay-every 10 --json
    [ "$(json_number steps)" = 32 ] || fail 'two epochs of 64 samples, four at a time'
    mkdir plans
    run 0 train lenet $low --budget 70% --plan-cache plans --json
    [ "$(bits)" = "$reference" ] && [ -n "$(ls plans)" ] || fail 'no plan is kept, or other bits'
    run 0 train lenet $low --budget 70% --plan-cache plans --json
    [ "$(bits)" = "$reference" ] || fail 'other bits from a plan that was kept'
    grep -q '"order":"own"' plans/* || fail 'the plan keeps the order of the program'
    run 0 train lenet $low --budget 70% --order program --plan-cache plans --json
    [ "$(bits)" = "$reference" ] || fail 'other bits in the order of the program'
    [ "$(grep -L '"order"' plans/* | wc -l)" = 1 ] || fail '--order program reorders, or takes a plan that does'
    refuse 2 '--order: "any" is neither free nor program' train lenet $quick --order any
    refuse 2 '--order: "any" is neither free nor program' train lenet --data /nosuch --order any
    refuse 2 '--effort: "much" is neither' train lenet --data /nosuch --effort much
    # Micro-batches: two ways to say it, one result, under any budget.
    run 0 train resnet-cifar:1 ${low/ 4/ 8} --micro 2 --budget 60% --verify-bits --json
    one 'micro-batches'
    micro=$(bits)
    run 0 train resnet-cifar:1 ${low/ 4/ 2} --accumulate 4 --json
    [ "$(bits)" = "$micro" ] || fail 'accumulated, other bits'
    run 0 train resnet-cifar:1 ${low/ 4/ 8} --json
    [ "$(bits)" != "$micro" ] || fail 'batch norm goes by micro-batch'
    refuse 2 'a batch of 8 is no whole number of micro-batches of 3' train lenet --batch 8 --micro 3
    refuse 2 'leave one out' train lenet --micro 2 --accumulate 2
    refuse 2 'leave --micro out' fit lenet --micro 2
    refuse 6 'cannot use ./nosuch' train lenet $quick --plan-cache ./nosuch
    refuse 2 'are the same file' train lenet $quick --record x --checkpoint x
    refuse 2 '--checkpoint needs a file' train lenet $quick --checkpoint -
    refuse 2 '--threads is for device cpu' train lenet $quick --device opencl
    # A training that was to be recorded and followed no plan is there all the same.
    run 10 train lenet ${quick#* * } --steps 1 --mode auto --record r.run --json
    [ "$(json_number steps)" = 1 ] && [ ! -e r.run ] || fail 'no result of the training'
    err_has 'followed no plan'
    run 0 train lstm:1,8,4 $quick
    err_has 'tokens/s'
    run 0 train lenet $quick --seed 2 --json
    [ "$(bits)" != "$reference" ] || fail 'another seed, the same bits'
    run 0 train lenet $quick --json
    [ "$(bits)" = "$reference" ] || fail 'the same seed, other bits'

    # The budget named by the refusal works, one byte less does not, and the bits stay.
    run 4 train lenet $quick --policy liveness --budget 1000 --json
    needed=$(json_number needed_bytes)
    err_has "the smallest found to work is $needed"
    err_has 'the peak is at op "'
    out_has '"peak_op_name": "conv2.bwd-weights"'
    run 0 train lenet $quick --policy liveness --budget "$needed" --json
    [ "$(json_number arena_bytes)" = "$needed" ] || fail 'the arena is not the budget'
    [ "$(bits)" = "$reference" ] || fail 'a budget changed the bits'
    refuse 4 'does not fit' train lenet $quick --policy liveness --budget $((needed - 1))
    run 0 train lenet $quick --policy liveness --budget 100% --quiet
    refuse 4 'does not fit' train lenet $quick --policy liveness --budget 90%
    run 0 train lenet $low --budget 90% --verify-bits --quiet # hybrid, which a budget asks for
    out_has 'hybrid'

    # Swaps to RAM and disk and a re-run, decided by hand.
    cat >decisions.jsonl <<'END'
{"tidemark":"decisions","version":1}
{"swap":"pool1","tier":"ram","after":"conv2","before":"conv2.bwd-weights"}
{"swap":"relu3","tier":"disk","after":"fc2","before":"fc2.bwd-weights"}
{"rerun":"pool2","before":"fc1.bwd-weights"}
END
    mkdir spill
    run 0 train lenet $quick --policy manual --decisions decisions.jsonl --disk-path spill --no-disk-checksums --verify-bits --json
    one 'swaps'
    grep -q '"reruns": 1' "$work/out" || fail 'nothing was run again'
    [ "$(bits)" = "$reference" ] || fail 'swaps changed the bits'
    only_files spill
    refuse 6 'nosuch' train lenet $quick --policy manual --decisions decisions.jsonl --disk-path ./nosuch
    refuse 4 'of tier "disk"' train lenet $quick --policy manual --decisions decisions.jsonl --disk-budget 1

    # RAM too small for all that moves: both tiers are in use, within their budgets.
    for way in 'cache planned' 'delta online' 'cache auto'; do
        run 0 train resnet-cifar:1 $low --policy "${way% *}" --mode "${way#* }" --budget 70% --host-budget 512KiB \
            --disk-budget 4MiB --disk-path spill --verify-bits --json
        one "RAM and disk, $way"
        ram=$(sed -n 's/^ *"ram": \([0-9]*\),*$/\1/p' "$work/out" | tail -1)
        disk=$(sed -n 's/^ *"disk": \([0-9]*\),*$/\1/p' "$work/out" | tail -1)
        { [ "$ram" -gt 0 ] && [ "$disk" -gt 0 ]; } || fail "$way: ram $ram, disk $disk: not both are in use"
        { [ "$ram" -le 524288 ] && [ "$disk" -le 4194304 ]; } || fail "$way: ram $ram, disk $disk: over a budget"
        only_files spill
    done

    run 0 train resnet-cifar:1 $quick --compare none,liveness --json
    one 'resnet-cifar, one thread'
    run 0 train lenet ${quick% *} 2 --compare none,liveness --json
    one 'lenet, two threads'
}
# A loss that is not finite ends the training, before it reaches a checkpoint; a file saved before stays.
refuse 12 'the loss of step 2 is' train lenet --steps 3 --batch 4 --test-samples 8 --threads 1 --learning-rate 1e30 \
    --checkpoint diverged --every 2
[ ! -e diverged ] || fail 'a diverged training was saved'
refuse 12 'in a row whose gradients' train lenet --steps 30 --batch 4 --test-samples 8 --threads 1 --learning-rate 1e30 \
    --on-nan skip
refuse 2 '"go" is not stop or skip' train lenet --on-nan go
refuse 2 '--on-nan skip and --fused-update' train lenet --on-nan skip --fused-update

# What would only fail at the end is refused at the beginning, and a pipe is not waited for.
mkdir empty && mkfifo pipe
refuse 6 'cannot write ./nosuch/r.run' train lenet --record ./nosuch/r.run
refuse 6 'cannot write ./nosuch/c' train lenet --checkpoint ./nosuch/c
refuse 6 'it is not a regular file' train lenet --checkpoint pipe
refuse 6 'it is not a regular file' train lenet --checkpoint /dev/null
refuse 6 'it is not a regular file' train lenet --steps 1 --batch 2 --threads 1 --resume pipe
refuse 2 'known: mlp' train nosuch --record empty/r.run
only_files empty

refuse 2 'known: mlp' train nosuch
refuse 2 'there is no policy "nosuch"' train lenet --policy nosuch
refuse 2 'there is no policy "nosuch"' train lenet --compare none,nosuch
refuse 2 'there is no policy ""' train lenet --compare none,
refuse 2 'at most 8 policies' train lenet --compare none,liveness,cache,delta,dtr,autoswap,capuchin,checkpoint,hybrid
refuse 2 'policy "none" is listed twice' train lenet --compare none,liveness,none
refuse 2 'leave --policy out' train lenet --compare none --policy none
refuse 2 'leave --verify-bits out' train lenet --compare none --verify-bits
refuse 2 '--decisions is for policy manual' train lenet --decisions x
refuse 2 'needs a decisions file' train lenet --policy manual
# Data in files: a text by bytes, CIFAR-10's records, and what is neither.
for i in $(seq 60); do echo "line $i of a text that says the same again and again"; done >text.txt
head -c 61460 /dev/zero >zeros.bin # 20 records
run 0 train lstm:1,8,4 --data text.txt --steps 2 --batch 2 --test-samples 4 --threads 1 --compare none,liveness --json
one 'text from a file'
run 0 train resnet-cifar:1 --data ./zeros.bin --epochs 1 --batch 4 --threads 1 --json
[ "$(json_number steps)" = 5 ] || fail '18 samples, four at a time'
mkdir pictures # a folder of that name needs no ./ in front
refuse 3 'nor folders named by class' train lenet --data pictures
run 0 train resnet-cifar:1 --data ./zeros.bin --samples 19 --test-samples 99 --steps 1 --batch 4 --threads 1
err_has '--samples: there are 18, which are all taken'
err_has '--test-samples: there are 2, which are all taken'
# A line per step; a training that goes on appends to it and ends where it was to end.
run 0 train lenet --steps 4 --batch 4 --test-samples 8 --threads 1 --log run.jsonl --checkpoint log.safetensors --schedule cosine
grep -c '"loss":[0-9.]*,"rate":' run.jsonl | grep -qx 4 || fail 'not a line per step'
run 0 train lenet --steps 2 --batch 4 --test-samples 8 --threads 1 --log run.csv
[ "$(head -1 run.csv)" = policy,step,loss,rate,step_ns,wait_ns,arena_bytes,tier_bytes ] || fail 'the head of a CSV'
[ "$(wc -l <run.csv)" = 3 ] || fail 'not a line per step in a CSV'
run 0 report run.jsonl run.jsonl -o loss.html
grep -q '<path fill="none" stroke="#d55e00"' loss.html || fail 'no second curve'
# Resumed from an earlier step, with half a line at the end of the log: later steps replace those that were taken twice.
run 0 train lenet --batch 4 --test-samples 8 --threads 1 --steps 4 --checkpoint twice --every 2 --keep 2 --log twice.jsonl
truncate -s -9 twice.jsonl
run 0 report twice.jsonl -o loss.html
run 0 train lenet --batch 4 --test-samples 8 --threads 1 --resume twice.1 --log twice.jsonl
[ "$(sed -n 's/.*"step":\([0-9]*\),.*/\1/p' twice.jsonl | tr '\n' ' ')" = '1 2 3 3 4 ' ] || fail 'steps of a log that goes on'
mkfifo pipe
cat pipe >piped.jsonl &
run 0 train lenet --batch 4 --test-samples 8 --threads 1 --resume twice.1 --log pipe
wait $!
[ "$(wc -l <piped.jsonl)" = 3 ] || fail 'a log of a resumed training that goes into a pipe'
refuse 2 'shard all is for several ranks' train lenet --steps 1 --shard all
run 0 report twice.jsonl -o loss.html
grep -q '<td>4</td>' loss.html || fail 'steps that were taken twice count twice'
[ "$(grep -o 'd="[^"]*"' loss.html | head -1 | tr -dc ML)" = MLLL ] || fail 'the curve goes back'
# A log that cannot be written ends the training, saved.
mkfifo reader
(head -c 600 >/dev/null) <reader & # then nobody reads any more
refuse 6 'saved to unlogged' train lenet --batch 4 --test-samples 8 --threads 1 --steps 100 --log reader --checkpoint unlogged
err_has 'cannot write reader: Broken pipe'
grep -aq '"step":"[1-9]' unlogged || fail 'a training whose log cannot be written is lost'
# Nor does it end because nobody reads what it tells.
"$tidemark" train lenet --steps 50 --batch 4 --test-samples 8 --threads 1 --checkpoint unread 2>&1 | head -c 1 >/dev/null
grep -aq '"step":"50"' unread || fail 'a training whose messages nobody reads is lost'
printf '{"tidemark":"log","version":1,"model":"x","batch":1}\n{"step":1}\n' >bad.jsonl
refuse 3 'bad.jsonl:2: "step_ns" is missing' report bad.jsonl -o loss.html
refuse 2 'is no log' report run.jsonl run.csv -o loss.html
# What learns by default: the recipe of the family.
run 0 model gpt2:1,16,2,8,256 --json
out_has '"optimizer": "adamw"'
run 0 model gpt2:1,16,2,8,256
out_has 'adamw, rate 0.0006 per 32 samples (by the root of the batch), warm-up 500 steps, weight decay 0.1, clip norm 1'
run 0 train gpt2:1,16,2,8,256 --steps 2 --batch 4 --test-samples 8 --threads 1 --fused-update
run 0 train gpt2:1,16,2,8,256 --steps 20 --batch 8 --test-samples 8 --threads 1 --log rate.jsonl
sed -n 2p rate.jsonl | grep -q '"step":1,.*"rate":0.000100000' || fail 'no warm-up over a tenth of the steps'
sed -n 4p rate.jsonl | grep -q '"step":3,.*"rate":0.000300000' || fail 'the rate is not half of that for four times the batch'
refuse 3 'a text is for language models' train lenet --data text.txt
cp text.txt text.bin
refuse 3 'no whole number of records' train lenet --data text.bin
refuse 6 'cannot open ./nosuch' train lenet --data ./nosuch
refuse 2 'both say when to end' train lenet --steps 1 --epochs 1
refuse 2 'is not constant' train lenet --schedule nosuch
refuse 2 'go together' train lenet --schedule step
refuse 2 'go together' train lenet --decay-every 5
refuse 2 'share from 0 to 1' train lenet --decay-factor 2
refuse 2 'leave nothing' train lenet --schedule linear --steps 5 --warmup 5
refuse 2 'is not digits' train lenet --data mnist
refuse 2 'must fit a float' train lenet --learning-rate 1e300
refuse 2 'is not a whole number from 1' train lenet --steps 0
refuse 2 '10 classes' train lenet --classes 5
refuse 7 'available:' train lenet --device gpu
refuse 10 'no kernels' train lenet --device sim
refuse 2 'threads' train lenet --threads 100000
# On a terminal the progress is one line, however narrow: it never wraps.
for columns in 30 64 200; do
    python3 - "$tidemark" $columns >"$work/out" 2>"$work/err" <<'END' || fail "progress on a terminal of $columns columns"
import fcntl, os, pty, re, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[2]), 0, 0))
    os.execv(sys.argv[1], ["tidemark", "train", "lenet", "--steps", "3", "--batch", "2", "--test-samples", "2", "--threads", "1", "--budget", "90%", "--effort", "low"])
text = b""
try:
    while piece := os.read(fd, 4096):
        text += piece
except OSError:
    pass
lines = [re.sub("\x1b\\[K", "", l) for l in re.split("[\r\n]", text.decode()) if " step " in l]
print(lines)
sys.exit(not lines or any(len(l) >= int(sys.argv[2]) for l in lines if "re-runs" not in l))
END
done
# The whole process inside a number of bytes, which the system enforces. Sanitizers have memory of their own.
if ! grep -q '^TIDE_SANITIZE:STRING=.' "$build_dir/CMakeCache.txt"; then
    (
        ulimit -d $((112 * 1024)) || exit 77
        "$tidemark" train mlp:784,1024,1024,10 --batch 8 --threads 2 --steps 4 --test-samples 8 --total-budget 112MiB --effort low --quiet >"$work/out" 2>"$work/err"
    )
    code=$?
    [ $code = 0 ] || [ $code = 77 ] || fail "a training inside --total-budget ends with $code"
fi
run 2 train lenet --total-budget 192MiB --budget 1MiB
err_has 'instead of --budget'
run 2 train lenet --total-budget 8MiB
err_has 'MiB beside the arena'
finish
