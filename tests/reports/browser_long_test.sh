#!/usr/bin/env bash
# Pages of fifteen kinds of runs, and of two and of five runs compared, in a headless Chromium, on a desktop, on a
# telephone and dark: nothing for the console to say, no text over another or outside of its picture, nothing wider than
# the window; a click, a search and a zoom do what they should (browser_check.js).
#
#   tests/reports/browser_long_test.sh BUILD [SCREENSHOTS]
set -u
here=$(cd "$(dirname "$0")" && pwd) build=$1 shots=${2:-}
for browser in chromium-headless-shell chromium; do command -v $browser >/dev/null && break; done
command -v $browser >/dev/null || { echo "SKIPPED: no chromium (package chromium-headless-shell)"; exit 0; }
for needed in sqlite3 gzip gnuplot; do command -v $needed >/dev/null || { echo "SKIPPED: no $needed"; exit 0; }; done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
options=(--no-sandbox --disable-gpu --hide-scrollbars --disable-dev-shm-usage --user-data-dir="$work/profile" --virtual-time-budget=4000)
failed=0 tried=0

# check NAME WIDTH HEIGHT [OPTION...]
check() {
  local name=$1 width=$2 height=$3 found
  shift 3
  tried=$((tried + 1))
  found=$(timeout 120 "$browser" "${options[@]}" --window-size="$width,$height" "$@" --dump-dom "file://$work/checked.html" 2>"$work/said" |
    sed -n '/^FINDINGS/,/^END/p')
  if ! grep -q '^END' <<<"$found"; then
    echo "$name at $width: the page did not come to its end"
    tail -n 5 "$work/said"
    failed=1
  elif grep -q '^FAULT' <<<"$found"; then
    sed -n "s/^FAULT/$name at $width:/p" <<<"$found"
    failed=1
  else
    echo "$name at $width: $(sed -n 's/^FINDINGS //p' <<<"$found")"
  fi
  [ -z "$shots" ] || timeout 120 "$browser" "${options[@]}" --window-size="$width,$height" "$@" \
    --screenshot="$shots/$name-$width${1:+-dark}.png" "file://$work/page/index.html" 2>/dev/null
}

# page NAME: of $work/run.db
page() {
  rm -rf "$work/page"
  "$build/bin/tfc-report" --db "$work/run.db" show --out "$work/page" >"$work/show.txt" 2>"$work/said" || {
    echo "$1: no page: $(cat "$work/said")"
    failed=1
    return
  }
  for list in critical gaps memory nodes; do # a run without a traced step does not have these lists
    "$build/bin/tfc-report" --db "$work/run.db" $list >>"$work/show.txt" 2>/dev/null
  done
  if awk 'length($0) > 80 { print FILENAME ": wider than 80 columns: " $0; wide = 1 } END { exit wide }' "$work/show.txt"; then :; else failed=1; fi
  look "$1"
}

# look NAME: at $work/page/index.html
look() {
  awk -v script="$here/browser_check.js" '/^<style>/ && !done { print "<script>"; while ((getline line < script) > 0) print line; print "</script>"; done = 1 } { print }' \
    "$work/page/index.html" >"$work/checked.html"
  check "$1" 1400 2400
  check "$1" 375 2400
}

for dump in "$here"/runs/*.sql.gz; do
  name=$(basename "$dump" .sql.gz)
  rm -f "$work/run.db"
  gzip -dc "$dump" | sqlite3 "$work/run.db" || exit 1
  page "$name"
  [ "$name" != nmt ] || check "$name" 1400 2400 --blink-settings=preferredColorScheme=0
done

# A GPU's records beside those of the last one: three streams with thirty works.
gzip -dc "$here/runs/throughput.sql.gz" >"$work/gpu.sql"
rm -f "$work/run.db"
sqlite3 "$work/run.db" <"$work/gpu.sql" && sqlite3 "$work/run.db" "
  INSERT INTO work (placement, step, position, kind, name, device_id, node_id, context, stream, start_ns, duration_ns,
    grid, block, registers, shared_bytes, bytes, direction, transfer, segment)
  WITH RECURSIVE i(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM i WHERE k < 29)
  SELECT s.placement, s.step, k, CASE k % 10 WHEN 9 THEN 'copy' ELSE 'kernel' END, 'kernel ' || k, 0, NULL, 1, 7 + k % 3,
    1000 + k / 3 * 30000, 12000 + 1000 * (k % 3), '1x1x1', '128x1x1', 32, 0, 0, CASE k % 10 WHEN 9 THEN 'HtoD' END, NULL, NULL
  FROM i, (SELECT DISTINCT placement, step FROM op) s" || exit 1
page gpu
grep -q 'id="streams"' "$work/page/index.html" || { echo "gpu: no streams"; failed=1; }

# A run whose candidates say what the learned policy did.
rm -f "$work/run.db"
gzip -dc "$here/schemas/10.sql.gz" | sqlite3 "$work/run.db" || exit 1
page learned
grep -q 'id="policy"' "$work/page/index.html" || { echo "learned: no plot of the policy"; failed=1; }

# Loads compared; and an answer of which only totals are kept.
rm -rf "$work/page" "$work/run.db"
gzip -dc "$here/runs/loads.sql.gz" | sqlite3 "$work/run.db" || exit 1
"$build/bin/tfc-report" --db "$work/run.db" compare 1 1 --out "$work/page" >"$work/said" 2>&1 || { echo "loads_compared: $(cat "$work/said")"; failed=1; }
look loads_compared
grep -q '<h3>Loads' "$work/page/index.html" || { echo "loads_compared: no loads"; failed=1; }
sqlite3 "$work/run.db" "DELETE FROM op WHERE placement IN (SELECT placement FROM placement JOIN run USING (run_id) WHERE placement_id = best_placement_id);
  DELETE FROM transfer WHERE placement IN (SELECT placement FROM placement JOIN run USING (run_id) WHERE placement_id = best_placement_id)" || exit 1
page not_kept
grep -q 'Memory over the step (no step of the answer is kept' "$work/page/index.html" || { echo "not_kept: no reason"; failed=1; }
grep -q 'nothing moved\|gnuplot failed' "$work/page/index.html" && { echo "not_kept: a false reason"; failed=1; }

# What was only modelled: no database has it.
rm -rf "$work/page"
"$build/bin/tfc-place" --graph "$here/../../examples/mlp.pb" --machine "$here/../../configs/4xp100.yaml" --devices 4 --evaluations 50 \
  --policy none --out "$work/placement.json" --report "$work/page" -q >"$work/said" 2>&1
[ -e "$work/page/index.html" ] || { echo "described: no page: $(cat "$work/said")"; failed=1; }
look described
grep -q 'class="timeline"' "$work/page/index.html" || { echo "described: no timeline"; failed=1; }
# Sixteen devices, more pairs of them than a table shows, and long names.
awk 'BEGIN {
  print "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": ["
  for (i = 0; i < 120; i++)
    printf "%s{\"name\": \"model/encoder_%d/self_attention_with_relative_positions/projection_%d/kernel_product\", \"time_us\": {\"acc\": %d}}\n", (i ? "," : ""), i % 7, i, 20 + i * 37 % 90
  print "], \"edges\": ["
  for (i = 16; i < 120; i++)
    printf "%s{\"from\": \"model/encoder_%d/self_attention_with_relative_positions/projection_%d/kernel_product\", \"to\": \"model/encoder_%d/self_attention_with_relative_positions/projection_%d/kernel_product\", \"bytes\": %d}\n", (i > 16 ? "," : ""), (i - 16 + i % 5) % 7, i - 16 + i % 5, i % 7, i, 100000 + 7919 * i
  print "]}"
}' >"$work/many.json"
cat >"$work/many.yaml" <<'END'
format: tfc-machine
version: 1
devices:
  - {name: "worker_of_rack_3_in_hall_b:0", kind: acc, memory: 4GiB, count: 16}
links:
  - {from: "*", to: "*", latency: 1us, bandwidth: 100GB/s}
END
rm -rf "$work/page"
"$build/bin/tfc-place" --graph "$work/many.json" --machine "$work/many.yaml" --algorithm round-robin --evaluations 300 --out "$work/placement.json" \
  --report "$work/page" -q >"$work/show.txt" 2>&1
[ -e "$work/page/index.html" ] || { echo "many: no page: $(cat "$work/show.txt")"; failed=1; }
awk 'length($0) > 80 { print "many: wider than 80 columns: " $0; wide = 1 } END { exit wide }' "$work/show.txt" || failed=1
look many
grep -q 'more pairs' "$work/page/index.html" || { echo "many: all pairs of sixteen devices in one table"; failed=1; }

# Two runs compared.
rm -rf "$work/page" "$work/run.db"
gzip -dc "$here/runs/nmt.sql.gz" | sqlite3 "$work/run.db" || exit 1
"$build/bin/tfc-report" --db "$work/run.db" compare 1 1 --out "$work/page" >"$work/said" 2>&1 || { echo "compared: $(cat "$work/said")"; failed=1; }
look compared
rm -rf "$work/page"
"$build/bin/tfc-report" --db "$work/run.db" compare 1 1 1 1 1 --out "$work/page" >"$work/said" 2>&1 || { echo "compared5: $(cat "$work/said")"; failed=1; }
look compared5
[ "$tried" -eq 37 ] || { echo "$tried pages were tried, not 37"; failed=1; }
exit $failed
