#!/bin/bash
# train --drop-path and --min-length: networks that change from step to step, under budgets and after a stop, to the same
# bits.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1
quick='--batch 4 --test-samples 8 --samples 64 --threads 1 --effort low --quiet --json'
resnet='resnet-cifar:2 --drop-path 0.6'
gpt2='gpt2:2,16,2,12 --min-length 3'
bits() { sed -n 's/^ *"bits": "\([0-9a-f]*\)".*/\1/p' "$work/out" | sort -u; }
one() { [ "$(bits | wc -l)" = 1 ] || fail "$1: different bits"; }
same_bits() { [ "$(bits)" = "$reference" ] || fail "$1: other bits"; }

# shellcheck disable=SC2086 # these are lists of options
{
    # What cannot change trains as ever.
    run 0 train resnet-cifar:2 $quick --steps 3
    reference=$(bits)
    run 0 train resnet-cifar:2 --drop-path 0 $quick --steps 3
    same_bits 'no block left out'
    run 0 train resnet-cifar:2 --drop-path 1 $quick --steps 3
    [ "$(bits)" != "$reference" ] || fail 'blocks left out, the same bits'
    run 0 train gpt2:2,16,2,12 $quick --steps 3
    reference=$(bits)
    run 0 train gpt2:2,16,2,12 --min-length 12 $quick --steps 3
    same_bits 'one length'

    # Under a budget, planned where a network comes up again or online all the way.
    run 0 train $resnet $quick --steps 6 --budget 60% --verify-bits
    one 'stochastic depth in a budget'
    grep -q '"saved_bytes": [1-9]' "$work/out" || grep -q '"reruns": [1-9]' "$work/out" || fail 'nothing had to leave'
    run 0 train $gpt2 $quick --steps 6 --budget 60% --verify-bits
    one 'lengths in a budget'
    run 0 train $gpt2 $quick --steps 6 --budget 60% --mode online --verify-bits
    one 'lengths in a budget, online'
    run 0 train lstm:1,8,6 --min-length 2 $quick --steps 6 --budget 70% --verify-bits
    one 'lengths of an LSTM'

    # A stop in between changes nothing; another way to change is refused.
    run 0 train $resnet $quick --steps 6
    reference=$(bits)
    run 0 train $resnet $quick --steps 2 --budget 80% --checkpoint c.safetensors
    run 0 train $resnet $quick --steps 6 --resume c.safetensors
    same_bits 'resumed'
    run 0 train $resnet $quick --steps 6 --budget 70% --resume c.safetensors
    same_bits 'resumed in a budget'
    refuse 3 'in another way, or not at all' train resnet-cifar:2 $quick --steps 6 --resume c.safetensors
    refuse 3 'in another way, or not at all' train resnet-cifar:2 --drop-path 0.1 $quick --steps 6 --resume c.safetensors

    # In a folder of plans: the next training begins with them.
    mkdir plans
    run 0 train resnet-cifar:1 --drop-path 0.5 $quick --steps 8 --budget 70% --plan-cache plans
    [ "$(ls plans | wc -l)" -ge 1 ] || fail 'no plan was kept'
    run 0 train resnet-cifar:1 --drop-path 0.5 $quick --steps 8 --budget 70% --plan-cache plans --verify-bits
    one 'plans from a folder'
    run 0 train resnet-cifar:1 $quick --steps 4 --budget 50% --plan-cache plans --verify-bits
    one 'a plan from measured costs'
    refuse 6 '--plan-cache: cannot use nosuch' train lenet $quick --plan-cache nosuch
    refuse 2 'leave --mode online out' train lenet $quick --plan-cache plans --mode online
}
refuse 2 'is a probability' train resnet18 --drop-path 1.5
refuse 2 'has no residual blocks' train lenet --drop-path 0.5
refuse 2 'the context of gpt2:2,16,2,12 is 12' train gpt2:2,16,2,12 --min-length 13
refuse 2 'takes images' train lenet --min-length 2
refuse 2 'for ResNets' train lenet --min-length 2 --drop-path 0.1
refuse 2 'leave --drop-path out' train resnet-cifar:1 --drop-path 0.1 --accumulate 2
refuse 2 'leave --drop-path out' train resnet-cifar:1 --drop-path 0.1 --budget min
finish
