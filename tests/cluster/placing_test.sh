# Tests tfc-place over two tasks: it profiles, measures, learns and writes one placement with TensorFlow's device names,
# which tfc-export and tfc-run accept.
#
#   placing_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh
graph=examples/mlp.pb

# place NAME FLAGS...
place() {
  local name=$1
  shift
  mpirun_here 2 "$build/bin/tfc-place" --graph $graph --wait --report none --db "$out/$name.db" --out "$out/$name.json" "$@" \
    >"$out/log" 2>&1
}

place found --devices '/job:worker/task:*/device:CPU:*' --measurements 12 --time 600s
code=$?
# 7: no placement is faster than one device, which is likely here
[ $code -eq 0 ] || [ $code -eq 7 ] || fail "placing: exit code $code"
grep -q '/job:worker/task:1 on .*cpu:0' "$out/log" || fail 'the tasks were not named'
grep -q 'task:0 to /job:worker/task:1: 4.2 MB in' "$out/log" || fail 'no link was timed'
python3 - "$out" <<'END' || fail 'the document is wrong'
import json, sqlite3, sys
d = json.load(open(sys.argv[1] + "/found.json"))
names = ["/job:worker/task:0/device:CPU:0", "/job:worker/task:1/device:CPU:0"]
assert [x["name"] for x in d["devices"]] == names, d["devices"]
assert [x["tensorflow"] for x in d["devices"]] == names
assert d["step"]["label"] == "measured" and d["value_us"] > 0, d["step"]
assert d["measured_with"] == "2 tasks", d["measured_with"]
assert set(d["placement"].values()) <= set(names) and len(d["placement"]) > 100
singles = {b["name"]: b["median_us"] for b in d["baselines"]}
assert all(singles["single:" + name] > 0 for name in names), singles
db = sqlite3.connect(sys.argv[1] + "/found.db")
assert db.execute("SELECT COUNT(*) FROM v_episode WHERE state = 'ok'").fetchone()[0] >= 4
both = db.execute("SELECT COUNT(*) FROM (SELECT placement_id FROM v_placement GROUP BY 1 HAVING COUNT(DISTINCT device_id) > 1)")
assert both.fetchone()[0] > 0, "no placement with both tasks was measured"
assert db.execute("SELECT COUNT(*) FROM v_link WHERE time_us > 0").fetchone()[0] >= 2
END

# The placement is timed again, exported, and trained with tfc-run.
place timed --evaluate "$out/found.json" || fail 'it cannot be timed again'
place other --evaluate single:/job:worker/task:1/device:CPU:0 || fail 'one task cannot be timed'
"$build/bin/tfc-export" -q --placement "$out/found.json" --graph $graph --out "$out/placed.pb" --format graphdef >"$out/log" 2>&1 &&
  "$build/bin/tfc-export" -q --placement "$out/found.json" --out "$out/cluster.json" --format clusterspec >>"$out/log" 2>&1 ||
  fail 'it cannot be exported'
# Each task orders its own operations, so the time that was measured is that of the graph.
"$build/bin/tfc-export" --placement "$out/found.json" --graph $graph --out "$out/again.pb" --format graphdef >"$out/log" 2>&1 ||
  fail 'it cannot be exported again'
grep -q "(median of [0-9]*) in an order of the runtime's own\.$" "$out/log" || fail 'what a step of the graph takes is not said'
mpirun_here 2 "$build/bin/tfc-run" --graph $graph --placement "$out/found.json" --cluster worker=2 --steps 3 >"$out/log" 2>&1 ||
  fail 'it does not run'
mpirun_here 2 "$build/bin/tfc-run" --graph "$out/placed.pb" --cluster "$out/cluster.json" --steps 3 >"$out/log" 2>&1 ||
  fail 'what was exported does not run'

# A placement that ends the job (here a task is killed while it is tried) costs one candidate: --restarts starts the
# tasks again, and the run goes on without it.
python3 - "$out/restarted.db" >"$out/victim" <<'END' &
import os, signal, sqlite3, sys, time
def words(path):
    try:
        return open(path, "rb").read().split(b"\0")
    except OSError:
        return []
def tried():
    try:
        with sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True) as db:
            row = db.execute("SELECT value FROM state WHERE name = 'tried'").fetchone()
    except sqlite3.Error:
        return []
    return row[0].decode().split("\n") if row and row[0] else []
for _ in range(60000):
    time.sleep(0.002)
    if len(tried()) < 3 or tried()[2:3] != ["candidate"]:
        continue
    for p in filter(str.isdigit, os.listdir("/proc")):
        own = words("/proc/%s/cmdline" % p)
        if sys.argv[1].encode() in own and b"OMPI_COMM_WORLD_RANK=1" in words("/proc/%s/environ" % p):
            parent = words("/proc/%s/cmdline" % words("/proc/%s/stat" % p)[0].rsplit(b")", 1)[1].split()[1].decode())
            if sys.argv[1].encode() in parent and b"-n" not in parent:  # the task itself, not the guard that mpirun started
                os.kill(int(p), signal.SIGKILL)
                print(tried()[0])
                sys.exit()
END
killer=$!
timeout -k 5 300 "$build/bin/tfc-place" --graph $graph --cluster worker=2 --restarts 2 --wait --report none --db "$out/restarted.db" \
  --out "$out/restarted.json" --devices '/job:worker/task:*/device:CPU:*' --measurements 6 --time 600s >"$out/log" 2>&1
code=$?
wait $killer
[ $code -eq 0 ] || [ $code -eq 7 ] || fail "restarted: exit code $code"
victim=$(cat "$out/victim")
[ -n "$victim" ] || fail 'restarted: no task was killed'
grep -q "restart 1 of 2" "$out/log" || fail 'restarted: it did not begin again'
grep -q "$victim is not tried again: the job ended while it was tried" "$out/log" || fail 'restarted: it is not said what is left out'
python3 - "$out" <<'END' || fail 'restarted: the database is wrong'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1] + "/restarted.db")
rows = db.execute("SELECT placement, state FROM v_episode").fetchall()
assert [x for x, state in rows if state == "failed"] == [open(sys.argv[1] + "/victim").read().strip()], rows
assert len(rows) == len({x for x, _ in rows}) and db.execute("SELECT COUNT(*), MIN(state) FROM v_run").fetchone() == (1, "done"), rows
END
place none --restarts 1 && fail '--restarts under mpirun'

# Requests that must fail; all tasks say why.
mpirun_ranks=$out/ranks
place none --devices '/job:ps/task:0/device:CPU:0' && fail 'a device that is not there'
said "no device of the tasks is called '/job:ps/task:0/device:CPU:0'" || fail 'it is not said which device'
place none --cluster ps=1,worker=2 && fail 'three tasks with two processes'
said '3 tasks, and 2 processes' || fail 'it is not said how many'
mpirun_limit=100 place none --devices '/job:worker/task:0/device:CPU:0,/job:worker/task:1/device:GPU:99'
code=$?
[ $code -eq 4 ] || fail "one task has no such device: exit code $code, not 4"
said 'tfc-place: /job:worker/task:1: .*[gG][pP][uU]' || fail 'it is not said that there is no such device'
place none --checkpoint x && fail '--checkpoint'
said 'not for several tasks' || fail '--checkpoint: no reason'
echo "placed over two tasks, exported and run"
