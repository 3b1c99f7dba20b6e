#!/bin/bash
# report: its options, and what it writes for other viewers, read by readers that are not ours (Python's json and pickle).
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh" "$@"
cd "$work" || exit 1
checker=$source_dir/tests/report/check_formats.py

cat >decisions.jsonl <<'END'
{"tidemark":"decisions","version":1}
{"swap":"pool1","tier":"ram","after":"conv2","before":"conv2.bwd-weights"}
{"rerun":"conv2","before":"relu2.bwd"}
END
plan=(lenet --machine k40c --policy manual --decisions decisions.jsonl)
run 0 plan "${plan[@]}" -o lenet.plan
run 0 model lenet --machine k40c -o lenet.jsonl

# ---- what is asked for, and what is refused ----
refuse 2 '-o FILE says where' report lenet
refuse 2 'is not html, perfetto or memory-viz' report lenet --format svg -o x
refuse 2 'name its program with --program' report ./lenet.plan -o x.html
refuse 2 '--program is for plans' report lenet --program lenet -o x.html
refuse 2 '--program is for plans' report ./lenet.jsonl --program lenet -o x.html
refuse 2 '--policy is for programs' report ./lenet.plan --program lenet --machine k40c --policy none -o x.html
refuse 2 '--effort is for programs' report ./lenet.plan --program lenet --machine k40c --effort low -o x.html
refuse 2 'neither low, normal nor high' report lenet --effort much -o x.html
refuse 2 '--decisions is for --policy manual' report lenet --decisions decisions.jsonl -o x.html
refuse 2 '--batch is for models' report ./lenet.jsonl --batch 4 -o x.html
refuse 2 'choose one' report lenet --terminal --format perfetto
refuse 2 '--measured is for --format html' report lenet --terminal --measured x
refuse 2 '--compare is for --format html' report lenet --format perfetto --compare x -o y
refuse 2 'of several files each must be one' report ./lenet.plan lenet lenet -o x.html
refuse 2 'standard input is either' report - --program - -o x.html
refuse 4 'does not fit' report lenet --budget 512KiB -o x.html
refuse 5 'rule machine' report ./lenet.plan --program lenet -o x.html
refuse 5 'rule budget' report ./lenet.plan --program lenet --machine k40c --budget 1MiB -o x.html
refuse 6 'No such file' report ./nosuch.plan -o x.html
refuse 6 'cannot write' report lenet -o ./nosuch/x.html
refuse 6 'is a folder' report . -o x.html
[ ! -e x.html ] || fail 'a failure left a file'

# ---- the page: one file, the same from the plan as from the model, nothing from outside ----
mkdir pages
run 0 report "${plan[@]}" -o pages/model.html
out_has 'open it in a browser'
run 0 report ./lenet.plan --program lenet --machine k40c -o pages/plan.html
run 0 report ./lenet.plan lenet --machine k40c -o behind.html
cmp -s pages/plan.html behind.html || fail 'a program behind its plan'
same pages/model.html pages/plan.html
run 0 report ./lenet.plan --program lenet.jsonl --machine k40c -o pages/file.html
only_files pages model.html plan.html file.html
"$tidemark" report - --program lenet --machine k40c -o - <lenet.plan >stdin.html 2>"$work/err" || fail 'a plan through a pipe'
same pages/plan.html stdin.html
"$tidemark" report - --policy none -o - <lenet.jsonl >program.html 2>"$work/err" || fail 'a program through a pipe'
addresses=$(grep -oE 'https?://[a-z0-9.]*' pages/model.html | grep -v '^http://www\.w3\.org$')
[ -z "$addresses" ] || fail "the page names $addresses"
if grep -qE '@(title|style|script|meta|data)@' pages/model.html; then fail 'a part of the page is missing'; fi
[ "$(tail -1 pages/model.html)" = '</html>' ] || fail 'the page is cut short'

# Names from files are never markup.
cat >names.jsonl <<'END'
{"tidemark":"program","version":1,"name":"</title><script>alert(1)</script>","kind":"one-shot"}
{"tensor":0,"name":"</script><b>\u001b[31m","bytes":64,"start":"present","keep":true}
{"tensor":1,"name":"","bytes":64}
{"op":0,"name":"\ud83d\ude00","phase":"forward","reads":[0],"writes":[1],"cost":5}
{"end":{"tensors":2,"ops":1,"carries":0}}
END
run 0 report names.jsonl -o names.html
if grep -q 'alert(1)</script>\|</script><b>' names.html; then fail 'a name became markup'; fi
run 0 report names.jsonl --terminal

# ---- what was measured and compared ----
cat >measured.json <<'END'
{"model": "lenet", "steps": 2, "runs": [{"policy": "manual", "arena_bytes": 10, "step_ns": 7, "last_loss": null, "accuracy": 0.5}]}
END
awk '/^```json$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$source_dir/docs/formats.md" >compare.json
run 0 report lenet --measured measured.json --compare compare.json -o extra.html
run 0 train lenet --steps 2 --batch 2 --test-samples 2 --threads 1 --json
cp out trained.json
run 0 report lenet --measured trained.json -o trained.html
sed 's/"steps": 2/"stops": 2/' measured.json >bad.json
refuse 3 'bad.json' report lenet --measured bad.json -o x.html
sed 's/"version": 1/"version": 2/' compare.json >bad.json
refuse 3 'version 2' report lenet --compare bad.json -o x.html
refuse 3 'compare.json: ' report lenet --measured compare.json -o x.html
echo '[]' >bad.json
refuse 3 'not a JSON object' report lenet --compare bad.json -o x.html
refuse 6 'No such file' report lenet --compare nosuch.json -o x.html

# ---- a run's record: the plan with what was measured ----
run 0 train lenet --steps 3 --batch 4 --test-samples 4 --threads 1 --budget 70% --host-budget 1MiB --verify-bits --record lenet.run
run 0 report lenet.run -o run.html
out_has 'open it in a browser'
run 0 report lenet.run --compare compare.json --measured measured.json -o run.html
run 0 report lenet.run --terminal
out_has 'lenet, policy hybrid'
"$tidemark" report - -o - <lenet.run >stdin.html 2>"$work/err" || fail 'a record through a pipe'
refuse 2 'is the record of a run' report lenet.run --machine k40c -o x.html
refuse 2 'is the record of a run' report lenet.run --program lenet -o x.html
refuse 2 '--batch is for models' report lenet.run --batch 4 -o x.html
refuse 5 'rule budget' report lenet.run --budget 100kB -o x.html
head -c 3000 lenet.run >cut.run
refuse 3 'cut.run' report cut.run -o x.html
refuse 2 'leave --mode online out' train lenet --mode online --record x.run
refuse 2 'a file of its own' train lenet --record -
refuse 6 'cannot write' train lenet --steps 1 --batch 2 --test-samples 2 --threads 1 --quiet --record ./nosuch/x.run

# ---- the terminal: as wide as it is told, no colour off a terminal ----
for columns in 40 80 132; do
    COLUMNS=$columns run 0 report "${plan[@]}" --terminal
    out_has 'freeing after the last use only'
    wide=$(LC_ALL=C.UTF-8 wc -L < <(tail -n +2 "$work/out"))
    [ "$wide" -le "$((columns > 62 ? columns : 62))" ] || fail "COLUMNS=$columns gives lines of $wide characters"
done
refuse 2 'choose one' report lenet --terminal -o page.html

# ---- other viewers ----
for model in "${plan[*]}" 'resnet-cifar:1 --batch 4' names.jsonl lenet.run; do
    # shellcheck disable=SC2086 # a list
    run 0 report $model --format perfetto -o trace.json
    # shellcheck disable=SC2086
    run 0 report $model --format memory-viz -o snapshot.pickle
    python3 "$checker" trace.json snapshot.pickle >"$work/out" 2>"$work/err" || fail "check_formats.py refuses $model"
done

# Programs without ops have reports, too.
printf '%s\n' '{"tidemark":"program","version":1,"kind":"one-shot"}' '{"end":{"tensors":0,"ops":0,"carries":0}}' >none.jsonl
run 0 report none.jsonl -o none.html
run 0 report none.jsonl --terminal
run 0 report none.jsonl --format perfetto -o trace.json
run 0 report none.jsonl --format memory-viz -o snapshot.pickle
python3 "$checker" trace.json snapshot.pickle >"$work/out" 2>"$work/err" || fail 'check_formats.py refuses an empty step'
finish
