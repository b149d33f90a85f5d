#!/usr/bin/env bash
# What pages print as queries runs in sqlite3 as it stands: on databases of today's schema, and on older ones after the
# command that the page names (queries_check.py).
#
#   tests/reports/queries_test.sh BUILD
set -u
here=$(cd "$(dirname "$0")" && pwd) build=$1
for needed in python3 sqlite3 gzip; do command -v $needed >/dev/null || { echo "SKIPPED: no $needed"; exit 0; }; done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
today=$(sed -nE 's/^#define TFC_SCHEMA_VERSION ([0-9]+)$/\1/p' "$here/../../profiler/schema.h")
for dump in schemas/1 "schemas/$today" runs/nmt runs/loads runs/modelled runs/tfc_run; do
  db=$work/$(basename $dump).db
  gzip -dc "$here/$dump.sql.gz" | sqlite3 "$db" || exit 1
  "$build/bin/tfc-report" --db "$db" show --out "$work/page" >"$work/said" 2>&1 &&
    python3 "$here/queries_check.py" "$build/bin/tfc-report" "$db" "$work/page/index.html" || { cat "$work/said"; failed=1; }
done
exit $failed
