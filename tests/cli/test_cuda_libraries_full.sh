#!/bin/bash
# The self-test of the CUDA device with cuBLAS and cuDNN, by stand-ins for all three (tests/cuda): libraries that pass are used
# from then on, to the same bits under a budget; libraries that give other bits when run again are not. Without them weights are those that
# docs/cuda.md tells owners of GPUs, through OpenCL as well. Skipped elsewhere.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1
case ${TIDE_CUDNN_LIBRARY-} in
*standin*) ;;
*) echo 'skipped: TIDE_CUDNN_LIBRARY is no stand-in'; exit 77 ;;
esac
export TIDE_STANDIN_REPORT=$work/report XDG_CACHE_HOME=$work/cache
mkdir cache
records() { find cache -name '*.bin' | wc -l; }

TIDE_STANDIN_UNSTEADY=1 run 7 devices --selftest --device cuda -o unsteady.txt
grep -q 'FAIL .*cuDNN.*other bits when run again' unsteady.txt || fail 'an unsteady library passed'
grep -q 'they are not used' unsteady.txt || fail 'an unsteady library is used'
same_weights() { # TEXT: a self-test by kernels of our own
    local hash
    hash=$(sed -n 's/.* weights \([0-9a-f]\{16\}\)$/\1/p' "$1")
    grep -q "hash \`$hash\`" "$source_dir/docs/cuda.md" || fail "docs/cuda.md has other weights than \"$hash\""
}
same_weights unsteady.txt
if "$tidemark" devices --device opencl >/dev/null 2>&1; then
    TIDE_OPENCL_LANES=256 TIDE_OPENCL_PRODUCTS=own run 0 devices --selftest --device opencl -o opencl.txt
    same_weights opencl.txt
fi
run 0 train lenet --device cuda --batch 4 --steps 1 --test-samples 2 --quiet
rm -rf cache/tidemark

run 0 devices --selftest --device cuda -o selftest.txt
for line in 'ok .*cuBLAS ' 'ok .*cuBLAS, TF32' 'ok .*cuDNN ' 'ok .*cuDNN, TF32' 'ok    they are used from now on' \
    'product: ours .* of cuBLAS' 'convolution: ours .* of cuDNN'; do
    grep -q "$line" selftest.txt || fail "no line of $line"
done
before=$(records)
run 0 train lenet --device cuda --batch 4 --steps 2 --test-samples 2 --quiet --budget 80% --verify-bits
out_has ' yes'
[ "$(records)" -gt "$before" ] || fail 'no times were kept: libraries were not used'
[ ! -s report ] || fail "the stand-in found: $(head -1 report)"
finish
