# Tests tfc-run --replicas: N replicas with a batch each give the same losses as one device with N times the batch
# (within 1e-5), and the same bits in every run; options that they do not support are refused.
#
#   replicas_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh

# tasks COUNT CLUSTER ARGUMENT...: runs the job and prints the loss.
tasks() {
  local count=$1 cluster=$2
  shift 2
  mpirun_here "$count" "$build/bin/tfc-run" -q --json --cluster "$cluster" --fetch loss:0 --target train_op --warmup 0 "$@" \
    >"$out/loss" 2>"$out/log" || return
  sed -n 's/.*"loss:0": //p' "$out/loss"
}
close() { # WHAT LOSS LOSS
  python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not abs(a - b) <= 1e-5 * abs(b))' "$2" "$3" 2>/dev/null ||
    fail "$1: $2, one device $3"
}

one=$(tasks 1 worker=1 --graph examples/mlp.pb --batch 24 --steps 20) || fail 'one device'
for how in '3 worker=3 3' '3 ps=1,worker=2 2' '4 ps=2,worker=2 2' '3 ps=1,worker=2 2 --reduce all'; do
  read -r count cluster replicas more <<<"$how"
  # shellcheck disable=SC2086
  loss=$(tasks "$count" "$cluster" --graph examples/mlp.pb --replicas "$replicas" --batch $((24 / replicas)) --steps 20 $more) ||
    fail "mlp, $how"
  close "mlp, $how" "$loss" "$one"
done

# Each tower has its own stacks and arrays of loops; gradients are averaged before they are clipped by their common
# norm.
one=$(tasks 1 worker=1 --graph examples/nmt_while.pb --batch 4 --steps 2) || fail 'nmt_while'
loss=$(tasks 3 ps=1,worker=2 --graph examples/nmt_while.pb --replicas 2 --batch 2 --steps 2) || fail 'nmt_while, replicas'
close nmt_while "$loss" "$one"

# A feed from a file is divided among the replicas. With sparse gradients the rows of all towers are applied.
python3 - "$out" <<'END'
import random, struct, sys
random.seed(7)
for name in "words", "targets":
    rows = [random.randrange(300) for _ in range(256)]
    for file, values in (name, rows), (name + "2", rows + rows), (name + "3", rows * 3):
        head = "{'descr': '<i4', 'fortran_order': False, 'shape': (%d, 16), }" % (len(values) // 16)
        head += " " * (-(len(head) + 11) % 64) + "\n"
        with open("%s/%s.npy" % (sys.argv[1], file), "wb") as f:
            f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%di" % len(values), *values))
END
one=$(tasks 1 worker=1 --graph examples/rnnlm.pb --steps 3 --feed words="$out/words.npy" --feed targets="$out/targets.npy") || fail rnnlm
for how in '2 worker=2' '3 ps=1,worker=2'; do
  # shellcheck disable=SC2086
  loss=$(tasks $how --graph examples/rnnlm.pb --replicas 2 --steps 3 --feed words="$out/words2.npy" --feed targets="$out/targets2.npy") ||
    fail "rnnlm, $how"
  close "rnnlm, $how" "$loss" "$one" # both halves together are the batch that one device gets
done

# With a backup, two of three gradients are applied in a step, whoever is first. Here all replicas have the same examples,
# so that it makes no difference which two: but one of another step would.
loss=$(tasks 4 ps=1,worker=3 --graph examples/rnnlm.pb --replicas 3 --backup 1 --steps 3 --feed words="$out/words3.npy" --feed targets="$out/targets3.npy") ||
  fail 'rnnlm, a backup'
close 'rnnlm, a backup' "$loss" "$one"
grep -q '"applied": 6\b' "$out/loss" || fail "a backup: 6 gradients were to be applied: $(cat "$out/loss")"

# Every run gives the same bits, even if training was interrupted.
saved() { # NAME STEPS
  tasks 3 worker=3 --graph examples/mlp.pb --replicas 3 --batch 4 --supervise "$out/$1" --steps "$2" >"$out/printed" || fail "saving: $1"
}
saved whole 6
saved parts 3
saved parts 6
cmp "$out/whole/model.ckpt-6.data-00000-of-00001" "$out/parts/model.ckpt-6.data-00000-of-00001" || fail 'other bits'

# With a backup, too, it goes on: no gradient waits in a queue while variables are saved, or is applied afterwards.
backup() { # NAME STEPS
  tasks 3 ps=1,worker=2 --graph examples/rnnlm.pb --replicas 2 --backup 1 --supervise "$out/$1" --steps "$2" \
    --feed words="$out/words2.npy" --feed targets="$out/targets2.npy" >"$out/printed" || fail "a backup: $1"
}
backup whole2 4
backup parts2 2
backup parts2 4
cmp "$out/whole2/model.ckpt-4.data-00000-of-00001" "$out/parts2/model.ckpt-4.data-00000-of-00001" || fail 'a backup: other bits'

# With --async the variables are shared, so the steps of both replicas count.
first=$(tasks 3 ps=1,worker=2 --graph examples/mlp.pb --replicas 2 --async --batch 8 --steps 1 | head -n 1)
last=$(tasks 3 ps=1,worker=2 --graph examples/mlp.pb --replicas 2 --async --batch 8 --steps 40 | head -n 1) || fail 'async'
[ "$(wc -l <<<"$(sed -n 's/.*"loss:0": //p' "$out/loss")")" -eq 2 ] || fail 'async: not two replicas'
python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not b < 0.5 * a)' "$first" "$last" || fail "async: $first, then $last"

mpirun_ranks=$out/ranks # all tasks say why
# refused CODE TEXT COUNT CLUSTER ARGUMENT...
refused() {
  local code=$1 text=$2
  shift 2
  tasks "$@" >"$out/printed"
  local got=$?
  [ $got -eq "$code" ] || fail "exit code $got, not $code: $*"
  said "$text" || fail "no '$text': $*"
}
refused 3 "--replicas 3 needs as many tasks" 2 worker=2 --graph examples/mlp.pb --replicas 3
refused 3 "--async needs tasks of a job ps" 2 worker=2 --graph examples/mlp.pb --replicas 2 --async
refused 3 "cannot share" 2 worker=2 --graph examples/mlp.pb --replicas 2 --feed 'x=float32[3,784]'
refused 3 "--backup needs tasks of a job ps" 3 worker=3 --graph examples/mlp.pb --replicas 3 --backup 1
refused 2 "neither with --async nor with --reduce all" 3 ps=1,worker=2 --graph examples/mlp.pb --replicas 2 --backup 1 --async
refused 2 "has to be less than --replicas" 3 ps=1,worker=2 --graph examples/mlp.pb --replicas 2 --backup 2
refused 2 "goes neither with --sync" 2 worker=2 --graph examples/mlp.pb --replicas 2 --async --reduce all
refused 3 "normalises by the batch\|gets values that depend on the batch and are no gradient" 2 worker=2 --graph examples/resnet50.pb --replicas 2 --batch 1
mpirun_here 2 "$build/bin/tfc-run" --graph tests/cluster/golden/random_and_dropout/graph.worker.0.meta --cluster worker=2 --replicas 2 \
  --steps 1 >"$out/log" 2>&1 && fail 'random numbers'
said 'random_uniform.*keeps a state of its own' || fail 'random numbers: it is not said why'
echo 'as one device, the same bits, refusals named'
