#!/bin/bash
# Every block of code in the documents runs, compiles or parses: check_blocks.py says how. test_docs.sh compares what the
# console blocks print. test_blocks_full.sh leaves commands as they are printed.
set -eu
build_dir=$1
source_dir=$2
if grep -q '^TIDE_SANITIZE:STRING=.' "$build_dir/CMakeCache.txt"; then
    echo "skipped: the documents are the same in every build, and slow in this one"
    exit 77
fi
PYTHONDONTWRITEBYTECODE=1 exec python3 "$source_dir/tests/cli/check_blocks.py" "$build_dir" "$source_dir" "${TIDE_BLOCKS:-low}"
