# Jobs of several tasks that restore a checkpoint (--checkpoint), run as a placement file says (--placement), and write a
# checkpoint (--save-checkpoint) give the losses of one process that does the same. Scripts (--run) restore and write one, too.
#
#   given_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh
mpirun_ranks=$out/ranks
run=$build/bin/tfc-run
mlp="--graph examples/mlp.pb --target train_op --fetch loss:0 --batch 8 --warmup 0 --json"

# tasks COUNT ARGUMENT...: runs mlp as a job of this many workers, and prints the chief's loss.
tasks() {
  local count=$1
  shift
  # shellcheck disable=SC2086
  mpirun_here "$count" "$run" $mlp --cluster worker="$count" "$@" >"$out/log" 2>&1 || return
  grep -rh '"loss:0":' "$out/ranks" | sed -n 's/.*"loss:0": //p'
}
close() { # WHAT LOSS LOSS
  python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not abs(a - b) <= 1e-5 * abs(b))' "$2" "$3" 2>/dev/null ||
    fail "$1: $2, one process $3"
}

# One process takes three steps and writes a checkpoint. Another one restores it and takes two more.
# shellcheck disable=SC2086
"$run" $mlp --steps 3 --save-checkpoint "$out/three" >"$out/log" 2>&1 || fail 'one process'
# shellcheck disable=SC2086
one=$("$run" $mlp --steps 2 --checkpoint "$out/three" 2>"$out/log" | sed -n 's/.*"loss:0": //p')
[ -n "$one" ] || fail 'one process, from the checkpoint'

# Placements: `placed` puts each node on one of three devices of two tasks, by a hash of its name. The others have to be refused:
# `beyond` names a task that the job does not have, `local` has names of one process, `lacks` lacks a node of the graph.
python3 - examples/mlp.pb "$build" "$out" <<'END_OF_PYTHON'
import json, subprocess, sys, zlib
graph, build, out = sys.argv[1:]
shapes = subprocess.run([build + "/bin/tfc-run", "--graph", graph, "--shapes", "-q"], check=True, capture_output=True, text=True).stdout
names = [line.split(" (")[0] for line in shapes.splitlines() if " (" in line]
def write(file, device):
    document = {"format": "tfc-placement", "version": 1, "placement": {n: device(n) for n in names}}
    json.dump(document, open(out + "/" + file, "w"))
def pick(name):
    return zlib.crc32(name.encode()) % 3
devices = ["/job:worker/task:0/device:CPU:0", "/job:worker/task:1/device:CPU:0", "/job:worker/task:1/device:CPU:1"]
write("placed.json", lambda n: devices[pick(n)])
write("beyond.json", lambda n: "/job:worker/task:7/device:CPU:0" if pick(n) else devices[0])
write("local.json", lambda n: "cpu:%d" % (pick(n) % 2))
names = names[1:]
write("lacks.json", lambda n: devices[pick(n)])
END_OF_PYTHON

loss=$(tasks 2 --steps 2 --checkpoint "$out/three") || fail 'a checkpoint'
close 'a checkpoint' "$loss" "$one"
said 'three: [0-9]* of [0-9]* variables restored' || fail 'a checkpoint: it is not said'
loss=$(tasks 2 --steps 2 --checkpoint "$out/three" --placement "$out/placed.json" -v --save-checkpoint "$out/five") || fail 'a placement'
close 'a placement' "$loss" "$one"
said '/job:worker/task:1 on .*: cpu:0 .*, cpu:1' || fail 'a placement: its devices are not opened'
said '/job:worker/task:1: [1-9][0-9]* messages sent' || fail 'a placement: the other task has done nothing'
# shellcheck disable=SC2086
after=$("$run" $mlp --steps 2 --checkpoint "$out/five" 2>"$out/log" | sed -n 's/.*"loss:0": //p')
loss=$(tasks 1 --steps 2 --checkpoint "$out/five") || fail 'the checkpoint of two tasks'
close 'the checkpoint of two tasks' "$loss" "$after"

# refused CODE TEXT ARGUMENT...
refused() {
  local code=$1 text=$2
  shift 2
  tasks 2 --steps 1 "$@" >/dev/null
  [ $? = "$code" ] || fail "$*: another exit code than $code"
  said "$text" || fail "$*: not '$text'"
}
refused 4 'is on /job:worker/task:7/device:CPU:0, which is not among the devices' --placement "$out/beyond.json"
refused 4 'local.json: .cpu:[01]. is not /job:NAME/task:N/device:TYPE:N' --placement "$out/local.json"
refused 3 "the placement has no device for node 'x'" --placement "$out/lacks.json"
refused 3 'nowhere' --placement "$out/nowhere.json"
refused 3 'nowhere' --checkpoint "$out/nowhere"
refused 2 '.--placement does not go with --replicas' --placement "$out/placed.json" --replicas 2

# What --supervise has saved is newer than the checkpoint of the first start.
tasks 2 --steps 2 --checkpoint "$out/three" --supervise "$out/run/" >/dev/null || fail 'the first start'
said 'three: [0-9]* of' || fail 'the first start: the checkpoint is not restored'
said '/run/model.ckpt-2: [0-9]* variables saved' || fail 'the first start: the name of the checkpoint'
loss=$(tasks 2 --steps 4 --checkpoint "$out/three" --supervise "$out/run") || fail 'the second start'
said 'model.ckpt-2: [0-9]* variables restored' || fail 'the second start: what was saved is not restored'
! said 'three: ' || fail 'the second start: the checkpoint is restored again'
close 'the second start' "$loss" "$after"

# Two workers with graphs of their own: one of them saves, when both have taken their steps. Then both run scripts, and one of
# them restores before their first step.
both="--graph tests/cluster/golden/adam/graph.{job}.{task}.meta --cluster ps=1,worker=2"
# shellcheck disable=SC2086
mpirun_here 3 "$run" $both --target Adam --steps 3 --save-checkpoint "$out/adam" >"$out/log" 2>&1 || fail 'two workers'
[ "$(grep -rh 'adam: 12 variables saved' "$out/ranks" | wc -l)" = 1 ] || fail 'two workers: not one of them has saved'
for task in 0 1; do
  echo '{"runs": [{"barrier": "begin"}, {"fetches": ["beta1_power:0"]}]}' >"$out/script.worker.$task.json"
done
# shellcheck disable=SC2086
mpirun_here 3 "$run" $both --run "$out/script.json" --out "$out/results" --checkpoint "$out/adam" >"$out/log" 2>&1 || fail 'scripts'
said 'adam: 12 of 12 variables restored' || fail 'scripts: nothing is restored'
for task in 0 1; do
  cmp "$out/results/worker.0/1/beta1_power_0.npy" "$out/results/worker.$task/1/beta1_power_0.npy" || fail 'scripts: another value'
done
python3 - "$out/results/worker.1/1/beta1_power_0.npy" <<'END_OF_PYTHON' || fail 'scripts: the value is not that of training'
import struct, sys
value, = struct.unpack("<f", open(sys.argv[1], "rb").read()[-4:])
sys.exit(not any(abs(value - 0.9 ** n) < 1e-4 for n in range(4, 14)))  # 0.9 before training, and a factor of 0.9 each step
END_OF_PYTHON

# When all scripts have ended, the first task with one saves each variable once. 8 updates were made.
adam=tests/cluster/golden/adam
mpirun_here 3 "$run" --graph "$adam/graph.{job}.{task}.meta" --cluster ps=1,worker=2 --run "$adam/script.json" --out "$out/trained" \
  --save-checkpoint "$out/scripts" >"$out/log" 2>&1 || fail 'saving after scripts'
[ "$(grep -rh 'scripts: 12 variables saved' "$out/ranks" | wc -l)" = 1 ] || fail 'saving after scripts: not one of the tasks has saved'
echo '{"runs": [{"fetches": ["global_step:0"]}]}' >"$out/read.json"
"$run" --graph $adam/graph.worker.0.meta --checkpoint "$out/scripts" --run "$out/read.json" --out "$out/read" >"$out/log" 2>&1 ||
  fail 'one process, after scripts'
python3 -c 'import struct, sys; sys.exit(struct.unpack("<q", open(sys.argv[1], "rb").read()[-8:])[0] != 8)' "$out/read/0/global_step_0.npy" ||
  fail 'saving after scripts: not 8 updates'
# Variables that no script has initialised are not saved, as in one process.
echo '{"runs": [{"targets": ["hidden1/bias/Assign"]}]}' >"$out/one.json"
"$run" --graph examples/mlp.pb --run "$out/one.json" --out "$out/one" --save-checkpoint "$out/one" >"$out/log" 2>&1 || fail 'one variable'
grep -q 'one: 1 variables saved' "$out/log" || fail 'one variable: another number'
mpirun_here 2 "$run" --graph examples/mlp.pb --cluster worker=2 --placement "$out/placed.json" --run "$out/one.json" --out "$out/one2" \
  --save-checkpoint "$out/one2" >"$out/log" 2>&1 || fail 'one variable of two tasks'
cat "$out"/ranks/*/*/std* >"$out/log"
grep -q 'one2: 1 variables saved' "$out/log" || fail 'one variable of two tasks: another number'

# A signal stops scripts between two runs. Then variables have the updates of all runs that ended, and the profile these steps.
python3 - "$adam" "$out" <<'END_OF_PYTHON'
import json, os, sys
adam, out = os.path.abspath(sys.argv[1]), sys.argv[2]
for w in 0, 1:
    feeds = {name: "%s/worker.%d.feed%d.npy" % (adam, w, k) for k, name in enumerate(("x:0", "y:0"))}
    runs = ([{"targets": ["init"]}] if w == 0 else []) + [{"barrier": "initialised"}]
    runs += [{"feeds": feeds, "fetches": ["Mean:0"], "targets": ["Adam"]}] * 100000
    with open("%s/long.worker.%d.json" % (out, w), "w") as f:
        json.dump({"runs": runs}, f)
END_OF_PYTHON
mpirun_here 3 "$run" --graph "$adam/graph.{job}.{task}.meta" --cluster ps=1,worker=2 --run "$out/long.json" --out "$out/long" \
  --save-checkpoint "$out/stopped" --profile --db "$out/stopped.db" >"$out/log" 2>&1 &
job=$!
until [ -e "$out/long/worker.0/20" ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
kill -USR1 "$(pgrep -f -- "^mpirun .*$out/stopped.db")"
wait $job
[ $? -eq 130 ] || fail 'a signal: another exit code than 130'
said 'stopped: 12 variables saved' || fail 'a signal: variables are not saved'
"$run" --graph $adam/graph.worker.0.meta --checkpoint "$out/stopped" --run "$out/read.json" --out "$out/after" >"$out/log" 2>&1 || fail 'after a signal'
python3 - "$out" "$(find "$out/long" -name Mean_0.npy | wc -l)" <<'END_OF_PYTHON' || fail 'a signal: not the updates of the runs that ended, or not their steps'
import sqlite3, struct, sys
out, ended = sys.argv[1], int(sys.argv[2])
updates, = struct.unpack("<q", open(out + "/after/0/global_step_0.npy", "rb").read()[-8:])
db = sqlite3.connect(out + "/stopped.db")
steps, = db.execute("SELECT count(*) FROM v_step s JOIN run r USING (run_id) WHERE r.command NOT LIKE '%, run 0'").fetchone()
states = {state for state, in db.execute("SELECT state FROM run")}
print(ended, "runs,", updates, "updates,", steps, "steps,", states)
sys.exit(not (ended > 20 and updates == ended == steps and states == {"interrupted"}))
END_OF_PYTHON
echo 'a checkpoint, a placement and scripts over tasks: as one process'
