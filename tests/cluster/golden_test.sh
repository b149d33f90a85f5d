# Training jobs that TensorFlow 2.15 wrote (cases.py) run here, a process for each task, and what their sessions fetch is
# what TensorFlow's own servers gave (generate.py).
#
#   golden_test.sh BUILD_FOLDER [NAME...]
build=$1
shift
source tests/cluster/mpirun.sh
[ $# -gt 0 ] || set -- $(ls -d tests/cluster/golden/*/ | xargs -n 1 basename)
failed=0
for name in "$@"; do
  case=tests/cluster/golden/$name
  cluster=$(cat "$case/cluster")
  count=$(tr ',' '\n' <<<"$cluster" | awk -F= '{n += $2} END {print n}')
  if ! mpirun_here "$count" "$build/bin/tfc-run" -q --graph "$case/graph.{job}.{task}.meta" --cluster "$cluster" \
    --run "$case/script.json" --out "$out/$name" >"$out/log" 2>&1; then
    echo "$name: failed"
    cat "$out/log"
    failed=1
  elif ! python3 tests/cluster/compare.py "$case" "$out/$name"; then
    failed=1
  fi
done
exit $failed
