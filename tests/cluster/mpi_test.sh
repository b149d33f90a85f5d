# Runs the tests that every transport must pass (tests/common/transport.c) on MPI: three processes on this machine,
# without and with delays. Then what MPI's transport promises besides: messages wake a task that sleeps, and what is sent
# at one moment travels together.
#
#   mpi_test.sh BUILD_FOLDER
build=$1
source tests/cluster/mpirun.sh
suite=$build/tests/cluster_transport_thread_test
for delay in 0 500000; do
  printed=$(mpirun_here 3 "$suite" mpi $delay 2>&1) || { echo "$printed"; exit 1; }
  [ "$(grep -o 'all messages came' <<<"$printed" | wc -l)" -eq 3 ] || { echo "$printed"; exit 1; }
done
echo 'three processes, without and with delays: all messages came'
printed=$(mpirun_here 2 "$suite" wakes 2>&1) || { echo "$printed"; exit 1; }
[ "$(grep -o 'all messages came' <<<"$printed" | wc -l)" -eq 2 ] || { echo "$printed"; exit 1; }
echo 'two processes, one of which goes to sleep: every message woke it'
printed=$(mpirun_here 3 "$suite" together 2>&1) || { echo "$printed"; exit 1; }
[ "$(grep -o 'all messages came' <<<"$printed" | wc -l)" -eq 3 ] || { echo "$printed"; exit 1; }
echo 'three processes: what is sent at one moment travels together'
