#!/usr/bin/env bash
# Trains over several tasks under Slurm. A task that fails ends the job step; the job is then put back into the queue,
# and goes on from its last checkpoint.
#
#   sbatch --ntasks 3 --export=ALL,GRAPH='train.{job}.{task}.meta',CLUSTER=ps=1,worker=2 configs/slurm/train.sh --target Adam
#
#   GRAPH, CLUSTER   tfc-run's --graph and --cluster; --ntasks is the number of tasks in CLUSTER
#   STEPS            training ends after so many, all starts together (default 1000)
#   SUPERVISE        where checkpoints go; all nodes have to see this folder (default run.<job id>)
#   SAVE_EVERY       how often (default 10m)
#   RESTARTS         how often at most the job is put back (default 100)
#   TFC_RUN          the program (default tfc-run)
#
# Further arguments are tfc-run's.
#SBATCH --job-name tfc-train
#SBATCH --requeue
#SBATCH --open-mode append
#SBATCH --output tfc-train.%j.log

restarted=${SLURM_RESTART_COUNT:-0} # 0: this is the first start
folder=${SUPERVISE:-run.$SLURM_JOB_ID}
failed=$folder/failed.$SLURM_JOB_ID.$restarted # the exit code of the task that failed first
failure=$folder/failure                        # what tfc-run leaves if it would only fail again: "3 /job:ps/task:0: ..."
mkdir -p "$folder" || exit 1
rm -f "$failure" # of an earlier start
echo "start $((restarted + 1)) of job $SLURM_JOB_ID on $SLURM_JOB_NODELIST"
# When a task ends because its graph or a flag is wrong, the others lose their connection to it and end with 4, and MPI may
# kill all of them before any has ended. So tfc-run leaves its exit code, name and message in FOLDER/failure before it ends
# the others. The shell does so for a task that ended before it knew its folder; it outlives the signal that srun then sends
# to all.
# shellcheck disable=SC2016 # the inner shell expands these
srun --mpi=pmix --kill-on-bad-exit=1 bash -c '
  trap : TERM
  "${@:3}"
  code=$?
  case $code in
  0) ;;
  2 | 3 | 5) [ -s "$2" ] || echo $code >"$2" ;;
  *) (set -o noclobber; echo $code >"$1") 2>/dev/null ;;
  esac
  exit $code' task "$failed" "$failure" "${TFC_RUN:-tfc-run}" --graph "${GRAPH:?the graph}" --cluster "${CLUSTER:?the tasks, as ps=1,worker=2}" \
  --supervise "$folder" --save-every "${SAVE_EVERY:-10m}" --steps "${STEPS:-1000}" "$@"
code=$?
[ "$code" -ne 0 ] || exit 0
# srun gives the highest exit code, which may be that of a task that srun itself ended
[ ! -s "$failed" ] || code=$(cat "$failed")
rm -f "$failed"
[ ! -s "$failure" ] || read -r code _ <"$failure"
# 4: a task or a device stopped working. Above 128: a signal ended a process. Any other error, in the graph or in a
# flag, would happen again.
if { [ "$code" -eq 4 ] || [ "$code" -gt 128 ]; } && [ "$restarted" -lt "${RESTARTS:-100}" ]; then
  echo "a task has failed (exit code $code): the job goes back into the queue"
  scontrol requeue "$SLURM_JOB_ID"
  sleep 60 # Slurm ends this script during this time
fi
exit "$code"
