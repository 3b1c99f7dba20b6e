#!/bin/bash
# The memory of the process: see check_memory.py.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
# Sanitizers have memory of their own.
if grep -q 'TIDE_SANITIZE:STRING=.' "$build_dir/CMakeCache.txt"; then exit 77; fi
checks=1
python3 "$source_dir/tests/cli/check_memory.py" "$tidemark" "$work" quick || failures=1
finish
