#!/bin/bash
# devices --selftest: on the devices that are here it passes and says nothing personal; what it is not for is refused.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1

run 0 devices --selftest --measure --threads 1
cp out measured.txt
sed -n '/^{$/,/^}$/p' measured.txt >here.json
sed -i '/^machine$/,/^}$/d' out # what follows counts and compares all other parts
passed=$(grep -c '^  ok  ' "$work/out")
[ "$passed" -ge 46 ] || fail "only $passed checks"
out_has 'device   cpu: '
out_has 'the same bits'
out_has 'GFLOP/s'
out_has "$((passed + 1)) checks passed, 0 failed"
run 0 plan lenet --machine here.json --json
out_has '"machine_source": "measured"'

if "$tidemark" devices --device opencl >/dev/null 2>&1; then
    run 0 devices --selftest --device opencl -o opencl.txt
    grep -q "^$passed checks passed, 0 failed" opencl.txt || fail 'opencl failed, or has other checks'
    for personal in "$(uname -n)" "$work" "$HOME/"; do
        if grep -qF -- "$personal" opencl.txt; then fail "the text has $personal in it"; fi
    done
fi

refuse 10 'no kernels to test' devices --selftest --device sim
refuse 6 'cannot write ./nosuch/t.txt' devices --selftest -o ./nosuch/t.txt
refuse 2 'goes without' devices --selftest --json
finish
