#!/usr/bin/env python3
"""Steps of a placed graph in TensorFlow, on CPU devices of one process, for `tfc-place --measure-with`.

    tfc-place --graph examples/mlp.pb --machine m.yaml \\
        --measure-with 'python3 examples/measure_with/tensorflow_steps.py'

Device i of the machine is TensorFlow's CPU i. The graph is a GraphDef (.pb); the step is --target (default train_op),
after --init (default init) was run once for each placement. Placeholders are fed with numbers that follow from their
names; --batch says how long unknown leading dimensions are. With --operations steps are traced, which makes them longer,
and answers have the times of single operations.
"""
import argparse
import json
import os
import sys
import time
import zlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

tf1 = tf.compat.v1


def say(document):
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def feeds_of(graph, batch):
    """A value for every placeholder: small whole numbers, which are indices and labels too, or reals around 0."""
    feeds = {}
    for op in graph.get_operations():
        if op.type != "Placeholder":
            continue
        shape = [batch if d is None else d for d in (op.outputs[0].shape.as_list() if op.outputs[0].shape.rank else [])]
        dtype = op.outputs[0].dtype.as_numpy_dtype
        random = np.random.RandomState(zlib.crc32(op.name.encode()) & 0x7FFFFFFF)
        if np.issubdtype(dtype, np.integer):
            feeds[op.outputs[0]] = random.randint(0, 2, size=shape).astype(dtype)
        else:
            feeds[op.outputs[0]] = random.uniform(-1, 1, size=shape).astype(dtype)
    return feeds


class Machine:
    def __init__(self, arguments, hello):
        self.arguments = arguments
        self.devices = {name: "/device:CPU:%d" % i for i, name in enumerate(hello["devices"])}
        self.names = {"/device:CPU:%d" % i: name for i, name in enumerate(hello["devices"])}
        self.graph_def = graph_pb2.GraphDef()
        with open(hello["graph"], "rb") as file:
            self.graph_def.ParseFromString(file.read())
        self.config = tf1.ConfigProto(
            device_count={"CPU": len(self.devices)},
            intra_op_parallelism_threads=1,
            inter_op_parallelism_threads=len(self.devices),
            allow_soft_placement=False,
        )

    def place(self, placement):
        placed = graph_pb2.GraphDef()
        placed.CopyFrom(self.graph_def)
        for node in placed.node:
            node.device = self.devices[placement[node.name]] if node.name in placement else ""
        return placed

    def operations(self, metadata):
        rows = []
        begin = min((n.all_start_micros for d in metadata.step_stats.dev_stats for n in d.node_stats), default=0)
        for device in metadata.step_stats.dev_stats:
            name = next((self.names[end] for end in self.names if device.device.endswith(end)), None)
            for node in device.node_stats if name else []:
                rows.append({"node": node.node_name, "device": name, "start_us": float(node.all_start_micros - begin),
                             "time_us": float(node.op_end_rel_micros)})
        return rows

    def measure(self, request):
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(self.place(request["placement"]), name="")
            feeds = feeds_of(graph, self.arguments.batch)
            target = graph.get_operation_by_name(self.arguments.target)
            with tf1.Session(graph=graph, config=self.config) as session:
                if self.arguments.init:
                    session.run(graph.get_operation_by_name(self.arguments.init))
                return self.time_steps(session, target, feeds, request)

    def time_steps(self, session, target, feeds, request):
        step_us, rows = [], None
        for i in range(request.get("warmup", 1) + request.get("steps", 5)):
            options = metadata = None
            if self.arguments.operations:
                options = tf1.RunOptions(trace_level=tf1.RunOptions.SOFTWARE_TRACE)
                metadata = tf1.RunMetadata()
            begin = time.perf_counter()
            session.run(target, feeds, options=options, run_metadata=metadata)
            took = 1e6 * (time.perf_counter() - begin)
            if i >= request.get("warmup", 1):
                step_us.append(took)
                rows = self.operations(metadata) if metadata else None
        answer = {"id": request["id"], "step_us": step_us}
        if rows is not None:
            answer["operations"] = rows
        return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="train_op")
    parser.add_argument("--init", default="init")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--operations", action="store_true")
    arguments = parser.parse_args()
    machine = Machine(arguments, json.loads(sys.stdin.readline()))
    say({"ready": True, "label": "measured", "operations": arguments.operations})
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        try:
            say(machine.measure(request))
        except tf.errors.ResourceExhaustedError:
            say({"id": request["id"], "fits": False})
        except (tf.errors.OpError, KeyError, ValueError) as error:
            say({"id": request["id"], "error": str(error).split("\n")[0]})


if __name__ == "__main__":
    main()
