#!/bin/bash
# The CUDA device by the command, where TIDE_CUDA_LIBRARY is the stand-in for the driver (tests/cuda): what is missing or
# too old is one line, an error of the driver has the op's name. Skipped elsewhere.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1
case ${TIDE_CUDA_LIBRARY-} in
*standin*) ;;
*) echo 'skipped: TIDE_CUDA_LIBRARY is no stand-in'; exit 77 ;;
esac
if "$tidemark" devices --device cuda 2>&1 | grep -q 'no device "cuda"'; then
    echo 'skipped: built without CUDA'
    exit 77
fi
small='--batch 2 --steps 1 --test-samples 2 --quiet'

run 0 devices --device cuda
out_has 'compute capability'
TIDE_STANDIN_DEVICES=2 run 0 devices --device cuda:1
TIDE_STANDIN_DEVICES=2 run 0 devices --device cuda:GPU-10111213-14
TIDE_STANDIN_DEVICES=2 run 0 devices --device cuda:MIG-1011
TIDE_STANDIN_DEVICES=2 refuse 7 '"cuda:GPU-ff" is no GPU here' devices --device cuda:GPU-ff
TIDE_STANDIN_DEVICES=2 refuse 7 'no device "cuda:2": CUDA has 2 here, counted from 0' devices --device cuda:2
TIDE_STANDIN_DEVICES=0 refuse 7 'CUDA has a driver but no GPU here' devices --device cuda
TIDE_STANDIN_VERSION=12040 refuse 7 'too old: it is for CUDA 12.4' train lenet --device cuda
TIDE_STANDIN_CAPABILITY=61 refuse 7 'compute capability 6.1, the kernels need 7.5' train lenet --device cuda
TIDE_STANDIN_FAIL=cuDevicePrimaryCtxRetain:1+:2 refuse 7 'is full, there is no memory for a context' devices --device cuda

# shellcheck disable=SC2086 # $small is a list of options
{
    TIDE_STANDIN_MEMORY=16777216 run 9 train lenet --device cuda --batch 1024 --steps 1 --quiet
    err_has 'are free'
    TIDE_CUDA_SYNC=1 TIDE_STANDIN_FAIL=cuEventSynchronize:60:700 run 7 train lenet --device cuda $small
    err_has 'CUDA cannot complete its ops: CUDA_ERROR_ILLEGAL_ADDRESS (700), with '
    TIDE_STANDIN_FAIL=cuLaunchKernel:9:700 run 7 train lenet --device cuda $small
    err_has 'CUDA cannot launch '
    err_has 'ops under way, the last of them '
}
finish
