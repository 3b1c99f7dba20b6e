#!/bin/bash
# cli.test_lent with every way to lose a rank.
exec bash "$2/tests/cli/test_lent.sh" "$1" "$2" full
