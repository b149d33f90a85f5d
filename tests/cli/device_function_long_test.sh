#!/usr/bin/env bash
# The device function of tfc-export, used by scripts that build their graph with TensorFlow: nmt (whose script asks for
# devices itself), resnet50 and a Keras model. Each operation of a step is where the placement says, in the graph and
# when TensorFlow runs it, and losses are those without it. The test is skipped, with a message, if the Python of
# TFC_CONFORMANCE_VENV (or of .venv, or python3) has no TensorFlow.
set -u
bin=$1/bin
source=$PWD
python=${TFC_CONFORMANCE_VENV:-.venv}/bin/python
[ -x "$python" ] || python=python3
if ! "$python" -c 'import tensorflow' 2>/dev/null; then
  echo "SKIPPED: $python has no TensorFlow"
  exit 0
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export PYTHONPATH=$source/examples CUDA_VISIBLE_DEVICES='' TF_CPP_MIN_LOG_LEVEL=3 PYTHONDONTWRITEBYTECODE=1
cat >"$dir/m.yaml" <<'END_OF_MACHINE'
format: tfc-machine
version: 1
devices:
  - {name: "cpu:0", kind: cpu, count: 4, flops: 5.0e+10, memory_bandwidth: 5GB/s}
links:
  - {from: "*", to: "*", latency: 2us, bandwidth: 10GB/s}
END_OF_MACHINE
map=
for i in 0 1 2 3; do map=$map,cpu:$i=/job:localhost/replica:0/task:0/device:CPU:$i; done
code=0
for model in ${MODELS:-nmt resnet50 keras}; do
  "$python" "$source/tests/cli/device_function.py" build $model "$dir/$model.pb" || { echo "$model: no graph"; exit 1; }
  "$bin/tfc-place" -q --graph "$dir/$model.pb" --machine "$dir/m.yaml" --evaluations 300 --report none --db "$dir/t.db" \
    --out "$dir/$model.json" >"$dir/out" 2>&1
  [ $? -eq 0 ] || { cat "$dir/out"; echo "$model: no placement"; exit 1; }
  "$bin/tfc-export" -q --placement "$dir/$model.json" --format device-function --map "${map#,}" --out "$dir/placed_$model.py" \
    >"$dir/out" 2>&1 || { cat "$dir/out"; echo "$model: no device function"; exit 1; }
  "$python" "$source/tests/cli/device_function.py" check $model "$dir/placed_$model.py" || { echo "$model: failed"; code=1; }
done
exit $code
