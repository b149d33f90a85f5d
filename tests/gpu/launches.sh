#!/usr/bin/env bash
# How many kernels, copies and fills a training step of each example launches on one GPU: counted on the fake plug-ins
# (tests/cuda_kernels/fake_plugin.c), where every piece of work of the last step is a record. Prints
# docs/measurements/gpu_launches.md.
#
#   tests/gpu/launches.sh BUILD [EXAMPLE|GRAPH.pb...]
#
# A graph with channels first: examples/make_graphs.py --channels-first DIR, which needs TensorFlow.
set -eu
build=$(cd "$1" && pwd)
shift
source=$(cd "$(dirname "$0")/../.." && pwd)
cd "$source"
[ -e "$build/fake_gpu/lib/libtfc_cuda.so" ] || { echo "SKIPPED: no fake plug-ins in this build" >&2; exit 0; }
[ $# -gt 0 ] || set -- mlp rnnlm rnnlm_large nmt transformer alexnet resnet50 inception_v3
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir "$root/lib"
for library in "$build"/lib/libtfc_*.so "$build"/fake_gpu/lib/libtfc_*.so; do ln -sf "$library" "$root/lib/"; done
mkdir "$root/bin" && cp "$build"/bin/tfc-* "$root/bin/" # they look for libraries beside themselves first
ln -s "$build/share" "$root/share"
export LD_LIBRARY_PATH=$root/lib FAKE_IDLE=1 # what is computed does not matter
names=()
for example in "$@"; do
  graph=examples/$example.pb
  case $example in
  *.pb)
    graph=$example
    example=$(basename "$example" .pb)
    ;;
  esac
  names+=("$example")
  for rewrites in exact all; do
    "$root/bin/tfc-run" -q --graph "$graph" --devices gpu:0 --rewrites $rewrites --cuda-graphs off --steps 1 --warmup 0 \
      --profile --db "$root/$example.$rewrites.db" --json >"$root/out" || exit 1
    FAKE_GRAPHS="$root/$example.$rewrites.graphs" "$root/bin/tfc-run" -q --graph "$graph" --devices gpu:0 \
      --rewrites $rewrites --cuda-graphs branches --steps 1 --warmup 3 --json >"$root/out" || exit 1
  done
done
python3 - "$root" "$(git rev-parse --short HEAD)" "${names[@]}" <<'PY'
import sqlite3, sys
root, commit, *examples = sys.argv[1:]
LAST = "run_id = (SELECT MAX(run_id) FROM v_step) AND step = (SELECT MAX(step) FROM v_step)"
PRODUCTS = ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "_SumOfProducts")

def count(example, rewrites):
    db = sqlite3.connect(f"{root}/{example}.{rewrites}.db")
    kernels = db.execute(f"SELECT COALESCE(o.op, '-') FROM v_kernel k LEFT JOIN v_node o ON o.run_id = k.run_id AND o.node_id = k.node_id"
                         f" WHERE k.{LAST.replace(' AND step', ' AND k.step')}").fetchall()
    copies = db.execute(f"SELECT COUNT(*) FROM v_copy WHERE {LAST}").fetchone()[0]
    images = db.execute(f"SELECT COUNT(*) FROM v_kernel WHERE name LIKE 'transpose_kernel of images%' AND {LAST}").fetchone()[0]
    ops = {}
    for (op,) in kernels:
        ops[op] = ops.get(op, 0) + 1
    return len(kernels), copies, ops, images

def branches(example, rewrites, launches):
    """How many launches of a step follow each other at least, and on how many streams. A graph's line in the file: its launches, how
    many of them follow each other, its streams. The first two of four steps are not captured."""
    with open(f"{root}/{example}.{rewrites}.graphs") as f:
        graphs = [[int(word) for word in line.split()] for line in f]
    assert len(graphs) % 2 == 0, f"{example}: {len(graphs)} graphs in two steps"
    step = graphs[len(graphs) // 2:]
    captured = sum(works for works, _, _ in step)
    return launches - captured + sum(longest for _, longest, _ in step), max((lanes for _, _, lanes in step), default=1), len(step)

print("# Launches of a step on a GPU\n")
print("What one training step gives the GPU to do: kernels, and copies and fills. Counted on a machine without a GPU, on")
print("fakes of the CUDA calls and of the libraries that run the kernels' own source: a product or a convolution counts as")
print("one (cuBLASLt and cuDNN may launch more), and a filter that is transposed for cuDNN or back is one more. Nothing was timed.\n")
print(f"Made by `tests/gpu/launches.sh build/release` at `{commit}`\n")
print("| example | kernels, `exact` | copies and fills | kernels, `all` | copies and fills | most of them, `all` |")
print("|---|---|---|---|---|---|")
rows, images = [], []
for example in examples:
    exact, some, _, alone = count(example, "exact")
    every, more, ops, chained = count(example, "all")
    most = ", ".join(f"{n} {op}" for op, n in sorted(ops.items(), key=lambda item: -item[1])[:8])
    print(f"| {example} | {exact} | {some} | {every} | {more} | {most} |")
    rows.append((example, exact + some, branches(example, "exact", exact + some), every + more, branches(example, "all", every + more)))
    convolutions = sum(n for op, n in ops.items() if "Conv" in op)
    if convolutions:
        images.append((example, alone, chained))

print("\n## Side by side\n")
print("With `--cuda-graphs branches` independent launches of a captured sequence are branches of its graph. How many launches,")
print("copies and fills included, follow each other at least, because one needs what another made or its memory, or because")
print("they are not captured (what is between two graphs); and the streams (at most 4).\n")
print("| example | in a row, `exact` | with branches | streams | graphs | in a row, `all` | with branches | streams | graphs |")
print("|---|---|---|---|---|---|---|---|---|")
for example, exact, (longest, streams, graphs), every, (shortest, lanes, pieces) in rows:
    print(f"| {example} | {exact} | {longest} | {streams} | {graphs} | {every} | {shortest} | {lanes} | {pieces} |")
if images:
    print("\n## Images in the other layout\n")
    print("Launches of a step that transpose images (of those above). These fakes convolve with channels last only, as tensor")
    print("cores do. In a graph with channels first each convolution and each gradient of one transposes two images, unless its")
    print("chain of layers keeps channels last (`all`).\n")
    print("| example | `exact` | `all` |")
    print("|---|---|---|")
    for example, alone, chained in images:
        print(f"| {example} | {alone} | {chained} |")
PY
