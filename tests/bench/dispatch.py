#!/usr/bin/env python3
"""What running an operation costs: tfc (dispatch_bench) beside TensorFlow, each on one core, in turns.

    dispatch.py [--python VENV/bin/python] [--ops N] [--rounds N]

Scalar additions in a chain and in a fan of N (default 1000), fed, nothing rewritten; iterations of a while loop with a
counter. Nanoseconds for each operation or iteration, medians.
"""

import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ITERATIONS, STEPS = 5000, 200


def tensorflow(ops):
    import time
    import tensorflow as tf
    tf1 = tf.compat.v1
    tf1.disable_control_flow_v2()

    def median(build, steps):
        graph = tf.Graph()
        with graph.as_default():
            x, fetch = build()
        config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf1.Session(graph=graph, config=config) as session:
            run, times = session.make_callable(fetch, [x]), []
            for i in range(steps + steps // 10):
                begin = time.perf_counter()
                run(0)
                times.append(time.perf_counter() - begin)
        return sorted(times[steps // 10:])[steps // 2] * 1e9

    def chain():
        x = y = tf1.placeholder(tf.float32, [])
        for _ in range(ops):
            y = tf1.raw_ops.AddV2(x=y, y=x)
        return x, y

    def fan():
        x = tf1.placeholder(tf.float32, [])
        return x, tf1.group(*[tf1.raw_ops.AddV2(x=x, y=x) for _ in range(ops)])

    def loop():
        x = tf1.placeholder(tf.int32, [])
        return x, tf1.while_loop(lambda i: i < ITERATIONS, lambda i: i + 1, [x])

    print(json.dumps({"chain_ns": median(chain, STEPS) / ops, "fan_ns": median(fan, STEPS) / ops, "iteration_ns": median(loop, 20) / ITERATIONS}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.path.join(ROOT, ".venv", "bin", "python"), help="a Python that has TensorFlow 2.15")
    parser.add_argument("--ops", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tensorflow", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tensorflow:
        return tensorflow(options.ops)
    core = {min(os.sched_getaffinity(0))}
    sides = {"tfc": [os.path.join(ROOT, "build", "release", "tests", "dispatch_bench"), str(options.ops)],
             "TensorFlow": [options.python, os.path.abspath(__file__), "--tensorflow", "--ops", str(options.ops)]}
    found = {side: [] for side in sides}
    for _ in range(options.rounds):
        for side, command in sides.items():
            environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, core))
            if done.returncode:
                sys.exit("dispatch: %s failed" % side)
            found[side].append(json.loads(done.stdout))
    print("| one core, ns | tfc | TensorFlow | wanted |\n|---|---|---|---|")
    for key, name, wanted in (("chain_ns", "an operation in a chain of %d" % options.ops, 50), ("fan_ns", "an operation in a fan of %d" % options.ops, 50),
                              ("iteration_ns", "an iteration of a loop with a counter", 500)):
        middle = {side: sorted(row[key] for row in rows)[len(rows) // 2] for side, rows in found.items()}
        print("| %s | %.1f | %.1f | ≤ %d |" % (name, middle["tfc"], middle["TensorFlow"], wanted))


if __name__ == "__main__":
    main()
