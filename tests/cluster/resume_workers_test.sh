# Two workers, each with its own session on its own graph, train synchronously (SyncReplicasOptimizer, written by TensorFlow
# 2.15): with dropout, an iterator over a shuffled dataset that draws numbers, and rows that each worker's queue runner
# shuffles and counts. Broken off, or killed, and gone on with, training gives the bits of training that was not.
#
#   resume_workers_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh
mpirun_ranks=$out/ranks
case=tests/cluster/golden/sync_inputs

# train NAME STEPS SAVE_EVERY
train() {
  mpirun_here 3 "$build/bin/tfc-run" --graph "$case/graph.{job}.{task}.meta" --cluster ps=1,worker=2 --target train --fetch loss:0 \
    --steps "$2" --save-every "$3" --supervise "$out/$1" >"$out/log" 2>&1
}
# same NAME OTHER STEPS: whether variables have the same bits.
same() {
  cmp "$out/$1/model.ckpt-$3.data-00000-of-00001" "$out/$2/model.ckpt-$3.data-00000-of-00001" || fail "$1: other bits than $2 at $3"
}
losses() { # from the files of single tasks: in the log, lines of two tasks may be mixed
  find "$mpirun_ranks" -type f -exec cat {} + | grep -o '/job:worker/task:[01]: loss:0 = .*' | sort -u
}

train whole 23 10m || fail 'training failed'
losses >"$out/losses"
[ "$(wc -l <"$out/losses")" -eq 2 ] || fail 'no losses'
# Saved after every step, so the runners come to rest 23 times; only the last five are kept.
train often 23 0.000001s || fail 'saving often: training failed'
! said 'is not saved' || fail 'what is not saved?'
same often whole 23
train parts 9 10m || fail 'training to 9 failed'
train parts 23 10m || fail 'going on failed'
said 'model.ckpt-9: [0-9]* variables restored' || fail 'nothing was restored'
! said 'is not saved\|begins* anew' || fail 'what is lost?'
same parts whole 23
losses | cmp - "$out/losses" || fail 'other losses'

# checkpoint: the steps of the last one of the job that is killed.
checkpoint() {
  sed -n 's/^model_checkpoint_path: "model.ckpt-\([0-9]*\)"/\1/p' "$out/killed/checkpoint" 2>/dev/null
}
# A signal to the second worker stops all tasks after the same step, which the chief saves.
train killed 10000000 0.01s &
job=$!
until [ -n "$(checkpoint)" ]; do
  kill -0 $job 2>/dev/null || fail 'the job ended before it saved anything'
  sleep 0.05
done
kill -s TERM "$(task_of "$out/killed" 2)" || fail 'no task to be seen'
wait $job
code=$?
[ $code -eq 130 ] || fail "a task was stopped: exit code $code, not 130"
said "stopped after $(checkpoint) steps; $out/killed/model.ckpt-$(checkpoint) has the variables" || fail 'it is not said where the variables are'
# The second worker is killed, and, when the job has gone on, the ps.
for victim in 2 0; do
  before=$(checkpoint)
  train killed 10000000 0.01s &
  job=$!
  until [ -n "$(checkpoint)" ] && [ "$(checkpoint)" != "$before" ]; do
    kill -0 $job 2>/dev/null || fail 'the job ended before it saved anything'
    sleep 0.05
  done
  task=$(task_of "$out/killed" $victim)
  [ -n "$task" ] || fail 'no task to be seen'
  kill -s KILL "$task"
  wait $job
  code=$?
  [ $code -eq 4 ] || fail "a task was killed: exit code $code, not 4"
done
steps=$(($(checkpoint) + 11))
train killed $steps 10m || fail 'going on after kills failed'
said "variables restored" || fail 'nothing was restored after kills'
train long $steps 10m || fail 'training failed'
same killed long $steps
echo "two workers: the same bits, at step 23 and, after kills, at step $steps"
