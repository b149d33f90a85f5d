#!/usr/bin/env python3
"""Steps over two tasks: tfc under MPI beside TensorFlow 2.15's own servers, in turns.

    cluster.py [--python VENV/bin/python] [--rounds N] [--save FILE.json] [NAME...]

A ps has the variables, a worker takes the steps; each task is a process, of TensorFlow too (gRPC on the loopback). Cases:

  scalar    the worker reads a scalar of the ps
  dense     it reads 100 MB
  update    it reads 100 MB and sends 100 MB back, which the ps subtracts
  sparse    it reads 1,000 rows of a table of 1 GB and sends as many back
  training  it trains a perceptron of two layers (2 MB) whose variables are on the ps
  nmt       it trains examples/nmt.pb, whose variables and their updates are on the ps

Two more have no TensorFlow in them:

  two       examples/nmt.pb over two workers, as its own device strings say, beside the same placement over two devices of
            one process
  pingpong  a message there and back beside MPI_Send and MPI_Recv (tests/bench/transport_bench.c)

A figure is the median time of a step in one process's life; the two sides take turns, and the ratio is that of the
medians over the rounds. The load of the machine when a case begins is printed with it.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS = {"scalar": 2000, "dense": 12, "update": 8, "sparse": 200, "training": 100, "nmt": 8}
ALL = list(STEPS) + ["two", "pingpong"]
GOLDEN = os.path.join(ROOT, "examples", "golden", "nmt")
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


def build(name):
    """The graph: (what initialises, what a step runs)."""
    import tensorflow as tf
    v1 = tf.compat.v1
    if name == "training":
        with v1.device(PS):
            sizes = [256, 1024, 256]
            weights = [v1.get_variable("w%d" % k, [a, b], initializer=v1.random_uniform_initializer(-0.05, 0.05, seed=k), use_resource=False)
                       for k, (a, b) in enumerate(zip(sizes, sizes[1:]))]
        with v1.device(WORKER):
            h = tf.sin(tf.reshape(tf.range(64.0 * 256), [64, 256]))
            for w in weights:
                h = tf.tanh(tf.matmul(h, w))
            loss = tf.reduce_mean(tf.square(h - 0.5))
            grads = v1.gradients(loss, weights)
        with v1.device(PS):
            step = tf.group(*[v1.assign_sub(w, 0.01 * g) for w, g in zip(weights, grads)])
        return v1.global_variables_initializer(), step
    shape = {"scalar": [], "dense": [26214400], "update": [26214400], "sparse": [1000000, 256]}[name]
    with v1.device(PS):
        v = v1.get_variable("v", shape, initializer=v1.zeros_initializer(), use_resource=False)
    with v1.device(WORKER):
        if name == "sparse":
            rows = tf.range(1000) * 997
            with v1.device(PS):
                there = tf.gather(v, rows)
            back = there + 1.0
        else:
            back = tf.identity(v) if name == "dense" else v * 0.001
    with v1.device(PS):
        if name == "sparse":
            return v1.global_variables_initializer(), v1.scatter_sub(v, rows, back).op
        if name == "update":
            return v1.global_variables_initializer(), v1.assign_sub(v, back).op
    with v1.device(WORKER):
        return v1.global_variables_initializer(), back.op


def feeds_of(name):
    """{tensor: file} that a step is fed."""
    if name not in ("nmt", "two"):
        return {}
    with open(os.path.join(GOLDEN, "golden.json")) as f:
        return {k: os.path.join(GOLDEN, v) for k, v in json.load(f)["feeds"][0].items()}


def nmt_on_tasks():
    """examples/nmt.pb: variables, what assigns them and what updates them on the ps, the rest on the worker."""
    import tensorflow as tf
    definition = tf.compat.v1.GraphDef()
    with open(os.path.join(ROOT, "examples", "nmt.pb"), "rb") as f:
        definition.ParseFromString(f.read())
    variables = {n.name for n in definition.node if n.op in ("VariableV2", "VarHandleOp", "Variable")}
    for n in definition.node:
        on_ps = n.name in variables or (n.input and n.input[0].split(":")[0] in variables)
        n.device = PS if on_ps else WORKER
    return definition


def write(name, path):
    import tensorflow as tf
    if name == "nmt":
        with open(path, "wb") as f:
            f.write(nmt_on_tasks().SerializeToString())
        print(json.dumps(["init", "train_op"]))
        return
    with tf.Graph().as_default() as g:
        init, step = build(name)
        with open(path, "wb") as f:
            f.write(g.as_graph_def().SerializeToString())
        print(json.dumps([init.name, step.name]))


def tensorflow_task(name, job, ports, steps):
    import time
    import tensorflow as tf
    v1 = tf.compat.v1
    spec = {"ps": ["127.0.0.1:" + ports[0]], "worker": ["127.0.0.1:" + ports[1]]}
    server = v1.train.Server(spec, job_name=job, task_index=0)
    if job == "ps":
        server.join()
    with tf.Graph().as_default() as graph:
        feeds = feeds_of(name)
        if feeds:
            import numpy as np
            tf.import_graph_def(nmt_on_tasks(), name="")
            init, step = graph.get_operation_by_name("init"), graph.get_operation_by_name("train_op")
        else:
            init, step = build(name)
        with v1.Session(server.target) as session:
            session.run(init)
            call = session.make_callable(step, list(feeds))
            values = [np.load(f) for f in feeds.values()]
            times = []
            for _ in range(steps + 3):
                begin = time.perf_counter()
                call(*values)
                times.append((time.perf_counter() - begin) * 1e6)
    print(json.dumps(statistics.median(times[3:])))
    sys.stdout.flush()
    os._exit(0)


def free_ports(count):
    import socket
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [str(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports


def of_tensorflow(python, name, environment):
    ports = free_ports(2)
    command = [python, os.path.abspath(__file__), "--task", name]
    ps = subprocess.Popen(command + ["ps"] + ports + [str(STEPS[name])], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        done = subprocess.run(command + ["worker"] + ports + [str(STEPS[name])], env=environment, capture_output=True, text=True, timeout=600)
    finally:
        ps.kill()
        ps.wait()
    if done.returncode != 0:
        sys.exit("cluster: %s: TensorFlow: %s" % (name, done.stderr[-2000:]))
    return float(done.stdout.strip().split("\n")[-1])


def of_tfc(graph, init, step, name, environment):
    run = os.path.join(ROOT, "build", "release", "bin", "tfc-run")
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", run, "-q", "--json", "--graph", graph, "--cluster", "ps=1,worker=1",
               "--init", init, "--target", step, "--steps", str(STEPS[name]), "--warmup", "3"]
    for tensor, path in feeds_of(name).items():
        command += ["--feed", "%s=%s" % (tensor, path)]
    return step_of(name, run_program(name, command, environment))


def run_program(name, command, environment):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit("cluster: %s: %s: %s" % (name, " ".join(command), done.stderr[-2000:]))
    return done.stdout


def step_of(name, text):
    return json.loads(text[text.index("{"):])["step"]["median_us"]


def two(folder, rounds, environment):
    """nmt over two tasks beside two devices of one process, under one placement."""
    programs = os.path.join(ROOT, "build", "release", "bin")
    graph, placement, placed = os.path.join(ROOT, "examples", "nmt.pb"), os.path.join(folder, "two.json"), os.path.join(folder, "two.pb")
    tasks = ["/job:worker/task:%d" % k for k in range(2)]
    run_program("two", [os.path.join(programs, "tfc-place"), "-q", "--graph", graph, "--devices", "2", "--evaluate", "-", "--wait", "--out", placement,
                        "--db", os.path.join(folder, "two.db")], environment)
    run_program("two", [os.path.join(programs, "tfc-export"), "-q", "--placement", placement, "--graph", graph, "--format", "graphdef", "--out", placed,
                        "--map", ",".join("cpu:%d=%s/device:CPU:0" % (k, task) for k, task in enumerate(tasks))], environment)
    step = ["-q", "--json", "--init", "init", "--target", "train_op", "--fetch", "loss:0", "--steps", "8", "--warmup", "3"]
    for tensor, path in feeds_of("two").items():
        step += ["--feed", "%s=%s" % (tensor, path)]
    one_process = [os.path.join(programs, "tfc-run"), "--graph", graph, "--placement", placement] + step
    two_tasks = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", os.path.join(programs, "tfc-run"), "--graph", placed, "--cluster", "worker=2"] + step
    times = {"tasks": [], "process": []}
    for _ in range(rounds):
        times["tasks"].append(step_of("two", run_program("two", two_tasks, environment)))
        times["process"].append(step_of("two", run_program("two", one_process, environment)))
    a, b = statistics.median(times["tasks"]), statistics.median(times["process"])
    print("%-10s %11.1f us %11.1f us %7.3f   %s   (two tasks, one process)" % ("two", a, b, a / b, " ".join("%.3f" % (x / y) for x, y in zip(*times.values()))), flush=True)
    return {"tasks_us": times["tasks"], "process_us": times["process"], "ratio": a / b}


def pingpong(rounds, environment):
    bench = os.path.join(ROOT, "build", "release", "tests", "transport_bench")
    text = run_program("pingpong", ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2", bench, str(4 * rounds + 1)], environment)
    sizes = json.loads(text[text.index("{"):])
    for size, row in sizes.items():
        print("%-10s %9s B %8.3f GB/s, MPI %8.3f GB/s, ratio %.3f [%.3f, %.3f]"
              % ("pingpong", size, row["tfc"], row["mpi"], row["ratio"], row["q1"], row["q3"]), flush=True)
    return sizes


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--task":
        tensorflow_task(sys.argv[2], sys.argv[3], sys.argv[4:6], int(sys.argv[6]))
    if len(sys.argv) > 1 and sys.argv[1] == "--write":
        write(sys.argv[2], sys.argv[3])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", TF_CPP_MIN_LOG_LEVEL="3")
    if not shutil.which("mpirun"):
        sys.exit("cluster: mpirun is needed: apt-get install openmpi-bin")
    results = {}
    print("%-10s %14s %14s %7s   rounds" % ("step", "tfc", "TensorFlow", "ratio"))
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or ALL:
            if name not in ALL:
                sys.exit("cluster: no case '%s': %s" % (name, ", ".join(ALL)))
            print("# load %.2f" % os.getloadavg()[0])
            if name not in STEPS:
                results[name] = two(folder, options.rounds, environment) if name == "two" else pingpong(options.rounds, environment)
                continue
            graph = os.path.join(folder, name + ".pb")
            wrote = subprocess.run([options.python, os.path.abspath(__file__), "--write", name, graph], env=environment, capture_output=True, text=True)
            if wrote.returncode != 0:
                sys.exit("cluster: %s: %s" % (name, wrote.stderr[-2000:]))
            init, step = json.loads(wrote.stdout.strip().split("\n")[-1])
            ours, theirs = [], []
            for _ in range(options.rounds):
                ours.append(of_tfc(graph, init, step, name, environment))
                theirs.append(of_tensorflow(options.python, name, environment))
            a, b = statistics.median(ours), statistics.median(theirs)
            results[name] = {"tfc_us": ours, "tensorflow_us": theirs, "ratio": a / b}
            each = " ".join("%.3f" % (x / y) for x, y in zip(ours, theirs))
            print("%-10s %11.1f us %11.1f us %7.3f   %s" % (name, a, b, a / b, each), flush=True)
    if options.save:
        with open(options.save, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
