#!/usr/bin/env bash
# Runs scripts/gpu_check as on a machine with a GPU, but with the fake plug-ins (tests/cuda_kernels/fake_plugin.c): its
# stages run, their figures are computed, and the files that it has to bring back exist.
#
#   tests/gpu/check_long_test.sh BUILD [STAGE...]     KEEP=1 leaves the folder and names it
set -u
build=$(cd "$1" && pwd)
shift
fake=$build/fake_gpu
[ -e "$fake/lib/libtfc_cuda.so" ] || { echo "SKIPPED: no fake plug-ins in this build"; exit 0; }
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 0; }
source=$(cd "$(dirname "$0")/../.." && pwd)
root=$(mktemp -d)
[ "${KEEP:-}" ] && echo "$root" || trap 'rm -rf "$root"' EXIT

# A checkout with a build folder that has tfc's programs and the fake plug-ins.
mkdir -p "$root/build/gpu/lib" "$root/bin"
cp -r "$source/scripts" "$root/"
mkdir "$root/tests" && cp -r "$source/tests/gpu" "$root/tests/"
ln -s "$source/tests/conformance" "$root/tests/"
ln -s "$source/examples" "$root/examples"
mkdir "$root/build/gpu/bin" && cp "$build"/bin/tfc-* "$root/build/gpu/bin/" # they look for libraries beside themselves first
ln -s "$build/share" "$root/build/gpu/share"
ln -s "$build/tests" "$root/build/gpu/tests"
for library in "$build"/lib/libtfc_*.so; do ln -s "$library" "$root/build/gpu/lib/"; done
for library in "$fake"/lib/libtfc_*.so; do ln -sf "$library" "$root/build/gpu/lib/"; done
printf '#!/bin/sh\necho "GPU 0: a fake"\n' >"$root/bin/nvidia-smi"
chmod +x "$root/bin/nvidia-smi"
export PATH=$root/bin:$PATH LD_LIBRARY_PATH=$root/build/gpu/lib

code=0
cd "$root" || exit 1
if [ $# -eq 0 ]; then
  # The one first call, in its order.
  export GPU_CHECK_QUICK=1
  set -- numerics green
  OUT=$root/first bash scripts/gpu_check first || code=1
  [ "$(grep -c '^ok    .*, \(plain\|captured\|on a green stream\|under CUPTI\): ' "$root/first/gpu_check.log")" -eq 12 ] &&
    [ "$(sed -n 's/^gpu_check \([a-z]*\): passed.*/\1/p' "$root/first/gpu_check.log" | tr '\n' ' ')" = 'probe losses conformance cupti ' ] ||
    { echo "the first call is not whole"; code=1; }
  # What the libraries chose in probe is known in losses.
  grep -q '^[1-9][0-9]* algorithms are known from .*tuning.db$' "$root/first/gpu_check.log" ||
    { echo "what was measured for choosing algorithms does not reach the next stage"; code=1; }
fi
OUT=$root/out bash scripts/gpu_check "$@" || code=1
# As it is unpacked, without a checkout. Products end the process there: that is run again, once, with all that can be
# said, and comes once more at the end.
mkdir -p "$root/unpacked/bin" "$root/unpacked/tests"
for part in scripts examples build/gpu/lib; do ln -s "$root/$part" "$root/unpacked/"; done
ln -s "$root/tests/gpu" "$root/tests/conformance" "$build"/tests/gpu_probe_test "$root/unpacked/tests/"
rm "$root/unpacked/scripts" && cp -r "$root/scripts" "$root/unpacked/scripts" # it looks for its own folder
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
# Random delays, so that a missing wait shows.
FAKE_DELAY_NS=50000 build/gpu/tests/exec_placement_thread_test vgpu:0-3 mlp || code=1
FAKE_DELAY_NS=50000 build/gpu/tests/exec_placement_thread_test vgpu:0-3,shared mlp || code=1
# A step with a capture in it is not timed.
build/gpu/bin/tfc-run -q --graph examples/mlp.pb --devices gpu:0 --steps 2 --warmup 0 --json | grep -q '"warmup": 3' ||
  { echo "the steps until segments are captured are timed"; code=1; }
# What a GPU would have to be told about its launches: a stream that stands still in the middle of a segment.
FAKE_GAP_NS=3000000 GPU_CHECK_QUICK=1 OUT=$root/gap bash scripts/gpu_check cupti >"$root/gap.txt"
[ $? -eq 1 ] && grep -q '^      up to [0-9.]* us, median [0-9.]* us: segment [0-9]*, place 2: [^- ].* (fake kernel) -> [^- ].* (fake' "$root/gap.txt" &&
  grep -q '^WRONG mlp: launch gaps over 10 us within captured segments: [1-9][0-9]* of [0-9]* as a rule' "$root/gap.txt" ||
  { grep -i gap "$root/gap.txt"; echo "gaps within a captured segment are not found"; code=1; }
# Stages that are killed, or that run out of time, leave what they have found.
GPU_CHECK_QUICK= OUT=$root/killed timeout -s TERM 8 bash scripts/gpu_check numerics >/dev/null
[ $? -eq 124 ] && grep -q '^gpu_check: stopped by a signal in numerics' "$root/killed/gpu_check.log" &&
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
