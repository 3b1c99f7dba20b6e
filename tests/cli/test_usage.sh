#!/bin/bash
# How the command is spoken to: help, versions, wrong words, options and sizes; and what it does with stdout.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"

commands='model plan simulate verify import replay devices train'

run 0 --help
for command in $commands; do out_has "  $command "; done
out_has 'exit codes:'
cp "$work/out" "$work/usage"
run 0 help
same "$work/out" "$work/usage"
refuse 2 'usage: tidemark COMMAND'
run 0 --version
out_has 'tidemark '
refuse 2 'there is no command "trian"' trian lenet
refuse 2 'there is no command ""' ''

# Every command: help on stdout, an option nobody knows, one too many, one too few.
for command in $commands; do
    run 0 "$command" --help
    out_has "usage: tidemark $command"
    out_has '--json'
    err_empty
    refuse 2 'unknown option --frobnicate' "$command" --frobnicate
    refuse 2 "usage: tidemark $command" "$command" --frobnicate
    refuse 2 '--json is given twice' "$command" --json --json
    refuse 2 '--json takes no value' "$command" --json=yes
    refuse 2 'unexpected argument' "$command" a b c
done
for command in model plan simulate verify import replay train; do refuse 2 'an argument is missing' "$command"; done
refuse 2 '-o needs FILE' plan lenet -o
refuse 2 'unknown option -x' plan lenet -x
refuse 2 '--budget is given twice' plan lenet --budget 1GB --budget 2GB
run 0 plan --machine=k40c --budget=1GiB -- lenet
refuse 6 'cannot open ./--json' model -- ./--json

# Numbers.
for bad in '' 0 -1 1.5 x 4294967295 99999999999999999999 '1 ' ' 1' 0x10; do
    refuse 2 'is not a whole number from 1 to 4294967294' model lenet --batch "$bad"
done
for bad in '' -1 nan inf 1e400 1,5 0x1p3; do refuse 2 'is not a number' model lenet --weight-decay "$bad"; done
refuse 2 'must fit a float' model lenet --weight-decay 1e200
refuse 2 'is not CxHxW' model lenet --input 28x28
refuse 2 'is not CxHxW' model lenet --input 1x28x28x1
refuse 2 'is not CxHxW' model lenet --input 1x0x28
refuse 3 'too large' model lenet --batch 4294967294
refuse 2 'is not a time such as' import x --iteration-time 5
refuse 2 'is not a time such as' import x --iteration-time 5mins

# Sizes. The budget is far beyond what lenet needs, so a good one always fits.
for good in 2232588 512MiB 4GB 100% 60000kB 60000KB 60000KiB 1GiB 1TB 1TiB 0.5GiB 2G 512m 2gib 1e9 99999999B 250.5% 1e300% 9000000TB; do
    run 0 plan lenet --budget "$good"
done
for bad in '' nonsense -5 -5% 5% % MiB 12gi '1 GiB' 5XB 5MiBs nan inf 1e400 99999999999GB 18446744073709551616 0x10 ++1; do
    case $bad in
    5%) refuse 4 'does not fit' plan lenet --budget "$bad" ;;
    *) refuse 2 'is not a size such as 512MiB, 4GB or 60%' plan lenet --budget "$bad" ;;
    esac
done

# min: half a percent less does not work.
run 0 plan lenet --policy delta --budget min --json
smallest=$(json_number arena_bytes)
refuse 4 'does not fit' plan lenet --policy delta --budget $((smallest * 99 / 100))
run 0 explain lenet --policy delta --budget min
run 0 report lenet --policy delta --budget min --terminal
out_has 'policy delta'
refuse 2 'is not a size such as 512MiB, 4GB or 60%' plan lenet --host-budget min
refuse 2 'is not a size such as' fit lenet --budget min

# Options that would have no effect are refused.
refuse 2 '--decisions is for --policy manual' plan lenet --decisions d.jsonl
refuse 2 '--batch is for models' plan ./program.jsonl --batch 4
refuse 2 '--device is for models' model ./program.jsonl --device cpu
refuse 2 '-o for --measure and --selftest' devices -o x.json
refuse 2 'both want standard output' plan lenet -o - --json
refuse 2 'is neither same nor any' plan lenet --bits some

# stdout: a file on "-" comes alone, and a full disk is noticed.
run 0 model lenet -o -
head -1 "$work/out" | grep -q '^{"tidemark":"program"' || fail 'the first line is not that of a program file'
tail -1 "$work/out" | grep -q '^{"end"' || fail 'something follows the program on stdout'
"$tidemark" model lenet -o - | "$tidemark" plan - >"$work/out" 2>"$work/err" || fail 'a program through a pipe'
if [ -w /dev/full ]; then
    code=0
    "$tidemark" model lenet >/dev/full 2>"$work/err" || code=$?
    [ $code = 6 ] || fail "exit code $code on a full stdout, expected 6"
    err_has 'cannot write standard output'
fi
NO_COLOR=1 run 0 plan lenet
# What was meant.
refuse 2 'there is no command "tarin"; did you mean train?' tarin lenet
refuse 2 'unknown option --bugdet; did you mean --budget?' plan lenet --bugdet 1G
refuse 2 'did you mean resnet50?' model resnet5O
refuse 2 'there is no policy "hybird"; did you mean hybrid?' train lenet --policy hybird
run 0 help train
out_has 'usage: tidemark train MODEL'
finish
