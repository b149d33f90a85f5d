# mpirun_here COUNT COMMAND...: runs processes over this machine's loopback interface. If this build has no MPI, the
# suite is skipped.
if [ ! -e "$build/lib/libtfc_mpi.so" ] || ! command -v mpirun >/dev/null; then
  echo 'skipped: no MPI (libopenmpi-dev, openmpi-bin)'
  exit 0
fi
if ! grep -q '^TFC_SANITIZE:STRING=$' "$build/CMakeCache.txt"; then
  echo 'skipped: MPI is not made for sanitizers (the thread and address sanitizers see tests/cluster/*_thread_test)'
  exit 0
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun_here() {
  local count=$1
  shift
  timeout -k 5 120 mpirun --oversubscribe --bind-to none --mca btl self,vader --mca btl_vader_single_copy_mechanism none \
    -n "$count" "$@"
}
