#!/bin/bash
# Include directions follow the rooms (the tables in includes.awk). Before it judges the tree it proves itself on a
# planted one: every violation there is found, and nothing else is.
set -eu
source_dir=$2
rules=$source_dir/tests/repo/includes.awk

# The violations of the tree at $1; fails if there is one.
check() {
    local found
    found=$(cd "$1" && find include src cli -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs awk -f "$rules")
    [ -z "$found" ] || { echo "$found"; return 1; }
}

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
plant() { # path, line, expected: "" for a legal include
    mkdir -p "$planted/$(dirname "$1")"
    printf '/* planted */\n%s\n' "$2" >"$planted/$1"
    local said
    said=$(check "$planted" || true)
    if [ "$said" != "${3:+$1:2: $3}" ]; then
        echo "planted in $1: $2"
        echo "expected: ${3:-nothing}"
        echo "found:    $said"
        exit 1
    fi
    rm "$planted/$1"
}
mkdir -p "$planted/src" "$planted/include" "$planted/cli"
plant src/plan/a.c '#include "run/run.h"' 'plan may not include "run/run.h"'
plant src/plan/a.c '#include "program/program.h"' ''
plant src/plan/place/a.c '#include "plan/plan_data.h"' ''
plant src/pool/a.c '#include "plan/place/place.h"' ''
plant src/pool/a.c '#include "plan/plan_data.h"' 'pool may not include "plan/plan_data.h"'
plant src/device/a.c ' #  include <tidemark/plan.h>' 'device may not include <tidemark/plan.h>'
plant src/device/cpu/onednn.h '#include <dnnl.h>' ''
plant src/device/cpu/a.c '#include <dnnl.h>' '<dnnl.h> belongs in src/device/cpu/onednn.h only'
plant src/tier/a.c '#include <liburing.h>' ''
plant src/run/a.c '#include <liburing.h>' '<liburing.h> belongs in src/tier/ only'
plant src/base/a.c '#include <lz4.h>' '<lz4.h> is not libc, nor a listed library'
plant src/base/a.c '#include <zlib.h>' '<zlib.h> belongs in src/nn/gunzip.c only'
plant src/base/a.c '#include <sys/mman.h>' ''
plant src/base/a.c '#include "a.h"' '"a.h": write the room, "base/a.h"'
plant include/tidemark/a.h '#include "base/vec.h"' \
    'a public header includes "base/vec.h": installed headers use <...> only'
plant cli/a.c '#include "cli.h"' ''
plant cli/a.c '#include <tidemark/report.h>' ''
plant cli/a.c '#include "report/report.h"' 'cli may not include "report/report.h"'

check "$source_dir"
