#!/usr/bin/env bash
# Tests which clock times the steps of tfc-run, with the fake plug-ins (tests/cuda_kernels/fake_plugin.c). With a GPU, its
# profiler times every step by default, and tfc-run says what that costs. Without a profiler, the host's clock does, and
# tfc-run says why.
#
#   tests/gpu/timing_test.sh BUILD
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
run() { "$root/bin/tfc-run" -q --graph "$(dirname "$0")/../../examples/mlp.pb" --fetch loss:0 --db "$root/t.db" "$@" 2>"$root/said"; }
holds() { # NAME EXPRESSION, of the JSON document d
  python3 -c 'import json, sys
d = json.load(open(sys.argv[1])); ok = eval("(" + sys.argv[3] + ")")
ok or print("WRONG", sys.argv[2] + ":", {k: d.get(k) for k in ("step", "timer", "trace_overhead", "untraced", "fetched")})
sys.exit(not ok)' "$root/out" "$1" "$2" || code=1
}
run --devices gpu:0 --steps 40 --json >"$root/out" || code=1
holds 'every step' 'd["timer"] == "a fake profiler" and d["step"]["steps"] == 40 and d["untraced"]["steps"] == 20
                    and isinstance(d["trace_overhead"], float) and d["step"]["median_us"] > 0 and d["untraced"]["median_us"] > 0
                    and sum(d["trace_records"]["flushes"].values()) >= 20 and d["trace_records"]["overlap_limit_us"] >= 2'
loss=$(python3 -c 'import json, sys; print(repr(json.load(open(sys.argv[1]))["fetched"]["loss:0"]))' "$root/out")
run --devices gpu:0 --steps 40 | grep -q '^timed by a fake profiler; tracing costs .* % of a step' || { echo "WRONG: the text"; code=1; }
run --devices gpu:0 --steps 5 --json >"$root/out" || code=1
holds 'few steps' 'd["timer"] == "a fake profiler" and d["step"]["steps"] == 5 and "untraced" not in d and d["trace_overhead"] is None'
run --devices gpu:0 --steps 40 --profile --json >"$root/out" || code=1
holds 'what is stored is traced' 'd["timer"] == "a fake profiler" and d["step"]["steps"] == 40 and "untraced" not in d'
stored=$(python3 -c 'import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute("SELECT COUNT(*), SUM(traced) FROM v_step").fetchone())' "$root/t.db")
[ "$stored" = "40 40" ] || { echo "WRONG: steps stored and traced: $stored"; code=1; }
run --devices cpu:0 --steps 5 --json >"$root/out" || code=1
holds 'a CPU' '"timer" not in d and "trace_overhead" not in d'
rm "$root/lib/libtfc_cupti.so"
run --devices gpu:0 --steps 40 --json >"$root/out" || code=1
holds 'no profiler' 'd["timer"].startswith("the host'"'"'s clock: CUPTI cannot be used") and d["step"]["steps"] == 40 and "untraced" not in d'
holds 'the same steps' "repr(d['fetched']['loss:0']) == '$loss'"
exit $code
