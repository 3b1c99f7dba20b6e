#!/bin/bash
# Every kernel as PTX on the stand-in for CUDA's driver and as OpenCL C by PoCL, with the same number of lanes: the same bits,
# or within two units where a driver has its own exp or tanh. Skipped without either.
set -eu
failed=0
for program in device_test_kernels device_test_kernels_tokens; do
    status=0
    "$1/tests/$program" bits || status=$?
    [ $status -ne 77 ] || exit 77
    [ $status -eq 0 ] || failed=1
done
exit $failed
