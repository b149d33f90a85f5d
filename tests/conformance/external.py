"""A training graph from elsewhere: its input pipeline is cut by feeding, random initial values are fed, losses compared."""

import os

import numpy as np

import common
from tool import last_line

tf, tf1 = common.tf, common.tf1
STEPS, BATCH, TIME = 20, 8, 7
SOURCES = ("IteratorGetNext", "Placeholder", "LookupTableFindV2", "LookupTableFind", "QueueDequeueManyV2", "QueueDequeueV2")
RANDOM = ("RandomUniform", "RandomStandardNormal", "TruncatedNormal")


def read_graph(path):
    """(GraphDef, MetaGraphDef or None) of a .meta or .pb file"""
    with open(path, "rb") as f:
        data = f.read()
    meta = tf1.MetaGraphDef()
    try:
        meta.ParseFromString(data)
        if meta.graph_def.node:
            return meta.graph_def, meta
    except Exception:
        pass
    graph_def = tf1.GraphDef()
    graph_def.ParseFromString(data)
    return graph_def, None


def loss_of(graph, options):
    if options.loss:
        return options.loss if ":" in options.loss else options.loss + ":0"
    shown = [op for op in graph.get_operations() if op.type == "ScalarSummary" and "train_loss" in op.name]
    if shown:
        return shown[0].inputs[1].name
    return "loss:0"


def sources(graph, names):
    """Tensors where the step's input pipeline is cut, in the graph's order."""
    todo, seen, cut = [graph.get_operation_by_name(n) for n in names], set(), []
    while todo:
        op = todo.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.type in SOURCES:
            cut.append(op)
        else:
            todo += [t.op for t in op.inputs] + list(op.control_inputs)
    used = {t for op in seen if op.type not in SOURCES for t in op.inputs}
    return [t for op in sorted(cut, key=lambda o: o.name) for t in op.outputs if t in used], seen


def feeds_for(tensors, vocabulary, k):
    """Ids below the vocabulary for rank 2 and more, lengths for rank 1, zero for scalars."""
    made = {}
    for i, t in enumerate(tensors):
        known = t.shape.as_list() if t.shape.rank is not None else []
        if t.op.type.startswith("LookupTableFind"):
            made[t.name] = np.zeros([d or 1 for d in known], t.dtype.as_numpy_dtype)
        elif len(known) == 1 and t.dtype.is_integer:
            lengths = 1 + common.integers([BATCH], TIME, 7 * k + i)
            lengths[0] = TIME
            made[t.name] = lengths.astype(t.dtype.as_numpy_dtype)
        elif t.dtype.is_integer:
            shape = [d or (BATCH if j == 0 else TIME) for j, d in enumerate(known)]
            made[t.name] = common.integers(shape, vocabulary, 7 * k + i).astype(t.dtype.as_numpy_dtype)
        else:
            made[t.name] = common.reals([d or BATCH for d in known], 7 * k + i).astype(t.dtype.as_numpy_dtype)
    return made


def prepare(path, options):
    graph_def, meta = read_graph(path)
    graph = tf.Graph()
    with graph.as_default():
        tf1.import_graph_def(graph_def, name="")
    train = list(meta.collection_def["train_op"].node_list.value) if meta and "train_op" in meta.collection_def else ["train_op"]
    train = [t.split(":")[0] for t in train]
    loss = loss_of(graph, options)
    cut, needed = sources(graph, train + [loss.split(":")[0]])
    gathers = [op.inputs[0].shape.as_list()[0] for op in needed if op.type in ("GatherV2", "Gather", "ResourceGather") and op.inputs[0].shape.rank == 2]
    vocabulary = min([g for g in gathers if g] or [100])
    # Time-major graphs put time first: a length reaches up to the shorter side.
    global BATCH, TIME
    BATCH = TIME = 7
    steps = [feeds_for(cut, vocabulary, k % 3) for k in range(STEPS)]
    variables = common.variables_of(graph)
    start = {}
    init = [op.name for op in graph.get_operations() if op.name in ("init", "init_op")]
    if not init:
        init = [v.name + "/Assign" for v in variables]
    for op in sources_of_randomness(graph, init):
        shape = tf.get_static_value(op.inputs[0])
        start[op.outputs[0].name] = (common.reals([int(d) for d in shape], len(start)) * 0.5 + 0.5).astype(op.outputs[0].dtype.as_numpy_dtype)
    return graph, init, start, train, loss, steps


def sources_of_randomness(graph, names):
    todo, seen = [graph.get_operation_by_name(n) for n in names], set()
    while todo:
        op = todo.pop()
        if op not in seen:
            seen.add(op)
            todo += [t.op for t in op.inputs] + list(op.control_inputs)
    return sorted((op for op in seen if op.type in RANDOM), key=lambda o: o.name)


def compare(path, options, program, report, compare_losses):
    name = "graph." + os.path.basename(path)
    graph, init, start, train, loss, steps = prepare(path, options)
    with common.plain_session(graph) as session:
        session.run(init, start)
        expected = [float(session.run([loss] + train, feeds)[0]) for feeds in steps]
    runs = [{"targets": init, "feeds": start}] + [{"feeds": feeds, "fetches": [loss], "targets": train} for feeds in steps]
    code, outputs, errors = program.script(path, runs, os.path.join(options.directory, name))
    if code != 0:
        return report.fail(name, "tfc-run ended with %s: %s" % (code, last_line(errors)))
    print("        %s: TensorFlow's losses %.6g ... %.6g" % (name, expected[0], expected[-1]))
    compare_losses(name + ".losses", expected, [float(o[loss]) for o in outputs[1:] if loss in o], report)
