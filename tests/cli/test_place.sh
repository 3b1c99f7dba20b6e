#!/bin/bash
# place: problems that are made to hurt, through the command, and everything that is no problem.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1

# shape NAME COUNT: a problem as CSV.
shape() {
    awk -v name="$1" -v n="$2" 'BEGIN {
        print "size,upper,id,lower"
        for (i = 0; i < n; i++) {
            if (name == "equal") print 7 "," 9 ",b" i "," 5
            if (name == "staircase") print i + 1 "," i + 3 ",b" i "," i
            if (name == "nested") print i % 7 + 1 "," 2 * n - i ",b" i "," i
            if (name == "idle") print 100 "," i ",b" i "," i
        }
    }'
}

# overlaps FILE: pairs of buffers in a CSV of place -o that share bytes while both are alive.
overlaps() {
    awk -F, 'NR > 1 { lower[NR] = $2; upper[NR] = $3; size[NR] = $4; offset[NR] = $5 }
        END {
            for (i = 2; i <= NR; i++)
                for (k = 2; k < i; k++)
                    n += lower[i] < upper[k] && lower[k] < upper[i] &&
                        offset[i] < offset[k] + size[k] && offset[k] < offset[i] + size[i]
            print n + 0
        }' "$1"
}

for name in equal staircase nested idle; do
    shape "$name" 200 >"$name.csv"
    for algorithm in auto smartpool first-fit skyline exact; do
        run 0 place "$name.csv" --algorithm "$algorithm" --time 0.1 -o placed.csv --json
        [ "$(json_number buffers)" = 200 ] || fail "$name by $algorithm: not 200 buffers"
        [ "$(overlaps placed.csv)" = 0 ] || fail "$name by $algorithm: buffers overlap"
    done
done
run 0 place equal.csv --json
[ "$(json_number height)" = 1400 ] || fail '200 equal buffers of 7 bytes need 1400'
run 0 place idle.csv --json
[ "$(json_number height)" = 100 ] || fail 'buffers that are never alive lie on each other'
run 0 place nested.csv --svg map.svg
grep -q '</svg>' map.svg || fail 'no picture'

# Sizes near 2^63 and 2^64: right, or refused.
printf 'id,lower,upper,size\na,0,2,9223372036854775807\nb,1,3,9223372036854775807\n' >huge.csv
run 0 place huge.csv --json
grep -q '"height": 18446744073709551614' "$work/out" || fail 'two buffers of 2^63 - 1 bytes'
printf 'id,lower,upper,size\na,0,2,9223372036854775808\nb,1,3,9223372036854775808\n' >over.csv
refuse 3 'does not fit' place over.csv
printf 'id,lower,upper,size,alignment\na,0,2,1,9223372036854775808\nb,1,3,1,9223372036854775808\nc,1,3,1,9223372036854775808\n' >wide.csv
refuse 3 '' place wide.csv

# A time limit holds: a hard problem, most of a second to go.
awk 'BEGIN { srand(4); print "id,lower,upper,size"
    for (i = 0; i < 400; i++) { a = int(rand() * 90); print i "," a "," a + 1 + int(rand() * 40) "," 1 + int(rand() * 9999) } }' >hard.csv
start=$(date +%s)
run 0 place hard.csv --time 0.5
[ $(($(date +%s) - start)) -le 20 ] || fail 'the time limit does not hold'
run 4 place hard.csv --time 0.1 --capacity 1
err_has 'none exists'

# Files are refused with their line.
printf 'id,lower,upper,size\na,0,1,5\nb,2,1,5\n' >bad.csv
refuse 3 'bad.csv:3: upper is below lower' place bad.csv
printf 'a,0,1,5\n' >headless.csv
refuse 3 'headless.csv:1: unknown column "a"' place headless.csv
printf 'id,lower,upper,size,offset\na,0,2,8,0\nb,1,3,8,4\n' >fixed.csv
refuse 2 'fixed offsets overlap' place fixed.csv
: >empty.csv
refuse 3 'empty.csv: no header line' place empty.csv
refuse 6 'nosuch.csv' place nosuch.csv
refuse 2 'unknown algorithm' place equal.csv --algorithm magic
refuse 2 'not a percentage' place equal.csv --capacity 10%
finish
