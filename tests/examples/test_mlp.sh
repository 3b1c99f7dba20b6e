#!/usr/bin/env bash
# The embedding example: it is as short as promised, learns, gives the same bits in a tight arena as in a wide one, says
# why when nothing works, and docs/embedding.md shows exactly this program.
set -u
export LC_ALL=C
build_dir=$1
source_dir=$2
example=$build_dir/example_mlp
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() { echo "FAILED: $1" && failures=$((failures + 1)); }

lines=$(wc -l <"$source_dir/examples/mlp.c")
[ "$lines" -lt 120 ] || fail "examples/mlp.c has $lines lines, not under 120"

"$example" 4096 >"$work/wide" || fail "the example fails in 4 MiB"
"$example" 80 >"$work/tight" || fail "the example fails in 80 KiB"
cmp "$work/wide" "$work/tight" || fail "the bits depend on the budget"
awk '/^step 100:/ { first = $4 } /^step 400:/ { last = $4 } END { exit !(last > 0 && last < 0.8 * first) }' "$work/wide" ||
    fail "the example does not learn: $(tail -1 "$work/wide")"

"$example" 16 >"$work/small" && fail "16 KiB cannot be enough"
grep -q "finds no room" "$work/small" || fail "no reason given in 16 KiB: $(cat "$work/small")"

awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source_dir/docs/embedding.md" >"$work/shown.c"
diff "$source_dir/examples/mlp.c" "$work/shown.c" || fail "docs/embedding.md does not show examples/mlp.c as it is"

[ "$failures" -eq 0 ] && echo "the example is as documented"
exit $((failures > 0))
