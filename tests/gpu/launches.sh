#!/usr/bin/env bash
# How many kernels, copies and fills a training step of each example launches on one GPU: counted on the fake plug-ins
# (tests/cuda_kernels/fake_plugin.c), where every piece of work of the last step is a record. Prints
# docs/measurements/gpu_launches.md.
#
#   tests/gpu/launches.sh BUILD [EXAMPLE...]
set -eu
build=$(cd "$1" && pwd)
shift
source=$(cd "$(dirname "$0")/../.." && pwd)
cd "$source"
[ -e "$build/fake_gpu/lib/libtfc_cuda.so" ] || { echo "SKIPPED: no fake plug-ins in this build" >&2; exit 0; }
[ $# -gt 0 ] || set -- mlp rnnlm rnnlm_large nmt transformer alexnet resnet50
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root/lib"
for library in "$build"/lib/libtfc_*.so "$build"/fake_gpu/lib/libtfc_*.so; do ln -sf "$library" "$root/lib/"; done
mkdir "$root/bin" && cp "$build"/bin/tfc-* "$root/bin/" # they look for libraries beside themselves first
ln -s "$build/share" "$root/share"
export LD_LIBRARY_PATH=$root/lib FAKE_IDLE=1 # what is computed does not matter
for example in "$@"; do
  for rewrites in exact all; do
    "$root/bin/tfc-run" -q --graph "examples/$example.pb" --devices gpu:0 --rewrites $rewrites --cuda-graphs off --steps 1 --warmup 0 \
      --profile --db "$root/$example.$rewrites.db" --json >"$root/out" || exit 1
  done
done
python3 - "$root" "$(git rev-parse --short HEAD)" "$@" <<'PY'
import sqlite3, sys
root, commit, *examples = sys.argv[1:]
LAST = "run_id = (SELECT MAX(run_id) FROM v_step) AND step = (SELECT MAX(step) FROM v_step)"
PRODUCTS = ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "_SumOfProducts")

def count(example, rewrites):
    db = sqlite3.connect(f"{root}/{example}.{rewrites}.db")
    kernels = db.execute(f"SELECT COALESCE(o.op, '-') FROM v_kernel k LEFT JOIN v_node o ON o.run_id = k.run_id AND o.node_id = k.node_id"
                         f" WHERE k.{LAST.replace(' AND step', ' AND k.step')}").fetchall()
    copies = db.execute(f"SELECT COUNT(*) FROM v_copy WHERE {LAST}").fetchone()[0]
    ops = {}
    for (op,) in kernels:
        ops[op] = ops.get(op, 0) + 1
    return len(kernels), copies, ops

print("# Launches of a step on a GPU\n")
print("What one training step gives the GPU to do: kernels, and copies and fills. Counted on a machine without a GPU, on")
print("fakes of the CUDA calls and of the libraries that run the kernels' own source: a product or a convolution counts as")
print("one (cuBLASLt and cuDNN may launch more). Modelled times say nothing here; nothing was timed.\n")
print(f"Made by `tests/gpu/launches.sh build/release` at `{commit}`\n")
print("| example | kernels, `exact` | copies and fills | kernels, `all` | copies and fills | most of them, `all` |")
print("|---|---|---|---|---|---|")
for example in examples:
    exact, some, _ = count(example, "exact")
    every, more, ops = count(example, "all")
    most = ", ".join(f"{n} {op}" for op, n in sorted(ops.items(), key=lambda item: -item[1])[:8])
    print(f"| {example} | {exact} | {some} | {every} | {more} | {most} |")
PY
