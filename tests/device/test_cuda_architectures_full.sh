#!/bin/bash
# Every kernel compiles for every GPU that the CUDA device is for, as far as this nvcc knows it, and keeps its numbers in
# registers: more than a few bytes of spills would go through memory all the time. Skipped without nvcc.
set -eu
build=$1 source=$2
nvcc=$(sed -n 's/^NVCC:FILEPATH=//p' "$build/CMakeCache.txt")
if [ -z "$nvcc" ] || [ ! -x "$nvcc" ]; then
    echo 'skipped: no nvcc'
    exit 77
fi
kernels=$source/src/device/gpu/kernels
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
known=$("$nvcc" --list-gpu-code)
architectures=$(sed -n 's/^set(TIDE_CUDA_ARCHITECTURES \(.*\))/\1/p' "$source/cmake/cuda.cmake")
failed=0 compiled=0
for architecture in $architectures; do
    if ! grep -qx "sm_$architecture" <<<"$known"; then
        echo "left out: this nvcc does not know sm_$architecture"
        continue
    fi
    for file in "$kernels"/*.gpu; do
        case ${file##*/} in words_* | common.gpu | tile.gpu) continue ;; esac
        if ! "$nvcc" -x cu -std=c++17 -fmad=false -DLANES=256 -include "$kernels/words_cuda.gpu" \
            -include "$kernels/common.gpu" -include "$kernels/tile.gpu" -arch="sm_$architecture" -cubin \
            -Xptxas -v -o "$work/out.cubin" "$file" >"$work/log" 2>&1; then
            cat "$work/log"
            echo "FAILED: ${file##*/} for sm_$architecture"
            failed=1
        elif grep -E '(1[7-9]|[2-9][0-9]|[0-9]{3,}) bytes spill' "$work/log"; then
            echo "FAILED: ${file##*/} spills on sm_$architecture"
            failed=1
        fi
        compiled=$((compiled + 1))
    done
done
echo "$compiled files compiled"
[ "$compiled" -gt 0 ] || failed=1
exit $failed
