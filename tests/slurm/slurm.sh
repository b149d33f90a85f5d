# A Slurm of its own on this machine: one controller and three nodes, all on the loopback, as the user who runs the test.
#
#   slurm_start FOLDER    starts munge, slurmctld, slurmd; everything they write is in FOLDER
#   slurm_end             ends them
# Sets SLURM_CONF for sbatch, squeue and the others.
slurm_pids=()

# wait_for SECONDS COMMAND...
wait_for() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.1
  done
}

free_ports() { # COUNT
  python3 - "$1" <<'END'
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))
END
}

slurm_start() {
  local dir=$1 user ports n
  user=$(id -un)
  read -ra ports <<<"$(free_ports 4)"
  mkdir -p "$dir"/{munge,state,log}
  chmod 700 "$dir/munge"
  head -c 1024 /dev/urandom >"$dir/munge/key"
  chmod 400 "$dir/munge/key"
  for n in 1 2 3; do mkdir -p "$dir/spool.n$n" "$dir/tmp.n$n"; done
  # linuxproc and none: no control groups. TmpFS: each node needs a folder of its own for PMIx. cred_expire: a job that
  # was put back waits for so long until it starts again.
  cat >"$dir/slurm.conf" <<END
ClusterName=tfc
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=5
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld
SlurmdLogFile=$dir/log/slurmd.%n
TmpFS=$dir/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=pmix
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SchedulerType=sched/builtin
ReturnToService=2
KillWait=1
MailProg=/bin/true
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=1 State=UNKNOWN
NodeName=n3 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=${ports[3]} CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
  export SLURM_CONF=$dir/slurm.conf OMPI_MCA_btl_tcp_if_include=lo
  munged --foreground --force --num-threads=2 --socket="$dir/munge/socket" --key-file="$dir/munge/key" \
    --pid-file="$dir/munge/pid" --log-file="$dir/log/munged" --seed-file="$dir/munge/seed" >"$dir/log/munged.out" 2>&1 &
  slurm_pids+=($!)
  wait_for 60 test -S "$dir/munge/socket" || { cat "$dir/log/munged.out"; return 1; }
  slurmctld -D -c >"$dir/log/slurmctld.out" 2>&1 &
  slurm_pids+=($!)
  for n in 1 2 3; do
    slurmd -D -N "n$n" >"$dir/log/slurmd.n$n.out" 2>&1 &
    slurm_pids+=($!)
  done
  nodes_idle() { [ "$(timeout 5 sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" -eq 3 ]; }
  wait_for 120 nodes_idle || { sinfo -N; tail -n 20 "$dir"/log/*; return 1; }
}

slurm_end() {
  local i
  [ ${#slurm_pids[@]} -eq 0 ] || timeout 5 scancel --signal KILL --full --user "$(id -un)" 2>/dev/null
  for ((i = ${#slurm_pids[@]} - 1; i >= 0; i--)); do
    kill "${slurm_pids[i]}" 2>/dev/null
    for _ in $(seq 30); do kill -0 "${slurm_pids[i]}" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "${slurm_pids[i]}" 2>/dev/null
    wait "${slurm_pids[i]}" 2>/dev/null
  done
  for i in $(pgrep slurmstepd); do # of steps that were about to end
    ! cat "/proc/$i/environ" 2>/dev/null | tr '\0' '\n' | grep -qxF "SLURM_CONF=$SLURM_CONF" || kill -KILL "$i"
  done
}
