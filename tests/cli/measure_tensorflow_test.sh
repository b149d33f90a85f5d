#!/usr/bin/env bash
# examples/measure_with/tensorflow_steps.py measures a placed graph in TensorFlow. The test is skipped, with a message,
# if the Python of TFC_CONFORMANCE_VENV (or of .venv, or python3) has no TensorFlow.
set -u
bin=$1/bin
python=${TFC_CONFORMANCE_VENV:-.venv}/bin/python
[ -x "$python" ] || python=python3
if ! "$python" -c 'import tensorflow' 2>/dev/null; then
  echo "SKIPPED: $python has no TensorFlow"
  exit 0
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cat > "$dir/m.yaml" <<'END'
format: tfc-machine
version: 1
devices:
  - {name: "cpu:0", kind: cpu, count: 2, flops: 5.0e+10, memory_bandwidth: 5GB/s}
links:
  - {from: "*", to: "*", latency: 2us, bandwidth: 10GB/s}
END
"$bin/tfc-place" --graph examples/mlp.pb --machine "$dir/m.yaml" --measurements 4 --evaluations 500 --db "$dir/t.db" \
  --report none --out "$dir/o.json" --measure-with "$python examples/measure_with/tensorflow_steps.py --operations" \
  > "$dir/out" 2> "$dir/err"
code=$?
if [ $code != 0 ] && [ $code != 7 ]; then # 7: no placement is faster than one device, which is likely here
  echo "exit $code"
  cat "$dir/err"
  exit 1
fi
if grep 'was not measured' "$dir/err"; then exit 1; fi
"$python" - "$dir" <<'END'
import json, sqlite3, sys
answer = json.load(open(sys.argv[1] + "/o.json"))
assert answer["step"]["label"] == "measured" and answer["value_us"] > 0, answer["step"]
assert "tensorflow_steps.py" in answer["measured_with"]
db = sqlite3.connect(sys.argv[1] + "/t.db")
ops = {name for (name,) in db.execute("SELECT DISTINCT node FROM v_op")}
assert len(ops) > 20, ops  # operations have the names of the graph
devices = {name for (name,) in db.execute("SELECT DISTINCT device FROM v_op")}
assert devices == {"cpu:0", "cpu:1"}, devices
END
