# For tests that run tfc-report on the databases in runs/ and schemas/, which read this file with `.`: it sets `here` (this
# folder) and `work` (an empty folder that is removed at the end), and skips the test where a program is missing.
# shellcheck shell=bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for needed in python3 sqlite3 gzip; do command -v $needed >/dev/null || { echo "SKIPPED: no $needed"; exit 0; }; done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# database DUMP: makes the database $db of DUMP.sql.gz.
database() {
  db=$work/$(basename "$1").db
  gzip -dc "$here/$1.sql.gz" | sqlite3 "$db" || exit 1
}
