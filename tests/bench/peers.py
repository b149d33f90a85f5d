#!/usr/bin/env python3
"""tfc beside TensorFlow 2.15: the same training graphs and feeds, in turns.

    peers.py [--python VENV/bin/python] [--cores N[,N]] [--steps N] [--blocks N] [--save FILE.json] [--table] [--placed FILE] [graph ...]

Each side is a process of its own on the same cores; they train in turns, a block of steps each (A B C A B C ...), while
the others sleep. TensorFlow is as its users have it: oneDNN and grappler on, threads for all cores that it may use.
A time is the wall time of the run call (tfc_plan_run; a callable made by Session.make_callable).

  floor       what the step would take at the multiply-add peak and the memory bandwidth that were measured in the same
              run: per operation the larger of FLOP / peak and bytes / bandwidth, summed
  peak bytes  tensors alive during a step beyond variables and optimizer slots: tfc's arena (for graphs with loops the
              most held by the device), TensorFlow's allocator (peak of three steps less what was in use before them).
              With oneDNN that allocator does not count what is smaller than 256 KiB; the figure is of a process of its
              own with TF_CPU_ALLOCATOR_USE_BFC, where all tensors are counted, and the other one stands beside it
"""

import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAPHS = ["nmt", "rnnlm", "rnnlm_large", "lstm_grid", "transformer", "resnet50", "inception_v3", "alexnet", "nmt_while", "nmt_while_v2", "mlp"]
REWRITES = ["exact", "all"]
# tfc / TensorFlow that `exact` is meant to reach, on one core and on two or more
RECURRENT, IMAGES = (0.58, 0.40), (0.80, 0.75)
WANTED = {"nmt": RECURRENT, "rnnlm": RECURRENT, "rnnlm_large": RECURRENT, "lstm_grid": RECURRENT, "nmt_while": RECURRENT,
          "nmt_while_v2": RECURRENT, "transformer": (0.75, 0.65), "resnet50": IMAGES, "inception_v3": IMAGES, "alexnet": (0.85, 0.85)}


def tensorflow(name):
    """TensorFlow's side: answers "run N" and "info" as peer_bench does."""
    import time
    import numpy as np
    import tensorflow as tf
    tf1 = tf.compat.v1
    golden = os.path.join(ROOT, "examples", "golden", name)
    with open(os.path.join(golden, "golden.json")) as f:
        about = json.load(f)
    graph_def = tf1.GraphDef()
    with open(os.path.join(ROOT, "examples", name + ".pb"), "rb") as f:
        graph_def.ParseFromString(f.read())
    for node in graph_def.node:
        node.device = ""
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(graph_def, name="")
    session = tf1.Session(graph=graph)
    session.run(about["init"])
    keys = sorted(about["feeds"][0])
    feeds = [[np.load(os.path.join(golden, one[k])) for k in keys] for one in about["feeds"]]
    step = session.make_callable([about["loss"]] + [graph.get_operation_by_name(t) for t in about["train"]], keys)
    done, first = 0, None
    for line in sys.stdin:
        word = line.split()
        if word[0] == "run":
            times = []
            for _ in range(int(word[1])):
                begin = time.perf_counter()
                loss = step(*feeds[done % len(feeds)])[0]
                times.append((time.perf_counter() - begin) * 1e6)
                first, done = float(loss) if first is None else first, done + 1
            print(" ".join("%.3f" % t for t in times), flush=True)
        else:
            memory = tf.config.experimental
            try:
                memory.reset_memory_stats("CPU:0")
                before = memory.get_memory_info("CPU:0")["current"]
                for _ in range(3):
                    step(*feeds[done % len(feeds)])
                    done += 1
                held = memory.get_memory_info("CPU:0")["peak"] - before
            except ValueError:  # if oneDNN is not used, its allocator counts nothing
                held = 0
            print(json.dumps({"loss": first, "peak_bytes": held}), flush=True)


class Side:
    def __init__(self, command, cores, **variables):
        environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "TF_ENABLE_ONEDNN_OPTS", "TF_CPU_ALLOCATOR_USE_BFC")}
        # TensorFlow turns oneDNN on by itself only where the processor has VNNI or bfloat16 instructions.
        environment.update({"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "TF_ENABLE_ONEDNN_OPTS": "1", **variables})
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                                        preexec_fn=lambda: os.sched_setaffinity(0, cores))
        self.times = []

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(self.process.stderr.read().strip()[-2000:] or "the process ended")
        return answer

    def run(self, steps):
        return [float(t) for t in self.ask("run %d" % steps).split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def quartiles(values):
    values = sorted(values)
    def at(q):
        x = q * (len(values) - 1)
        low = int(x)
        return values[low] + (x - low) * (values[min(low + 1, len(values) - 1)] - values[low])
    return [at(0.25), at(0.5), at(0.75)]


def all_bytes(name, options, cores):
    """TensorFlow's peak bytes, tensors below 256 KiB included."""
    side = Side([options.python, os.path.abspath(__file__), "--tensorflow", name], cores, TF_CPU_ALLOCATOR_USE_BFC="1")
    try:
        side.run(3)
        return json.loads(side.ask("info"))["peak_bytes"]
    finally:
        side.close()


def print_placed(name, side, theirs):
    """What tfc-place found for several devices, beside TensorFlow on the same cores (wanted for nmt: 0.6)."""
    ours = quartiles(side.times)
    print("%-13s placed tfc %9.2f ms [%.2f, %.2f]  TensorFlow %9.2f ms [%.2f, %.2f]  ratio %.3f  (%d steps)"
          % (name, ours[1] / 1e3, ours[0] / 1e3, ours[2] / 1e3, theirs[1] / 1e3, theirs[0] / 1e3, theirs[2] / 1e3, ours[1] / theirs[1], len(side.times)), flush=True)


def measure(name, cores, options):
    """One graph on a number of cores: {rewrites: ...}."""
    on, result = set(sorted(os.sched_getaffinity(0))[:cores]), {"run": this_run()}
    bench = os.path.join(ROOT, "build", "release", "tests", "peer_bench")
    sides = {"tf": Side([options.python, os.path.abspath(__file__), "--tensorflow", name], on)}
    for rewrites in REWRITES:
        sides[rewrites] = Side([bench, name, rewrites], on)
    if options.placed and cores > 1:
        sides["placed"] = Side([bench, name, "exact", options.placed], on)
    try:
        warm = {k: side.run(3) for k, side in sides.items()}
        steps = options.steps or min(200, max(5, int(2e5 / warm["tf"][-1])))
        for _ in range(options.blocks):
            for side in sides.values():
                side.times += side.run(steps)
        about = {k: json.loads(side.ask("info")) for k, side in sides.items()}
        placed_off = abs(about["placed"]["loss"] / about["tf"]["loss"] - 1) if "placed" in about else 0
        if not placed_off <= 1e-4:
            sys.exit("%s: first loss of the placement %.9g, TensorFlow's %.9g" % (name, about["placed"]["loss"], about["tf"]["loss"]))
    finally:
        for side in sides.values():
            side.close()
    held = all_bytes(name, options, on)
    theirs = quartiles(sides["tf"].times)
    for rewrites in REWRITES:
        ours, mine = quartiles(sides[rewrites].times), about[rewrites]
        result[rewrites] = {"us": ours, "tensorflow_us": theirs, "ratio": ours[1] / theirs[1], "steps": len(sides[rewrites].times),
                            "floor_ratio": mine["floor_us"] / theirs[1], "info": mine, "bytes_ratio": mine["peak_bytes"] / max(1, held),
                            "tensorflow_bytes": held, "tensorflow_large_bytes": about["tf"]["peak_bytes"]}
        off = abs(mine["loss"] - about["tf"]["loss"]) / abs(about["tf"]["loss"])
        if not off <= 1e-4:
            print("%s: first loss %.9g, TensorFlow's %.9g" % (name, mine["loss"], about["tf"]["loss"]), file=sys.stderr)
            result[rewrites]["wrong"] = True
        print("%-13s %d cores %-5s tfc %9.2f ms [%.2f, %.2f]  TensorFlow %9.2f ms [%.2f, %.2f]  ratio %.3f  floor %.3f  bytes %.1f MB, %.2f of %.1f MB (large ones %.1f)  (%d steps)"
              % (name, cores, rewrites, ours[1] / 1e3, ours[0] / 1e3, ours[2] / 1e3, theirs[1] / 1e3, theirs[0] / 1e3, theirs[2] / 1e3, result[rewrites]["ratio"],
                 result[rewrites]["floor_ratio"], mine["peak_bytes"] / 1e6, result[rewrites]["bytes_ratio"], held / 1e6, about["tf"]["peak_bytes"] / 1e6, len(sides[rewrites].times)), flush=True)
    if "placed" in sides:
        print_placed(name, sides["placed"], theirs)
    return result


def half_spread(us):
    return 100 * (us[2] - us[0]) / us[1] / 2


def machine():
    """The processor and the widest of its vectors that tfc has kernels for."""
    with open("/proc/cpuinfo") as f:
        about = dict([part.strip() for part in line.split(":", 1)] for line in f if ":" in line)
    flags = about.get("flags", "").split()
    vectors = next((" with " + text for flag, text in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags), "")
    return about.get("model name", "an unnamed processor") + vectors


def this_run():
    """What a row of the table says of its run; taken before the first step."""
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    priority = os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)
    return {"machine": machine(), "commit": head[:8] or "unknown", "load": os.getloadavg()[0], "priority": priority}


def table(rows):
    """Rows of the table of docs/measurements/peers.md: one for each graph and number of cores."""
    print("| step of | cores | machine | commit | tfc ms | TensorFlow ms | `exact` | `all` | floor | peak bytes | measured |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in GRAPHS:
        for cores in sorted(rows.get(name, {}), key=int):
            row = rows[name][cores]
            exact, run = row["exact"], row.get("run")  # results that an older peers.py kept say nothing of their run
            cells = [name, cores, run["machine"] if run else "–", "`%s`" % run["commit"] if run else "–", "%.1f" % (exact["us"][1] / 1e3),
                     "%.1f ± %.0f %%" % (exact["tensorflow_us"][1] / 1e3, half_spread(exact["tensorflow_us"]))]
            wanted = WANTED[name][int(cores) > 1] if name in WANTED else None
            for rewrites in REWRITES:
                one = row[rewrites]
                cell = "%.2f ± %.0f %%%s" % (one["ratio"], half_spread(one["us"]), " wrong" if one.get("wrong") else "")
                if rewrites == "exact" and wanted:
                    cell = ("%s (≤ %.2f)" if one["ratio"] <= wanted else "**%s** (≤ %.2f)") % (cell, wanted)
                cells.append(cell)
            cells.append("%.2f" % exact["floor_ratio"] if exact["floor_ratio"] > 0 else "–")
            cells.append("%.2f (%.1f of %.1f MB)" % (exact["bytes_ratio"], exact["info"]["peak_bytes"] / 1e6, exact["tensorflow_bytes"] / 1e6))
            cells.append("%d steps%s" % (exact["steps"], "%s, load %.0f" % (", priority" if run["priority"] else "", run["load"]) if run else ""))
            print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.path.join(ROOT, ".venv", "bin", "python"), help="a Python that has TensorFlow 2.15")
    parser.add_argument("--steps", type=int, default=0, help="steps of a block (default: 0.2 s of TensorFlow, at least 5)")
    parser.add_argument("--blocks", type=int, default=3, help="blocks of each side (default 3)")
    parser.add_argument("--cores", metavar="N[,N]", help="numbers of cores (default: 1 and all)")
    parser.add_argument("--placed", metavar="FILE", help="with one graph: a placement of it by tfc-place, measured too, beside TensorFlow on all cores")
    parser.add_argument("--save", metavar="FILE", help="keep results there, with those of earlier calls")
    parser.add_argument("--table", action="store_true", help="print the table of what --save has")
    parser.add_argument("--tensorflow", metavar="GRAPH", help=argparse.SUPPRESS)
    parser.add_argument("graphs", nargs="*", metavar="graph", help="default: all of " + ", ".join(GRAPHS))
    options = parser.parse_args()
    if options.tensorflow:
        return tensorflow(options.tensorflow)
    if options.placed and len(options.graphs) != 1:
        sys.exit("peers: --placed goes with one graph: peers --placed nmt.placement.json nmt")
    rows = {}
    if options.save and os.path.exists(options.save):
        with open(options.save) as f:
            rows = json.load(f)
    allowed = len(os.sched_getaffinity(0))
    numbers = (options.cores or "1,%d" % allowed).split(",")
    for number in numbers:
        if not number.isdigit() or not 1 <= int(number) <= allowed:
            sys.exit("peers: --cores %s: this process may use 1 to %d cores" % (options.cores, allowed))
    for name in options.graphs or ([] if options.table else GRAPHS):
        if name not in GRAPHS:
            sys.exit("peers: no graph named '%s'; there are: %s" % (name, ", ".join(GRAPHS)))
        for number in sorted(set(map(int, numbers))):
            rows.setdefault(name, {})[str(number)] = measure(name, number, options)
        if options.save:
            with open(options.save + ".new", "w") as f:
                json.dump(rows, f, indent=1)
            os.replace(options.save + ".new", options.save)
    if options.table or not options.save:
        table(rows)


if __name__ == "__main__":
    main()
