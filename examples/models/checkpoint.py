"""A V2 checkpoint of mlp.pb after five steps (checkpoint/mlp-5), with its losses from there on."""

import os
import shutil

import tensorflow as tf

import common
from models import mlp

tf1 = tf.compat.v1
DIRECTORY = os.path.join(common.HERE, "checkpoint")
STEPS = 5


def make():
    """Trains mlp.pb for five steps with TensorFlow, saves, restores into a new session, and trains on."""
    example = mlp.example()
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    os.makedirs(DIRECTORY)
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(example.load(), name="")
        variables = {op.name: op.outputs[0] for op in common.variables_of(graph)}
        files = tf1.constant(os.path.join(DIRECTORY, "mlp-%d" % STEPS))
        names = sorted(variables)
        save = tf1.raw_ops.SaveV2(prefix=files, tensor_names=names, shape_and_slices=[""] * len(names), tensors=[tf1.identity(variables[n]) for n in names])
        restored = tf1.raw_ops.RestoreV2(prefix=files, tensor_names=names, shape_and_slices=[""] * len(names), dtypes=[variables[n].dtype.base_dtype for n in names])
        restore = tf1.group(*[tf1.assign(variables[n], r) for n, r in zip(names, restored)])
    feeds = example.feeds
    with common.plain_session(graph) as session:
        session.run(example.init)
        for k in range(STEPS):
            session.run(example.train, feeds[k % len(feeds)])
        session.run(save)
    with common.plain_session(graph) as session:
        session.run(restore)
        values = session.run(variables)
        losses = [float(session.run([example.loss] + example.train, feeds[k % len(feeds)])[0]) for k in range(5)]
    golden = {"format": "tfc-golden", "version": 1, "graph": "../mlp.pb", "checkpoint": "mlp-%d" % STEPS,
              "feeds": "as ../golden/mlp/golden.json, from its first set", "losses": losses,
              "variables": [common.checksum(n, values[n]) for n in names]}
    common.write_json(os.path.join(DIRECTORY, "golden.json"), golden)
    files = ["../golden/mlp/feed%d_%s.npy" % (k % 2, "%s") for k in range(5)]
    common.write_json(os.path.join(DIRECTORY, "script.json"), {"runs": [
        {"feeds": {t: f % t.replace(":", "_") for t in feeds[0]}, "fetches": [example.loss], "targets": example.train} for f in files]})
    size = sum(os.path.getsize(os.path.join(DIRECTORY, f)) for f in os.listdir(DIRECTORY))
    return "%-16s mlp after %d steps, %.2f MB; losses from there %.6g ... %.6g" % ("checkpoint", STEPS, size / 1e6, losses[0], losses[-1])
