# What tfc-export writes for several tasks, in TensorFlow's own servers on this machine's loopback: the graph with its
# devices and the ClusterSpec of a placement over two tasks. Its losses are those of the placed graph here, over two tasks
# under mpirun. Skipped, with a message, if the Python of TFC_CONFORMANCE_VENV (or of .venv, or python3) has no TensorFlow.
#
#   exported_long_test.sh BUILD_FOLDER      MODELS="mlp nmt" says which models
build=$1
source tests/cluster/mpirun.sh
python=${TFC_CONFORMANCE_VENV:-.venv}/bin/python
[ -x "$python" ] || python=python3
if ! "$python" -c 'import tensorflow' 2>/dev/null; then
  echo "SKIPPED: $python has no TensorFlow"
  exit 0
fi
export PYTHONPATH=$PWD/examples CUDA_VISIBLE_DEVICES='' TF_CPP_MIN_LOG_LEVEL=3 PYTHONDONTWRITEBYTECODE=1
cat >"$out/m.yaml" <<'END'
format: tfc-machine
version: 1
devices:
  - {name: "cpu:0", kind: cpu, count: 2, flops: 5.0e+10, memory_bandwidth: 5GB/s}
links:
  - {from: "*", to: "*", latency: 1us, bandwidth: 20GB/s}
END
map=cpu:0=/job:ps/replica:0/task:0/device:CPU:0,cpu:1=/job:worker/replica:0/task:0/device:CPU:0
for model in ${MODELS:-rnnlm nmt}; do
  "$python" tests/cluster/exported.py feeds $model "$out" >"$out/feeds" 2>"$out/log" || fail "$model: no feeds"
  "$build/bin/tfc-place" -q --graph examples/$model.pb --machine "$out/m.yaml" --evaluations 300 --report none --db "$out/t.db" \
    --out "$out/$model.json" >"$out/log" 2>&1 || fail "$model: no placement"
  for format in graphdef clusterspec; do
    "$build/bin/tfc-export" -q --placement "$out/$model.json" --graph examples/$model.pb --format $format --map $map \
      --out "$out/$model.$format" >"$out/log" 2>&1 || fail "$model: not exported as $format"
  done
  # The loss of each step. Feeds are the same in all steps.
  : >"$out/losses"
  for steps in 1 2 3; do
    # shellcheck disable=SC2046
    mpirun_here 2 "$build/bin/tfc-run" -q --json --graph "$out/$model.graphdef" --cluster "$out/$model.clusterspec" --warmup 0 \
      --steps $steps $(cat "$out/feeds") >"$out/printed" 2>"$out/log" || fail "$model: does not run here"
    sed -n 's/.*"loss:0": //p' "$out/printed" >>"$out/losses"
  done
  "$python" tests/cluster/exported.py compare $model "$out" >"$out/log" 2>&1 || fail "$model: TensorFlow has other losses"
  grep losses "$out/log"
done
