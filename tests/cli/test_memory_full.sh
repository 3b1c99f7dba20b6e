#!/bin/bash
# The memory of the process: see check_memory.py.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
# Sanitizers have memory of their own.
if grep -q 'TIDE_SANITIZE:STRING=.' "$build_dir/CMakeCache.txt"; then exit 77; fi
checks=1
python3 "$source_dir/tests/cli/check_memory.py" "$tidemark" "$work" full || failures=1
# Two thousand ops inside a number of bytes for all of the process, which the system enforces.
if (
    ulimit -d $((192 * 1024)) || exit 0
    cd "$work" && run 0 train densenet121 --batch 8 --input 3x64x64 --threads 2 --steps 3 --test-samples 8 --total-budget 192MiB --effort low --quiet
    exit $failures
); then :; else fail 'a network of many ops inside --total-budget'; fi
finish
