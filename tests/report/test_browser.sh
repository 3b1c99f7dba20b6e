#!/bin/bash
# The page in a real browser: load, hover, zoom, search, colours, 10^5 values, no complaint on the console. Skipped where
# there is no Chromium (make check); .ci/run installs one. Screenshots stay in <build>/screenshots, to be looked at.
set -eu
build_dir=$1
source_dir=$2
export PYTHONDONTWRITEBYTECODE=1
python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import webdriver; sys.exit(not webdriver.find_chromium())' \
    "$source_dir/tests/report" || { echo "skipped: the report in a browser: no chromium and chromedriver; run: tools/deps gates"; exit 77; }
if grep -q '^TIDE_SANITIZE:STRING=.' "$build_dir/CMakeCache.txt"; then
    echo "skipped: the page is the same in every build"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shots=$build_dir/screenshots
mkdir -p "$shots"
tidemark=$build_dir/tidemark

decisions=$source_dir/examples/resnet-cifar3.decisions.jsonl
awk '/^```json$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$source_dir/docs/formats.md" >"$work/compare.json"
cat >"$work/measured.json" <<'END'
{"model": "resnet-cifar:3", "steps": 100, "runs": [
 {"policy": "liveness", "arena_bytes": 40982528, "step_ns": 105000000, "last_loss": 0.4, "accuracy": 0.91, "same_bits": true},
 {"policy": "manual", "arena_bytes": 32946176, "step_ns": 109000000, "saved_bytes": 6422528, "loaded_bytes": 6422528,
  "reruns": 2, "last_loss": 0.4, "accuracy": 0.91, "same_bits": true}]}
END
"$tidemark" report resnet-cifar:3 --input 1x28x28 --classes 10 --machine cpu --policy manual --decisions "$decisions" \
    --budget 36MiB --compare "$work/compare.json" --measured "$work/measured.json" -o "$work/small.html"

"$tidemark" train resnet-cifar:1 --batch 8 --steps 2 --test-samples 8 --budget 50% --quiet --record "$work/run.tide" >"$work/log"
"$tidemark" report "$work/run.tide" -o "$work/run.html"

# A step of ResNet-152 stays below 5 MB.
"$tidemark" report resnet152 --batch 32 --machine v100-16gb-pcie --budget 50% --policy delta -o "$work/resnet152.html"
size=$(stat -c %s "$work/resnet152.html")
[ "$size" -lt 5000000 ] || { echo "the page of ResNet-152 has $size bytes"; exit 1; }

# A chain of 10^5 values that come and go, some of them short-lived.
python3 - >"$work/large.jsonl" <<'END'
n = 50000
print('{"tidemark":"program","version":1,"name":"large","kind":"one-shot"}')
print('{"tensor":0,"name":"x","bytes":4096,"class":"input","start":"present"}')
for i in range(n):
    print('{"tensor":%d,"name":"layer%d.out","bytes":%d,"class":"activation"}' % (i + 1, i, 1024 + i * 7919 % 4096))
for i in range(n):
    print('{"tensor":%d,"name":"layer%d.dx","bytes":%d,"class":"activation-gradient"}' % (n + i + 1, n - i - 1, 1024 + i * 104729 % 4096))
for i in range(n):
    print('{"op":%d,"name":"layer%d","phase":"forward","reads":[%d],"writes":[%d],"cost":%d}' % (i, i, i, i + 1, 1000 + i % 7 * 300))
for i in range(n):
    reads = [n - i] if i == 0 else [n - i, n + i]
    print('{"op":%d,"name":"layer%d.bwd","phase":"backward","reads":%s,"writes":[%d],"cost":%d}'
          % (n + i, n - i - 1, reads, n + i + 1, 2000 + i % 5 * 400))
print('{"end":{"tensors":%d,"ops":%d,"carries":0}}' % (2 * n + 1, 2 * n))
END
"$tidemark" report "$work/large.jsonl" -o "$work/large.html"

size=$(stat -c %s "$work/small.html")
[ "$size" -lt 1000000 ] || { echo "the small page has $size bytes"; exit 1; }
python3 "$source_dir/tests/report/check_page.py" "$work" "$shots"
