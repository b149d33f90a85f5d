# tfc-run --profile over several tasks: the database and the trace show the devices of all of them, operations where they
# run, and the tensors that come from other tasks.
#
#   profile_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh
golden=tests/cluster/golden
# One client, whose graph is in three tasks; then two clients, each with its own graph.
mpirun_here 3 "$build/bin/tfc-run" --graph "$golden/towers_in_one_graph/graph.worker.0.meta" --cluster worker=3 --steps 4 \
  --profile --db "$out/db" >"$out/log" 2>&1 || fail 'towers: training failed'
mpirun_here 3 "$build/bin/tfc-run" --graph "$golden/adam/graph.{job}.{task}.meta" --cluster ps=1,worker=2 --target Adam --steps 3 \
  --profile --db "$out/db" >"$out/log" 2>&1 || fail 'two clients: training failed'
for run in 1 2 3; do
  "$build/bin/tfc-report" --db "$out/db" trace $run --out "$out/$run.json" >"$out/log" 2>&1 || fail "run $run: no trace"
  "$build/bin/tfc-report" --db "$out/db" show $run --out "$out/report.$run" >"$out/log" 2>&1 || fail "run $run: no report"
done
# rows SQL [DATABASE]
rows() {
  python3 -c 'import sqlite3, sys; [print(*r) for r in sqlite3.connect(sys.argv[1]).execute(sys.argv[2])]' "${2:-$out/db}" "$1"
}
# Every step has a row of each device that ran something, which counts what the operations' own rows say.
busy() {
  rows "SELECT count(*) FROM v_busy b JOIN (SELECT step, device_id, count(*) n, max(duration_us) longest FROM v_op
    WHERE run_id = $1 GROUP BY step, device_id) o ON o.step = b.step AND o.device_id = b.device_id
    WHERE b.run_id = $1 AND b.operations = o.n AND b.busy_us >= o.longest AND b.busy_us <= b.step_us"
}
# 4 steps on three devices; 3 steps of each client on two, its worker's and the ps's
[ "$(busy 1) $(busy 2) $(busy 3)" = '12 6 6' ] || fail "rows of busy devices: $(rows 'SELECT * FROM v_busy')"
lscpu_model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
[ "$(rows 'SELECT DISTINCT model, label, kind FROM device')" = "$lscpu_model measured cpu" ] || fail "devices: $(rows 'SELECT * FROM device')"
python3 - "$out" <<'END' || fail 'a trace is not as expected'
import json, sys

def device(job, task):
    return "/job:%s/task:%d/device:CPU:0 (measured)" % (job, task)

def slices(run):
    events = json.load(open("%s/%d.json" % (sys.argv[1], run)))["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    steps = {e["name"]: (e["ts"], e["ts"] + e["dur"]) for e in events if e.get("cat") == "step"}
    found = {}
    for e in events:
        if e["ph"] != "X" or e["cat"] == "step":
            continue
        begin, end = steps["step %d" % e["args"]["step"]]
        # All tasks are on one host. Operations are timed by the processor's ticks, which are converted, steps by the clock.
        assert begin - 20 <= e["ts"] and e["ts"] + e["dur"] <= end + 20, e
        what = e["args"]["node"] if e["cat"] == "op" else (e["name"], e["args"]["tensor"], e["args"]["bytes"])
        found.setdefault((names[e["pid"]], e["cat"]), []).append(what)
    assert any(e["ph"] == "s" for e in events), "no arrows"
    return len(steps), found

steps, found = slices(1)
workers = [device("worker", k) for k in range(3)]
assert steps == 4 and set(found) == {(w, c) for w in workers for c in ("op", "transfer")}, set(found)
assert found[workers[0], "op"].count("Momentum/update_w1/ResourceApplyMomentum") == steps
for k in 1, 2:  # a tower's product is computed in its task, from weights that come from the first one
    assert ("MatMul", "MatMul_2")[k - 1] in found[workers[k], "op"]
    assert any(x[0].startswith("from /job:worker/task:0/") and x[2] == 96 for x in found[workers[k], "transfer"]), found
assert not any(n.endswith(("MatMul", "MatMul_2")) for n in found[workers[0], "op"])
for run, own in (2, 0), (3, 1):
    steps, found = slices(run)
    assert steps == 3 and {d for d, _ in found} == {device("ps", 0), device("worker", own)}, set(found)
    assert any("ApplyAdam" in n for n in found[device("ps", 0), "op"])
END

# Scripts: what each task fetches is as without a profile, and the steps of one kind, with the same feeds, fetches and targets,
# are a run of their own. The end of a run's command names the task and the first of these steps.
mpirun_here 3 "$build/bin/tfc-run" --graph "$golden/adam/graph.{job}.{task}.meta" --cluster ps=1,worker=2 --run "$golden/adam/script.json" \
  --out "$out/results" --profile --db "$out/scripts" >"$out/log" 2>&1 || fail 'scripts: the job failed'
python3 tests/cluster/compare.py "$golden/adam" "$out/results" >"$out/log" 2>&1 || fail 'scripts: other values'
kinds=$(rows "SELECT substr(r.command, instr(r.command, ', /job:') + 2), count(DISTINCT s.step), r.state FROM run r
  JOIN v_step s USING (run_id) GROUP BY r.run_id ORDER BY 1" "$out/scripts" | tr '\n' ';')
[ "$kinds" = '/job:worker/task:0, run 0 1 done;/job:worker/task:0, run 2 4 done;/job:worker/task:0, run 3 4 done;/job:worker/task:1, run 2 4 done;/job:worker/task:1, run 3 4 done;' ] ||
  fail "scripts: kinds $kinds"
[ "$(rows "SELECT count(*) FROM v_op WHERE node LIKE '%ApplyAdam' AND device LIKE '/job:ps/%'" "$out/scripts")" -ge 8 ] ||
  fail 'scripts: no updates on the ps'
for run in 1 2 3 4 5; do
  "$build/bin/tfc-report" --db "$out/scripts" show $run --out "$out/report.scripts.$run" >"$out/log" 2>&1 || fail "scripts: run $run: no report"
done

# One process does the same. (Of a step without operations it has nothing to record.)
"$build/bin/tfc-run" --graph "$golden/adam/graph.worker.0.meta" --run "$golden/adam/script.worker.0.json" --out "$out/one" --profile \
  --db "$out/one.db" >"$out/log" 2>&1 || fail 'a script in one process: it failed'
kinds=$(rows "SELECT substr(r.command, instr(r.command, 'one.db, ') + 8), count(DISTINCT s.step), r.state FROM run r
  JOIN v_step s USING (run_id) GROUP BY r.run_id ORDER BY 1" "$out/one.db" | tr '\n' ';')
[ "$kinds" = 'run 0 1 done;run 2 4 done;' ] || fail "a script in one process: kinds $kinds"
"$build/bin/tfc-report" --db "$out/one.db" show 2 --out "$out/report.one" >"$out/log" 2>&1 || fail 'a script in one process: no report'
grep -q 'Its script ended. These are 4 of its steps, those that are like run 2.' "$out/log" || fail 'a script in one process: no ending'

# Labels of devices, and of the run, are those that the tasks' devices have.
mpirun_here 3 "$build/bin/tfc-run" --graph "$golden/towers_in_one_graph/graph.worker.0.meta" --cluster worker=3 --steps 2 \
  --devices cpu:0,emu:0 --profile --db "$out/db" >"$out/log" 2>&1 || fail 'emulated: training failed'
[ "$(rows 'SELECT label, kind FROM device WHERE run_id = 4 ORDER BY device_id' | tr '\n' ';')" = 'measured cpu;emulated emu;measured cpu;emulated emu;measured cpu;emulated emu;' ] ||
  fail "emulated: $(rows 'SELECT * FROM device WHERE run_id = 4')"
[ "$(rows 'SELECT label FROM run WHERE run_id = 4')" = emulated ] || fail 'emulated: the label of the run'

# While another process writes to the database, a job waits.
flock "$out/db.lock" sleep 4 &
mpirun_here 3 "$build/bin/tfc-run" --graph "$golden/towers_in_one_graph/graph.worker.0.meta" --cluster worker=3 --steps 2 \
  --profile --db "$out/db" >"$out/log" 2>&1 || fail 'a locked database: training failed'
grep -q 'another process is writing it.*waiting' "$out/log" && grep -q 'profile: run 5' "$out/log" || fail 'a locked database: no wait'
[ "$(grep -c '; waiting$' "$out/log")" -eq 1 ] || fail 'a locked database: it is not said once'

# A database that cannot be written in the end loses only the profile.
mkdir "$out/gone"
mpirun_here 3 "$build/bin/tfc-run" --graph "$golden/towers_in_one_graph/graph.worker.0.meta" --cluster worker=3 --steps 3000 \
  --fetch Mean:0 --profile --db "$out/gone/db" --supervise "$out/saves" --save-every 0.01s >"$out/log" 2>&1 &
job=$!
until [ -e "$out/saves/checkpoint" ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
mv "$out/gone" "$out/moved"
wait $job && fail 'a database that is gone: no error'
grep -q 'Mean:0 = ' "$out/log" && grep -q 'its folder cannot be written' "$out/log" || fail 'a database that is gone: no losses, or no reason'
echo 'profiles of one and of two clients: devices of all tasks, and tensors between them'
