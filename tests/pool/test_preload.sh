#!/bin/bash
# libtidemark-preload.so under a loop of large blocks, threads and forks, the device functions, and programs of the system.
set -eu
build=$1 source_dir=$2
preload=$build/libtidemark-preload.so
[ -e "$preload" ] || { echo "not in this build"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }
cc -O1 -pthread -rdynamic "$source_dir/tests/pool/preload_client.c" -ldl -o "$work/client"
under() { LD_PRELOAD=$preload TIDEMARK_PRELOAD_STATS=$work/stats "$@"; }

under "$work/client"
read -r planned large < <(sed -n 's/.*: \([0-9]*\) large blocks, \([0-9]*\) of them planned.*/\2 \1/p' "$work/stats")
[ "$planned" -gt $((large / 2)) ] || fail "only $planned of $large blocks were planned: $(cat "$work/stats")"
rm "$work/stats"
under "$work/client" threads
[ -s "$work/stats" ] || fail "no figures of threads"
under "$work/client" device

# Nothing changes for others; a program without large blocks is left alone.
seq 200000 >"$work/numbers"
sort -r "$work/numbers" | md5sum >"$work/plain"
under sort -r "$work/numbers" | md5sum >"$work/preloaded"
cmp "$work/plain" "$work/preloaded"
rm -f "$work/stats"
under "$(type -P true)"
grep -q ": 0 large blocks" "$work/stats" || fail "true has large blocks: $(cat "$work/stats")"
# What it exports are the functions that it stands for, and nothing of the library.
nm -D --defined-only "$preload" | awk '{ print $3 }' | sort >"$work/names"
printf '%s\n' aligned_alloc free malloc malloc_usable_size memalign posix_memalign realloc tidemark_cuda_free \
    tidemark_cuda_malloc | cmp - "$work/names"
