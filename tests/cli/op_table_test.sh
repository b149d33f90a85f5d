#!/usr/bin/env bash
# docs/ops.md is what tfc-run --list-ops says.
#
#   tests/cli/op_table_test.sh BUILD
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 0; }
exec "$(dirname "$0")/../../scripts/op-table" --check "$1"
