#!/usr/bin/env bash
# A database of every schema that was released can be read, all of it, and stays as it was; and each view of today has
# the columns that it had in each of them.
#
#   tests/reports/schemas_test.sh BUILD
set -u
here=$(cd "$(dirname "$0")" && pwd) build=$1
for needed in sqlite3 gzip; do command -v $needed >/dev/null || { echo "SKIPPED: no $needed"; exit 0; }; done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0 tried=0
# Under sanitizers, where each start takes long, the pages of all schemas are made, and the lists of today's.
commands=("list" "critical" "gaps" "memory" "nodes" "compare 1 1" "trace --out $work/trace.json")
today=$(sed -nE 's/^#define TFC_SCHEMA_VERSION ([0-9]+)$/\1/p' "$here/../../profiler/schema.h")
[ -n "$today" ] || { echo "profiler/schema.h does not say which schema is today's"; exit 1; }
sanitized=yes expected=$((today + ${#commands[@]}))
if grep -q '^TFC_SANITIZE:STRING=$' "$build/CMakeCache.txt"; then sanitized='' expected=$((today * (1 + ${#commands[@]}))); fi
columns() { # of each view of a database
  sqlite3 -readonly "$1" "SELECT v.name || '.' || c.name FROM sqlite_schema v, pragma_table_info(v.name) c WHERE v.type = 'view'" | LC_ALL=C sort
}
for dump in "$here"/schemas/*.sql.gz; do
  version=$(basename "$dump" .sql.gz) db=$work/$(basename "$dump" .sql.gz).db
  gzip -dc "$dump" | sqlite3 "$db" || exit 1
  columns "$db" >"$work/old.txt"
  before=$(sha256sum <"$db")
  those=("show --out $work/page")
  [ "$sanitized" ] && [ "$version" != "$today" ] || those+=("${commands[@]}")
  for command in "${those[@]}"; do
    tried=$((tried + 1))
    # shellcheck disable=SC2086 # words
    "$build/bin/tfc-report" --db "$db" $command >"$work/out.txt" 2>"$work/said" ||
      { echo "schema $version: $command: $(head -c 300 "$work/said")"; failed=1; }
  done
  [ "$before" = "$(sha256sum <"$db")" ] || { echo "schema $version: reading changed the file"; failed=1; }
  "$build/bin/tfc-report" --db "$db" gc --keep 5 >"$work/out.txt" 2>"$work/said" || { echo "schema $version: gc: $(cat "$work/said")"; failed=1; }
  columns "$db" >"$work/now.txt" # a program that writes has upgraded the database to the current version
  gone=$(LC_ALL=C comm -23 "$work/old.txt" "$work/now.txt")
  [ -z "$gone" ] || { echo "schema $version: gone from the views: $gone"; failed=1; }
done
for ((version = 1; version <= today; version++)); do
  [ -e "$here/schemas/$version.sql.gz" ] || { echo "schema $version: no database of it in tests/reports/schemas"; failed=1; }
done
[ "$tried" -ge "$expected" ] || { echo "$tried commands were tried, not $expected"; failed=1; }
exit $failed
