# Checks that tfc-place over two tasks can be interrupted and resumed, and that killing a task ends it with exit code 4.
#
#   placing_faults_endless_test.sh BUILD_FOLDER
build=$1
mpirun_limit=200 # together with what starting and ending take, less than the 600 s that a suite has
source tests/cluster/mpirun.sh
graph=examples/mlp.pb

# place NAME FLAGS...
place() {
  local name=$1
  shift
  mpirun_here 2 "$build/bin/tfc-place" --graph $graph --wait --report none --db "$out/$name.db" --out "$out/$name.json" "$@" \
    >"$out/log" 2>&1
}

# start NAME: starts placing, and returns when the first round has been measured.
start() { # NAME
  mpirun_here 2 "$build/bin/tfc-place" --graph $graph --wait --report none --db "$out/$1.db" --out "$out/$1.json" --time 180s \
    >"$out/log" 2>&1 &
  job=$!
  for _ in $(seq 1200); do
    grep -q '^round 1' "$out/log" && return
    sleep 0.1
  done
  fail "$1: it measures nothing"
}

# As Ctrl-C does it. mpirun tells the tasks after a second and kills them a second later, which may be too little for an
# orderly end: then what was measured is still there.
start stopped
kill -INT "$(pgrep -f "^mpirun .*$out/stopped.json")" || fail 'interrupted: there is no mpirun'
begin=$SECONDS
wait "$job"
[ $((SECONDS - begin)) -lt 30 ] || fail "interrupted: it took $((SECONDS - begin)) s to end"
python3 -c "import json; d = json.load(open('$out/stopped.json')); assert d['step']['label'] == 'measured' and len(d['placement']) > 100" ||
  fail 'interrupted: no placement'
before=$(python3 -c "import sqlite3; print(sqlite3.connect('$out/stopped.db').execute('SELECT COUNT(*) FROM v_episode').fetchone()[0])")
place stopped --resume --measurements $((before + 8)) --time 120s
code=$?
[ $code -eq 0 ] || [ $code -eq 7 ] || fail "going on: exit code $code"
grep -q "going on with run 1 after .* and [1-9][0-9]* measured placements" "$out/log" || fail 'it began anew'
grep -q "Measured on 2 tasks (measured): $((before + 8)) placements" "$out/log" || fail 'it did not go on'

start killed
for p in $(pgrep -f -- "tfc-place .*--out $out/killed.json"); do # the child process of the second task's guard
  tr '\0' ' ' <"/proc/$(ps -o ppid= -p "$p" | tr -d ' ')/cmdline" | grep -q '^[^ ]*tfc-place ' && victim=$p
done
begin=$(date +%s%N)
kill -KILL "$victim"
wait "$job"
code=$?
[ "$code" -eq 4 ] || fail "killed: exit code $code, not 4"
[ $((($(date +%s%N) - begin) / 1000000)) -lt 10000 ] || fail 'killed: it took too long'
grep -q 'was ended by signal 9\|has said nothing for' "$out/log" || fail 'killed: it is not said which'

echo "interrupted after $before placements and gone on; killed: exit code 4"
