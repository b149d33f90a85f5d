#!/usr/bin/env bash
# The Python package, from an installed tree: values as a checked formula gives them, threads, errors, no copies.
set -u
build=$(cd "$1" && pwd)
source=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python=
for each in python3 /usr/bin/python3; do # another python3 than Debian's may come first in PATH, and have no numpy
  if "$each" -c 'import numpy' 2>/dev/null; then python=$each && break; fi
done
[ -n "$python" ] || { echo "python3-numpy is missing"; exit 1; }
cmake --install "$build" --prefix "$dir/tree" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
cd "$dir" || exit 1
export PYTHONPATH=$(dirname "$(find "$dir/tree" -path '*/tfc/__init__.py' -printf '%h\n')") PYTHONDONTWRITEBYTECODE=1
"$python" - "$source" <<'END' || exit 1
import gc, json, os, sys, threading
import numpy as np
import tfc

examples = os.path.join(sys.argv[1], "examples")
graph = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "s" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } attr { key: "shape" value { shape { dim { size: -1 } } } } }
node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } } attr { key: "shape" value { shape { } } } }
node { name: "square" op: "Square" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "upper" op: "StringUpper" input: "s" }
node { name: "more" op: "AddV2" input: "n" input: "n" attr { key: "T" value { type: DT_INT64 } } }
"""
with open("g.pbtxt", "w") as file:
    file.write(graph)

with tfc.load("g.pbtxt") as model:
    assert model.devices == ["cpu:0"], model.devices
    x = np.arange(5, dtype="f4")
    y = model.run("square:0", {"x:0": x})
    assert y.dtype == np.float32 and (y == x * x).all()
    z = model.run("square", {"x": x[::2]})          # not contiguous
    assert (z == [0, 4, 16]).all() and (y == x * x).all()
    assert (model.run("square", {"x": [1, 2]}) == [1, 4]).all()    # a list, of the placeholder's type
    assert model.run("square", {"x": np.zeros(0)}).shape == (0,)
    words = model.run("upper", {"s": ["ab", b"c\0d", ""]})
    assert list(words) == [b"AB", b"C\0D", b""], words
    more = model.run("more", {"n": 21})
    assert more == 42 and more.dtype == np.int64
    assert model.run(["square", "more"], {"x": x, "n": 1})[1] == 2
    values, events = model.profile("square", {"x": x})
    assert (values == y).all() and any(e.op == "Square" and e.device == "cpu:0" for e in events)

    kept = [model.run("square", {"x": np.full(100000, i, "f4")}) for i in range(20)]
    gc.collect()
    assert all((k == i * i).all() for i, k in enumerate(kept))     # the library's memory lives as long as the array
    assert all(k.base is not None for k in kept)                   # and was not copied

    failed = []
    def work(k):
        for i in range(50):
            v = np.full(1 + i % 5, k, "f4")
            if not (model.run("square", {"x": v}) == k * k).all():
                failed.append(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not failed

    for wrong, kind, words in [(lambda: model.run("nothing"), "invalid argument", "nothing"),
                               (lambda: model.run("square"), "invalid argument", "'x'"),
                               (lambda: tfc.load("none.pb"), "not found", "none.pb"),
                               (lambda: model.run("square", {"x": np.zeros((1,) * 9)}), "invalid argument", "9")]:
        try:
            wrong()
        except tfc.Error as error:
            assert error.kind == kind and words in str(error), (error.kind, error)
        else:
            raise AssertionError("no error about " + words)
try:
    model.run("square", {"x": [1]})
except ValueError:
    pass
else:
    raise AssertionError("a closed model ran")

# Training falls, and what was saved is what is restored.
rng = np.random.default_rng(1)
labels = rng.integers(0, 10, 32)
images = np.pad(np.repeat(np.eye(10, dtype="f4"), 78, axis=1), ((0, 0), (0, 4)))[labels]
model = tfc.load(os.path.join(examples, "mlp.pb"))
feeds = {"x:0": images, "labels:0": labels}
first = model.run("loss:0", feeds)
for _ in range(40):
    model.run([], feeds, targets="train_op")
model.save("trained/model")
last = model.run("loss:0", feeds)
assert last < 0.5 * first, (first, last)
other = tfc.load(os.path.join(examples, "mlp.pb"), checkpoint="trained/model")
assert other.run("loss:0", feeds) == last

# Placing, on a machine that is only described: nothing is measured here.
costs = {"format": "tfc-cost-graph", "version": 1, "kinds": ["acc"],
         "nodes": [{"name": n, "time_us": {"acc": 5.0}} for n in "abcd"],
         "edges": [{"from": "a", "to": "d", "bytes": 8}, {"from": "b", "to": "c", "bytes": 8}]}
json.dump(costs, open("costs.json", "w"))
with open("m.yaml", "w") as file:
    file.write("format: tfc-machine\nversion: 1\ndevices:\n  - {name: 'acc:0', kind: acc, count: 2}\n"
               "links:\n  - {from: '*', to: '*', latency: 1us}\n")
placement = tfc.place("costs.json", machine="m.yaml", time="2s", db=None, wait=False, seed=None)
assert placement.step_us == 10.0 and placement.label == "modelled", placement.document
assert placement.nodes["a"] == placement.nodes["d"] != placement.nodes["b"]
assert os.path.exists(placement.path)
document = tfc.place(open(os.path.join(examples, "mlp.pb"), "rb").read(), devices=2, time="2s", wait=True, db=None,
                     out="bytes.json").document
assert document["devices"], document
try:
    tfc.place(7, db=None)
except tfc.Error as error:
    assert error.kind == "invalid argument" and "the bytes of one, not int" in str(error), str(error)
else:
    raise AssertionError("no error about a number in place of a graph")
for flags, kind, words in [({"tiem": "2s"}, "invalid argument", "tiem"),
                           ({"time": "2"}, "invalid argument", "--time needs a time with its unit"),
                           ({"devices": "acc:7", "machine": "m.yaml"}, "unavailable", "acc:7")]:
    try:
        tfc.place("costs.json", db=None, **flags)
    except tfc.Error as error:
        assert error.kind == kind and words in str(error) and "--help" not in str(error), (error.kind, str(error))
    else:
        raise AssertionError("no error about " + words)
try:
    tfc.place("costs.json", machine="nothing.yaml", db=None)
except tfc.Error as error:
    assert "nothing.yaml" in str(error)
else:
    raise AssertionError("a machine file that is not there")
print("ok")
END
