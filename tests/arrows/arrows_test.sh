#!/usr/bin/env bash
# Checks the dependencies of folders and files: no folder depends on one of a higher level, no circle of dependencies
# has more than four files, every declared function is used by the product, and a header declares the functions of one file,
# unless a README.md says why not; and failed allocations become errors by one function.
#
#   tests/arrows/arrows_test.sh BUILD
command -v python3 >/dev/null && command -v nm >/dev/null || { echo "needs python3 and nm"; exit 1; }
cd "$(dirname "$0")/../.." || exit 1
exec python3 tests/arrows/arrows.py "$1"
