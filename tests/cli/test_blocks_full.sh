#!/bin/bash
# As test_blocks.sh, with every command exactly as it is printed.
TIDE_BLOCKS=whole exec bash "$2/tests/cli/test_blocks.sh" "$@"
