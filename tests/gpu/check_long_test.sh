#!/usr/bin/env bash
# Runs scripts/gpu_check as on a machine with a GPU, but with the fake plug-ins (fake_checkout.sh): its
# stages run, their figures are computed, what fails is told, and the files that it has to bring back exist. The stages
# that take minutes are in stages_endless_test.sh.
#
#   tests/gpu/check_long_test.sh BUILD     KEEP=1 leaves the folder and names it
set -u
build=$(cd "$1" && pwd)
shift
source "$(dirname "$0")/fake_checkout.sh"

code=0
cd "$root" || exit 1
# The one first call, in its order.
export GPU_CHECK_QUICK=1
OUT=$root/first bash scripts/gpu_check first || code=1
[ "$(grep -c '^ok    .*, \(plain\|captured\|on a green stream\|under CUPTI\): ' "$root/first/gpu_check.log")" -eq 12 ] &&
  [ "$(sed -n 's/^gpu_check \([a-z]*\): passed.*/\1/p' "$root/first/gpu_check.log" | tr '\n' ' ')" = 'probe losses conformance cupti ' ] ||
  { echo "the first call is not whole"; code=1; }
# What the libraries chose in probe is known in losses.
grep -q '^[1-9][0-9]* algorithms are known from .*tuning.db$' "$root/first/gpu_check.log" ||
  { echo "what was measured for choosing algorithms does not reach the next stage"; code=1; }
# As it is unpacked, without a checkout. Products end the process there: that is run again, once, with all that can be
# said, and comes once more at the end.
mkdir -p "$root/unpacked/bin" "$root/unpacked/tests"
for part in scripts examples build/gpu/lib; do ln -s "$root/$part" "$root/unpacked/"; done
ln -s "$root/tests/gpu" "$root/tests/conformance" "$build"/tests/gpu_probe_test "$root/unpacked/tests/"
# the check searches for files in its own folder
rm "$root/unpacked/scripts" && cp -r "$root/scripts" "$root/unpacked/scripts"
cat >"$root/unpacked/bin/tfc-run" <<END
#!/bin/sh
case "\$*" in *part_product*gpu:0*)
  [ -z "\${CUDA_LAUNCH_BLOCKING:-}" ] || echo "launches wait, the libraries say \$CUBLASLT_LOG_LEVEL and \$CUDNN_LOGLEVEL_DBG" >&2
  kill -SEGV \$\$
esac
exec "$root/build/gpu/bin/tfc-run" "\$@"
END
chmod +x "$root/unpacked/bin/tfc-run"
echo 0123456789abcdef >"$root/unpacked/commit"
(cd "$root/unpacked" && OUT=$root/broken bash scripts/gpu_check probe >"$root/broken.txt")
[ $? -eq 1 ] && grep -q '^the carried build is of commit 0123456789ab' "$root/broken.txt" &&
  [ "$(grep -c 'launches wait, the libraries say 2 and 2' "$root/broken.txt")" -ge 1 ] &&
  [ "$(grep -c 'the first failure, run again' "$root/broken.txt")" -eq 1 ] &&
  sed '1,/^-- the end of probe, which failed/d' "$root/broken.txt" | grep -q '^WRONG product, captured: exit -11' ||
  { tail -n 60 "$root/broken.txt"; echo "what failed is not told"; code=1; }
# What the driver knows how to follow is not wrong: cuDNN takes a green stream only in its own context, flags are not written.
FAKE_STRICT_CUDNN=1 FAKE_LOST_FLAGS=1 build/gpu/tests/gpu_probe_test basic libraries >"$root/strict.txt" &&
  grep -q 'refused in the primary context' "$root/strict.txt" && grep -q 'a flag was not written' "$root/strict.txt" ||
  { cat "$root/strict.txt"; echo "a refusal that the driver knows how to follow is called wrong"; code=1; }
# What a test has measured is kept even if it is stopped.
timeout -s KILL 20 build/gpu/tests/gpu_numerics_long_test gpu:0 losses=nmt "tuning=$root/stopped.db" >"$root/stopped.txt" 2>&1
[ $? -eq 137 ] && python3 -c 'import sqlite3, sys; sys.exit(sqlite3.connect(sys.argv[1]).execute("SELECT COUNT(*) FROM v_tuning").fetchone()[0] == 0)' \
  "$root/stopped.db" || { tail -n 5 "$root/stopped.txt"; echo "what a stopped test has measured is lost"; code=1; }
# Where there is no gdb, the toolkit's shows the stack.
python=$(python3 -c 'import sys; print(sys.executable)') # not a script that finds the interpreter by PATH
mkdir -p "$root/toolkit/bin" "$root/no_gdb"
printf '#!/bin/sh\necho "a stack of ${7##*/}"\n' >"$root/toolkit/bin/cuda-gdb"
printf '#!/bin/sh\nkill -SEGV $$\n' >"$root/no_gdb/crash"
chmod +x "$root/toolkit/bin/cuda-gdb" "$root/no_gdb/crash"
PATH=/nowhere CUDA_HOME=$root/toolkit "$python" tests/gpu/check.py explain --out "$root/no_gdb" -- "$root/no_gdb/crash" >"$root/no_gdb/said"
grep -q 'again under cuda-gdb' "$root/no_gdb/said" && grep -q 'a stack of crash' "$root/no_gdb/said" ||
  { cat "$root/no_gdb/said"; echo "the toolkit's debugger is not used"; code=1; }
rm "$root/no_gdb/explained"
python3 tests/gpu/check.py explain --out "$root/no_gdb" --seconds 3 -- "$root/no_gdb/crash" >"$root/no_gdb/late"
grep -q 'logs: no time left' "$root/no_gdb/late" ||
  { echo "what failed is run again although there is no time left"; code=1; }
# A step with a capture in it is not timed.
build/gpu/bin/tfc-run -q --graph examples/mlp.pb --devices gpu:0 --steps 2 --warmup 0 --json | grep -q '"warmup": 3' ||
  { echo "the steps until segments are captured are timed"; code=1; }
# What a GPU would have to be told about its launches: a stream that stands still in the middle of a segment.
FAKE_GAP_NS=3000000 GPU_CHECK_QUICK=1 OUT=$root/gap bash scripts/gpu_check cupti >"$root/gap.txt"
[ $? -eq 1 ] && grep -q '^      up to [0-9.]* us, median [0-9.]* us: segment [0-9]*, place 2: [^- ].* (fake kernel) -> [^- ].* (fake' "$root/gap.txt" &&
  grep -q '^WRONG mlp: launch gaps over 10 us within captured segments: [1-9][0-9]* of [0-9]* as a rule' "$root/gap.txt" ||
  { grep -i gap "$root/gap.txt"; echo "gaps within a captured segment are not found"; code=1; }
for file in gpu_check.log gpu_check.tar.gz; do
  [ -s "$root/first/$file" ] || { echo "there is no $file"; code=1; }
done
exit $code
