#!/usr/bin/env bash
# Figures of page and terminal, and events of traces, are computed again from the documented views of databases of
# different kinds, by another program than the one that wrote them (views_check.py).
#
#   tests/reports/views_long_test.sh BUILD
set -u
here=$(cd "$(dirname "$0")" && pwd) build=$1
for needed in python3 sqlite3 gzip; do command -v $needed >/dev/null || { echo "SKIPPED: no $needed"; exit 0; }; done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
for name in nmt loops modelled simulated throughput loads tfc_run moves; do
  dump=$here/runs/$name.sql.gz
  [ "$name" != moves ] || dump=$here/schemas/13.sql.gz # its moves were simulated
  gzip -dc "$dump" | sqlite3 "$work/$name.db" || exit 1
  report=("$build/bin/tfc-report" --db "$work/$name.db")
  "${report[@]}" show --out "$work/page" >"$work/show.txt" 2>"$work/said" &&
    for list in critical gaps memory; do "${report[@]}" $list --json >"$work/$list.json" 2>>"$work/said" || break; done &&
    "${report[@]}" trace --out "$work/trace.json" >>"$work/said" 2>&1 &&
    python3 "$here/views_check.py" "$name" "$work/$name.db" "$work" ||
    { cat "$work/said"; failed=1; }
done
exit $failed
