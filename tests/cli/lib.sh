# shellcheck shell=bash disable=SC2034
# Shared by the test scripts of the command. A script is called with the build folder and the source folder; it runs the
# command with `run`, judges with the functions below, and ends with `finish`. Every failed check prints what was run,
# what was expected and what came; the script goes on, so that one run shows them all.
set -u
export LC_ALL=C
unset TIDEMARK_MACHINES NO_COLOR
build_dir=$1
source_dir=$2
tidemark=$build_dir/tidemark
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
checks=0
last=

fail() { # text
    failures=$((failures + 1))
    printf 'FAILED: %s\n  command: tidemark %s\n' "$1" "$last"
    sed 's/^/  stdout: /' "$work/out" | head -5
    sed 's/^/  stderr: /' "$work/err" | head -5
}

# run CODE ARGUMENT...: the exit code is CODE, and what every run promises: no control characters when no terminal
# listens, and a failure says why on stderr.
run() {
    local want=$1 code=0
    shift
    last=$*
    checks=$((checks + 1))
    "$tidemark" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
    [ "$code" = "$want" ] || fail "exit code $code, expected $want"
    if [ "$want" != 0 ] && [ "$want" != 5 ] && [ ! -s "$work/err" ]; then fail "a failure without a word on stderr"; fi
    if grep -q "$(printf '[\001-\010\013-\037]')" "$work/out" "$work/err"; then fail "control characters in the output"; fi
}

# As run, for failures: nothing on stdout, and TEXT on stderr.
refuse() { # code, text, argument...
    local want=$1 text=$2
    shift 2
    run "$want" "$@"
    [ ! -s "$work/out" ] || fail "a failure wrote to stdout"
    err_has "$text"
}

out_has() { grep -qF -- "$1" "$work/out" || fail "\"$1\" is not on stdout"; }
err_has() { grep -qF -- "$1" "$work/err" || fail "\"$1\" is not on stderr"; }
err_empty() { [ ! -s "$work/err" ] || fail "stderr is not empty"; }
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }

# The number after a key of the last run's --json output.
json_number() { sed -n "s/^ *\"$1\": \([0-9.]*\),\{0,1\}\$/\1/p" "$work/out" | head -1; }

# Nothing but the named files is in the folder: no temporaries were left behind.
only_files() { # folder, name...
    local folder=$1 found wanted=
    shift
    found=$(ls -A "$folder")
    [ $# = 0 ] || wanted=$(printf '%s\n' "$@" | sort)
    [ "$found" = "$wanted" ] || fail "$folder holds: $found; expected: $*"
}

finish() {
    [ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
    echo "$checks runs of the command, all as documented"
}
