# What the suites with mpirun share. A suite sets $build and sources this file. If the build has no MPI, the suite is skipped.
# Otherwise it has a folder, $out, until it ends. Its jobs print to $out/log.
if [ ! -e "$build/lib/libtfc_mpi.so" ] || ! command -v mpirun >/dev/null; then
  echo 'skipped: no MPI (libopenmpi-dev, openmpi-bin)'
  exit 0
fi
if ! grep -q '^TFC_SANITIZE:STRING=$' "$build/CMakeCache.txt"; then
  echo 'skipped: MPI is not made for sanitizers (the thread and address sanitizers see tests/cluster/*_thread_test)'
  exit 0
fi
out=$(mktemp -d)
# Ends the jobs of this suite that still run, and removes its folder.
clean_up() {
  local p
  for p in $(pgrep -f -- "^[^ ]*(timeout|mpirun|tfc-run) .*$out/"); do kill -s KILL "$p" 2>/dev/null; done
  wait
  rm -rf "$out"
}
trap clean_up EXIT
# fail TEXT: ends the suite with this text and what its last job printed.
fail() {
  echo "$*"
  cat "$out/log"
  exit 1
}
# mpirun_here COUNT COMMAND...: runs processes over this machine's loopback interface, for at most $mpirun_limit seconds.
# mpirun may mix what two tasks print at once; a suite that looks for messages of several tasks sets $mpirun_ranks to a
# folder, where each task's output is a file of its own, and asks `said TEXT`.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun_here() {
  local count=$1
  shift
  [ -z "${mpirun_ranks:-}" ] || rm -rf "$mpirun_ranks"
  timeout -k 5 "${mpirun_limit:-300}" mpirun --oversubscribe --bind-to none --mca btl self,vader --mca btl_vader_single_copy_mechanism none \
    ${mpirun_ranks:+--output-filename "$mpirun_ranks"} -n "$count" "$@"
}
said() {
  grep -rq -- "$1" "$mpirun_ranks" "$out/log"
}
# tasks_of FOLDER: lists the processes of a job that are tasks, and not their guards. The last that its command says is
# `--supervise FOLDER`.
tasks_of() {
  local p
  for p in $(pgrep -f -- "--supervise $1\$"); do
    tr '\0' ' ' <"/proc/$(ps -o ppid= -p "$p" | tr -d ' ')/cmdline" | grep -q -- "^[^ ]*tfc-run .*--supervise $1 \$" && echo "$p"
  done
}
# task_of FOLDER RANK: the one of these with the rank. (Their numbers as processes need not have the order of the ranks.)
task_of() {
  local p
  for p in $(tasks_of "$1"); do
    tr '\0' '\n' <"/proc/$p/environ" | grep -q "^OMPI_COMM_WORLD_RANK=$2\$" && echo "$p"
  done
}
