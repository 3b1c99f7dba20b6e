#!/bin/bash
# What `make demo` and `make figures` run, on models small enough for a test: the demo's table says that all bits are the
# same, its page is there; every picture of docs/policies is drawn, and those that the documents show are in the tree.
set -eu
build_dir=$1
source_dir=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "$*"; exit 1; }
if grep -q '^TIDE_SANITIZE:STRING=.' "$build_dir/CMakeCache.txt"; then
    echo "skipped: the same command is tested under sanitizers by itself"
    exit 77
fi

python3 -B "$source_dir/tools/demo" "$build_dir/tidemark" "$work/demo" 3 resnet-cifar:1 --batch 8 --effort low >"$work/out" 2>"$work/err" ||
    { cat "$work/err" "$work/out"; die 'the demo fails'; }
for words in unconstrained '40 %' minimum 'peak RSS' 'report.html'; do
    grep -qF "$words" "$work/out" || die "the demo does not say \"$words\""
done
[ "$(grep -c 'yes$' "$work/out")" = 2 ] || { cat "$work/out"; die 'the bits differ'; }
[ "$(stat -c %s "$work/demo/report.html")" -gt 50000 ] || die 'the page of the demo is missing'

mkdir "$work/figures"
"$source_dir/tools/figures" "$build_dir/tidemark" "$work/figures" mlp:784,64,10 4 100%,80% >"$work/out" || die 'tools/figures fails'
for picture in "$work"/figures/*.svg; do
    python3 -c 'import sys, xml.etree.ElementTree as e; sys.exit(e.parse(sys.argv[1]).getroot().tag[-3:] != "svg")' "$picture" ||
        die "$picture is no picture"
    [ -f "$source_dir/docs/policies/${picture##*/}" ] || die "docs/policies/${picture##*/} is missing: make figures"
done
for page in "$source_dir"/docs/policies/*.md; do
    for picture in $(grep -oE '\]\([a-z]+\.svg\)' "$page" | tr -d ']()'); do
        [ -f "$work/figures/$picture" ] || die "$page shows $picture, which tools/figures does not draw"
    done
done
echo "the demo and $(wc -l <"$work/out") figures"
