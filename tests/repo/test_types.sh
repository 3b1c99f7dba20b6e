#!/bin/bash
# No two types of the library share a name, wherever they are defined. The check proves itself on a planted pair first.
set -eu
source_dir=$2

# Names that are defined more than once below $1.
doubles() {
    find "$1" -name '*.[ch]' -exec grep -hoE '^\} tide_[a-z0-9_]+;' {} + | sort | uniq -d
}

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
printf 'typedef struct tide__a {\n    int i;\n} tide__a;\n' | tee "$planted/a.h" >"$planted/b.h"
printf 'typedef struct tide__b {\n    int i;\n} tide__b;\n' >"$planted/c.h"
[ "$(doubles "$planted")" = '} tide__a;' ] || { echo "the planted pair was not found"; exit 1; }

found=$(doubles "$source_dir/src"; doubles "$source_dir/include")
[ -z "$found" ] || { echo "types that share a name:"; echo "$found"; exit 1; }
