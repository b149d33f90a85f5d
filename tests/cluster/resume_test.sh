# Training that is broken off and goes on gives the bits of training that was not: with dropout, in two tasks, and with
# elements of datasets. What is not saved is named.
#
#   resume_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
fail() {
  echo "$*"
  cat "$out/log"
  exit 1
}

python3 - "$out" <<'END'
import sys

def node(name, op, inputs=(), device="/job:worker/task:0", **attrs):
    text = "node { name: '%s' op: '%s' device: '%s'" % (name, op, device)
    text += "".join(" input: '%s'" % i for i in inputs)
    return text + "".join(" attr { key: '%s' value { %s } }" % a for a in attrs.items()) + " }\n"

def const(name, dtype, values, shape="", **kw):
    field = {"DT_FLOAT": "float_val", "DT_INT32": "int_val", "DT_INT64": "int64_val"}[dtype]
    values = " ".join("%s: %s" % (field, v) for v in values)
    return node(name, "Const", dtype="type: " + dtype,
                value="tensor { dtype: %s tensor_shape { %s } %s }" % (dtype, shape, values), **kw)

F, I, L = "type: DT_FLOAT", "type: DT_INT32", "type: DT_INT64"
PS = "/job:ps/task:0"

def variable(name, shape, initial):
    return (node(name, "VariableV2", dtype=F, shape="shape { %s }" % shape, device=PS) +
            node(name + "/init", "Assign", [name, initial], T=F, device=PS) +
            node(name + "/read", "Identity", [name], T=F, device=PS))

# Dropout on the worker; on the ps an operation without seeds draws, too.
vector = "dim { size: 8 }"
g = const("zeros", "DT_FLOAT", [0], vector, device=PS) + const("nothing", "DT_FLOAT", [0], vector, device=PS)
g += variable("w", vector, "zeros") + variable("v", vector, "nothing")
g += const("shape", "DT_INT32", [8], "dim { size: 1 }") + const("half", "DT_FLOAT", [0.5]) + const("two", "DT_FLOAT", [2])
g += node("mask", "RandomUniform", ["shape"], dtype=F, T=I, seed="i: 7", seed2="i: 8")
g += node("add", "AddV2", ["mask", "half"], T=F) + node("keep", "Floor", ["add"], T=F)
g += node("dropout", "Mul", ["keep", "two"], T=F) + node("more", "AddV2", ["dropout", "mask"], T=F)
g += node("train_w", "AssignAdd", ["w", "more"], T=F, device=PS)
g += const("shape_ps", "DT_INT32", [8], "dim { size: 1 }", device=PS)
g += node("noise", "RandomStandardNormal", ["shape_ps"], dtype=F, T=I, device=PS)
g += node("train_v", "AssignAdd", ["v", "noise"], T=F, device=PS)
g += node("train", "NoOp", ["^train_w", "^train_v"])
open(sys.argv[1] + "/dropout.pbtxt", "w").write(g)

# An iterator over a shuffled dataset whose elements get random numbers, and one that makes its dataset itself.
def kinds(dtype):
    return dict(output_types="list { type: %s }" % dtype, output_shapes="list { shape { } }")
def in_function(text):
    return text.replace("node {", "node_def {").replace(" device: '/job:worker/task:0'", "")
library = "library { function { signature { name: 'jitter' input_arg { name: 'i' type: DT_INT64 } "
library += "output_arg { name: 'y' type: DT_FLOAT } } "
library += in_function(const("scalar", "DT_INT32", [], "dim { size: 0 }") +
                       node("draw", "RandomUniform", ["scalar:output:0"], dtype=F, T=I, seed="i: 3", seed2="i: 4") +
                       node("cast", "Cast", ["i"], SrcT=L, DstT=F) +
                       node("sum", "AddV2", ["cast:y:0", "draw:output:0"], T=F))
library += "ret { key: 'y' value: 'sum:z:0' } }\nfunction { signature { name: 'count' output_arg { name: 'd' type: DT_VARIANT } } "
library += in_function(const("a", "DT_INT64", [0]) + const("b", "DT_INT64", [1000]) + const("c", "DT_INT64", [1]) +
                       node("range", "RangeDataset", ["a:output:0", "b:output:0", "c:output:0"], **kinds("DT_INT64")))
library += "ret { key: 'd' value: 'range:handle:0' } } }\n"
g = const("zero", "DT_FLOAT", [0], device=PS) + const("none", "DT_FLOAT", [0], device=PS)
g += variable("w", "", "zero") + variable("n", "", "none")
for name, value in ("first", 0), ("last", 20), ("one", 1), ("buffer", 7), ("seed", 5), ("seed2", 6), ("forever", -1):
    g += const(name, "DT_INT64", [value])
g += node("range", "RangeDataset", ["first", "last", "one"], **kinds("DT_INT64"))
g += node("shuffled", "ShuffleDataset", ["range", "buffer", "seed", "seed2"], reshuffle_each_iteration="b: true", **kinds("DT_INT64"))
g += node("mapped", "MapDataset", ["shuffled"], f="func { name: 'jitter' }", Targuments="list { }", **kinds("DT_FLOAT"))
g += node("repeated", "RepeatDataset", ["mapped", "forever"], **kinds("DT_FLOAT"))
g += node("iterator", "IteratorV2", shared_name="s: ''", container="s: ''", **kinds("DT_FLOAT"))
g += node("begin", "MakeIterator", ["repeated", "iterator"])
g += node("next", "IteratorGetNext", ["iterator"], **kinds("DT_FLOAT"))
g += node("one_shot", "OneShotIterator", dataset_factory="func { name: 'count' }", **kinds("DT_INT64"))
g += node("number", "IteratorGetNext", ["one_shot"], **kinds("DT_INT64"))
g += node("as_float", "Cast", ["number"], SrcT=L, DstT=F)
g += const("decay", "DT_FLOAT", [0.9], device=PS) + node("old", "Mul", ["w/read", "decay"], T=F, device=PS)
g += node("new", "AddV2", ["old", "next"], T=F, device=PS) + node("train_w", "Assign", ["w", "new"], T=F, device=PS)
g += node("train_n", "AssignAdd", ["n", "as_float"], T=F, device=PS)
g += node("train", "NoOp", ["^train_w", "^train_n"])
open(sys.argv[1] + "/dataset.pbtxt", "w").write(g + library)

# A queue that gets longer.
g = const("zero", "DT_FLOAT", [0], device=PS) + variable("w", "", "zero")
g += node("queue", "FIFOQueueV2", component_types="list { type: DT_FLOAT }", shapes="list { shape { } }", device=PS)
g += node("train", "QueueEnqueueV2", ["queue", "w/read"], Tcomponents="list { type: DT_FLOAT }", device=PS)
open(sys.argv[1] + "/queue.pbtxt", "w").write(g)
END

# train GRAPH NAME STEPS
mpirun_ranks=$out/ranks
train() {
  mpirun_here 2 "$build/bin/tfc-run" --graph "$out/$1.pbtxt" --cluster ps=1,worker=1 --supervise "$out/$2" --steps "$3" \
    --target train >"$out/log" 2>&1
}
for graph in dropout dataset; do
  train $graph $graph.whole 50 || fail "$graph: training failed"
  train $graph $graph.parts 23 || fail "$graph: training failed"
  [ -s "$out/$graph.parts/model.ckpt-23.state" ] || fail "$graph: no state is saved"
  train $graph $graph.parts 50 || fail "$graph: going on failed"
  said 'model.ckpt-23: [0-9]* variables restored' || fail "$graph: nothing was restored"
  ! said 'is not saved\|begin anew' || fail "$graph: what is not saved?"
  cmp "$out/$graph.whole/model.ckpt-50.data-00000-of-00001" "$out/$graph.parts/model.ckpt-50.data-00000-of-00001" ||
    fail "$graph: other bits"
  cmp "$out/$graph.whole/model.ckpt-50.state" "$out/$graph.parts/model.ckpt-50.state" || fail "$graph: another state"
done

train queue queue 2 || fail 'queue: training failed'
said "what the queue 'queue' holds is not saved" || fail 'queue: no warning'

# A state that is broken is an error that names the file; without the file it is said what begins anew.
echo 'tfc state 1' >"$out/dropout.parts/model.ckpt-50.state"
train dropout dropout.parts 51 && fail 'a broken state was taken'
said 'dropout.parts/model.ckpt-50.state: it has no beginning or no end' || fail 'a broken state: no reason'
rm "$out/dropout.parts/model.ckpt-50.state"
train dropout dropout.parts 51 || fail 'without the state'
said 'model.ckpt-50.state is not there' || fail 'without the state: nothing is said'
echo 'dropout and datasets: the same bits; a queue is named'
