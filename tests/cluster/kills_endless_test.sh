# Kills any process of a task, guards too, with kill -9 at random moments after the tasks have joined, KILLS times
# (100). Each time the job must end within 10 s, leave no process and no lock, and continue from its last checkpoint; the
# last loss and the final values must be bit-identical to those of an undisturbed run. (kills_long_test.sh: five times.)
#
#   kills_endless_test.sh BUILD_FOLDER [KILLS [SEED]]
build=$1 kills=${2:-100}
RANDOM=${3:-1}
source tests/cluster/mpirun.sh
fail() { # says which kill, too
  echo "kill $i: $*"
  tail -n 30 "$out/log"
  exit 1
}
# train NAME STEPS
train() {
  exec mpirun --oversubscribe --bind-to none --mca btl self,vader --mca btl_vader_single_copy_mechanism none -n 3 \
    "$build/bin/tfc-run" --graph examples/mlp.pb --cluster ps=1,worker=2 --replicas 2 --batch 4 --target train_op --fetch loss:0 \
    --supervise "$out/$1" --save-every 0.05s --steps "$2"
}
# The processes of the job.
processes() {
  pgrep -f -- "^[^ ]*tfc-run .*--supervise $out/killed"
}
# What a job says of its last step; 9 digits tell all floats apart.
loss() {
  sed -n 's/.*loss:0 = //p' "$out/log" | tail -n 1
}
last_saved() {
  sed -n 's/^model_checkpoint_path: "model.ckpt-\([0-9]*\)"/\1/p' "$out/killed/checkpoint" 2>/dev/null
}
longest=0 before=0 resumed=0
for ((i = 1; i <= kills; i++)); do
  : >"$out/log" # what the job before has said must not be taken for this one's
  train killed 10000000 >"$out/log" 2>&1 &
  job=$!
  for _ in $(seq 400); do # waits until all tasks have joined: before that, Open MPI may wait for a task that was killed
    ! grep -q '^/job:worker/task:1 on ' "$out/log" 2>/dev/null || break
    sleep 0.05
  done
  sleep "0.$((RANDOM % 10))"
  all=($(processes))
  [ ${#all[@]} -eq 6 ] || fail "${#all[@]} processes"
  kill -KILL "${all[RANDOM % 6]}"
  begin=$(date +%s%N)
  for _ in $(seq 150); do
    kill -0 "$job" 2>/dev/null || break
    sleep 0.1
  done
  ms=$((($(date +%s%N) - begin) / 1000000))
  [ $ms -lt 10000 ] || fail "the job has not ended after $ms ms"
  wait "$job"
  [ $? -ne 0 ] || fail 'the job has ended as if nothing had happened'
  [ $ms -le $longest ] || longest=$ms
  now=$(last_saved)
  [ "${now:-0}" -ge "$before" ] || fail "the checkpoint of step $before is lost"
  ! grep -q 'restoring\|is not a line of' "$out/log" || fail 'what was saved cannot be read'
  ! grep -q 'variables restored' "$out/log" || resumed=$((resumed + 1))
  before=${now:-0}
  for _ in $(seq 20); do # a child is killed when its guard dies, and takes a moment to give its memory back
    processes >/dev/null || break
    sleep 0.1
  done
  ! processes >/dev/null || fail "processes are left: $(processes | xargs ps -o args= -p)"
  left=$(find "$out/killed" -name '*.lock')
  [ -z "$left" ] || fail "locks are left: $left"
done
steps=$((before + 20))
(train killed $steps) >"$out/log" 2>&1 || fail 'the last start'
last=$(loss)
[ -n "$last" ] || fail 'no loss'
(train whole $steps) >"$out/log" 2>&1 || fail 'undisturbed'
[ "$(loss)" = "$last" ] || fail "the last loss is $last, undisturbed $(loss)"
cmp "$out/whole/model.ckpt-$steps.data-00000-of-00001" "$out/killed/model.ckpt-$steps.data-00000-of-00001" || fail 'other bits'
echo "$kills kills, $resumed starts that resumed, $steps steps, ended within $longest ms, the same loss ($last) and bits"
