#!/usr/bin/env bash
# The queries that pages print run in sqlite3 as they stand: on databases of today's schema, and on older ones after the
# command that the page names (queries_check.py).
#
#   tests/reports/queries_test.sh BUILD
set -u
# shellcheck source=tests/reports/dumps.sh
. "$(dirname "$0")/dumps.sh"
build=$1 failed=0
today=$(sed -nE 's/^#define TFC_SCHEMA_VERSION ([0-9]+)$/\1/p' "$here/../../profiler/schema.h")
for dump in schemas/1 "schemas/$today" runs/nmt runs/loads runs/modelled runs/tfc_run; do
  database "$dump"
  "$build/bin/tfc-report" --db "$db" show --out "$work/page" >"$work/said" 2>&1 &&
    python3 "$here/queries_check.py" "$build/bin/tfc-report" "$db" "$work/page/index.html" || { cat "$work/said"; failed=1; }
done
exit $failed
