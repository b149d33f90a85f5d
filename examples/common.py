"""What the example models share: the description of an example, feeds, FLOP counts and golden values."""

import collections
import hashlib
import json
import os
import shutil

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf.get_logger().setLevel("ERROR")

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 1


class Example:
    """One example graph.

    build()            adds the graph's nodes to the default graph.
    feeds              list of {tensor name: array}; training step k is fed with feeds[k % len(feeds)].
    gradients          tensors fetched before the first update.
    init, train, loss  names of the initialiser, of the training operation and of the loss.
    """

    def __init__(self, name, build, feeds, gradients=(), init=("init",), train=("train_op",), loss="loss:0",
                 steps=20, resource_variables=False, control_flow_v2=False, note=""):
        self.name, self.build, self.feeds = name, build, feeds
        self.gradients, self.init, self.train, self.loss = list(gradients), list(init), list(train), loss
        self.steps, self.resource_variables, self.control_flow_v2 = steps, resource_variables, control_flow_v2
        self.note = note

    @property
    def path(self):
        return os.path.join(HERE, self.name + ".pb")

    @property
    def golden_dir(self):
        return os.path.join(HERE, "golden", self.name)

    def graph_def(self):
        (tf1.enable_resource_variables if self.resource_variables else tf1.disable_resource_variables)()
        (tf1.enable_control_flow_v2 if self.control_flow_v2 else tf1.disable_control_flow_v2)()
        graph = tf.Graph()
        with graph.as_default():
            tf1.set_random_seed(SEED)
            self.build()
        return graph.as_graph_def()

    def graph_bytes(self):
        return self.graph_def().SerializeToString(deterministic=True)

    def make(self):
        """Builds the graph and writes it; returns its GraphDef."""
        data = self.graph_bytes()
        with open(self.path, "wb") as f:
            f.write(data)
        return self.load()

    def load(self):
        graph_def = tf1.GraphDef()
        with open(self.path, "rb") as f:
            graph_def.ParseFromString(f.read())
        return graph_def


def integers(shape, below, salt):
    """Token ids or labels by a formula: element i is ((i + 1) * 2654435761 + salt * 40503) >> 7 modulo `below`."""
    i = np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64)
    return (((i * np.uint64(2654435761) + np.uint64(salt * 40503)) >> np.uint64(7)) % np.uint64(below)).astype(np.int32).reshape(shape)


def reals(shape, salt):
    """Values in [-1, 1) by a formula: the integers below 2**16, scaled; exact in float32."""
    return (integers(shape, 65536, salt).astype(np.float32) / 32768 - 1).astype(np.float32)


def plain_session(graph, threads=0, at_once=0):
    """A session that runs the graph as it stands: no rewriting, soft placement."""
    config = tf1.ConfigProto(allow_soft_placement=True, intra_op_parallelism_threads=threads,
                             inter_op_parallelism_threads=at_once)
    config.graph_options.optimizer_options.opt_level = tf1.OptimizerOptions.L0
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return tf1.Session(graph=graph, config=config)


# -- The cost of a graph ---------------------------------------------------------------------------------------------

def _needed(graph, names):
    """Operations that `names` need, through data and control inputs."""
    todo, seen = [graph.get_operation_by_name(n.split(":")[0].lstrip("^")) for n in names], set()
    while todo:
        op = todo.pop()
        if op in seen:
            continue
        seen.add(op)
        todo += [t.op for t in op.inputs] + list(op.control_inputs)
    return seen


def _flop(op):
    """Multiply-add work of one operation, from static shapes (2 per multiply-add); 0 for all others; None if unknown."""
    def shape(t):
        return t.shape.as_list() if t.shape.rank is not None else None
    if op.type == "MatMul":
        a, out = shape(op.inputs[0]), shape(op.outputs[0])
        if a is None or out is None or None in a + out:
            return None
        return 2 * out[0] * out[1] * (a[0] if op.get_attr("transpose_a") else a[1])
    if op.type in ("BatchMatMul", "BatchMatMulV2"):
        a, out = shape(op.inputs[0]), shape(op.outputs[0])
        if a is None or out is None or None in a + out:
            return None
        return 2 * int(np.prod(out)) * (a[-2] if op.get_attr("adj_x") else a[-1])
    if op.type in ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"):
        if op.type == "Conv2D":
            kernel, out = shape(op.inputs[1]), shape(op.outputs[0])
        elif op.type == "Conv2DBackpropInput":
            kernel, out = shape(op.inputs[1]), shape(op.inputs[2])
        else:
            kernel, out = shape(op.outputs[0]), shape(op.inputs[2])
        if kernel is None or out is None or None in kernel + out:
            return None
        return 2 * int(np.prod(out)) * int(np.prod(kernel[:3]))
    return 0


def with_fed_shapes(graph_def, feeds):
    """The graph imported with its placeholders as large as the feeds, so that shapes are known."""
    fixed = tf1.GraphDef()
    fixed.CopyFrom(graph_def)
    for node in fixed.node:
        value = feeds.get(node.name + ":0")
        if value is not None and node.op == "Placeholder":
            node.attr["shape"].shape.CopyFrom(tf.TensorShape(value.shape).as_proto())
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(fixed, name="")
    return graph


def flop_of_step(graph_def, feeds, targets):
    """(FLOP of the matrix products and convolutions of a step, operations whose shapes are not known)."""
    graph = with_fed_shapes(graph_def, feeds)
    work = [_flop(op) for op in _needed(graph, targets)]
    return sum(w for w in work if w), sum(1 for w in work if w is None)


def describe(example, graph_def):
    nodes = len(graph_def.node)
    in_functions = sum(len(f.node_def) for f in graph_def.library.function)
    flop, unknown = flop_of_step(graph_def, example.feeds[0], example.train)
    needed = len(_needed(with_fed_shapes(graph_def, example.feeds[0]), example.train))
    devices = collections.Counter(n.device for n in graph_def.node)
    text = "%-16s %5d nodes, %5d in a step, %7.3f GFLOP a step%s, %.2f MB" % (
        example.name, nodes, needed, flop / 1e9, " (+ %d products of unknown shape)" % unknown if unknown else "",
        os.path.getsize(example.path) / 1e6)
    if in_functions:
        text += ", %d nodes in %d functions" % (in_functions, len(graph_def.library.function))
    if len(devices) > 1:
        text += ", devices: " + ", ".join("%s %d" % (d or "(none)", c) for d, c in sorted(devices.items()))
    return text


# -- Golden values ---------------------------------------------------------------------------------------------------

def checksum(name, value):
    """What is stored of a tensor: enough to see that two agree, and where they begin to differ."""
    value = np.ascontiguousarray(value)
    wide = value.astype(np.float64)
    return {"name": name, "dtype": value.dtype.name, "shape": list(value.shape), "sum": float(wide.sum()),
            "sum_of_squares": float(np.square(wide).sum()), "max_abs": float(np.abs(wide).max()) if value.size else 0.0,
            "first": [float(v) for v in wide.ravel()[:8]], "last": [float(v) for v in wide.ravel()[-4:]],
            "sha256": hashlib.sha256(value.tobytes()).hexdigest()}


def variables_of(graph):
    return [op for op in graph.get_operations() if op.type in ("VariableV2", "Variable", "VarHandleOp")]


def initializer_of(graph, variable):
    """How the variable's first value comes about: 'uniform', 'normal' or 'constant'."""
    assigns = [op for op in graph.get_operations() if op.type in ("Assign", "AssignVariableOp")
               and op.inputs[0].op is variable and op.name == variable.name + "/Assign"]
    if not assigns:
        return "none"
    types = {op.type for op in _needed(graph, [assigns[0].inputs[1].op.name])}
    if types & {"TruncatedNormal", "RandomStandardNormal"}:
        return "normal"
    return "uniform" if "RandomUniform" in types else "constant"


def gradients_of(graph):
    """The tensors that Apply* operations take as gradients, in the graph's order."""
    made = []
    for op in graph.get_operations():
        names = [a.name for a in op.op_def.input_arg] if op.op_def else []
        if ("Apply" in op.type) and "grad" in names and "indices" not in names:
            made.append(op.inputs[names.index("grad")].name)
    return made


def read_tensor(graph, variable):
    if variable.type != "VarHandleOp":
        return variable.outputs[0]
    return graph.get_tensor_by_name(variable.name + "/Read/ReadVariableOp:0")


def write_golden(example):
    """Runs the committed graph with TensorFlow and writes golden/<name>/: golden.json, script.json, the feeds."""
    directory = example.golden_dir
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(example.load(), name="")
    feed_files = []
    for k, feeds in enumerate(example.feeds):
        files = {}
        for tensor, value in sorted(feeds.items()):
            files[tensor] = "feed%d_%s.npy" % (k, tensor.replace("/", "_").replace(":", "_"))
            np.save(os.path.join(directory, files[tensor]), value)
        feed_files.append(files)
    variables = variables_of(graph)
    with plain_session(graph) as session:
        session.run(example.init)
        initial = []
        for variable in variables:
            value = session.run(read_tensor(graph, variable))
            initial.append(dict(checksum(variable.name, value), initializer=initializer_of(graph, variable),
                                read=read_tensor(graph, variable).name))
        # all in one step, so that all have the same dropout
        wanted = list(dict.fromkeys(example.gradients + gradients_of(graph)))
        gradients = [checksum(t, value) for t, value in zip(wanted, session.run(wanted, example.feeds[0]))]
        # Fetching the gradients ran random operations (dropout), so the losses need a fresh session.
    with plain_session(graph) as session:
        session.run(example.init)
        losses = [float(session.run([example.loss] + example.train, example.feeds[k % len(example.feeds)])[0])
                  for k in range(example.steps)]
    with open(example.path, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    golden = {"format": "tfc-golden", "version": 1, "graph": "../../%s.pb" % example.name, "graph_sha256": digest,
              "tensorflow": tf.__version__, "init": example.init, "train": example.train, "loss": example.loss,
              "feeds": feed_files, "losses": losses, "gradients": gradients, "variables": initial,
              "flop": flop_of_step(example.load(), example.feeds[0], example.train)[0]}
    write_json(os.path.join(directory, "golden.json"), golden)
    runs = [{"targets": example.init}]
    runs += [{"feeds": feed_files[k % len(feed_files)], "fetches": [example.loss], "targets": example.train}
             for k in range(example.steps)]
    write_json(os.path.join(directory, "script.json"), {"runs": runs})
    return "%-16s losses %.6g ... %.6g" % (example.name, losses[0], losses[-1])


def write_json(path, value):
    def rows(v, indent):
        if isinstance(v, dict):
            inner = ",\n".join(" " * (indent + 1) + json.dumps(k) + ": " + rows(x, indent + 1) for k, x in v.items())
            return "{\n" + inner + "\n" + " " * indent + "}"
        if isinstance(v, list) and v and isinstance(v[0], dict):
            return "[\n" + ",\n".join(" " * (indent + 1) + json.dumps(x) for x in v) + "\n" + " " * indent + "]"
        return json.dumps(v)
    with open(path, "w") as f:
        f.write(rows(value, 0) + "\n")
