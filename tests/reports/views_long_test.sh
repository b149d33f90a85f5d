#!/usr/bin/env bash
# Figures of page and terminal, and events of traces, are computed again from the documented views of databases of
# different kinds, by another program than the one that wrote them (views_check.py).
#
#   tests/reports/views_long_test.sh BUILD
set -u
# shellcheck source=tests/reports/dumps.sh
. "$(dirname "$0")/dumps.sh"
build=$1 failed=0
for name in nmt loops modelled simulated throughput loads tfc_run moves; do
  dump=runs/$name
  [ "$name" != moves ] || dump=schemas/13 # its moves were simulated
  database "$dump"
  report=("$build/bin/tfc-report" --db "$db")
  "${report[@]}" show --out "$work/page" >"$work/show.txt" 2>"$work/said" &&
    for list in critical gaps memory; do "${report[@]}" $list --json >"$work/$list.json" 2>>"$work/said" || break; done &&
    "${report[@]}" trace --out "$work/trace.json" >>"$work/said" 2>&1 &&
    python3 "$here/views_check.py" "$name" "$db" "$work" ||
    { cat "$work/said"; failed=1; }
done
exit $failed
