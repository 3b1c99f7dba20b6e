#!/bin/bash
# Every kernel as PTX on the stand-in for CUDA's driver and as OpenCL C by PoCL, with the same number of lanes: the same bits.
# Nor does a kernel take an approximation of the hardware's for a float, but pow() of LRN. Skipped without either.
set -eu
failed=0
if grep -ls 'approx.*\.f32' "$1"/cuda/*.ptx | grep -v '/layers\.ptx$'; then
    echo 'FAILED: approximations of the hardware'
    failed=1
fi
for program in device_test_kernels device_test_kernels_tokens; do
    status=0
    "$1/tests/$program" bits || status=$?
    [ $status -ne 77 ] || exit 77
    [ $status -eq 0 ] || failed=1
done
exit $failed
