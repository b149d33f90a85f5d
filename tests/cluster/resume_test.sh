# Training that is broken off and goes on gives the bits of training that was not: with dropout, in two tasks, with elements
# of datasets and queues, with a reader's lines, and with what queue runners have put in. What is not saved is named.
#
#   resume_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh

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

# Two vectors from one operation, for initial values.
g = const("matrix", "DT_FLOAT", [3], "dim { size: 2 } " + vector, device=PS)
g += node("unpack", "Unpack", ["matrix"], device=PS, T=F, num="i: 2", axis="i: 0")
open(sys.argv[1] + "/unpack", "w").write(g)

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

# Queues that get longer and a reader, on both tasks: each step puts two elements into a shuffled queue and takes one, and
# reads a line of one of the files that it names.
g = const("zero", "DT_FLOAT", [1], device=PS) + const("none", "DT_FLOAT", [0], device=PS)
g += variable("w", "", "zero") + variable("n", "", "none")
components = dict(component_types="list { type: DT_FLOAT }")
g += node("shuffle", "RandomShuffleQueueV2", shapes="list { shape { } }", seed="i: 3", seed2="i: 4", device=PS, **components)
g += const("factor", "DT_FLOAT", [1.25], device=PS) + node("more", "Mul", ["w/read", "factor"], T=F, device=PS)
# An element must not share the memory of the variable, which the next step writes to.
g += const("unchanged", "DT_FLOAT", [1], device=PS) + node("same", "Mul", ["w/read", "unchanged"], T=F, device=PS)
for name, value in ("put_old", "same"), ("put_more", "more"):
    g += node(name, "QueueEnqueueV2", ["shuffle", value] + (["^put_old"] if name == "put_more" else []),
              Tcomponents="list { type: DT_FLOAT }", device=PS)
g += node("taken", "QueueDequeueV2", ["shuffle", "^put_more"], device=PS, **components)
g += const("shrink", "DT_FLOAT", [0.75], device=PS) + node("less", "Mul", ["taken", "shrink"], T=F, device=PS)
g += node("train_w", "Assign", ["w", "less"], T=F, device=PS)
with open(sys.argv[1] + "/lines", "w") as lines:
    lines.write("1\n20\n300\n4000\n")
g += node("name", "Const", dtype="type: DT_STRING",
          value="tensor { dtype: DT_STRING tensor_shape { } string_val: '%s/lines' }" % sys.argv[1])
strings = dict(component_types="list { type: DT_STRING }")
g += node("files", "FIFOQueueV2", **strings) + node("reader", "TextLineReaderV2")
g += node("put_file", "QueueEnqueueV2", ["files", "name"], Tcomponents="list { type: DT_STRING }")
g += node("read", "ReaderReadV2", ["reader", "files", "^put_file"])
g += node("line", "StringToNumber", ["read:1"], out_type=F)
g += node("old_n", "Mul", ["n/read", "shrink"], T=F, device=PS) + node("new_n", "AddV2", ["old_n", "line"], T=F, device=PS)
g += node("train_n", "Assign", ["n", "new_n"], T=F, device=PS)
g += node("train", "NoOp", ["^train_w", "^train_n"])
open(sys.argv[1] + "/queues.pbtxt", "w").write(g)

# Elements that no file can have: a queue of lists.
g = const("zero", "DT_FLOAT", [0], device=PS) + variable("w", "", "zero")
g += const("shape", "DT_INT32", [], "dim { size: 0 }", device=PS) + const("many", "DT_INT32", [5], device=PS)
g += node("list", "EmptyTensorList", ["shape", "many"], element_dtype=F, shape_type=I, device=PS)
g += node("queue", "FIFOQueueV2", component_types="list { type: DT_VARIANT }", device=PS)
g += node("put", "QueueEnqueueV2", ["queue", "list"], Tcomponents="list { type: DT_VARIANT }", device=PS)
g += const("one", "DT_FLOAT", [1], device=PS) + node("add", "AssignAdd", ["w", "one"], T=F, device=PS)
g += node("train", "NoOp", ["^put", "^add"], device=PS)
open(sys.argv[1] + "/lists.pbtxt", "w").write(g)
END

# train GRAPH NAME STEPS
mpirun_ranks=$out/ranks
cluster=ps=1,worker=1
train() {
  mpirun_here 2 "$build/bin/tfc-run" --graph "$out/$1.pbtxt" --cluster "$cluster" --supervise "$out/$2" --steps "$3" \
    --target train >"$out/log" 2>&1
}
for graph in dropout dataset queues; do
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

train lists lists 2 || fail 'lists: training failed'
said "what the queue 'queue' holds is not saved" || fail 'lists: no warning'

# With nodes in other tasks, or other tasks, it is said whose states are lost.
sed 's#/job:worker/task:0#/job:ps/task:0#' "$out/dropout.pbtxt" >"$out/moved.pbtxt"
sed 's#/job:worker/task:0#/job:trainer/task:0#' "$out/dropout.pbtxt" >"$out/renamed.pbtxt"
for shape in moved renamed; do cp -r "$out/dropout.parts" "$out/$shape"; done
train moved moved 52 || fail 'moved: going on failed'
said "model.ckpt-50.state: /job:worker/task:0 has other nodes or clients now; what it had before begins anew: operation 'mask'" ||
  fail 'moved: it is not said'
! said "'noise'" || fail 'moved: what is where it was is said to be lost'
cluster=ps=1,trainer=1 train renamed renamed 52 || fail 'renamed: going on failed'
said "/job:worker/task:0 is not in this job; what it had before begins anew: operation 'mask'" || fail 'renamed: it is not said'
said "/job:ps/task:0 has other nodes or clients now; what it had before begins anew: operation 'noise'" ||
  fail "renamed: a client's states are not said to be lost"

# A state that is broken is an error that names the file; without the file it is said what begins anew.
echo 'tfc state 2' >"$out/dropout.parts/model.ckpt-50.state"
train dropout dropout.parts 51 && fail 'a broken state was taken'
said 'dropout.parts/model.ckpt-50.state: it has no beginning or no end' || fail 'a broken state: no reason'
rm "$out/dropout.parts/model.ckpt-50.state"
train dropout dropout.parts 51 || fail 'without the state'
said 'model.ckpt-50.state is not there' || fail 'without the state: nothing is said'

sed '1s/2/1/' "$out/dropout.whole/model.ckpt-50.state" >"$out/dropout.parts/model.ckpt-51.state"
train dropout dropout.parts 52 && fail 'a state of another version was taken'
said "dropout.parts/model.ckpt-51.state: it begins with 'tfc state 1': another version of tfc wrote it, and this one reads 'tfc state 2'" ||
  fail 'a state of another version: another reason'

# Variables are restored, too, that are initialised from different outputs of one operation, or from the same output.
for value in unpack:1 unpack; do
  sed "s/input: 'nothing'/input: '$value'/; s/input: 'zeros'/input: 'unpack'/" "$out/dropout.pbtxt" >"$out/$value.pbtxt"
  cat "$out/unpack" >>"$out/$value.pbtxt"
done
train unpack:1 outputs 5 && train unpack:1 outputs 7 || fail 'two outputs: training failed'
said 'model.ckpt-5: 2 variables restored' || fail 'two outputs: nothing was restored'
train unpack:1 outputs.whole 7 || fail 'two outputs: training failed'
cmp "$out/outputs.whole/model.ckpt-7.data-00000-of-00001" "$out/outputs/model.ckpt-7.data-00000-of-00001" || fail 'two outputs: other bits'
train unpack one 5 && train unpack one 7 || fail 'one output: training failed'
said 'model.ckpt-5: 2 variables restored' || fail 'one output: nothing was restored'
train unpack one.whole 7 || fail 'one output: training failed'
cmp "$out/one.whole/model.ckpt-7.data-00000-of-00001" "$out/one/model.ckpt-7.data-00000-of-00001" || fail 'one output: other bits'

# Rows that a queue runner puts into a queue of four, while states are saved all the time and while it waits for room; at
# last its job is killed.
cp tests/cluster/golden/input_queue_runner/graph.worker.0.meta "$out/rows.worker.0.meta"
# rows NAME STEPS
rows() {
  mpirun_here 2 "$build/bin/tfc-run" --graph "$out/rows.{job}.{task}.meta" --cluster ps=1,worker=1 --supervise "$out/$1" \
    --save-every 0.01s --steps "$2" --target GradientDescent >"$out/log" 2>&1
}
rows rows.whole 40 || fail 'rows: training failed'
for steps in 7 19 32 40; do rows rows.parts $steps || fail "rows: training to $steps failed"; done
! said 'is not saved' || fail 'rows: what is not saved?'
cmp "$out/rows.whole/model.ckpt-40.data-00000-of-00001" "$out/rows.parts/model.ckpt-40.data-00000-of-00001" ||
  fail 'rows: other bits'
rows rows.killed 10000000 &
for _ in $(seq 600); do
  [ -e "$out/rows.killed/checkpoint" ] && break
  sleep 0.1
done
[ -e "$out/rows.killed/checkpoint" ] || fail 'rows: nothing is saved'
kill -s KILL $(pgrep -f -- "tfc-run .*--supervise $out/rows.killed ") 2>/dev/null
wait $!
steps=$(($(sed -n 's/^model_checkpoint_path: "model.ckpt-\([0-9]*\)"/\1/p' "$out/rows.killed/checkpoint") + 11))
rows rows.killed $steps || fail 'rows: going on after a kill failed'
rows rows.long $steps || fail 'rows: training failed'
cmp "$out/rows.long/model.ckpt-$steps.data-00000-of-00001" "$out/rows.killed/model.ckpt-$steps.data-00000-of-00001" ||
  fail "rows: other bits after a kill, at step $steps"
echo 'dropout, datasets, queues, a reader and a queue runner: the same bits'
