#!/usr/bin/env bash
# Checks that docs/ops.md is what tfc-run --list-ops prints.
#
#   tests/cli/op_table_test.sh BUILD
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 0; }
exec "$(dirname "$0")/../../scripts/op-table" --check "$1"
