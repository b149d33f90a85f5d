#!/usr/bin/env bash
# Tests --gpu-math with the fake plug-ins (tests/cuda_kernels/fake_plugin.c), whose products round their operands as
# --gpu-math says: which arithmetic is used, which one the results name, and that no measurement made in one arithmetic is
# used for another one.
#
#   tests/gpu/math_test.sh BUILD
set -u
build=$(cd "$1" && pwd)
fake=$build/fake_gpu
[ -e "$fake/lib/libtfc_cuda.so" ] || { echo "SKIPPED: no fake plug-ins in this build"; exit 0; }
command -v python3 >/dev/null || { echo "SKIPPED: no python3"; exit 0; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root/lib"
for library in "$build"/lib/libtfc_*.so "$fake"/lib/libtfc_*.so; do ln -sf "$library" "$root/lib/"; done
mkdir "$root/bin" && cp "$build"/bin/tfc-* "$root/bin/" # they look for libraries beside themselves first
ln -s "$build/share" "$root/share"
export LD_LIBRARY_PATH=$root/lib
code=0
wrong() {
  echo "WRONG: $*"
  code=1
}

# --- tfc-run: what it says, and what it computes ------------------------------------------------------------------------
run() { "$root/bin/tfc-run" --graph examples/mlp.pb --fetch loss:0 --steps 1 --json "$@" 2>"$root/said"; }
field() { python3 -c 'import json, sys; d = json.load(sys.stdin); print(d.get("gpu_math"), d["fetched"]["loss:0"])'; }
plain=$(run --devices gpu:0 | field)
[ "${plain% *}" = float32 ] || wrong "the default is $plain"
for math in float32 tf32 float16 bfloat16; do
  now=$(run --devices gpu:0 --gpu-math $math | field)
  python3 - "$math" "$plain" "$now" <<'PY' || wrong "$math: $now, in float32 $plain"
import sys
math, plain, now = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
off = abs(float(now[1]) - float(plain[1])) / float(plain[1])
sys.exit(not (now[0] == math and (off == 0 if math == "float32" else 0 < off < 1e-3)))
PY
done
all=$(run --devices gpu:0 --rewrites all | field)
[ "${all% *}" = tf32 ] || wrong "--rewrites all computes in $all"
all=$(run --devices gpu:0 --rewrites all --gpu-math float32 | field)
[ "$all" = "$plain" ] || wrong "--rewrites all --gpu-math float32 computes $all instead of $plain"
now=$(run --gpu-math float16 | field)
[ "${now% *}" = None ] || wrong "a CPU computes in $now"
grep -q 'no GPU is among the devices' "$root/said" || wrong "nothing is said where there is no GPU"
run --devices gpu:0 --gpu-math half >/dev/null
[ $? -eq 2 ] || wrong "a value that is none is not a mistake of usage"

# --- tfc-place: placement, database, going on, another arithmetic ------------------------------------------------------
place() { # somebody else may be measuring
  local result
  for _ in $(seq 30); do
    "$root/bin/tfc-place" --graph examples/mlp.pb --devices vgpu:0-1 --time 10s --measurements 2 --db "$root/t.db" \
      --report none --out "$root/p.json" "$@" >"$root/out" 2>"$root/said"
    result=$?
    grep -q 'another run measures' "$root/said" || break
    sleep 5
  done
  return $result
}
place --gpu-math float16
case $? in 0 | 7) ;; *) wrong "tfc-place: $(tail -n 2 "$root/said")" ;; esac
grep -q '"gpu_math": "float16"' "$root/p.json" || wrong "the placement does not say float16"
maths=$(python3 -c 'import sqlite3, sys
print(*sorted({str(r[0]) for r in sqlite3.connect(sys.argv[1]).execute("SELECT math FROM v_device")}))' "$root/t.db")
[ "$maths" = float16 ] || wrong "the database says $maths"
"$root/bin/tfc-report" --db "$root/t.db" show 1 | grep -q 'float32 on GPUs: float16' || wrong "the report does not say float16"
now=$(run --placement "$root/p.json" | field)
[ "${now% *}" = float16 ] || wrong "the placement's arithmetic is not kept: $now"
grep -q 'was measured' "$root/said" && wrong "a placement is not run as it says: $(cat "$root/said")"
now=$(run --placement "$root/p.json" --gpu-math tf32 | field)
[ "${now% *}" = tf32 ] || wrong "the flag does not win: $now"
grep -q 'was measured with products in float16 on GPUs; they are in tf32 now' "$root/said" || wrong "another arithmetic is not told"
sed 's/"gpu_math": "float16"/"gpu_math": "float8"/' "$root/p.json" >"$root/odd.json"
run --placement "$root/odd.json" >/dev/null
[ $? -eq 3 ] || wrong "an unknown arithmetic in a placement is taken"
python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1]); db.execute("UPDATE run SET state = \"interrupted\""); db.commit()' "$root/t.db"
place --resume 1 --gpu-math tf32
[ $? -eq 3 ] || wrong "a run in float16 goes on in tf32"
grep -q 'products in float16.*cannot go on.*products in tf32' "$root/said" || wrong "why it cannot go on: $(tail -n 2 "$root/said")"
cp "$root/p.json" "$root/q.json"
place --evaluate "$root/q.json" --gpu-math bfloat16 --db "$root/u.db"
grep -q 'measured with products in float16 on GPUs; they are in bfloat16 now' "$root/said" || wrong "--evaluate: another arithmetic is not told"
exit $code
