#!/usr/bin/env python3
"""How far answers are above their bounds, where others have published problems or the best placement is nearly known.

    bounds.py published FOLDER [--time 12s]   # throughput-inputs of Tarnawski et al. 2020 (msr-fiddle/dnn-partitioning)
    bounds.py grids [--time 20s]              # unrolled layers, three or four operations in a cell, layers of other times

Prints a line for each problem: tfc-place's answer, its bound, and their ratio.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLACE = os.path.join(ROOT, "build/release/bin/tfc-place")
HEAD = {"format": "tfc-cost-graph", "version": 1}


def solve(name, graph, machine, objective, time):
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, n) for n in ("g.json", "m.yaml", "t.db", "p.json")]
        with open(paths[0], "w", encoding="utf-8") as f:
            json.dump(graph, f)
        with open(paths[1], "w", encoding="utf-8") as f:
            f.write("format: tfc-machine\nversion: 1\n" + machine)
        done = subprocess.run([PLACE, "--graph", paths[0], "--machine", paths[1], "--objective", objective, "--time", time,
                               "--db", paths[2], "--out", paths[3], "--report", "none", "--json", "-q"],
                              stdout=subprocess.PIPE, text=True, check=False)
    answer = json.loads(done.stdout)
    ratio = answer["value_us"] / answer["bound_us"]
    print("| %s | %d | %.1f | %.1f | %.3f |" % (name, len(graph["nodes"]), answer["value_us"], answer["bound_us"], ratio),
          flush=True)
    return ratio


# Times are in milliseconds there. An accelerator stands still while it receives and while it sends; the host does not.
def published(path):
    with open(path, encoding="utf-8") as f:
        text = json.load(f)
    nodes, cost = [], {}
    for n in text["nodes"]:
        times = {"cpu": 1000 * n["cpuLatency"]}
        if n["supportedOnFpga"]:
            times["acc"] = 1000 * n["fpgaLatency"]
        nodes.append({"name": "n%s" % n["id"], "time_us": times, "memory": int(n["size"])})
        if n.get("colorClass") is not None:
            nodes[-1]["group"] = "g%s" % n["colorClass"]
    for e in text["edges"]:
        cost[e["sourceId"]] = max(cost.get(e["sourceId"], 0), e["cost"])
    edges = [{"from": "n%s" % e["sourceId"], "to": "n%s" % e["destId"], "bytes": round(1e6 * cost[e["sourceId"]])}
             for e in text["edges"] if e["sourceId"] != e["destId"]]
    machine = 'devices:\n  - {name: "cpu:0", kind: cpu, count: %d}\n' % text["maxCPUs"]
    machine += '  - {name: "acc:0", kind: acc, memory: %d, count: %d}\nlinks:\n' % (text["maxSizePerFPGA"], text["maxFPGAs"])
    for a, b, who in (("*", "*", "none"), ("acc:*", "*", "sender"), ("*", "acc:*", "receiver"), ("acc:*", "acc:*", "both")):
        machine += '  - {from: "%s", to: "%s", bandwidth: 1GB/s, occupies: %s}\n' % (a, b, who)
    return dict(HEAD, kinds=["cpu", "acc"], nodes=nodes, edges=edges), machine


# A step of a layer waits for the step before: for its end (`waits` "end"), or for its first operation only ("first").
def grid(layers, steps, cell, devices, seed, waits):
    draw = random.Random(seed)
    times = [[draw.randint(20, 60) for _ in range(cell)] for _ in range(layers)]
    name = "l%d_s%d_o%d"
    nodes, edges = [], []
    for l in range(layers):
        for s in range(steps):
            for o in range(cell):
                nodes.append({"name": name % (l, s, o), "time_us": {"acc": times[l][o]}, "memory": 0})
                if o:
                    edges.append((name % (l, s, o - 1), name % (l, s, o)))
            if s:
                edges.append((name % (l, s - 1, cell - 1 if waits == "end" else 0), name % (l, s, 0)))
            if l:
                edges.append((name % (l - 1, s, cell - 1), name % (l, s, 0)))
    draw.shuffle(nodes)
    draw.shuffle(edges)
    machine = 'devices:\n  - {name: "acc:0", kind: acc, count: %d}\nlinks:\n  - {from: "*", to: "*", bandwidth: 1GB/s}\n'
    return dict(HEAD, kinds=["acc"], nodes=nodes,
                edges=[{"from": a, "to": b, "bytes": 1000} for a, b in edges]), machine % devices


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=["published", "grids"])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--time")
    options = parser.parse_args()
    ratios = []
    print("| problem | operations | answer, us | bound, us | ratio |\n|---|---|---|---|---|")
    if options.what == "published":
        for folder, _, files in sorted(os.walk(options.folder)):
            for file in sorted(f for f in files if f.endswith(".json")):
                graph, machine = published(os.path.join(folder, file))
                ratios.append(solve(file[:-5] + ", " + os.path.basename(folder), graph, machine, "throughput",
                                    options.time or "12s"))
    else:
        for waits in ("end", "first"):
            for layers, steps, cell, devices in ((6, 24, 3, 6), (8, 60, 4, 8)):
                for seed in (1, 2):
                    graph, machine = grid(layers, steps, cell, devices, seed, waits)
                    ratios.append(solve("%d x %d x %d on %d, waits for the %s, seed %d" % (
                        layers, steps, cell, devices, waits, seed), graph, machine, "step", options.time or "20s"))
    print("\nwithin 10 %%: %d of %d; within 2 %%: %d" % (
        sum(r <= 1.1 for r in ratios), len(ratios), sum(r <= 1.02 for r in ratios)))


if __name__ == "__main__":
    main()
