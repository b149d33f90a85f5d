#!/usr/bin/env python3
"""Predictions of tfc-place --replicas beside measured runs with 1, 2 and 4 tasks on this machine.

usage: scripts/bench_replicas --measured [GRAPH...]    (targets: tfc-place tfc-run tfc_mpi)

What is predicted comes from one task's profile (times of operations, how much devices slow each other down, how much
steps vary) and from the links between two tasks, before anything is trained by several tasks. Tasks are on one host, where
MPI copies tensors with the cores of both tasks; so the links occupy both.
"""

import json
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, os.environ.get("TFC_BIN", "build/release/bin"))
BATCH = {"mlp": 32, "rnnlm": 16, "nmt": 32}
STEPS = {"mlp": 300, "rnnlm": 20, "nmt": 3}
UNITS = {"us": 1, "ms": 1e3, "s": 1e6}
MODES = {"all": "sync_all", "ps": "sync_ps", "async": "async_ps"}
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
ENVIRONMENT.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def run(words, codes=(0,)):
    done = subprocess.run(words, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit("replicas: %s: exit code %d\n%s%s" % (" ".join(words), done.returncode, done.stdout[-2000:], done.stderr[-2000:]))
    return done.stdout + done.stderr


def mpirun(tasks, words, codes=(0,)):
    return run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(tasks)] + words, codes)


def of_yaml(text, key):
    return re.findall(r"%s: (\[[^\n}]*\])" % key, text)


def describe(name, graph, batch, folder):
    """The problem of one replica, and a machine of four cores and a server: (graph, machine, database)."""
    common = ["--batch", str(batch), "--wait", "--report", "none", "--time", "30s"]
    alone, pair = os.path.join(folder, name + ".alone"), os.path.join(folder, name + ".pair")
    database = os.path.join(folder, name + ".db")
    for path in (database,):
        if os.path.exists(path):
            os.remove(path)
    run([BIN + "/tfc-place", "--graph", graph, "--devices", "4", "--evaluate", "single:cpu:0", "--save-problem", alone, "--db", database] + common)
    mpirun(2, [BIN + "/tfc-place", "--graph", graph, "--devices", "/job:worker/task:*/device:CPU:*", "--db", pair + ".db", "--evaluate",
               "single:/job:worker/task:0/device:CPU:0", "--save-problem", pair] + common)
    with open(alone + "/machine.yaml") as file:
        slowdown = of_yaml(file.read(), "slowdown")[0]
    with open(pair + "/machine.yaml") as file:
        text = file.read()
        curve = of_yaml(text, "curve")[0]
        wake = re.findall(r"wake: ([0-9.e+-]+us)", text)
    with open(alone + "/graph.json") as file:
        problem = json.load(file)
    problem["kinds"] = ["core"]
    for node in problem["nodes"]:
        node["time_us"] = {"core": next(iter(node["time_us"].values()), 0)}
        node.pop("pin", None)
    paths = [os.path.join(folder, name + end) for end in (".json", ".yaml")]
    with open(paths[0], "w") as file:
        json.dump(problem, file)
    with open(paths[1], "w") as file:
        file.write('format: tfc-machine\nversion: 1\ndevices:\n  - {name: "core:0", kind: core, count: 4, slowdown: %s}\n'
                   '  - {name: "ps:0", kind: cpu}\nlinks:\n  - {from: "*", to: "*", occupies: both, curve: %s%s}\n'
                   % (slowdown, curve, ", wake: " + wake[0] if wake else ""))
    return paths + [database]


def measure(graph, batch, replicas, mode, steps):
    words = [BIN + "/tfc-run", "--graph", graph, "--batch", str(batch), "--steps", str(steps)]  # the batch of each replica
    if replicas == 1:
        text = run(["taskset", "-c", "0"] + words)
    else:
        spec = "worker=%d" % replicas if mode == "all" else "ps=1,worker=%d" % replicas
        words += ["--cluster", spec, "--replicas", str(replicas), "--reduce", "all" if mode == "all" else "ps"]
        text = mpirun(replicas + (mode != "all"), words + (["--async"] if mode == "async" else []))
    found = re.findall(r"step: median ([0-9.e+]+) (us|ms|s),", text)
    if not found:
        sys.exit("replicas: no step time in\n" + text)
    return statistics.median(float(number) * UNITS[unit] for number, unit in found)


def show(us):
    return "%.3g ms" % (us / 1e3)


def main():
    names = sys.argv[1:] or list(BATCH)
    folder = os.path.join(ROOT, "build", "bench_replicas")
    os.makedirs(folder, exist_ok=True)
    errors = []
    print("| graph | replicas | predicted | measured | error |\n|---|---|---|---|---|")
    for name in names:
        graph = os.path.join("examples", name + ".pb")
        problem, machine, database = describe(name, graph, BATCH[name], folder)
        text = run([BIN + "/tfc-place", "--graph", problem, "--machine", machine, "--replicas", "1,2,4", "--step-times", database,
                    "--json", "-q", "--report", "none"])
        rows = {row["replicas"]: row for row in json.loads(text[text.index("{"):text.rindex("}") + 1])["rows"]}
        for replicas, mode in [(1, "all")] + [(n, mode) for mode in MODES for n in (2, 4)]:
            predicted = rows[replicas][MODES[mode]]["median_us"]
            measured = measure(graph, BATCH[name], replicas, mode, STEPS[name])
            errors.append(abs(predicted / measured - 1))
            kind = "" if replicas == 1 else {"all": ", reduced by all", "ps": ", ps", "async": ", ps, asynchronous"}[mode]
            print("| `%s` | %d%s | %s | %s | %+.0f %% |" % (name, replicas, kind, show(predicted), show(measured), 100 * (predicted / measured - 1)), flush=True)
    print("\nmedian error: %.0f %% of %d" % (100 * statistics.median(errors), len(errors)))


if __name__ == "__main__":
    main()
