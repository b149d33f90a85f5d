#!/usr/bin/env bash
# Checks that a memory limit ends tfc-run with exit code 5 and the name of the node that requested too much, never with
# a kill: in a control group of version 1 or 2, under `ulimit -v`, and if the files of a group of version 2 contain a
# limit. The reported peak must be within a tenth of the growth of the process.
#
#   tests/cli/memory_limit_test.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
run=$1/bin/tfc-run place=$1/bin/tfc-place
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
unset OPENBLAS_CORETYPE
failed=0 skipped=

if grep -qE '^TFC_SANITIZE[A-Z]*:[A-Z]+=.*(address|thread|memory)' "$1/CMakeCache.txt"; then
  echo "SKIPPED: a sanitizer's own memory is many times the program's"
  exit 0
fi

# refused WHAT RC LIMIT: checks that the exit code was 5, and that the message says which node requested how much, and
# the limit.
refused() {
  local said
  said=$(cat "$out/err")
  if [ "$2" != 5 ]; then
    printf '%s: exit %s, not 5: %s\n' "$1" "$2" "$said"
    failed=1
  elif ! grep -qE "node '[^']+' \([A-Za-z0-9]+\).*out of memory: [0-9.]+ .?B asked for, [0-9.]+ .?B in use, limit [0-9.]+ .?B \($3\), [0-9.]+ .?B left" <<<"$said"; then
    printf '%s: no node, bytes or limit in: %s\n' "$1" "$said"
    failed=1
  fi
}
large=(--graph examples/nmt_while_v2.pb --batch 1024 --steps 1 --warmup 0 --quiet)

# Control groups. The test makes one below the group of this shell, or at the top, wherever it is allowed.
make_group() { # version controller-file folders...
  local limit=$1 folder
  shift
  for folder; do
    [ -d "$folder" ] || continue
    group=$folder/tfc-memory-test-$$
    mkdir "$group" 2>/dev/null || continue
    if [ -e "$group/$limit" ] && echo 170000000 2>/dev/null >"$group/$limit"; then return 0; fi
    rmdir "$group"
  done
  return 1
}
own() { sed -nE "s/^[0-9]+:$1:(.*)/\1/p" /proc/self/cgroup | head -1; }
in_group() { # WHAT CONTROLLER-FILE
  local limit rc
  ( echo "$BASHPID" >"$group/cgroup.procs" && exec "$run" "${large[@]}" ) >/dev/null 2>"$out/err"
  refused "$1" $? "its control group"
  # tfc-place holds the feeds in two processes, as tensors and in the message between them: everything has to be counted.
  for limit in 60000000 100000000; do
    echo $limit >"$group/$2"
    ( echo "$BASHPID" >"$group/cgroup.procs" && exec "$place" --graph examples/mlp.pb --devices cpu:0-1 --batch 7000 \
      --time 2s --wait --quiet --report none --db "$out/p.db" --out "$out/p.json" ) >/dev/null 2>"$out/err"
    rc=$?
    if [ $rc != 5 ] || ! grep -qE "feed.*out of memory: [0-9.]+ MB asked for, .*limit [0-9.]+ MB \(its control group\)" "$out/err"; then
      printf '%s: tfc-place under %s bytes: exit %s: %s\n' "$1" $limit $rc "$(tail -n 1 "$out/err")"
      failed=1
    fi
  done
  rmdir "$group"
}
made=0
if make_group memory.limit_in_bytes "/sys/fs/cgroup/memory$(own '([a-z_]+,)*memory(,[a-z_]+)*' | sed 's/^\/$//')" /sys/fs/cgroup/memory; then
  in_group "group of version 1" memory.limit_in_bytes
  made=1
fi
for top in /sys/fs/cgroup /sys/fs/cgroup/unified; do
  if make_group memory.max "$top$(own '' | sed 's/^\/$//')" "$top"; then
    in_group "group of version 2" memory.max
    made=1
    break
  fi
done
if [ $made = 0 ]; then
  # If the controller exists and groups can be made, it is a failure if none was tested.
  if [ -w /sys/fs/cgroup/memory/cgroup.procs ] || { mkdir "/sys/fs/cgroup/tfc-try-$$" 2>/dev/null &&
    rmdir "/sys/fs/cgroup/tfc-try-$$" && grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; }; then
    echo "FAILED: control groups can be made here, but none had a limit of memory"
    failed=1
  fi
  skipped="no control group with a limit of memory can be made here"
fi

# Files like those of a version 2 group, if a process may have its own view of the file system.
mkdir "$out/group"
echo 170000000 >"$out/group/memory.max"
echo 160000000 >"$out/group/memory.current"
printf 'anon 150000000\ninactive_file 1000000\n' >"$out/group/memory.stat"
if unshare --mount true 2>/dev/null; then
  unshare --mount bash -c 'mount --bind "$0" /sys/fs/cgroup && exec "$@"' "$out/group" "$run" "${large[@]}" >/dev/null 2>"$out/err"
  refused "files of version 2" $? "its control group"
else
  skipped="${skipped:+$skipped; }no mount namespace can be made here"
fi

# A limit of the address space.
( ulimit -v 600000 && exec "$run" "${large[@]}" --threads 1 ) >/dev/null 2>"$out/err"
refused "ulimit -v" $? "ulimit -v"

# Compares the reported peak with the growth of the process since the session was created. (Before that, the process
# needs about as much as for reading the graph.)
if command -v python3 >/dev/null; then
  python3 - "$run" <<'P' || failed=1
import json, os, subprocess, sys
run = sys.argv[1]
def grown(*flags):
    p = subprocess.Popen([run, "--quiet", *flags], stdout=subprocess.PIPE)
    text = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    return text, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)
bad = False
for graph, batch in (("nmt_while", 32), ("nmt_while_v2", 96), ("nmt_while_v2", 128)):
    flags = ["--graph", f"examples/{graph}.pb", "--batch", str(batch)]
    _, before, first = grown("--shapes", *flags)
    text, most, second = grown("--json", "--steps", "2", "--warmup", "1", *flags)
    if first or second:
        print(f"{graph}, batch {batch}: exits {first} and {second}")
        bad = True
        continue
    said = sum(d["peak_bytes"] for d in json.loads(text)["devices"])
    if most - before < 64 << 20 or abs(said - (most - before)) > 0.1 * (most - before):
        print(f"{graph}, batch {batch}: {said} bytes reported, the process grew by {most - before}")
        bad = True
sys.exit(bad)
P
else
  skipped="${skipped:+$skipped; }no python3"
fi

[ -z "$skipped" ] || echo "SKIPPED: $skipped"
exit $failed
