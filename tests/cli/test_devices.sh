#!/bin/bash
# devices: the list, and a measured profile that the other commands take.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1

run 0 devices
out_has 'cpu '
out_has 'can train'
err_empty
run 0 devices --device cpu --threads 1
out_has '1 thread,'
run 0 devices --json
out_has '"name": "cpu"'
refuse 7 'available: cpu' devices --device gpu
refuse 10 'no kernels' devices --device sim --measure
refuse 6 'nosuch' devices --measure --threads 1 --disk-path ./nosuch -o here.json
[ ! -e here.json ] || fail 'a failed measurement left a file'

mkdir disk
run 0 devices --measure --threads 1 --disk-path disk -o here.json
out_has 'machine cpu, measured'
out_has 'float32 peak'
err_has 'measuring: convolutions'
only_files disk
run 0 plan lenet --machine here.json --json
out_has '"machine_source": "measured"'
# Where the figures go is looked at before anything is measured.
refuse 6 'cannot write ./nosuch/m.json' devices --measure -o ./nosuch/m.json
grep -q measuring "$work/err" && fail 'measured in vain'
refuse 6 '--disk-path: cannot use ./nosuch' devices --measure --disk-path ./nosuch
finish
