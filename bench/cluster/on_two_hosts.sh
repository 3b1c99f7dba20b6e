#!/bin/bash
# on_two_hosts.sh BUILD SOURCE MBIT COMMAND...: a rank of it on each of two network namespaces, whose link passes so many Mbit/s each way
# (0: as many as it can). 192.0.2.2 is the second.
set -eu
build=$1 mbit=$3
work=$(mktemp -d)
# shellcheck source=tests/net/two_hosts.sh
. "$2/tests/net/two_hosts.sh"
shift 3
trap 'clean_hosts; rm -rf "$work"' EXIT
skip() { echo "skipped: ranks in two network namespaces: $1"; exit 77; }
make_hosts
[ "$mbit" -eq 0 ] || link_rate "$mbit"
on_hosts "$@"
