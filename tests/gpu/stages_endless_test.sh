#!/usr/bin/env bash
# Runs scripts/gpu_check as on a machine with a GPU, but with the fake plug-ins (fake_checkout.sh): the
# stages that take minutes, or those that are named; random delays; and stages that are killed or run out of time.
#
#   tests/gpu/stages_endless_test.sh BUILD [STAGE...]     KEEP=1 leaves the folder and names it
set -u
build=$(cd "$1" && pwd)
shift
source "$(dirname "$0")/fake_checkout.sh"

code=0
cd "$root" || exit 1
alone=$#
export STAGE_SECONDS=4800 # so that it does not matter how busy the machine is
if [ $# -eq 0 ]; then
  export GPU_CHECK_QUICK=1
  set -- numerics green sanitizer
fi
# A compute-sanitizer that finds nothing.
cat >bin/compute-sanitizer <<'END'
#!/bin/sh
while :; do
  case $1 in
  --target-processes | --error-exitcode | --launch-timeout | --print-limit | --tool) shift 2 ;;
  *) break ;;
  esac
done
exec "$@"
END
chmod +x bin/compute-sanitizer
OUT=$root/out bash scripts/gpu_check "$@" || code=1
# What follows the first call, in its order, with a PyTorch that only says a time. What is computed does not matter.
if [ "$alone" -eq 0 ]; then
  mv tests/gpu/torch_models.py tests/gpu/models_of_torch.py
  printf 'from models_of_torch import NAMES\nif __name__ == "__main__":\n    print(1e9, 9999)\n' >tests/gpu/torch_models.py
  FAKE_IDLE=1 OUT=$root/alone bash scripts/gpu_check --limit 3600 cupti green bench place || code=1
  [ "$(sed -n 's/^gpu_check \([a-z]*\): passed.*/\1/p' "$root/alone/gpu_check.log" | tr '\n' ' ')" = 'cupti green bench place ' ] &&
    grep -qE '^nmt +tfc +[0-9.]+ us +[1-9][0-9]* launches \(exact [0-9.]+ us [1-9][0-9]*\) +eager +1000000000.0 us +9999 ' "$root/alone/gpu_check.log" &&
    grep -q '^      nmt, all: [1-9].* of these [1-9][0-9]* chains that a kernel interprets' "$root/alone/gpu_check.log" &&
    grep -qE '^nmt +tfc +[0-9.]+ us +side by side +[0-9.]+ us ' "$root/alone/gpu_check.log" &&
    [ -s "$root/alone/nmt.db.xz" ] || { echo "what follows the first call is not whole"; code=1; }
fi
# Random delays, so that a missing wait shows.
FAKE_DELAY_NS=50000 build/gpu/tests/exec_placement_thread_test vgpu:0-3 mlp || code=1
FAKE_DELAY_NS=50000 build/gpu/tests/exec_placement_thread_test vgpu:0-3,shared mlp || code=1
# Stages that are killed, or that run out of time, leave what they have found.
GPU_CHECK_QUICK= OUT=$root/killed bash scripts/gpu_check numerics >/dev/null &
checking=$!
while [ "$(cat "$root/killed/gpu_check.log" 2>/dev/null | grep -c .)" -le 5 ] && kill -0 "$checking" 2>/dev/null; do sleep 0.2; done
kill -TERM "$checking"
wait "$checking"
[ $? -eq 1 ] && grep -q '^gpu_check: stopped by a signal in numerics' "$root/killed/gpu_check.log" &&
  [ "$(grep -c . "$root/killed/gpu_check.log")" -gt 5 ] && tar -tzf "$root/killed/gpu_check.tar.gz" | grep -q numerics.txt ||
  { cat "$root/killed/gpu_check.log"; echo "nothing is left of a stage that was ended"; code=1; }
GPU_CHECK_QUICK= OUT=$root/limit bash scripts/gpu_check --limit 32 numerics conformance >/dev/null
[ $? -eq 1 ] && grep -qE '^(stopped after [0-9]+ s|no time left): ' "$root/limit/gpu_check.log" &&
  grep -q '^gpu_check numerics: FAILED after [23][0-9] s' "$root/limit/gpu_check.log" &&
  grep -q '^gpu_check conformance: MISSED' "$root/limit/gpu_check.log" ||
  { cat "$root/limit/gpu_check.log"; echo "a limit is not kept"; code=1; }
for file in gpu_check.log gpu_check.tar.gz; do
  [ -s "$root/out/$file" ] || { echo "there is no $file"; code=1; }
done
exit $code
