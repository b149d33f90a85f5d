# Checks that a task that is killed, or that stops answering, ends the job with exit code 4, and that the message names
# the task, its host and what it did last. The next start continues from the last checkpoint, bit-identical.
#
#   failures_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh
case=tests/cluster/golden/adam

for w in 0 1; do cp $case/graph.worker.$w.meta "$out/s.worker.$w.meta"; done

# with SIGNAL TEXT: sends the signal to the second task while two workers train without an end, and expects the text. The job
# has to end within 10 s, which a test that shares its cores with others cannot see from outside: processes that end wait for
# a core, too. So the limit here only finds a job that hangs; what the job itself says of its time is checked below, and
# kills_endless_test.sh, on a free machine, has the 10 s.
with() {
  local signal=$1 text=$2 begin code
  mpirun_here 3 "$build/bin/tfc-run" --graph "$out/s.{job}.{task}.meta" --cluster ps=1,worker=2 --target Adam \
    --steps 10000000 --save-every 0.05s --supervise "$out/$signal" >"$out/log" 2>&1 &
  local job=$!
  for _ in $(seq 600); do
    [ -e "$out/$signal/checkpoint" ] && break
    sleep 0.1
  done
  local victim
  victim=$(tasks_of "$out/$signal" | sed -n 2p)
  [ -n "$victim" ] || fail "$signal: no task to be seen"
  begin=$SECONDS
  kill -s "$signal" "$victim"
  wait "$job"
  code=$?
  local took=$((SECONDS - begin))
  kill -s KILL "$victim" 2>/dev/null
  [ "$code" -eq 4 ] || fail "$signal: exit code $code, not 4"
  [ "$took" -lt 60 ] || fail "$signal: $took s"
  said "/job:[a-z]*/task:[0-9] on $(hostname) .*the last it did: ..*" || fail "$signal: it is not said which"
  said "$text" || fail "$signal: no '$text'"
  echo "$signal: exit code 4"
}
mpirun_ranks=$out/ranks
with KILL 'was ended by signal 9'
with STOP 'has said nothing for'
# By the clock of the task that misses the other one; it does not count the time in which it had no core itself.
silence=$(cat "$out/log" $(find "$mpirun_ranks" -type f) | sed -n 's/.* has said nothing for \([0-9]*\)\.[0-9]* s;.*/\1/p' | head -n 1)
[ "${silence:-99}" -lt 10 ] || fail "STOP: noticed after ${silence:-no} s"

# One task has no such device: it says so, and the others do not wait for it.
mpirun_limit=100 mpirun_here 1 "$build/bin/tfc-run" --graph examples/mlp.pb --cluster worker=2 : -n 1 "$build/bin/tfc-run" \
  --graph examples/mlp.pb --cluster worker=2 --devices gpu:99 >"$out/log" 2>&1
code=$?
[ $code -eq 4 ] || fail "no such device: exit code $code, not 4"
said 'tfc-run: /job:worker/task:1: .*[gG][pP][uU]' || fail 'no such device: it is not said which'
echo 'no such device: exit code 4'

# A script's error has its own exit code, and what the task has printed before is not lost.
runs='{"runs": [{"targets": ["init"]}, {"targets": ["nowhere"]}]}'
echo "$runs" >"$out/wrong.worker.0.json"
mpirun_here 2 "$build/bin/tfc-run" --json --graph examples/mlp.pb --cluster ps=1,worker=1 --run "$out/wrong.json" --out "$out/o" >"$out/log" 2>&1
code=$?
[ $code -eq 3 ] || fail "a script with an error: exit code $code, not 3"
said '"runs": \[' || fail 'a script with an error: what it printed is lost'
# Neither is a script restarted that does not come to a barrier.
echo '{"runs": [{"barrier": "never"}]}' >"$out/barrier.worker.0.json"
echo '{"runs": []}' >"$out/barrier.worker.1.json"
mpirun_here 2 "$build/bin/tfc-run" --graph examples/mlp.pb --cluster worker=2 --run "$out/barrier.json" --out "$out/o" >"$out/log" 2>&1
code=$?
[ $code -eq 1 ] || fail "a barrier that a script never comes to: exit code $code, not 1"
said "never came to the barrier 'never'" || fail 'a barrier that a script never comes to: it is not said'
echo 'errors of scripts: their own exit codes'
mpirun_ranks=

# --restarts ends an mpirun whose processes have ended and which waits for them nevertheless.
mkdir "$out/bin"
printf '#!/bin/bash\n%s/tasks/tfc-run 5 &\nexec sleep 1000\n' "$out" >"$out/bin/mpirun" # its child ends and is never waited for
chmod +x "$out/bin/mpirun"
mkdir "$out/tasks" && cp "$(command -v sleep)" "$out/tasks/tfc-run"
# With OPENBLAS_CORETYPE tfc-run starts itself again, and the system then calls it by another name than its tasks.
PATH=$out/bin:$PATH OPENBLAS_CORETYPE=Haswell timeout 300 "$build/bin/tfc-run" --restarts 0 --graph "$out/s.{job}.{task}.meta" --cluster ps=1,worker=2 \
  --target Adam >"$out/log" 2>&1
code=$?
[ $code -eq 4 ] || fail "mpirun without processes: exit code $code, not 4"
grep -q 'all processes of mpirun have ended, and it has not' "$out/log" || fail 'mpirun without processes: it is not said'
echo 'mpirun without processes: exit code 4'

# If the program is killed, the mpirun that it started ends, too.
"$build/bin/tfc-run" --restarts 0 --graph "$out/s.{job}.{task}.meta" --cluster ps=1,worker=2 --target Adam --steps 10000000 \
  --save-every 0.05s --supervise "$out/orphan" >"$out/log" 2>&1 &
for _ in $(seq 600); do
  [ -e "$out/orphan/checkpoint" ] && break
  sleep 0.1
done
orphan=$(pgrep -o -f -- "^[^ ]*mpirun .*--supervise $out/orphan\$")
[ "$orphan" ] || fail 'a killed program: there is no mpirun'
kill -s KILL "$(ps -o ppid= -p "$orphan" | tr -d ' ')"
for _ in $(seq 300); do
  kill -s 0 "$orphan" 2>/dev/null || break
  sleep 0.1
done
! kill -s 0 "$orphan" 2>/dev/null || fail 'a killed program: its mpirun goes on'
echo 'a killed program: its mpirun ends'

# A graph that cannot be read is named in the supervised folder before MPI ends all tasks. So a job is not started again
# whose own exit code became that of a task which only lost its connection (4).
cp "$out/s.worker.0.meta" "$out/bad.worker.0.meta"
head -c 1000 "$out/s.worker.1.meta" >"$out/bad.worker.1.meta"
restarts() { # COUNT GRAPH...: with what this mpirun is asked for
  local count=$1
  shift
  timeout 300 "$build/bin/tfc-run" --restarts "$count" --graph "$@" --cluster ps=1,worker=2 --target Adam --steps 2 \
    --supervise "$out/bad" >"$out/log" 2>&1
}
named='^3 /job:worker/task:1: .*bad\.worker\.1\.meta'
restarts 3 "$out/bad.{job}.{task}.meta"
code=$?
[ $code -eq 3 ] || fail "a graph that cannot be read: exit code $code, not 3"
grep -q "$named" "$out/bad/failure" || fail 'a graph that cannot be read: the folder does not name it'
! grep -q 'restart 1 of 3' "$out/log" || fail 'a graph that cannot be read: started again'
printf '#!/bin/bash\n[ ! -e "%s" ] || exit 9\ncp "%s" "%s"\nexit 4\n' "$out/bad/failure" "$out/failure" "$out/bad/failure" >"$out/bin/mpirun"
cp "$out/bad/failure" "$out/failure"
PATH=$out/bin:$PATH restarts 3 "$out/bad.{job}.{task}.meta"
code=$?
[ $code -eq 3 ] || fail "a graph that cannot be read, and 4 from mpirun: exit code $code, not 3"
! grep -q 'restart 1 of 3' "$out/log" || fail 'a graph that cannot be read, and 4 from mpirun: started again'
restarts 0 "$out/s.{job}.{task}.meta" || fail 'a graph that can be read: it fails'
[ ! -e "$out/bad/failure" ] || fail 'a job that ended well: the folder says that it failed'
echo 'a graph that cannot be read: exit code 3, in the folder, too'

# A signal to --restarts lets the job save, ends it, and is the end.
"$build/bin/tfc-run" --restarts 3 --graph "$out/s.{job}.{task}.meta" --cluster ps=1,worker=2 --target Adam --steps 10000000 \
  --save-every 10m --supervise "$out/stopped" >"$out/log" 2>&1 &
job=$!
until grep -q '^/job:worker/task:1 on' "$out/log"; do # all have joined
  kill -0 $job 2>/dev/null || fail '--restarts: the job has ended'
  sleep 0.05
done
sleep 1
kill -s TERM $job
wait $job
code=$?
[ $code -eq 130 ] || fail "--restarts, stopped: exit code $code, not 130"
[ -z "$(tasks_of "$out/stopped")" ] || fail '--restarts, stopped: tasks still run'
! grep -q 'restart 1 of 3' "$out/log" || fail '--restarts: a job that was stopped is started again'
echo '--restarts, stopped: exit code 130'

# Without a process to start mpirun in. (Limits of processes hold for users that are not root.)
limited=(bash -c 'ulimit -u 1 && exec "$@"' -)
[ "$(id -u)" -ne 0 ] || limited=(setpriv --reuid 65534 --clear-groups "${limited[@]}")
if "${limited[@]}" "$build/bin/tfc-run" --version >/dev/null 2>&1; then
  "${limited[@]}" "$build/bin/tfc-run" --restarts 0 --graph x --cluster ps=1,worker=2 >"$out/log" 2>&1
  code=$?
  [ $code -eq 1 ] && grep -q 'no process can be started' "$out/log" || fail "no process: exit code $code, not 1"
  echo 'no process: exit code 1'
fi

# train NAME STEPS: trains with one client, whose variables are in another task.
train() {
  mpirun_here 2 "$build/bin/tfc-run" --json --graph "$out/train.{job}.{task}.meta" --cluster ps=1,worker=1 \
    --supervise "$out/$1" --save-every 0.02s --steps "$2" --target Adam --fetch Mean:0 >"$out/$1.json" 2>"$out/log"
}
cp $case/graph.worker.0.meta "$out/train.worker.0.meta"
train whole 60 || fail 'training failed'
grep -qa 'global_step/sec' "$out/whole/"events.out.tfevents.* && grep -qa 'Mean:0' "$out/whole/"events.out.tfevents.* ||
  fail 'no events'
train parts 25 || fail 'training failed'
train parts 60 || fail 'going on failed'
grep -q '"steps_before": 25' "$out/parts.json" || fail "it did not go on: $(cat "$out/parts.json")"
grep -q 'model.ckpt-25: [0-9]* variables restored' "$out/log" || fail 'nothing was restored'
cmp "$out/whole/model.ckpt-60.data-00000-of-00001" "$out/parts/model.ckpt-60.data-00000-of-00001" || fail 'other bits'
[ "$(ls "$out/parts" | grep -c index)" -le 5 ] || fail 'more than five checkpoints'
echo 'resumed: the same bits'
