"""Random graphs (tests/common/random_graph.h): TensorFlow's results beside those of one device and of random placements."""

import json
import os
import random
import subprocess

import numpy as np

import cases
from tool import last_line

tf, tf1 = cases.tf, cases.tf1
DEVICES = ["cpu:0", "cpu:1", "emu:0", "emu:1"]
# All values in these graphs are on a grid of 1/16, or are integers.
RULE = "relative:1e-5:4"


# TensorFlow's in-place operations write to tensors that other operations read, too, even constants: so their results
# are not compared, and each other tensor is fetched in a session of its own. In a non-maximum suppression, the order of
# equal scores is that of TensorFlow's heap, so nothing that depends on it is compared.
IN_PLACE = {"InplaceAdd", "InplaceSub", "InplaceUpdate"}
UNORDERED = {"CombinedNonMaxSuppression"}


def needs(graph_def, tensor):
    """The types of the operations that a tensor is made by."""
    nodes, todo, seen = {n.name: n for n in graph_def.node}, [tensor], set()
    while todo:
        name = todo.pop().split(":")[0].lstrip("^")
        if name not in seen:
            seen.add(name)
            todo += nodes[name].input
    return {nodes[n].op for n in seen}


def tensorflow(path, fetches):
    """The values of the fetches (None: not to be compared), or the text of TensorFlow's error."""
    graph_def = tf1.GraphDef()
    with open(path, "rb") as f:
        graph_def.ParseFromString(f.read())
    graph_def.versions.producer = cases.producer(graph_def)
    graph = tf.Graph()
    config = tf1.ConfigProto(allow_soft_placement=True, intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    try:
        with graph.as_default():
            tf1.import_graph_def(graph_def, name="")
        makers = {f: needs(graph_def, f) for f in fetches}
        alone = any(ops & IN_PLACE for ops in makers.values())
        values = {}
        for part in [[f] for f in fetches] if alone else [fetches]:
            with tf1.Session(graph=graph, config=config) as session:
                values.update(zip(part, session.run(part, options=tf1.RunOptions(timeout_in_ms=20000))))
        return [None if makers[f] & (IN_PLACE | UNORDERED) else np.asarray(values[f]) for f in fetches], None, graph_def
    except (tf.errors.OpError, ValueError) as error:
        return None, " ".join(str(error).split()), graph_def


def placement(graph_def, path, seed):
    """A placement document with a random device for every node."""
    chosen = random.Random(seed)
    document = {"format": "tfc-placement", "version": 1,
                "devices": [{"name": d, "kind": d.split(":")[0]} for d in DEVICES],
                "placement": {node.name: chosen.choice(DEVICES) for node in graph_def.node}}
    with open(path, "w") as f:
        json.dump(document, f)
    return path


def compare(options, program, report):
    writer = os.path.join(os.path.dirname(os.path.dirname(options.tfc_run)), "tests", "exec_random_graph_thread_test")
    if not os.access(writer, os.X_OK):
        return report.skip("graphs", "no program %s: build the tests" % writer)
    directory = os.path.join(options.directory, "graphs")
    os.makedirs(directory, exist_ok=True)
    subprocess.run([writer, "--write", directory, str(options.seed), str(options.graphs)], check=True)
    lacking = {}
    for seed in range(options.seed, options.seed + options.graphs):
        path = os.path.join(directory, "%d.pb" % seed)
        with open(path[:-3] + ".json") as f:
            fetches = json.load(f)
        expected, error, graph_def = tensorflow(path, fetches)
        name = "graphs.%d" % seed
        if expected is None:
            # TensorFlow's CPU lacks the op or type; or ParallelConcat is in a loop, where its rewritten form does not
            # work.
            concat = "inputs from different frames" in error and any(n.op == "ParallelConcat" for n in graph_def.node)
            if concat or cases.re.search("No OpKernel|Could not find device|no supported kernel|No registered", error):
                lacking[seed] = error
                continue
            report.fail(name, "TensorFlow: " + error[:300])
            continue
        ways = {"one device": [], "placed": ["--placement", placement(graph_def, path[:-3] + ".placement.json", seed)]}
        for way, arguments in ways.items():
            code, outputs, errors = program.script(path, [{"fetches": fetches}], "%s.%s" % (path[:-3], way.replace(" ", "_")), *arguments)
            if code != 0:
                report.fail(name + ", " + way, "tfc-run ended with %s: %s" % (code, last_line(errors)))
                continue
            wrong = ["%s: %s" % (f, w) for f, w in ((f, cases.mismatch(v, outputs[0].get(f, np.zeros(0)), RULE)) for f, v in zip(fetches, expected) if v is not None) if w]
            report.fail(name + ", " + way, wrong[0]) if wrong else report.ok(name + ", " + way)
    if lacking:
        print("        graphs: %d of %d have an op that TensorFlow does not run on a CPU" % (len(lacking), options.graphs))
