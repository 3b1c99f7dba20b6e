# shellcheck shell=bash disable=SC2034
# Shared by the scripts that train on several ranks, called with the build folder: where things are, and whether there is an
# MPI to start ranks with.
set -eu
build=$1
tidemark=$build/tidemark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fail() { { echo "$*"; cat "$work"/out "$work"/err; } >&2; exit 1; }

skip() {
    echo "skipped: training on several ranks: $1; run: $2"
    exit 77
}
skip_sanitized() {
    if grep -q '^TIDE_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
        skip "MPI's libraries leak and are not instrumented; net.test_net has sanitizers look at messages" 'make check'
    fi
}
need_mpi() {
    [ -e "$build/libtidemark-openmpi.so" ] && command -v mpirun.openmpi >/dev/null || skip 'Open MPI is not installed' 'tools/deps mpi'
}

descends() { # is process $1 below process $2?
    local p=$1
    while [ "${p:-0}" -gt 1 ]; do
        [ "$p" -ne "$2" ] || return 0
        p=$(awk '/^PPid:/ { print $2 }' "/proc/$p/status" 2>/dev/null || true)
    done
    return 1
}
