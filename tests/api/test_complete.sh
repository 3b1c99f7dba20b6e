#!/bin/bash
# Every public function that returns a status stands in the table of tests/api/test_arguments.c.
set -eu
source_dir=$2
missing=0
for name in $(cat "$source_dir"/include/tidemark/*.h | grep -oE 'TIDE_API tide_status tide_[a-z0-9_]+' | awk '{ print $3 }'); do
    if ! grep -q "CALL($name(" "$source_dir/tests/api/test_arguments.c"; then
        echo "$name is not in the table of tests/api/test_arguments.c"
        missing=1
    fi
done
exit $missing
