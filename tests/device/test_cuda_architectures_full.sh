#!/bin/bash
# Every kernel compiles for every GPU that the CUDA device is for, as far as this nvcc knows it, as the library has it: PTX for
# the oldest, compiled for each. Prints what ptxas gives each kernel, and fails where one spills. Skipped without nvcc.
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
targets=()
for architecture in $(sed -n 's/^set(TIDE_CUDA_ARCHITECTURES \(.*\))/\1/p' "$source/cmake/cuda.cmake"); do
    if grep -qx "sm_$architecture" <<<"$known"; then
        targets+=(-gencode "arch=compute_75,code=sm_$architecture")
    else
        echo "left out: this nvcc does not know sm_$architecture"
    fi
done
[ ${#targets[@]} -gt 0 ] || { echo 'FAILED: this nvcc knows none of them'; exit 1; }

# "sm_80 multiply: 48 registers", and spills where there are some.
describe() {
    awk '/Compiling entry function/ { split($0, part, "\047"); kernel = part[2]; target = part[4] }
        /spill stores/ { spills = $5 + $9 }
        /Used [0-9]+ registers/ {
            match($0, /Used [0-9]+/)
            printf "%s %s: %s registers%s\n", target, kernel, substr($0, RSTART + 5, RLENGTH - 5), (spills > 0 ? ", SPILLS " spills : "")
        }' "$1"
}

failed=0
for file in "$kernels"/*.gpu; do
    case ${file##*/} in words_* | common.gpu | tile.gpu) continue ;; esac
    if ! "$nvcc" -x cu -std=c++17 -fmad=false -DLANES=256 -include "$kernels/words_cuda.gpu" \
        -include "$kernels/common.gpu" -include "$kernels/tile.gpu" "${targets[@]}" -fatbin -Xptxas -v \
        -o "$work/out.fatbin" "$file" >"$work/log" 2>&1; then
        cat "$work/log"
        echo "FAILED: ${file##*/}"
        failed=1
        continue
    fi
    describe "$work/log" | sort | tee "$work/kernels"
    if [ ! -s "$work/kernels" ] || grep -q SPILLS "$work/kernels"; then
        echo "FAILED: ${file##*/} spills, or ptxas said nothing"
        failed=1
    fi
done
exit $failed
