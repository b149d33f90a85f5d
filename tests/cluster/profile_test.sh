# tfc-run --profile over several tasks: the database and the trace show the devices of all of them, operations where they
# run, and the tensors that come from other tasks.
#
#   profile_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh
out=$(mktemp -d)
trap clean_up EXIT
fail() {
  echo "$*"
  cat "$out/log"
  exit 1
}
golden=tests/cluster/golden
"$build/bin/tfc-run" --graph x --cluster ps=1 --run s.json --out "$out/o" --profile 2>"$out/log"
[ $? -eq 2 ] && grep -q -- '--profile do not go with --run' "$out/log" || fail '--run: no error'

# One client, whose graph is in three tasks; then two clients, each with its own graph.
mpirun_here 3 "$build/bin/tfc-run" --graph "$golden/towers_in_one_graph/graph.worker.0.meta" --cluster worker=3 --steps 4 \
  --profile --db "$out/db" >"$out/log" 2>&1 || fail 'towers: training failed'
mpirun_here 3 "$build/bin/tfc-run" --graph "$golden/adam/graph.{job}.{task}.meta" --cluster ps=1,worker=2 --target Adam --steps 3 \
  --profile --db "$out/db" >"$out/log" 2>&1 || fail 'two clients: training failed'
for run in 1 2 3; do
  "$build/bin/tfc-report" --db "$out/db" trace $run --out "$out/$run.json" >"$out/log" 2>&1 || fail "run $run: no trace"
  "$build/bin/tfc-report" --db "$out/db" show $run --out "$out/report.$run" >"$out/log" 2>&1 || fail "run $run: no report"
done
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
        assert begin - 0.01 <= e["ts"] and e["ts"] + e["dur"] <= end + 0.01, e  # all tasks are on one host
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
echo 'profiles of one and of two clients: devices of all tasks, and tensors between them'
