#!/bin/bash
# train --weights and --save-weights, and predict: what a training learned is there in another process; what does not fit is
# listed. Images from files are in test_pictures.sh.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1
quick='--batch 16 --samples 512 --test-samples 16 --threads 1 --quiet'

# shellcheck disable=SC2086 # $quick is a list of options
{
    run 0 train lenet $quick --steps 60 --save-weights w.safetensors --checkpoint c.safetensors
    only_files . c.safetensors err out w.safetensors
    run 0 predict lenet --weights w.safetensors --samples 16 --top 1 --threads 1
    [ "$(grep -cE '^sample [0-9]+ \(is ([0-9])\): \1 ' out)" -ge 12 ] || fail 'fewer than 12 of 16 digits are right'
    cp out from_weights
    run 0 predict lenet --weights c.safetensors --samples 16 --top 1 --threads 1
    same out from_weights
    run 0 predict lenet --weights c.safetensors --samples 16 --top 1 --threads 1 --budget min
    same out from_weights
    run 0 predict lenet --weights w.safetensors --samples 1 --top 2 --json
    python3 -c 'import json; p = json.load(open("out"))["predictions"]; assert len(p) == 1 and len(p[0]["classes"]) == 2' ||
        fail 'not the JSON it should be'
    printf 'zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n' >names
    run 0 predict lenet --weights w.safetensors --samples 1 --top 10 --labels names
    out_has '4 four'

    # A training that begins with weights is already good; the list of what does not fit names arrays and shapes.
    run 0 train lenet $quick --steps 1 --weights w.safetensors --json --learning-rate 0
    awk -v a="$(json_number accuracy)" 'BEGIN { exit !(a >= 0.7) }' || fail 'the weights are not those that were saved'
    refuse 3 'fc3.weight is 10 x 84 in the file, 7 x 84 in the model' predict lenet --classes 7 --data digits --weights w.safetensors
    err_has 'of its arrays 0 are missing, 0 unexpected and 2 of another shape'
    refuse 3 'missing: layer1.0.conv1.weight (16 x 16 x 3 x 3)' train resnet-cifar:1 $quick --steps 1 --weights w.safetensors
    err_has 'unexpected: fc1.bias (120)'
    run 0 train mlp:784,120,10 $quick --steps 1 --weights w.safetensors --partial-weights
    err_has 'another shape: fc2.weight is 84 x 120 in the file, 10 x 120 in the model'
    refuse 2 'leave --weights out' train lenet $quick --resume c.safetensors --weights w.safetensors
    refuse 2 '--partial-weights needs --weights' train lenet $quick --partial-weights
    refuse 2 'is for one training' train lenet $quick --save-weights x --verify-bits
    refuse 2 'are the same file' train lenet $quick --save-weights x --checkpoint x
    refuse 6 'cannot open' train lenet $quick --weights ./nosuch
    refuse 2 'predict needs --weights' predict lenet
    refuse 2 'takes images, not a text' predict lenet --weights w.safetensors --prompt x
    refuse 6 '--labels: cannot open' predict lenet --weights w.safetensors --labels nosuch

    # A vocabulary whose rows do not lie on multiples of what a device reads is judged like any other.
    run 0 train gpt2:1,8,2,16,50257 --batch 1 --steps 1 --test-samples 1 --quiet

    # Text, by bytes or by the numbers of tokens.
    run 0 train gpt2:1,32,2,16 $quick --steps 30 --checkpoint g.safetensors
    run 0 predict gpt2:1,32,2,16 --weights g.safetensors --prompt 'the dog' --tokens 20 --threads 1
    grep -q '^the dog' out || fail 'the text does not begin with its prompt'
    cp out first
    run 0 predict gpt2:1,32,2,16 --weights g.safetensors --prompt 'the dog' --tokens 20 --threads 1
    same out first
    run 0 predict gpt2:1,32,2,16 --weights g.safetensors --ids 116,104,101 --tokens 4 --temperature 0 --threads 1
    grep -qE '^116,104,101(,[0-9]+){4}$' out || fail 'not seven tokens'
    refuse 2 'does not begin with a number below 256' predict gpt2:1,32,2,16 --weights g.safetensors --ids 1,256
    refuse 2 'or tokens by --ids' predict gpt2:1,32,2,16,300 --weights g.safetensors --partial-weights --prompt x
    refuse 2 'takes a text' predict gpt2:1,32,2,16 --weights g.safetensors x.png
}
refuse 6 'nosuch/vocab.json' train gpt2:1,16,1,8 --data ./text --tokenizer nosuch --steps 1
refuse 2 '--tokenizer is for language models' train lenet --tokenizer . --steps 1

finish
