# configs/slurm/train.sh under a real Slurm on this machine: a ps and two workers train, a task is killed, the job goes
# back into the queue by itself, and goes on from its last checkpoint.
#
#   train_test.sh BUILD_FOLDER
build=$(cd "$1" && pwd)
source tests/cluster/mpirun.sh
PATH=$PATH:/usr/sbin
for program in munged slurmctld slurmd sbatch; do
  command -v $program >/dev/null || { echo "SKIPPED: no $program (Debian: slurmctld, slurmd, slurm-client, munge)"; exit 0; }
done
source tests/slurm/slurm.sh
trap 'slurm_end; rm -rf "$out"' EXIT
fail() {
  echo "$*"
  tail -n 200 "$out"/*.log
  tail -n 30 "$out"/slurm/log/slurmctld
  exit 1
}
slurm_start "$out/slurm" || fail 'Slurm does not start'
for w in 0 1; do cp tests/cluster/golden/adam/graph.worker.$w.meta "$out/train.worker.$w.meta"; done
cp "$out/train.worker.0.meta" "$out/wrong.worker.0.meta"
head -c 1000 "$out/train.worker.1.meta" >"$out/wrong.worker.1.meta"
# How many steps a job takes is read by each start, so that the job cannot end before a task is killed. A start waits
# until it is known.
printf '#!/bin/bash\nuntil [ -s "%s" ]; do sleep 0.1; done\nexec "%s" "$@" --steps "$(cat "%s")"\n' "$out/steps" "$build/bin/tfc-run" \
  "$out/steps" >"$out/task"
chmod +x "$out/task"
echo 1000000 >"$out/steps"

# submit NAME: prints the job's number.
submit() {
  TFC_RUN=$out/task GRAPH="$out/$1.{job}.{task}.meta" CLUSTER=ps=1,worker=2 SUPERVISE=$out/$1.run SAVE_EVERY=0.05s \
    sbatch --parsable --ntasks 3 --output "$out/$1.log" configs/slurm/train.sh --target Adam --fetch Mean:0
}
is() { # JOB STATE
  timeout 5 scontrol show job "$1" | grep -q "JobState=$2"
}
last_saved() {
  sed -n 's/^model_checkpoint_path: "model.ckpt-\([0-9]*\)"/\1/p' "$out/train.run/checkpoint" 2>/dev/null
}
has_saved() {
  [ "$(last_saved)" ]
}

# What an earlier start left of its failure does not count.
mkdir "$out/train.run"
echo '3 /job:ps/task:0: of an earlier start' >"$out/train.run/failure"
job=$(submit train) || fail 'the job is not taken'
wait_for 120 has_saved || fail 'nothing is saved'
begin=$SECONDS
rm "$out/steps"
# The second task's process; its guard is its parent.
victim=$(pgrep -f -- "tfc-run .*--supervise $out/train.run" | while read -r p; do
  tr '\0' ' ' <"/proc/$(ps -o ppid= -p "$p" | tr -d ' ')/cmdline" 2>/dev/null | grep -q '^[^ ]*tfc-run ' && echo "$p"
done | sed -n 2p)
kill -KILL "$victim" || fail 'no task to kill'
wait_for 120 grep -q 'goes back into the queue' "$out/train.log" || fail 'it is not said that the job goes on'
steps=$(($(last_saved) + 500))
echo $steps >"$out/steps"
wait_for 120 grep -q 'start 2 of job' "$out/train.log" || fail 'it is not started again'
grep -q 'was ended by signal 9 (Killed); the last it did: ' "$out/train.log" || fail 'it is not said which task'
wait_for 120 is "$job" COMPLETED || fail 'it does not end'
restored=$(sed -n 's/.*model.ckpt-\([0-9]*\): [0-9]* variables restored/\1/p' "$out/train.log")
[ "${restored:-0}" -gt 0 ] || fail 'it began anew'
grep -q 'model_checkpoint_path: "model.ckpt-'$steps'"' "$out/train.run/checkpoint" || fail 'the last step is not saved'
echo "killed, back in the queue, resumed from step $restored, ended after $((SECONDS - begin)) s"

# What would only fail again is not repeated, though MPI may end all tasks by a signal before any has left its exit code.
job=$(submit wrong) || fail 'the job is not taken'
wait_for 120 is "$job" FAILED || fail 'a graph that cannot be read: it does not fail'
grep -q 'wrong.worker.1.meta' "$out/wrong.log" || fail 'a graph that cannot be read: it is not said which'
grep -q '^3 /job:worker/task:1: .*wrong.worker.1.meta' "$out/wrong.run/failure" || fail 'a graph that cannot be read: the folder does not say it'
! grep -q 'goes back' "$out/wrong.log" || fail 'a graph that cannot be read: started again'
