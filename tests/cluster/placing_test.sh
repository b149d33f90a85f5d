# tfc-place over two tasks: it profiles, measures, learns and writes one placement with TensorFlow's names, which
# tfc-export and tfc-run take; it is interrupted and goes on; a task that is killed ends it with exit code 4.
#
#   placing_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
graph=examples/mlp.pb
fail() {
  echo "$*"
  cat "$out/log"
  exit 1
}
# place NAME FLAGS...
place() {
  local name=$1
  shift
  mpirun_here 2 "$build/bin/tfc-place" --graph $graph --wait --report none --db "$out/$name.db" --out "$out/$name.json" "$@" \
    >"$out/log" 2>&1
}

place found --devices '/job:worker/task:*/device:CPU:*' --measurements 12 --time 60s
code=$?
[ $code -eq 0 ] || [ $code -eq 7 ] || fail "placing: exit code $code" # 7: nothing beats one device, which is likely here
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

# It is timed again, exported, and trains under tfc-run.
place timed --evaluate "$out/found.json" || fail 'it cannot be timed again'
place other --evaluate single:/job:worker/task:1/device:CPU:0 || fail 'one task cannot be timed'
"$build/bin/tfc-export" -q --placement "$out/found.json" --graph $graph --out "$out/placed.pb" --format graphdef >"$out/log" 2>&1 &&
  "$build/bin/tfc-export" -q --placement "$out/found.json" --out "$out/cluster.json" --format clusterspec >>"$out/log" 2>&1 ||
  fail 'it cannot be exported'
mpirun_here 2 "$build/bin/tfc-run" --graph "$out/placed.pb" --cluster "$out/cluster.json" --steps 3 >"$out/log" 2>&1 ||
  fail 'what was exported does not run'

# after LINE COMMAND: once the run says that.
start() { # NAME
  mpirun_here 2 "$build/bin/tfc-place" --graph $graph --wait --report none --db "$out/$1.db" --out "$out/$1.json" --time 60s \
    >"$out/log" 2>&1 &
  job=$!
  for _ in $(seq 600); do
    grep -q '^round 1' "$out/log" && return
    sleep 0.1
  done
  fail "$1: it measures nothing"
}
export OMPI_MCA_odls_base_sigkill_timeout=20 # mpirun gives tasks a second to end, which is short on a busy machine
start stopped
kill -INT "$(pgrep -f "^mpirun .*$out/stopped.json")"
wait "$job"
[ -s "$out/stopped.json" ] || fail 'interrupted: no placement'
before=$(python3 -c "import sqlite3; print(sqlite3.connect('$out/stopped.db').execute('SELECT COUNT(*) FROM v_episode').fetchone()[0])")
place stopped --resume --measurements $((before + 8)) --time 60s
code=$?
[ $code -eq 0 ] || [ $code -eq 7 ] || fail "going on: exit code $code"
grep -q "Measured on 2 tasks (measured): $((before + 8)) placements" "$out/log" || fail 'it did not go on'

unset OMPI_MCA_odls_base_sigkill_timeout # of a job that has lost a task, all are to end at once
start killed
for p in $(pgrep -f -- "tfc-place .*--out $out/killed.json"); do # the child of the second task's guard
  tr '\0' ' ' <"/proc/$(ps -o ppid= -p "$p" | tr -d ' ')/cmdline" | grep -q '^[^ ]*tfc-place ' && victim=$p
done
begin=$(date +%s%N)
kill -KILL "$victim"
wait "$job"
code=$?
[ "$code" -eq 4 ] || fail "killed: exit code $code, not 4"
[ $((($(date +%s%N) - begin) / 1000000)) -lt 10000 ] || fail 'killed: it took too long'
grep -q 'was ended by signal 9\|has said nothing for' "$out/log" || fail 'killed: it is not said which'

# What cannot be.
place none --devices '/job:ps/task:0/device:CPU:0' && fail 'a device that is not there'
grep -q "no device of the tasks is called '/job:ps/task:0/device:CPU:0'" "$out/log" || fail 'it is not said which device'
place none --cluster ps=1,worker=2 && fail 'three tasks with two processes'
grep -q '3 tasks, and 2 processes' "$out/log" || fail 'it is not said how many'
place none --checkpoint x && fail '--checkpoint'
grep -q 'not for several tasks' "$out/log" || fail '--checkpoint: no reason'
echo "placed over two tasks, exported and run; interrupted after $before placements and gone on; killed: exit code 4"
