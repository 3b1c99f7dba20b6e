#!/bin/bash
# Networks of four families on the stand-in for CUDA's driver (tests/cuda), under three budgets each: the same bits as
# without one, losses as on the CPU, and nothing that the stand-in finds wrong. Then the suites of devices and kernels.
# Skipped without the stand-in.
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
export TIDE_STANDIN_REPORT=$work/report

# The loss of a training without a budget, three digits of it.
loss_on() { # device, argument...
    local device=$1
    shift
    run 0 train "$@" --device "$device" --json
    sed -n 's/^ *"last_loss": \([0-9]*\.[0-9][0-9][0-9]\).*/\1/p' "$work/out" | head -1
}

train_under_budgets() { # argument...
    local loss share
    loss=$(loss_on cpu "$@" --steps 2 --test-samples 2 --quiet)
    if [ -z "$loss" ] || [ "$loss" != "$(loss_on cuda "$@" --steps 2 --test-samples 2 --quiet)" ]; then
        fail "$1: not the CPU's loss"
    fi
    for share in 90% 80% 70%; do
        run 0 train "$@" --steps 2 --test-samples 2 --quiet --device cuda --budget $share --verify-bits
        out_has ' yes'
        [ ! -s report ] || fail "the stand-in found: $(head -1 report)"
    done
}
train_under_budgets lenet --batch 4
train_under_budgets resnet-cifar:1 --batch 2
train_under_budgets unet:4 --batch 1 --input 1x16x16
train_under_budgets gpt2:2,32,4,16,256 --batch 2

for program in "device_test_conformance" "device_test_kernels cuda" "device_test_kernels_tokens cuda" "device_test_kernels_parts"; do
    # shellcheck disable=SC2086 # a program and its arguments
    "$build_dir"/tests/$program >"$work/log" 2>&1 || fail "$program: $(grep -m1 FAILED "$work/log")"
    [ ! -s report ] || fail "$program: the stand-in found: $(head -1 report)"
done
finish
