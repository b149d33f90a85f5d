#!/usr/bin/env bash
# Who uses whom goes one way: no arrow upwards, no circle of more than four files; what is offered is used; a header is
# one noun's.
#
#   tests/arrows/arrows_test.sh BUILD
command -v python3 >/dev/null && command -v nm >/dev/null || { echo "needs python3 and nm"; exit 1; }
cd "$(dirname "$0")/../.." || exit 1
exec python3 tests/arrows/arrows.py "$1"
