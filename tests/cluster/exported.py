"""For exported_long_test.sh: runs an exported graph in TensorFlow's own servers.

    exported.py feeds MODEL FOLDER      writes what a step of the model is fed, and prints tfc-run's flags for it
    exported.py compare MODEL FOLDER    runs MODEL.graphdef in servers of MODEL.clusterspec, and compares losses
"""

import importlib
import json
import os
import sys

import numpy as np
import tensorflow as tf

from generate import free_ports

tf1 = tf.compat.v1


def feeds_of(example):
    return example.feeds[0]


def write_feeds(model, folder):
    example = importlib.import_module("models." + model).example()
    flags = ["--fetch", example.loss] + [part for name in example.train for part in ("--target", name.split(":")[0])]
    for name, value in feeds_of(example).items():
        path = "%s/%s.%s.npy" % (folder, model, name.split(":")[0].replace("/", "."))
        np.save(path, value)
        flags += ["--feed", "%s=%s" % (name, path)]
    print(" ".join(flags))


def compare(model, folder):
    example = importlib.import_module("models." + model).example()
    with open("%s/%s.graphdef" % (folder, model), "rb") as file:
        graph_def = tf1.GraphDef.FromString(file.read())
    with open("%s/%s.clusterspec" % (folder, model)) as file:
        jobs = json.load(file)
    ports = iter(free_ports(sum(len(tasks) for tasks in jobs.values())))
    cluster = {job: ["127.0.0.1:%d" % next(ports) for _ in tasks] for job, tasks in jobs.items()}
    config = tf1.ConfigProto(allow_soft_placement=False, intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
    config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    servers = {(job, task): tf1.train.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=task, config=config)
               for job, tasks in jobs.items() for task in range(len(tasks))}
    devices = {}
    for node in graph_def.node:
        devices[node.device] = devices.get(node.device, 0) + 1
    assert len(servers) == 2 and len([d for d in devices if d]) == 2, "the placement is one task: nothing is tested: %s" % devices
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    losses = []
    with tf1.Session(servers["worker", 0].target, graph=graph, config=config) as session:
        session.run(example.init)
        for _ in range(3):
            losses.append(float(session.run([example.loss] + example.train, feeds_of(example))[0]))
    with open(folder + "/losses") as file:
        own = [float(line) for line in file]
    assert len(own) == 3, own
    print("%s: %d servers, nodes by device %s; losses %s, here %s" % (model, len(servers), devices, losses, own))
    for a, b in zip(losses, own):
        assert abs(a - b) <= 1e-5 * abs(a), (losses, own)
    assert losses[2] < losses[0], losses
    sys.stdout.flush()
    os._exit(0)  # servers cannot be stopped


if __name__ == "__main__":
    {"feeds": write_feeds, "compare": compare}[sys.argv[1]](sys.argv[2], sys.argv[3])
