#!/bin/bash
# Installs into a temporary prefix and uses only what is there: a C and a C++ program are built through pkg-config and
# find_package, shared and static, and run; every public header compiles alone; the shared library shows tide_* and
# nothing else, and does not call what a library must not (print, exit, abort). Every command has its man page and its
# completion.
set -eu
build_dir=$1
source_dir=$2
if grep -q '^TIDE_SANITIZE:STRING=.' "$build_dir/CMakeCache.txt"; then
    echo "skipped: consumers of a sanitized library need its runtime"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "install: $*"; exit 1; }

cmake --install "$build_dir" --prefix "$work/shared" >"$work/log" || { cat "$work/log"; die "cmake --install failed"; }
pc=$(find "$work/shared" -name tidemark.pc)
[ -n "$pc" ] || die "no tidemark.pc"
libdir=$(pkg-config --variable=libdir "$pc")

# The same tree without the shared library: -ltidemark can then only mean the static one, with Libs.private.
cp -r "$work/shared" "$work/static"
find "$work/static" -name 'libtidemark.so*' -delete

consume() { # compiler and its flags, then: shared or static
    local kind=${*: -1} flags extra=
    set -- "${@:1:$#-1}"
    [ "$kind" = shared ] || extra=--static
    flags=$(PKG_CONFIG_PATH=$(dirname "${pc/shared/$kind}") pkg-config $extra --cflags --libs tidemark)
    # shellcheck disable=SC2086 # $flags is a list
    "$@" -Wall -Wextra -Werror -pedantic "$source_dir/tests/install/consumer.c" -x none $flags -o "$work/consumer" ||
        die "$1 cannot build a consumer ($kind): $flags"
    version=$(LD_LIBRARY_PATH=$libdir "$work/consumer") || die "the consumer ($1, $kind) fails"
    [ "$version" = "$(pkg-config --modversion "$pc")" ] || die "version $version does not match tidemark.pc"
    case $kind:$(readelf -d "$work/consumer" | grep -c 'NEEDED.*libtidemark') in
    shared:1 | static:0) ;;
    *) die "the consumer ($1, $kind) is not linked as asked" ;;
    esac
}
for kind in shared static; do
    consume gcc -std=c17 $kind
    consume g++ -std=c++17 -x c++ $kind
done

# The same consumer through find_package, shared and static; a version that is not there is refused.
mkdir "$work/package"
cat >"$work/package/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(consumer C)
find_package(tidemark \${WANTED} CONFIG REQUIRED)
foreach(kind tidemark tidemark_static)
  add_executable(with_\${kind} $source_dir/tests/install/consumer.c)
  target_link_libraries(with_\${kind} PRIVATE tidemark::\${kind})
endforeach()
END
configure() { # version
    cmake -S "$work/package" -B "$work/package/build" -DCMAKE_PREFIX_PATH="$work/shared" -DWANTED="$1"
}
if ! configure "$version" >"$work/log" 2>&1 || ! cmake --build "$work/package/build" >>"$work/log" 2>&1; then
    cat "$work/log"
    die "the CMake package does not work"
fi
for kind in tidemark tidemark_static; do
    [ "$("$work/package/build/with_$kind")" = "$version" ] || die "the consumer of tidemark::$kind fails"
done
if configure 99.0 >"$work/log" 2>&1; then die "the CMake package claims to be version 99"; fi

for header in "$work"/shared/include/tidemark/*.h; do
    name=tidemark/$(basename "$header")
    for compiler in 'gcc -std=c17 -x c' 'g++ -std=c++17 -x c++'; do
        echo "#include <$name>" |
            $compiler -I"$work/shared/include" -Wall -Wextra -Werror -pedantic -fsyntax-only - ||
            die "<$name> does not compile alone with $compiler"
    done
done

library=$(find "$work/shared" -name libtidemark.so)
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ -e "$libdir/$soname" ] || die "soname \"$soname\" is not installed"
strangers=$(nm -D --defined-only "$library" | awk '$3 !~ /^tide_[a-z0-9]/ { print $3 }')
[ -z "$strangers" ] || die "exported but not public:" $strangers
nm -D --defined-only "$library" | grep -q ' tide_version$' || die "nothing is exported"

# A page per command; completion offers the commands, their options and the policies.
man=$work/shared/share/man/man1
for name in tidemark $("$work/shared/bin/tidemark" --help | awk '/^commands:/ { on = 1; next } /^$/ { on = 0 } on { print "tidemark-" $1 }'); do
    grep -q '^\.SH SYNOPSIS' "$man/$name.1" || die "no man page $name"
    grep -q '^\.B \\-\\-help$' "$man/$name.1" || [ "$name" = tidemark ] || die "$name(1) lists no options"
    if command -v groff >/dev/null; then
        said=$(groff -man -Tutf8 -ww "$man/$name.1" 2>&1 >/dev/null)
        [ -z "$said" ] || die "groff about $name.1: $said"
    fi
done
offered() { # word...: what completion offers for the last one
    bash -c '. "$0/share/bash-completion/completions/tidemark"; COMP_WORDS=(tidemark "$@"); COMP_CWORD=$#; _tidemark; echo " ${COMPREPLY[*]} "' \
        "$work/shared" "$@"
}
[[ $(offered re) == *' report '* ]] || die "completion does not offer the commands"
[[ $(offered plan --bud) == ' --budget ' ]] || die "completion does not offer the options of a command"
[[ $(offered plan --policy live) == *' liveness '* ]] || die "completion does not offer the policies"
[[ $(offered train --effort h) == *' high '* ]] || die "completion does not offer what an option can be"
for command in $("$work/shared/bin/tidemark" --help | awk '/^commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'); do
    all=$(offered "$command" -)
    for option in $("$work/shared/bin/tidemark" "$command" --help | awk '/^options:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'); do
        [[ $all == *" $option "* ]] || die "completion of $command does not offer $option"
        grep -qF -- ".B ${option//-/\\-}" "$man/tidemark-$command.1" || die "tidemark-$command(1) does not list $option"
    done
done
head -1 "$work/shared/share/zsh/site-functions/_tidemark" | grep -q '^#compdef tidemark$' || die "no completion for zsh"

# assert() may abort; nothing else may write to stderr or end the process (stdout is where the file name "-" goes).
forbidden='printf|__printf_chk|vprintf|__vprintf_chk|puts|putchar|perror|stderr|exit|_exit|quick_exit|abort'
calls=$(nm -D --undefined-only "$library" | awk '{ sub(/@.*/, "", $2); print $2 }' | grep -xE "$forbidden" || true)
[ -z "$calls" ] || die "the library must not use:" $calls

# Profiles of machines are found wherever the source tree is by now.
! grep -qF "$source_dir/machines" "$library" || die "the library knows where it was built"
(cd / && "$work/shared/bin/tidemark" plan lenet --machine a100 --json >/dev/null) || die "no profile of the a100"
