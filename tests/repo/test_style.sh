#!/bin/bash
# The rules of CONTRIBUTING.md that a script can check: a head comment in every C file, no file over 700 lines, nothing
# left to do in comments, no tabs, no trailing blanks. Proves itself on planted files first.
set -eu
source_dir=$2
todo='TO''DO|FIX''ME|X''XX'

files() { find include src cli preload tests bench examples tools docs -type f "$@" 2>/dev/null | grep -v /corpus/ | LC_ALL=C sort; }

# The violations of the tree at $1, one per line. A few processes for all files together, so that it stays quick.
violations() (
    cd "$1"
    files -name '*.[ch]' | xargs awk '
        FNR == 1 && !/^\/\*/ { print FILENAME ":1: no head comment: what it is, why it exists, its invariant" }
        FNR == 701 { print FILENAME ":701: over 700 lines; split it" }'
    files '(' -name '*.[ch]' -o -name '*.sh' -o -name '*.awk' -o -name '*.md' -o -name '*.txt' ')' >"$planted/list"
    xargs grep -HnE "(^|[^A-Za-z_])($todo)([^A-Za-z_]|\$)" <"$planted/list" | sed 's|$|  <- finish it or drop it|'
    xargs grep -HnE "$(printf '\t')|[[:blank:]]\$" <"$planted/list" | sed 's|$|<- tab or trailing blank|'
)

planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
mkdir "$planted/src"
printf '/* good */\nint a; /* mkstemp XXXXXX */\n' >"$planted/src/good.c"
[ -z "$(violations "$planted")" ] || { echo "a good file is refused"; violations "$planted"; exit 1; }
printf 'int a;\n' >"$planted/src/head.c"
printf '/* a */\n/* %s: later */\n' "${todo%%|*}" >"$planted/src/later.c"
printf '/* a */\n\tint a;\n' >"$planted/src/tab.c"
printf '/* a */\nint a; \n' >"$planted/src/blank.c"
{ echo '/* a */'; yes '' | head -700; } >"$planted/src/long.c"
for bad in head later tab blank long; do
    violations "$planted" | grep -q "^src/$bad.c:" || { echo "the planted $bad.c is not found"; exit 1; }
done

found=$(violations "$source_dir")
[ -z "$found" ] || { echo "$found"; exit 1; }
