#!/usr/bin/env bash
# The wheel: made from a build, installed by pip into a fresh virtual environment, and used there: nmt's step, values as a
# formula gives them, arrays that are not copied, placing, and tfc's programs. What it runs on lies in the wheel, all but
# the C and C++ libraries and Python's own.
set -u
build=$(cd "$1" && pwd)
source=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "$*"; exit 1; }
python=
for each in /usr/bin/python3 python3; do # another python3 than Debian's may come first in PATH, and have no numpy
  if "$each" -c 'import numpy, venv, ensurepip' 2>/dev/null; then python=$each && break; fi
done
[ -n "$python" ] || { echo "python3-venv or python3-numpy is missing"; exit 1; }
"$python" "$source/tfc_python/wheel.py" "$build" "$dir" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "no wheel was made"; }
wheel=$(tail -n 1 "$dir/log")
"$python" -m venv --system-site-packages "$dir/venv" || fail "no virtual environment could be made"
"$dir/venv/bin/pip" install --no-index --quiet --disable-pip-version-check "$wheel" || fail "pip does not install $wheel"
"$dir/venv/bin/pip" check --disable-pip-version-check | grep -i '^tfc ' && fail "pip finds something missing"
cd "$dir" || exit 1
unset LD_LIBRARY_PATH PYTHONPATH TFC_LIBRARY
"$dir/venv/bin/python" - "$source/examples" <<'END' || exit 1
import gc, os, sys
import numpy as np
import tfc

assert "/venv/" in tfc.__file__, tfc.__file__
x = np.linspace(-1, 1, 1000, dtype="f4")
with open("g.pbtxt", "w") as file:
    file.write('''node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Square" input: "x" attr { key: "T" value { type: DT_FLOAT } } }''')
with tfc.load("g.pbtxt") as model:
    y = model.run("y", {"x": x})
    assert (y == x * x).all() and y.base is not None
kept = y[10:20]
del y, model
gc.collect()
assert (kept == x[10:20] ** 2).all()  # the memory lives as long as an array that is over it

model = tfc.load(os.path.join(sys.argv[1], "nmt.pb"))
rng = np.random.default_rng(1)
feeds = {name + ":0": rng.integers(2, 8000, (32, 20), dtype="i4") for name in ("source", "target_in", "target_out")}
first = float(model.run("loss", feeds, targets="train_op"))
last, events = model.profile("loss", feeds)
assert 0 < last < first, (first, last)
assert len(events) > 100 and any(e.op == "MatMul" for e in events)

with open("costs.json", "w") as file:
    file.write('{"format": "tfc-cost-graph", "version": 1, "kinds": ["acc"], "nodes": [{"name": "a", "time_us": {"acc": 5}},'
               ' {"name": "b", "time_us": {"acc": 5}}], "edges": []}')
with open("m.yaml", "w") as file:
    file.write("format: tfc-machine\nversion: 1\ndevices:\n  - {name: 'acc:0', kind: acc, count: 2}\n"
               "links:\n  - {from: '*', to: '*', latency: 1us}\n")
placement = tfc.place("costs.json", machine="m.yaml", evaluations=200, db=None)
assert placement.step_us == 5.0, placement.document
print("nmt: loss %.3f, then %.3f after a step; %d operations timed" % (first, last, len(events)))
END
for program in tfc-place tfc-run tfc-report tfc-export; do
  said=$("$dir/venv/bin/$program" --version) || fail "$program of the wheel does not start"
  case $said in "$program "*) ;; *) fail "$program --version says '$said'" ;; esac
done
for file in bin/tfc-place lib/libtfc.so.0; do
  ldd "$dir"/venv/lib/python3*/site-packages/tfc/$file >"$dir/ldd"
  grep -E 'not found' "$dir/ldd" && fail "a library of $file is missing"
  grep -q "$dir.*openblas" "$dir/ldd" || fail "OpenBLAS of $file is not the wheel's"
  outside=$(awk '$3 ~ /^\// { print $3 }' "$dir/ldd" | grep -v "^$dir/" | grep -vE '/(lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+)|ld-linux.*)\.so')
  [ -z "$outside" ] || fail "$file uses libraries outside of the wheel: $outside"
done
