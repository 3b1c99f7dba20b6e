#!/bin/bash
# model, plan, verify and simulate: on models and on files, on what fits and what does not, on files that are broken.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1

# ---- model ----
run 0 model lenet
out_has 'parameters         61706'
out_has 'peak load'
err_empty
run 0 model lenet --top 3
out_has '... and'
run 0 model resnet-cifar:3 --batch 8 --inference --machine a100
run 0 model lenet --device cpu
refuse 7 'available:' model lenet --device gpu
refuse 2 'known: mlp' model nosuch
refuse 2 'is not a number from 1' model mlp:
refuse 2 'is not a number from 1' model resnet-cifar:0
refuse 2 'choose one' model lenet --fused-update --clip-norm 1
refuse 2 'is not sgd, momentum, adam or adamw' model lenet --optimizer sdg
refuse 2 'known: default, ' model lenet --machine nosuch
refuse 6 'No such file' model lenet --machine ./nosuch.json
refuse 6 'No such file' model ./nosuch.jsonl
refuse 6 'is a folder' model .

# ---- a program file says the same as its model ----
mkdir files
run 0 model resnet-cifar:1 -o files/r.jsonl
run 0 model resnet-cifar:1 --json
peak=$(json_number peak_bytes)
run 0 model files/r.jsonl --json
[ "$(json_number peak_bytes)" = "$peak" ] || fail "the peak of the file is not that of the model"
run 0 plan resnet-cifar:1 -o files/model.plan
run 0 plan files/r.jsonl -o files/file.plan
same files/model.plan files/file.plan
only_files files r.jsonl model.plan file.plan

# ---- in parts ----
cat >parts.jsonl <<'END'
{"tidemark":"program","version":1,"kind":"one-shot"}
{"tensor":0,"name":"x","bytes":4096,"start":"client"}
{"tensor":1,"name":"y","bytes":4096}
{"tensor":2,"name":"z","bytes":64,"keep":true}
{"op":0,"name":"f","phase":"forward","reads":[0],"writes":[1],"cost":10,"split":{"units":4,"reads":["cut"],"writes":["cut"]}}
{"op":1,"name":"g","phase":"forward","reads":[1],"writes":[2],"cost":10,"split":{"units":4,"reads":["cut"],"writes":["cut"]}}
{"end":{"tensors":3,"ops":2,"carries":0}}
END
run 0 plan parts.jsonl --budget min --parts auto
out_has 'in 4 parts'
out_has '25.0 % of the unconstrained arena'
refuse 4 'no budget works below 2048' plan parts.jsonl --budget 1KiB --parts auto
refuse 6 'cannot write /nosuch/x' plan parts.jsonl --budget min --parts auto -o /nosuch/x

cp files/r.jsonl plain
refuse 2 'write ./plain' model plain
run 0 model ./plain
cp files/r.jsonl lenet
run 0 model lenet
out_has 'parameters         61706'
refuse 2 'does not fit an input' model lenet --input 1x1x1
run 0 plan vgg16 --batch 320 --machine k40c
out_has 'too large for it'
run 0 plan lenet --machine k40c --json
out_has '"exceeds_device": false'

# ---- -o is atomic ----
cp files/model.plan files/before
refuse 4 'does not fit' plan resnet-cifar:1 --budget 1 -o files/model.plan
same files/before files/model.plan
refuse 2 'known: none, liveness' plan resnet-cifar:1 --policy nosuch -o files/model.plan
same files/before files/model.plan
refuse 6 'cannot write' plan lenet -o ./nosuch/x.plan
mkdir files/folder
refuse 6 'cannot write files/folder' plan lenet -o files/folder
refuse 6 'cannot write files/folder' model lenet -o files/folder
only_files files r.jsonl model.plan file.plan before folder
if [ "$(id -u)" != 0 ]; then
    mkdir locked && chmod a-w locked
    refuse 6 'cannot write' plan lenet -o locked/x.plan
fi

# ---- does not fit: the message names a budget that works, and one byte less does not ----
for model in lenet resnet-cifar:1; do
    for policy in none liveness; do
        run 4 plan $model --policy $policy --budget 1000 --json
        needed=$(json_number needed_bytes)
        out_has '"fits": false'
        out_has '"peak_op_name": "'
        err_has "the smallest found to work is $needed"
        err_has 'the peak is at op "'
        run 0 plan $model --policy $policy --budget "$needed" -o fits.plan
        run 0 verify fits.plan $model --budget "$needed"
        refuse 4 "$needed" plan $model --policy $policy --budget $((needed - 1))
    done
done
run 0 plan lenet --budget 100% --order program
out_has '100.0 % of the unconstrained arena'
refuse 4 'does not fit' plan lenet --policy liveness --budget 99%

# Without RAM moves go to disk; without either there are none, which is told to programs, too.
run 0 plan resnet-cifar:1 --batch 8 --machine k40c --policy autoswap:swdoa --budget 50% --host-budget 1 --json
[ "$(json_number ram)" = 0 ] || fail 'RAM is used without a budget'
[ "$(json_number disk)" -gt 0 ] || fail 'disk is not used'
run 4 plan resnet-cifar:1 --batch 8 --machine k40c --policy autoswap:swdoa --budget 50% --host-budget 0 --disk-budget 0 --json
out_has '"fits": false'
out_has '"tier_full": false'
out_has '"reason": "'

# Where moves have room the smallest budget is what is proved to be needed; where they have not, the refusal says which
# tier is too small, and what would be enough: there, or in the arena.
run 0 plan lenet --machine k40c --budget min --effort low --json
least=$(json_number arena_bytes)
run 0 plan lenet --machine k40c --budget "$least" --effort low -o least.plan
run 0 verify least.plan lenet --machine k40c --budget "$least"
refuse 4 "no budget works below $least" plan lenet --machine k40c --budget $((least - 1))
run 4 plan lenet --machine k40c --budget "$least" --host-budget 500kB --disk-budget 0 --effort low --json
out_has '"tier_full": true'
out_has '"tier": "ram"'
out_has "\"bound_bytes\": $least"
err_has 'raise that tier'
needed=$(json_number needed_bytes)
enough=$(json_number tier_needed_bytes)
run 0 plan lenet --machine k40c --budget "$needed" --host-budget 500kB --disk-budget 0 --effort low
run 0 plan lenet --machine k40c --budget "$least" --host-budget "$enough" --disk-budget 0 --effort low
run 0 plan lenet --machine k40c --policy hybrid:nomove --budget min --effort low

# A machine is any file; the bound says what it is a bound of.
sed 's/"name": "k40c"/"name": "mine"/' "$source_dir/machines/k40c.json" >mine
run 0 plan lenet --machine mine --budget 60%
out_has 'machine mine'
out_has 'no plan for this budget is faster'
run 0 plan resnet-cifar:2 --batch 8 --budget 80% --policy hybrid:nomove
out_has 'no plan without moves for this budget'
refuse 2 'no file and no machine profile named' plan lenet --machine nosuch

# ---- decisions ----
cat >swap.jsonl <<'END'
{"tidemark":"decisions","version":1}
{"swap":"pool1","tier":"ram","after":"conv2","before":"conv2.bwd-weights"}
END
run 0 plan lenet --policy manual --decisions swap.jsonl -o swap.plan --json
[ "$(json_number saves)" = 1 ] || fail 'one swap is one save'
saved=$(json_number saved_bytes)
run 0 verify swap.plan lenet
run 0 simulate swap.plan lenet
out_has 'in 1 saves'
run 0 plan lenet --policy manual --decisions swap.jsonl --host-budget "$saved"
refuse 4 'of tier "ram"' plan lenet --policy manual --decisions swap.jsonl --host-budget $((saved - 1))
run 4 plan lenet --policy manual --decisions swap.jsonl --host-budget $((saved - 1)) --json
out_has '"tier_full": true'
run 0 verify swap.plan lenet --host-budget "$saved" --disk-budget 0
run 5 verify swap.plan lenet --host-budget $((saved - 1))
out_has 'rule budget'
refuse 2 'needs a decisions file' plan lenet --policy manual
refuse 6 'No such file' plan lenet --policy manual --decisions nosuch
echo '{"swap":"nosuch","tier":"ram","after":"conv2"}' >>swap.jsonl
refuse 3 'swap.jsonl:3: swap: the program has no tensor "nosuch"' plan lenet --policy manual --decisions swap.jsonl
refuse 3 'files/r.jsonl:1: not a decisions file' plan lenet --policy manual --decisions files/r.jsonl

# ---- verify and simulate ----
run 0 verify files/model.plan resnet-cifar:1
out_has 'valid:'
err_empty
run 0 verify files/model.plan files/r.jsonl --json
out_has '"valid": true'
run 5 verify files/model.plan lenet
out_has 'rule program'
run 5 verify files/model.plan resnet-cifar:1 --batch 8
out_has 'rule program'
run 5 verify files/model.plan resnet-cifar:1 --machine k40c
out_has 'rule machine'
run 5 verify files/model.plan resnet-cifar:1 --budget 1MiB --json
out_has '"rule": "budget"'
run 5 verify files/model.plan resnet-cifar:1 --budget 50%
run 0 verify files/model.plan resnet-cifar:1 --budget 100%
refuse 2 'standard input is either' verify - -
run 0 simulate files/model.plan resnet-cifar:1
out_has 'step time'
refuse 5 'rule program' simulate files/model.plan lenet
refuse 2 'unknown option --budget' simulate files/model.plan lenet --budget 1

# ---- broken files ----
sed 's/"offset":[1-9][0-9]*/"offset":64/' files/model.plan >edited.plan
refuse 3 'the file was changed' verify edited.plan resnet-cifar:1
refuse 3 'edited.plan:' simulate edited.plan resnet-cifar:1
sed 's/"version":2/"version":5/' files/model.plan >version.plan
refuse 3 'version.plan:1: version 5' verify version.plan resnet-cifar:1
sed '$d' files/model.plan >short.plan
refuse 3 'cut short' verify short.plan resnet-cifar:1
refuse 3 'not a plan file' verify files/r.jsonl resnet-cifar:1
refuse 6 'No such file' verify nosuch.plan lenet
refuse 3 ':1:' plan ./files/model.plan

lines=$(wc -l <files/r.jsonl)
sed '$d' files/r.jsonl >short.jsonl
refuse 3 "short.jsonl:$((lines - 1)): the file is cut short" model short.jsonl
head -c 1000 files/r.jsonl >middle.jsonl
refuse 3 "middle.jsonl:$(wc -l <middle.jsonl | awk '{ print $1 + 1 }'):" model middle.jsonl
: >empty.jsonl
refuse 3 'empty.jsonl:1:' model empty.jsonl
head -c 5000 /dev/zero >zeros.jsonl
refuse 3 'zeros.jsonl:1:' model zeros.jsonl
sed '3s/"bytes":[0-9]*/"bytes":99999999999999999999/' files/r.jsonl >huge.jsonl
refuse 3 'huge.jsonl:3:' plan huge.jsonl
sed '2s/"bytes"/"bites"/' files/r.jsonl >key.jsonl
refuse 3 'key.jsonl:2:' plan key.jsonl

# Names from a file cannot talk to the terminal (run checks the output).
cat >names.jsonl <<'END'
{"tidemark":"program","version":1,"name":"\u001b[31mred\u0007","kind":"one-shot"}
{"tensor":0,"name":"\u001b]0;title\u0007","bytes":64,"start":"present","keep":true}
{"tensor":1,"name":"a\rb","bytes":64}
{"op":0,"name":"\u001b[2J","phase":"forward","reads":[0],"writes":[1],"cost":5}
{"end":{"tensors":2,"ops":1,"carries":0}}
END
run 0 model names.jsonl
run 0 model names.jsonl --json
run 0 plan names.jsonl
refuse 4 'does not fit' plan names.jsonl --budget 1

# A program without ops is a program.
printf '%s\n' '{"tidemark":"program","version":1,"kind":"one-shot"}' '{"end":{"tensors":0,"ops":0,"carries":0}}' >none.jsonl
run 0 model none.jsonl
run 0 plan none.jsonl
finish
